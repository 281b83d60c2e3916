"""`Files` on a real disk: the only module that opens files, and the only one that knows threads.

Descriptors are a cache: a file gives its own back when too many are open, and opens again by its
path when it is next used. Threads only wait: for fsync and for reads that memory cannot serve. They
touch no state of ours, only a descriptor that stays pinned until they are done.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections import deque
from contextlib import contextmanager, suppress

from ottla.protocol.wire import Buffer
from ottla.storage.disk_threads import Threads
from ottla.storage.errors import DiskFailed, DiskFull, LockTaken, classified
from ottla.storage.files import File, Files, Lock
from ottla.storage.read_buffers import SIZE_MAX, SIZE_MIN, ReadBuffers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.storage.disk_threads import Job

_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0) if hasattr(os, "preadv") else 0
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_UNCHECKED_READ_BYTES_MAX = SIZE_MAX
_BUFFERS_PER_WRITE_MAX = 1024
# Enough for a file system to gather the fsyncs of many files into one commit of its journal:
# 100 files of one batch each took 23 ms one after another, 15 ms on 4 threads, 9 ms on 16.
_SYNC_THREADS = 16
_READ_THREADS = 4

# Inodes that this process has locked. A POSIX lock goes as soon as *any* descriptor of its file is
# closed, so a second opening must be refused before it opens.
_locked: set[tuple[int, int]] = set()


def _fsync(fd: int) -> bytes:
    if _FULL_FSYNC is None or not _full_fsync(fd, _FULL_FSYNC):
        os.fsync(fd)
    return b""


def _full_fsync(fd: int, command: int) -> bool:
    """macOS leaves data in the drive's cache at a plain fsync."""
    try:
        fcntl.fcntl(fd, command)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
            return False
        raise
    return True


def _fsync_or_fail(fd: int, path: str) -> None:
    try:
        _fsync(fd)
    except OSError as error:
        # Whatever its number: an fsync that failed lost data.
        raise DiskFailed(path, f"cannot sync: {error.strerror}") from error


def _sync_directory(path: str) -> bytes:
    try:
        fd = os.open(path or ".", os.O_RDONLY)
    except OSError as error:
        raise classified(error, path=path, action="open to sync") from error
    try:
        _fsync_or_fail(fd, path)
    finally:
        os.close(fd)
    return b""


def _read_fully(fd: int, position: int, size: int) -> bytes:
    data = os.pread(fd, size, position)
    parts = [data]
    while data and (size := size - len(data)):
        position += len(data)
        data = os.pread(fd, size, position)
        parts.append(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _replace(path: str, data: bytes) -> bytes:
    temporary = path + ".tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            written = os.write(fd, data)
            if written != len(data):
                raise DiskFull(
                    path, f"cannot write: only {written} of {len(data)} bytes were taken"
                )
            _fsync_or_fail(fd, path)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except OSError as error:
        raise classified(error, path=path, action="replace") from error
    return _sync_directory(path.rpartition("/")[0])


class DiskFile(File):
    __slots__ = ("_chances", "_disk", "_fd", "_flags", "_job", "_nowait", "_pins")

    def __init__(self, disk: DiskFiles, path: str, *, size: int, flags: int) -> None:
        super().__init__(disk, path, size)
        self._disk = disk
        self._flags = flags
        self._fd = -1
        # Descriptors in the hands of threads stay open, and so do those of `_job`'s fsync.
        self._pins = 0
        self._job: Job | None = None
        # How often the hand of the clock passes by before it takes the descriptor.
        self._chances = 0
        self._nowait = _NOWAIT

    # reading

    def read(self, position: int, size: int) -> bytes:
        fd = self._descriptor()
        try:
            return _read_fully(fd, position, max(0, min(size, self.size - position)))
        except OSError as error:
            raise classified(error, path=self.path, action="read") from error

    def read_cached(self, position: int, size: int) -> memoryview | None:
        if not self._nowait:
            return memoryview(self._read_unchecked(position, size))
        size = max(0, min(size, self.size - position))
        buffer = self._disk._buffers.take(size) if size >= SIZE_MIN else bytearray(size)
        count = self.read_cached_into(position, buffer)
        return None if count is None else memoryview(buffer)[:count]

    def read_cached_into(self, position: int, buffer: bytearray | memoryview) -> int | None:
        fd = self._descriptor()
        if position < 0:
            # preadv2 would take -1 for the descriptor's own offset.
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.path)
        if self._nowait:
            try:
                return os.preadv(fd, [buffer], position, self._nowait)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise classified(error, path=self.path, action="read") from error
                self._nowait = 0
        data = self._read_unchecked(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_unchecked(self, position: int, size: int) -> bytes:
        """Where the kernel cannot tell what is in memory."""
        return self.read(position, min(size, _UNCHECKED_READ_BYTES_MAX))

    async def read_cold(self, position: int, size: int) -> memoryview:
        fd = self._descriptor()
        size = max(0, min(size, self.size - position))
        from asyncio import get_running_loop

        done = get_running_loop().create_future()

        def ended(job: Job) -> None:
            self._unpin()
            if not done.done():
                done.set_result(job)

        self._pins += 1
        self._disk._readers.run(ended, _read_fully, fd, position, size)
        job = await done
        try:
            return memoryview(job.result())
        except OSError as error:
            raise classified(error, path=self.path, action="read") from error

    def duplicate_descriptor(self) -> int | None:
        fd = self._descriptor()
        try:
            return os.dup(fd)
        except OSError as error:
            raise classified(error, path=self.path, action="duplicate its descriptor") from error

    # what the base class asks for

    def _pwrite(self, position: int, buffers: tuple[Buffer, ...]) -> int:
        fd = self._fd
        if fd < 0:
            fd = self._reopen()
        self._chances = 3
        if len(buffers) == 1:
            return os.pwrite(fd, buffers[0], position)
        if len(buffers) <= _BUFFERS_PER_WRITE_MAX:
            return os.pwritev(fd, buffers, position)
        return os.pwrite(fd, b"".join(buffers), position)

    def _ftruncate(self, size: int) -> None:
        os.ftruncate(self._descriptor(), size)

    def _fsync(self) -> None:
        _fsync(self._descriptor())

    def _begin_sync(self, ended: Callable[[BaseException | None], None]) -> None:
        fd = self._descriptor()

        def job_ended(job: Job) -> None:
            self._job = None
            self._unpin()
            ended(job.exception())

        self._pins += 1
        self._job = self._disk._syncers.run(job_ended, _fsync, fd)

    def _join_sync(self) -> None:
        if self._job is not None and (error := self._job.exception()) is not None:
            self._sync_failed(error)

    # descriptors

    def _descriptor(self) -> int:
        if self._failure is not None or self._closed:
            self._refuse()
        self._chances |= 1
        return self._fd if self._fd >= 0 else self._reopen()

    def _reopen(self) -> int:
        self._fd = self._disk._open_descriptor(self.path, self._flags)
        self._disk._hold(self)
        return self._fd

    def _close_descriptor(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._disk._descriptors -= 1

    def _unpin(self) -> None:
        self._pins -= 1
        if self._closed and not self._pins:
            self._close_descriptor()

    def _release(self) -> None:
        if not self._pins:
            self._close_descriptor()


class DiskLock(Lock):
    def __init__(self, fd: int, inode: tuple[int, int]) -> None:
        self._fd = fd
        self._inode = inode

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            _locked.discard(self._inode)


class DiskFiles(Files):
    """`descriptors_max` bounds the files open at once; half of what the process may have."""

    def __init__(self, descriptors_max: int | None = None) -> None:
        super().__init__()
        self._descriptors_max = descriptors_max or _half_of_the_limit()
        self._descriptors = 0
        self._clock: deque[DiskFile] = deque()
        self._buffers = ReadBuffers()
        self._readers = Threads(_READ_THREADS)
        self._syncers = Threads(_SYNC_THREADS)
        # One thread, so that replacements of the same file keep their order.
        self._replacer = Threads(1)

    # files

    def read_whole(self, path: str) -> bytes:
        with _classified(path, "read"):
            _refuse_locked(path, os.stat(path))
            with open(path, "rb", buffering=0) as file:
                return file.read()

    def write_atomically_now(self, path: str, data: bytes) -> None:
        self._replace(path, data)

    async def write_atomically(self, path: str, data: bytes) -> None:
        await self._replacer.wait(_replace, path, data)

    def _replace(self, path: str, data: bytes) -> None:
        if self._replacer.started:
            self._replacer.submit(_replace, path, data).result()
        else:
            _replace(path, data)

    def _create(self, path: str) -> File:
        file = DiskFile(self, path, size=0, flags=os.O_RDWR)
        file._fd = self._open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self._hold(file)
        return file

    def _open_to_write(self, path: str) -> File:
        return DiskFile(self, path, size=self._size_to_open(path), flags=os.O_RDWR)

    def _open_to_read(self, path: str) -> File:
        return DiskFile(self, path, size=self._size_to_open(path), flags=os.O_RDONLY)

    def _size_to_open(self, path: str) -> int:
        with _classified(path, "open"):
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            _refuse_locked(path, status)
            return status.st_size

    # descriptors

    def _open_descriptor(self, path: str, flags: int) -> int:
        if self._descriptors >= self._descriptors_max:
            self._evict(self._descriptors - self._descriptors_max + 1)
        try:
            try:
                return os.open(path, flags, 0o644)
            except OSError as error:
                # Somebody else has used up the limit: our idle files are worth less than this one.
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._evict(16):
                    raise
                return os.open(path, flags, 0o644)
        except OSError as error:
            raise classified(error, path=path, action="open") from error

    def _hold(self, file: DiskFile) -> None:
        self._descriptors += 1
        self._clock.append(file)
        if len(self._clock) > 2 * self._descriptors + 16:
            self._clock = deque(held for held in self._clock if held._fd >= 0)

    def _evict(self, count: int) -> int:
        """Takes descriptors from files not used since the hand came by; written ones stay longer.

        Linux reports a failed write-back to a descriptor opened later only while it remembers the
        inode, so a file that was written and not synced keeps its own as long as there is another.
        """
        evicted = 0
        turns = 3 * len(self._clock)
        while self._clock and turns and evicted < count:
            turns -= 1
            file = self._clock.popleft()
            if file._fd < 0:
                continue
            if file._chances or file._pins:
                file._chances >>= 1
                self._clock.append(file)
                continue
            file._close_descriptor()
            evicted += 1
        return evicted

    # names

    def exists(self, path: str) -> bool:
        with _classified(path, "look up"):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def is_directory(self, path: str) -> bool:
        with _classified(path, "look up"):
            try:
                return stat.S_ISDIR(os.stat(path).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False

    def list(self, path: str) -> list[str]:
        with _classified(path, "list"):
            return sorted(os.listdir(path or "."))

    def size(self, path: str) -> int:
        with _classified(path, "look up"):
            return os.stat(path).st_size

    def mtime_ms(self, path: str) -> int:
        with _classified(path, "look up"):
            return os.stat(path).st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        with _classified(path, "set the time"):
            os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def make_directory(self, path: str) -> None:
        with _classified(path, "make the directory"):
            os.mkdir(path)

    def rename(self, old: str, new: str) -> None:
        with _classified(old, f"rename to {new}"):
            os.rename(old, new)
        self._moved(old, new)

    def remove(self, path: str) -> None:
        with _classified(path, "remove"):
            os.unlink(path)
        if (file := self._open_file(path)) is not None:
            file.close()

    def remove_directory(self, path: str) -> None:
        with _classified(path, "remove the directory"):
            os.rmdir(path)

    def _sync_directory(self, path: str) -> None:
        _sync_directory(path)

    async def _sync_directory_aside(self, path: str) -> None:
        await self._syncers.wait(_sync_directory, path)

    def lock(self, path: str) -> Lock:
        with _classified(path, "lock"):
            with suppress(FileNotFoundError):
                _refuse_locked(path, os.stat(path))
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise LockTaken(path, "is locked by another process") from error
                raise
            status = os.fstat(fd)
        inode = (status.st_dev, status.st_ino)
        _locked.add(inode)
        return DiskLock(fd, inode)

    def close(self) -> None:
        for threads in (self._readers, self._syncers, self._replacer):
            threads.stop()
        for siblings in list(self._open.values()):
            for file in list(siblings.values()):
                file.close()
        for held in self._clock:
            held._close_descriptor()
        self._clock.clear()


@contextmanager
def _classified(path: str, action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise classified(error, path=path, action=action) from error


def _refuse_locked(path: str, status: os.stat_result) -> None:
    if (status.st_dev, status.st_ino) in _locked:
        raise LockTaken(path, "is locked by this process")


def _half_of_the_limit() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 19 if soft == resource.RLIM_INFINITY else max(16, soft // 2)
