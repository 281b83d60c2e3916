"""The door to the disk: everything that storage ever asks of one.

`DiskFiles` (disk_files.py) is a real disk, `MemoryFiles` (memory_files.py) one for tests, which
forgets what was not synced and fails on command. What a write or a sync that fails means is decided
here, once for both. All calls are made from one thread; only DiskFiles knows others.

A name ending in `_now` blocks until the disk has it: for recovery, rolls and shutdown. Its twin
without the ending is awaited. A path is a string, and the same file always has the same spelling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from ottla.protocol.wire import Buffer
from ottla.storage.errors import DiskFailed, DiskFull, StorageError, classified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future


class File(ABC):
    """One file, open. It has one owner: a second opening of its path is refused.

    After a failed write or sync every call raises `DiskFailed`: Linux forgets the dirty pages of a
    failed fsync, so that a second one would succeed and mean nothing.
    """

    __slots__ = (
        "_closed",
        "_failure",
        "_files",
        "_syncing",
        "_unsynced",
        "_waiting",
        "path",
        "size",
    )

    def __init__(self, files: Files, path: str, size: int) -> None:
        self.path = path
        self.size = size
        """Length in bytes."""
        self._files = files
        self._closed = False
        self._failure: str | None = None
        # Whoever had the file before may have left pages behind that never reached the disk.
        self._unsynced = True
        self._syncing: list[Future[None]] = []
        self._waiting: list[Future[None]] = []

    # writing

    def append(self, *buffers: Buffer) -> int:
        """Writes at the end and returns the position of the first byte. All or nothing: when it
        raises anything but `DiskFailed`, the file is as it was."""
        position = self.size
        self.size = position + self._put(position, buffers)
        return position

    def write(self, position: int, *buffers: Buffer) -> None:
        """Writes at a position. When it raises, what it would have replaced is undefined."""
        end = position + self._put(position, buffers)
        self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        """Cuts the file to `size` bytes."""
        if not 0 <= size <= self.size:
            raise ValueError(f"cannot truncate {self.path} from {self.size} to {size} bytes")
        self._resize(size)

    def preallocate(self, size: int) -> None:
        """Makes the file `size` bytes long, zeros at the end (sparse, as Kafka does)."""
        if size < self.size:
            raise ValueError(f"cannot preallocate {self.path} from {self.size} to {size} bytes")
        self._resize(size)

    def _put(self, position: int, buffers: tuple[Buffer, ...]) -> int:
        if self._failure is not None or self._closed:
            self._refuse()
        length = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
        self._unsynced = True
        try:
            written = self._pwrite(position, buffers)
        except OSError as error:
            raise self._cut_back(classified(error, path=self.path, action="write")) from error
        if written != length:
            reason = f"cannot write: only {written} of {length} bytes were taken"
            raise self._cut_back(DiskFull(self.path, reason))
        return length

    def _cut_back(self, error: StorageError | OSError) -> StorageError | OSError:
        if isinstance(error, DiskFailed):
            return self._fail(error.reason)
        if not isinstance(error, StorageError):
            # A wrong call of ours, of which the disk has seen nothing.
            return error
        try:
            self._ftruncate(self.size)
        except OSError as second:
            return self._fail(f"{error}; cannot cut back to {self.size} bytes: {second.strerror}")
        return error

    def _resize(self, size: int) -> None:
        self._refuse()
        self._unsynced = True
        try:
            self._ftruncate(size)
        except OSError as error:
            raised = classified(error, path=self.path, action=f"resize to {size} bytes")
            if isinstance(raised, DiskFailed):
                raised = self._fail(raised.reason)
            raise raised from error
        self.size = size

    # reading

    @abstractmethod
    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes, fewer only at the end of the file. May wait for the disk."""

    @abstractmethod
    def read_cached(self, position: int, size: int) -> memoryview | None:
        """What memory holds of these bytes, from `position` on; None when it holds none.

        Fewer bytes than `size` before the end of the file: the rest is cold. Never waits where the
        kernel can tell; where it cannot (macOS, some file systems) a plain read of little
        more than 1 MiB at most.
        """

    @abstractmethod
    def read_cached_into(self, position: int, buffer: bytearray | memoryview) -> int | None:
        """The same into memory of the caller: the count of bytes, or None."""

    @abstractmethod
    async def read_cold(self, position: int, size: int) -> memoryview:
        """As `read`, without holding up the event loop."""

    @abstractmethod
    def duplicate_descriptor(self) -> int | None:
        """A descriptor for sendfile that the caller owns and closes; None in memory."""

    # syncing

    def sync_now(self) -> None:
        """Blocks until everything written is on the disk."""
        self._join_sync()
        self._refuse()
        if not self._unsynced:
            return
        try:
            self._fsync()
        except OSError as error:
            raise self._sync_failed(error) from error
        self._unsynced = False

    async def sync(self) -> None:
        """Returns when everything written before this call is on the disk.

        At most one fsync of the file is under way; who comes meanwhile shares the next one.
        """
        self._refuse()
        if self._syncing:
            waiters = self._waiting if self._unsynced else self._syncing
        elif self._unsynced:
            waiters = self._syncing
        else:
            return
        from asyncio import get_running_loop

        waiter = get_running_loop().create_future()
        waiters.append(waiter)
        if waiters is self._syncing and len(waiters) == 1:
            self._start_sync()
        await waiter

    def _start_sync(self) -> None:
        try:
            self._begin_sync(self._sync_done)
        except StorageError as error:
            self._wake(error)
            return
        self._unsynced = False

    def _sync_done(self, error: BaseException | None) -> None:
        if error is not None:
            self._syncing += self._waiting
            self._waiting = []
            self._wake(self._sync_failed(error))
            return
        self._wake(None)
        if self._waiting:
            self._syncing, self._waiting = self._waiting, []
            self._start_sync()

    def _wake(self, error: StorageError | None) -> None:
        waiters, self._syncing = self._syncing, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    # the end

    def close(self) -> None:
        """Gives the path free. Does not sync."""
        if not self._closed:
            self._closed = True
            self._files._forget(self)
            self._release()

    def _refuse(self) -> None:
        if self._failure is not None:
            raise DiskFailed(self.path, self._failure)
        if self._closed:
            raise ValueError(f"{self.path} is closed")

    def _sync_failed(self, error: BaseException) -> DiskFailed:
        return self._fail(f"cannot sync: {getattr(error, 'strerror', None) or error}")

    def _fail(self, reason: str) -> DiskFailed:
        self._failure = self._failure or reason
        return DiskFailed(self.path, self._failure)

    # what a kind of disk does; each raises the OSError of the call

    @abstractmethod
    def _pwrite(self, position: int, buffers: tuple[Buffer, ...]) -> int: ...
    @abstractmethod
    def _ftruncate(self, size: int) -> None: ...
    @abstractmethod
    def _fsync(self) -> None: ...
    @abstractmethod
    def _begin_sync(self, ended: Callable[[BaseException | None], None]) -> None:
        """Starts an fsync; `ended` is called on the event loop, later."""

    @abstractmethod
    def _join_sync(self) -> None:
        """Blocks until no fsync is under way; an error of it is kept by `_fail`."""

    @abstractmethod
    def _release(self) -> None: ...


class Lock(ABC):
    """A lock file that is held, until `release`."""

    @abstractmethod
    def release(self) -> None: ...


class Files(ABC):
    """A disk: files and directories by path."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, File]] = {}
        self._failed_directories: dict[str, str] = {}

    # files

    def create(self, path: str) -> File:
        """A new, empty file. `FileExistsError` when the name is taken."""
        return self._opened(path, self._create)

    def open(self, path: str, *, read_only: bool = False) -> File:
        """A file that exists. `FileNotFoundError` when it does not."""
        return self._opened(path, self._open_to_read if read_only else self._open_to_write)

    def _opened(self, path: str, opening: Callable[[str], File]) -> File:
        if self._open_file(path) is not None:
            raise ValueError(f"{path} is open already")
        file = opening(path)
        self._enter(file)
        return file

    def _open_file(self, path: str) -> File | None:
        directory, _, name = path.rpartition("/")
        siblings = self._open.get(directory)
        return siblings.get(name) if siblings else None

    def _enter(self, file: File) -> None:
        directory, _, name = file.path.rpartition("/")
        self._open.setdefault(directory, {})[name] = file

    def _forget(self, file: File) -> None:
        directory, _, name = file.path.rpartition("/")
        siblings = self._open[directory]
        del siblings[name]
        if not siblings:
            del self._open[directory]

    def _moved(self, old: str, new: str) -> None:
        """Open files follow a rename; the one whose name was taken over is closed."""
        if (replaced := self._open_file(new)) is not None:
            replaced.close()
        if (file := self._open_file(old)) is not None:
            self._forget(file)
            file.path = new
            self._enter(file)
        elif self.is_directory(new):
            below = old + "/"
            for directory in [d for d in self._open if d == old or d.startswith(below)]:
                siblings = self._open.pop(directory)
                self._open[new + directory[len(old) :]] = siblings
                for file in siblings.values():
                    file.path = new + file.path[len(old) :]

    @abstractmethod
    def read_whole(self, path: str) -> bytes:
        """A small file, whole."""

    @abstractmethod
    def write_atomically_now(self, path: str, data: bytes) -> None:
        """Replaces a small file: after a crash it holds the old bytes or the new ones."""

    @abstractmethod
    async def write_atomically(self, path: str, data: bytes) -> None: ...

    # names

    @abstractmethod
    def exists(self, path: str) -> bool: ...
    @abstractmethod
    def is_directory(self, path: str) -> bool: ...
    @abstractmethod
    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    @abstractmethod
    def size(self, path: str) -> int: ...
    @abstractmethod
    def mtime_ms(self, path: str) -> int: ...
    @abstractmethod
    def set_mtime_ms(self, path: str, mtime_ms: int) -> None: ...
    @abstractmethod
    def make_directory(self, path: str) -> None:
        """`FileExistsError` when it is there; its parent must be."""

    @abstractmethod
    def rename(self, old: str, new: str) -> None:
        """A file (takes the place of one that has the new name) or a directory, open files too."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """A file; it is closed when it was open."""

    @abstractmethod
    def remove_directory(self, path: str) -> None:
        """An empty directory."""

    def remove_tree(self, path: str) -> None:
        """A directory with everything in it."""
        for name in self.list(path):
            child = f"{path}/{name}"
            if self.is_directory(child):
                self.remove_tree(child)
            else:
                self.remove(child)
        self.remove_directory(path)

    def sync_directory_now(self, path: str) -> None:
        """Blocks until names made, changed or removed in this directory are on the disk."""
        self._refuse_failed_directory(path)
        try:
            self._sync_directory(path)
        except DiskFailed as error:
            self._failed_directories[path] = error.reason
            raise

    async def sync_directory(self, path: str) -> None:
        self._refuse_failed_directory(path)
        try:
            await self._sync_directory_aside(path)
        except DiskFailed as error:
            self._failed_directories[path] = error.reason
            raise

    def _refuse_failed_directory(self, path: str) -> None:
        if path in self._failed_directories:
            raise DiskFailed(path, self._failed_directories[path])

    @abstractmethod
    def lock(self, path: str) -> Lock:
        """Takes the lock file, made where it is missing. `LockTaken` when someone holds it."""

    @abstractmethod
    def close(self) -> None:
        """Closes every file and ends the threads. Does not sync."""

    @abstractmethod
    def _sync_directory(self, path: str) -> None: ...
    @abstractmethod
    async def _sync_directory_aside(self, path: str) -> None: ...
    @abstractmethod
    def _create(self, path: str) -> File: ...
    @abstractmethod
    def _open_to_write(self, path: str) -> File: ...
    @abstractmethod
    def _open_to_read(self, path: str) -> File: ...
