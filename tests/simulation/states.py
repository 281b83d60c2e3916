"""Crash states: where a workload is cut, what the crash leaves, and what must come of it.

A state has a name of three numbers, and everything random in it comes from these: the workload's
seed, how many storage operations were done, and which of the crashes there.
"""

from collections.abc import Iterator
from random import Random
from struct import error as StructError
from typing import NamedTuple

from ottla.protocol.errors import KafkaError
from ottla.protocol.wire import ProtocolError
from ottla.storage.clock import Now
from ottla.storage.errors import StorageError
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from tests.simulation.checks import Wrong, check_recovered
from tests.simulation.workload import OPERATIONS, Workload
from tests.simulation.world import fingerprint, log_in, opened

STATES_PER_CUT = 5
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


class Run:
    """A workload that was run once, to be cut anywhere."""

    def __init__(self, seed: int, count: int = OPERATIONS) -> None:
        self.seed = seed
        self.workload = Workload(seed)
        self.workload.run(count)

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
        crashed = disk.crash(random, crash)
        now = self.workload.now
        now = Now(now.monotonic_ms, now.wall_ms)
        journal = crashed.record()
        self._opened(crashed, state.cut)
        cuts = journal.cuts()
        again = journal.disk_at(random.choice(cuts)).crash(random, random.choice(_ANY))
        first = self._opened(again, state.cut)
        second = self._opened(again.copy(), state.cut)
        if first != second:
            differing = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
            raise Wrong(f"opened once and twice: {differing}")

    def _opened(self, files: MemoryFiles, cut: int) -> tuple[object, ...]:
        logs = opened(files, self.workload.config, self.workload.now)
        if logs.refused:
            raise Wrong(f"refused: {logs.refused}")
        if logs.offline:
            raise Wrong(f"offline: {logs.offline}")
        log = log_in(logs)
        check_recovered(log, self.workload.history, cut)
        return () if log is None else fingerprint(log)
