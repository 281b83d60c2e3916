"""`Files` in memory, for tests: a disk that crashes, fails and is slow on command.

Operations are counted from 0; `fail` arms a fault for one, `record` keeps a journal of them, and
`crash` gives the disk as a power cut would leave it. So a workload runs once to be cut everywhere:

    for count in journal.cuts():
        recover(journal.disk_at(count).crash(random))
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Hashable
from random import Random

from ottla.protocol.wire import Buffer
from ottla.storage.errors import (
    DiskFailed,
    LockTaken,
    OutOfResources,
    StorageError,
    classified,
)
from ottla.storage.files import File, Files, Lock
from ottla.storage.memory_disk import Crash, Directory, Inode, Tree
from ottla.storage.memory_operations import (
    LOOKS,
    ArmedFault,
    Fault,
    Operation,
    perform,
    perform_again,
    taken_of_short_write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio


class MemoryFile(File):
    __slots__ = ("_disk", "_ended", "_inode", "_sync_error", "_under_way", "_writable")

    def __init__(self, disk: MemoryFiles, path: str, inode: Inode, *, writable: bool) -> None:
        super().__init__(disk, path, len(inode.data))
        self._disk = disk
        self._inode = inode
        self._writable = writable
        self._under_way = False
        self._sync_error: OSError | None = None

    # reading

    def read(self, position: int, size: int) -> bytes:
        return self._read("read", position, size) or b""

    def read_cached(self, position: int, size: int) -> memoryview | None:
        data = self._read("read_cached", position, size)
        return None if data is None else memoryview(data)

    def read_cached_into(self, position: int, buffer: bytearray | memoryview) -> int | None:
        data = self._read("read_cached", position, len(buffer))
        if data is None:
            return None
        buffer[: len(data)] = data
        return len(data)

    async def read_cold(self, position: int, size: int) -> memoryview:
        self._refuse()
        # A read that has begun ends with its bytes, whoever removes the file meanwhile.
        await self._disk._wait("read", self.path)
        return memoryview(self._look("read", position, size) or b"")

    def _read(self, kind: str, position: int, size: int) -> bytes | None:
        self._refuse()
        return self._look(kind, position, size)

    def _look(self, kind: str, position: int, size: int) -> bytes | None:
        disk = self._disk
        if disk._watched:
            try:
                fault = disk._note(kind, self.path, position=position, size=size)
            except OSError as error:
                raise classified(error, path=self.path, action="read") from error
            if fault is Fault.COLD and kind == "read_cached":
                return None
        else:
            disk.operation_count += 1
        if position < 0:
            raise _invalid(self.path)
        return bytes(self._inode.data[position : position + max(0, size)])

    def duplicate_descriptor(self) -> int | None:
        self._refuse()
        return None

    # what the base class asks for

    def _pwrite(self, position: int, buffers: tuple[Buffer, ...]) -> int:
        data = bytes(buffers[0]) if len(buffers) == 1 else b"".join(buffers)
        self._require_writable()
        if position < 0:
            raise _invalid(self.path)
        disk = self._disk
        if disk._watched:
            fault = disk._note("write", self.path, position=position, data=data)
            if fault is Fault.SHORT_WRITE:
                data = taken_of_short_write(data)
        else:
            disk.operation_count += 1
        disk._touch(self._inode)
        self._inode.change((position, data))
        return len(data)

    def _ftruncate(self, size: int) -> None:
        self._require_writable()
        self._disk._note("resize", self.path, size=size)
        self._disk._touch(self._inode)
        self._inode.change((size, None))

    def _require_writable(self) -> None:
        if not self._writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)

    def _fsync(self) -> None:
        try:
            self._disk._note("sync", self.path)
        except OSError:
            self._inode.drop_changes()
            raise
        self._inode.sync()

    def _begin_sync(self, ended: Callable[[BaseException | None], None]) -> None:
        self._ended = ended
        self._under_way = True
        self._sync_error = None
        self._disk._later("sync", self.path, self._end_sync)

    def _end_sync(self) -> None:
        self._finish_sync()
        self._ended(self._sync_error)

    def _finish_sync(self) -> None:
        if self._under_way:
            self._under_way = False
            if not self._closed:
                try:
                    self._fsync()
                except OSError as error:
                    self._sync_error = error

    def _join_sync(self) -> None:
        self._finish_sync()
        if self._sync_error is not None:
            self._sync_failed(self._sync_error)

    def _release(self) -> None:
        pass


class MemoryLock(Lock):
    def __init__(self, inode: Inode) -> None:
        self._inode = inode

    def release(self) -> None:
        self._inode.locked = False


class MemoryFiles(Files):
    """`delay_s` says how long an awaited operation of a kind on a path takes, `now_ms` the time
    that a changed file bears."""

    def __init__(
        self,
        *,
        now_ms: Callable[[], int] | None = None,
        delay_s: Callable[[str, str], float] | None = None,
    ) -> None:
        super().__init__()
        self.operation_count = 0
        self._tree = Tree()
        self._now_ms = now_ms
        self._delay_s = delay_s
        self._faults: list[ArmedFault] = []
        self._journal: list[Operation] | None = None
        self._watched = False
        self._replacer: asyncio.Lock | None = None

    # crashes

    def crash(self, random: Random, crash: Crash = Crash.MIXED) -> MemoryFiles:
        """The disk after a power cut now. This one stays as it is."""
        return self._with(self._tree.crashed(crash, random))

    def copy(self) -> MemoryFiles:
        """The same disk for another process, as a killed one leaves it: nothing open or locked,
        all that was written still there, and as little of it durable."""
        return self._with(self._tree.copy())

    def _with(self, tree: Tree) -> MemoryFiles:
        files = MemoryFiles(now_ms=self._now_ms, delay_s=self._delay_s)
        files._tree = tree
        return files

    def contents(self) -> Hashable:
        """All that can be read, for comparing disks."""
        return self._tree.contents()

    def record(self) -> Journal:
        """Keeps every operation from now on."""
        journal = Journal(self.copy())
        self._journal = journal.operations
        self._watched = True
        return journal

    # faults

    def fail(
        self, when: int | Callable[[Operation], bool], fault: Fault, *, times: int | None = 1
    ) -> None:
        """Arms a fault for the operation of a number, or for the next ones that `when` picks;
        for as many as there come, where `times` is None."""
        self._faults.append(ArmedFault(when, fault, times))
        self._watched = True

    def _note(
        self,
        kind: str,
        path: str,
        *,
        position: int = 0,
        size: int = 0,
        data: bytes = b"",
        target: str = "",
    ) -> Fault | None:
        """Counts the operation, then meets it with its fault: raises what the disk would."""
        number = self.operation_count
        self.operation_count = number + 1
        if not self._watched:
            return None
        operation = Operation(number, kind, path, position, size, data, target)
        fault = self._fault_of(operation) if self._faults else None
        failed = fault is not None and fault.value > 0
        if self._journal is not None:
            if fault is not None:
                operation = operation._replace(fault=fault, failed=failed)
            self._journal.append(operation)
        if fault is not None and failed:
            raise OSError(fault.value, os.strerror(fault.value), path)
        return fault

    def _fault_of(self, operation: Operation) -> Fault | None:
        for armed in self._faults:
            if armed.hits(operation):
                if armed.times == 0:
                    self._faults.remove(armed)
                    self._watched = self._journal is not None or bool(self._faults)
                return armed.fault
        return None

    def _look(self, kind: str, path: str) -> None:
        try:
            self._note(kind, path)
        except OSError as error:
            raise _classified(error, path, kind) from error

    def _change(self, kind: str, path: str, target: str = "") -> None:
        """An operation on names."""
        try:
            self._note(kind, path, target=target)
            perform(self._tree, kind, path, target=target)
        except OSError as error:
            self._journal_failure()
            raise _classified(error, path, kind) from error

    def _journal_failure(self) -> None:
        if self._journal is not None:
            self._journal[-1] = self._journal[-1]._replace(failed=True)

    def _touch(self, inode: Inode) -> None:
        if self._now_ms is not None:
            inode.mtime_ms = self._now_ms()

    # waiting

    async def _wait(self, kind: str, path: str) -> None:
        from asyncio import sleep

        await sleep(self._delay_s(kind, path) if self._delay_s else 0)

    def _later(self, kind: str, path: str, call: Callable[[], None]) -> None:
        from asyncio import get_running_loop

        delay_s = self._delay_s(kind, path) if self._delay_s else 0
        get_running_loop().call_later(delay_s, call)

    # files

    def read_whole(self, path: str) -> bytes:
        self._look("read", path)
        inode = self._tree.file(path)
        self._refuse_locked(path, inode)
        return bytes(inode.data)

    def write_atomically_now(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        if self.exists(temporary):
            self.remove(temporary)
        file = self.create(temporary)
        try:
            file.append(data)
            file.sync_now()
        finally:
            file.close()
        self.rename(temporary, path)
        self.sync_directory_now(path.rpartition("/")[0])

    async def write_atomically(self, path: str, data: bytes) -> None:
        if self._replacer is None:
            from asyncio import Lock

            self._replacer = Lock()
        async with self._replacer:
            await self._wait("write_atomically", path)
            self.write_atomically_now(path, data)

    def _create(self, path: str) -> File:
        self._change("create", path)
        inode = self._tree.file(path)
        self._touch(inode)
        return MemoryFile(self, path, inode, writable=True)

    def _open_to_write(self, path: str) -> File:
        return self._open_inode(path, writable=True)

    def _open_to_read(self, path: str) -> File:
        return self._open_inode(path, writable=False)

    def _open_inode(self, path: str, *, writable: bool) -> File:
        self._look("open", path)
        inode = self._tree.file(path)
        self._refuse_locked(path, inode)
        return MemoryFile(self, path, inode, writable=writable)

    # names

    def exists(self, path: str) -> bool:
        try:
            self._tree.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_directory(self, path: str) -> bool:
        return self.exists(path) and isinstance(self._tree.find(path), Directory)

    def list(self, path: str) -> list[str]:
        self._look("list", path)
        return sorted(self._tree.directory(path).names)

    def size(self, path: str) -> int:
        return len(self._tree.file(path).data)

    def mtime_ms(self, path: str) -> int:
        return self._tree.file(path).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self._tree.file(path).mtime_ms = mtime_ms

    def make_directory(self, path: str) -> None:
        self._change("make_directory", path)

    def rename(self, old: str, new: str) -> None:
        self._change("rename", old, new)
        self._moved(old, new)

    def remove(self, path: str) -> None:
        self._change("remove", path)
        if (file := self._open_file(path)) is not None:
            file.close()

    def remove_directory(self, path: str) -> None:
        self._change("remove_directory", path)

    def _sync_directory(self, path: str) -> None:
        directory = self._tree.directory(path)
        try:
            self._note("sync_directory", path)
        except OSError as error:
            raised = classified(error, path=path, action="sync")
            # Short of descriptors, it was not even opened.
            if not isinstance(raised, OutOfResources):
                directory.drop_changes()
                raised = DiskFailed(path, f"cannot sync: {error.strerror}")
            raise raised from error
        directory.sync()

    async def _sync_directory_aside(self, path: str) -> None:
        await self._wait("sync_directory", path)
        self._sync_directory(path)

    def lock(self, path: str) -> Lock:
        if not self.exists(path):
            self._change("create", path)
        inode = self._tree.file(path)
        self._refuse_locked(path, inode)
        inode.locked = True
        return MemoryLock(inode)

    def _refuse_locked(self, path: str, inode: Inode) -> None:
        if inode.locked:
            raise LockTaken(path, "is locked by this process")

    def close(self) -> None:
        for siblings in list(self._open.values()):
            for file in list(siblings.values()):
                file.close()


def _invalid(path: str) -> OSError:
    return OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


def _classified(error: OSError, path: str, action: str) -> StorageError | OSError:
    return classified(error, path=path, action=action.replace("_", " "))


class Journal:
    """A disk as it was, and the operations since."""

    def __init__(self, base: MemoryFiles) -> None:
        self.operations: list[Operation] = []
        self._base = base
        self._disk = base
        # So that the first look makes a copy.
        self._count = 1 << 62

    def cuts(self) -> list[int]:
        """Counts of operations after which a crash leaves what it did not leave before."""
        changes = (i for i, operation in enumerate(self.operations) if operation.kind not in LOOKS)
        return [*changes, len(self.operations)]

    def stop(self) -> None:
        """Keeps no more operations; those that it has can be done again still."""
        self.operations = self.operations.copy()

    def disk_at(self, count: int) -> MemoryFiles:
        """The disk after the first `count` operations: to crash or to copy, and valid until the
        next call. Going forward costs only the operations between."""
        if count < self._count:
            self._disk, self._count = self._base.copy(), 0
        for operation in self.operations[self._count : count]:
            perform_again(self._disk._tree, operation)
            self._disk.operation_count = operation.number + 1
        self._count = count
        return self._disk
