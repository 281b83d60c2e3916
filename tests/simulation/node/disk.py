"""The disk of a simulated machine: traced, as slow as its seed says, and it fails on command."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from zlib import crc32

from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from tests.simulation.node.trace import Trace

# What one operation meets. Reads of what is on disk are left alone: storage has tests for that.
PASSING = (Fault.ENOSPC, Fault.SHORT_WRITE)
LASTING = (Fault.EIO, Fault.EROFS)
WRITES = frozenset({"write", "resize", "sync", "create", "rename", "sync_directory"})
# A full disk takes no more bytes; what it has it keeps and syncs.
GROWING = frozenset({"write", "create"})


class Disk:
    """What a machine keeps while its processes come and go."""

    def __init__(self, random: Random, trace: Trace, wall_ms: Callable[[], int]) -> None:
        self._random = random
        self._trace = trace
        self.slowness_s = random.choice((0.000_1, 0.002, 0.02, 0.2))
        self.fault: Fault | None = None
        self.faults_left = 0
        self.hits = 0
        self._files = MemoryFiles(now_ms=wall_ms, delay_s=self._delay_s)

    @property
    def files(self) -> MemoryFiles:
        """What the process of now has; the one before has nothing of it."""
        return self._files

    def make_directory(self, path: str) -> None:
        self._files.make_directory(path)
        self._files.sync_directory_now("")

    def killed(self) -> None:
        """The process is gone, and the kernel keeps what was written."""
        self._renew(self._files.copy())

    def crashed(self) -> None:
        """The power is gone, and with it what was not synced; or some of it."""
        crash = self._random.choice((Crash.SYNCED, Crash.MIXED))
        self._trace.add("crash", crash.name)
        self._renew(self._files.crash(self._random, crash))

    def _renew(self, files: MemoryFiles) -> None:
        self._files = files
        self.fault = None
        files.fail(self._meets, Fault.EIO, times=None)
        for fault in (*PASSING, *LASTING):
            files.fail(self._chosen(fault), fault, times=None)

    def start(self) -> None:
        """From here on all is traced."""
        self._renew(self._files.copy())

    def _meets(self, operation: Operation) -> bool:
        """Only looks on; the faults come behind it."""
        self._trace.add(
            "disk",
            operation.kind,
            operation.path,
            operation.position,
            operation.size,
            crc32(operation.data),
            operation.target,
        )
        return False

    def _chosen(self, fault: Fault) -> Callable[[Operation], bool]:
        kinds = GROWING if fault in PASSING else WRITES

        def chosen(operation: Operation) -> bool:
            if fault is not self.fault or operation.kind not in kinds:
                return False
            if fault is Fault.SHORT_WRITE and operation.kind != "write":
                return False
            self.faults_left -= 1
            if self.faults_left <= 0:
                self.fault = None
            self.hits += 1
            self._trace.add("fault", fault.name, operation.kind, operation.path)
            return True

        return chosen

    def arm(self, fault: Fault, count: int) -> None:
        """The next writes meet it, so many times."""
        self.fault, self.faults_left = fault, count

    def _delay_s(self, kind: str, path: str) -> float:
        return self.slowness_s * (0.5 + self._random.random())
