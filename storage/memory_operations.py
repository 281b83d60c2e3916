"""The operations of a disk in memory: what they do, what they can meet, how they are told again.

Knows the disk, not the interface `Files`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from ottla.storage.memory_disk import Directory, Inode, Tree


class Fault(Enum):
    """What an operation can meet. Where it is an error of an fsync, the unsynced data is gone."""

    EIO = errno.EIO
    EROFS = errno.EROFS
    ENOSPC = errno.ENOSPC
    EDQUOT = errno.EDQUOT
    EMFILE = errno.EMFILE
    ENFILE = errno.ENFILE
    ENOMEM = errno.ENOMEM
    SHORT_WRITE = -1
    """A write takes only the first half."""
    COLD = -2
    """A cached read finds nothing in memory."""


class Operation(NamedTuple):
    number: int
    kind: str
    path: str
    position: int = 0
    size: int = 0
    data: bytes = b""
    target: str = ""
    fault: Fault | None = None
    failed: bool = False

    @property
    def taken(self) -> bytes:
        """What a write really wrote."""
        return taken_of_short_write(self.data) if self.fault is Fault.SHORT_WRITE else self.data


def taken_of_short_write(data: bytes) -> bytes:
    return data[: len(data) // 2]


# Operations that leave the disk as it is.
LOOKS = frozenset({"open", "read", "read_cached", "list"})


# Faults that a directory's sync meets before the fsync.
_SHORTAGES = frozenset({Fault.EMFILE, Fault.ENFILE, Fault.ENOMEM})


class ArmedFault:
    __slots__ = ("fault", "times", "when")

    def __init__(
        self, when: int | Callable[[Operation], bool], fault: Fault, times: int | None
    ) -> None:
        self.when = when
        self.fault = fault
        self.times = times

    def hits(self, operation: Operation) -> bool:
        when = self.when
        if not (operation.number == when if isinstance(when, int) else when(operation)):
            return False
        if self.times is not None:
            self.times -= 1
        return True


def perform(
    tree: Tree, kind: str, path: str, *, target: str = "", position: int = 0, data: bytes = b""
) -> None:
    """What an operation does to the disk, when it is done and when it is done again."""
    match kind:
        case "write":
            tree.file(path).change((position, data))
        case "resize":
            tree.file(path).change((position, None))
        case "sync":
            tree.file(path).sync()
        case "sync_directory":
            tree.directory(path).sync()
        case "create":
            tree.add(path, Inode())
        case "make_directory":
            tree.add(path, Directory())
        case "rename":
            tree.rename(path, target)
        case "remove":
            tree.remove(path)
        case "remove_directory":
            tree.remove_directory(path)


def perform_again(tree: Tree, operation: Operation) -> None:
    """An operation out of a journal."""
    kind, path = operation.kind, operation.path
    if not operation.failed:
        data = operation.taken
        position = operation.position if kind == "write" else operation.size
        perform(tree, kind, path, target=operation.target, position=position, data=data)
    elif kind == "sync":
        tree.file(path).drop_changes()
    elif kind == "sync_directory" and operation.fault not in _SHORTAGES:
        tree.directory(path).drop_changes()
