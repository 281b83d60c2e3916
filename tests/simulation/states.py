"""Crash states: where a workload is cut, what the crash leaves, and what must come of it.

A state has a name of three numbers, and everything random in it comes from these: the workload's
seed, how many storage operations were done, and which of the crashes there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from random import Random
from struct import error as StructError
from typing import NamedTuple, TypeVar

from ottla.protocol.errors import KafkaError
from ottla.protocol.wire import ProtocolError
from ottla.storage.errors import StorageError
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import Journal, MemoryFiles
from tests.simulation.checks import Wrong, check_recovered
from tests.simulation.workload import OPERATIONS, Workload
from tests.simulation.world import Recovered, log_in, opened, recovered_in

STATES_PER_CUT = 5
_KEPT = 500
T = TypeVar("T")
# The first states of a cut are the plain extremes.
_CRASHES = (Crash.SYNCED, Crash.EVERYTHING)
_ANY = tuple(crash for crash in Crash if crash not in _CRASHES)

# What a mistake of ours could look like, wherever it is.
SURPRISES = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, StructError, KafkaError, ProtocolError, StorageError),
)


class State(NamedTuple):
    seed: int
    cut: int
    state: int

    def __str__(self) -> str:
        return (
            f"python -m tests.simulation --seed {self.seed} --cut {self.cut} --state {self.state}"
        )


class Failure(NamedTuple):
    state: State
    reason: str

    def __str__(self) -> str:
        return f"{self.state}    # {self.reason}"


class Openings:
    """What is found where a disk is opened; the same disk is opened once."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._found: dict[Hashable, Recovered | None] = {}
        self._recoveries: dict[Hashable, Recovery] = {}

    def recovery_of(self, disk: MemoryFiles) -> Recovery:
        """Of what a crash has left. Nearby crashes leave much the same."""
        contents = disk.contents()
        recovery = self._recoveries.get(contents)
        if recovery is None:
            journal = disk.record()
            recovered = self._opened(disk)
            journal.stop()
            recovery = Recovery(disk, journal, journal.cuts(), recovered)
            _keep(self._recoveries, contents, recovery)
        return recovery

    def difference(self, recovery: Recovery) -> list[object]:
        """Between what was found and what is found when the same disk is opened once more."""
        if recovery.difference is None:
            disk = recovery.disk.copy()
            contents = disk.contents()
            if contents not in self._found:
                _keep(self._found, contents, self._opened(disk))
            recovery.difference = _difference(recovery.recovered, self._found[contents])
        return recovery.difference

    def _opened(self, files: MemoryFiles) -> Recovered | None:
        logs = opened(files, self._workload.config, self._workload.now)
        if logs.refused:
            raise Wrong(f"refused: {logs.refused}")
        if logs.offline:
            raise Wrong(f"offline: {logs.offline}")
        log = log_in(logs)
        return None if log is None else recovered_in(log)


@dataclass(slots=True)
class Recovery:
    disk: MemoryFiles
    """As the recovery has left it."""
    journal: Journal
    cuts: list[int]
    recovered: Recovered | None
    difference: list[object] | None = None


def _keep(kept: dict[Hashable, T], key: Hashable, value: T) -> None:
    if len(kept) >= _KEPT:
        del kept[next(iter(kept))]
    kept[key] = value


def _difference(first: Recovered | None, second: Recovered | None) -> list[object]:
    if first is None or second is None:
        return [] if first is second else [(first, second)]
    pairs = zip(first.fingerprint, second.fingerprint, strict=True)
    return [pair for pair in pairs if pair[0] != pair[1]]


class Run:
    """A workload that was run once, to be cut anywhere."""

    def __init__(self, seed: int, count: int = OPERATIONS) -> None:
        self.seed = seed
        self.workload = Workload(seed)
        self.workload.run(count)
        self._openings = Openings(self.workload)

    def cuts(self) -> list[int]:
        journal = self.workload.journal
        return journal.cuts() if journal is not None else []

    def at(self, cut: int) -> MemoryFiles:
        if self.workload.journal is None:
            raise ValueError("nothing was recorded")
        return self.workload.journal.disk_at(cut)

    def failures(self, *, every: int = 1, first: int = 0) -> Iterator[Failure | None]:
        """One item for each state, in the order of the cuts."""
        for cut in self.cuts()[first::every]:
            disk = self.at(cut)
            for state in range(STATES_PER_CUT):
                yield self.failure(State(self.seed, cut, state), disk)

    def failure(self, state: State, disk: MemoryFiles) -> Failure | None:
        try:
            self.check(state, disk)
        except SURPRISES as error:
            reason = str(error).replace("\n", " ")[:400]
            return Failure(state, f"{type(error).__name__}: {reason}")
        return None

    def check(self, state: State, disk: MemoryFiles) -> None:
        """Recovers, recovers what a crash in the recovery leaves, and recovers that once more."""
        random = Random(f"{state.seed} {state.cut} {state.state}")
        is_plain = state.state < len(_CRASHES)
        crash = _CRASHES[state.state] if is_plain else random.choice(_ANY)
        recovery = self._openings.recovery_of(disk.crash(random, crash))
        self._check(recovery.recovered, state.cut)
        cut_short = recovery.journal.disk_at(random.choice(recovery.cuts))
        again = self._openings.recovery_of(cut_short.crash(random, random.choice(_ANY)))
        self._check(again.recovered, state.cut)
        if difference := self._openings.difference(again):
            raise Wrong(f"opened once and twice: {difference}")

    def _check(self, recovered: Recovered | None, cut: int) -> None:
        check_recovered(recovered, self.workload.history, cut)
