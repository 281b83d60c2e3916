"""What can be wrong with a disk or with a file on it.

The class says what to do about it: `DiskFailed` takes the log directory offline, `DiskFull` and
`OutOfResources` fail one attempt, `CorruptFile` asks for repair or refusal. Names that are missing
or taken stay Python's own `FileNotFoundError` and `FileExistsError`: they are no fault of the disk.
"""

from __future__ import annotations

import errno


class StorageError(Exception):
    """One line: the path, then the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class DiskFailed(StorageError):
    """The disk cannot be trusted any more: its log directory goes offline, without a retry."""


class DiskFull(StorageError):
    """No space or no quota. The file is as it was before; the next attempt may succeed."""


class OutOfResources(StorageError):
    """The process or the machine is short of descriptors or memory. Never means a bad disk."""


class LockTaken(StorageError):
    """Another process, or another part of this one, works in that directory."""


class CorruptFile(StorageError):
    """The bytes are not what the format allows; `where` is a line, a position or an offset."""

    def __init__(self, path: str, *, where: str, reason: str) -> None:
        super().__init__(path, f"{where}: {reason}" if where else reason)
        self.where = where


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SHORT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
# A name that is missing, taken or too long, and our own misuse of a call, say nothing of the disk.
_NOT_THE_DISK = frozenset(
    {
        errno.ENOENT,
        errno.EEXIST,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENOTEMPTY,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        errno.EBADF,
    }
)


def classified(error: OSError, *, path: str, action: str) -> StorageError | OSError:
    """The exception to raise for `error`. What is not known to be harmless is a failed disk."""
    if error.errno in _NOT_THE_DISK:
        return error
    reason = f"cannot {action}: {error.strerror or error}"
    if error.errno in _FULL:
        return DiskFull(path, reason)
    if error.errno in _SHORT_OF_RESOURCES:
        return OutOfResources(path, reason)
    return DiskFailed(path, reason)
