"""A disk as POSIX promises it, and no better: what is not synced may be lost, torn or reordered.

A file has two contents: what is read, and what is durable, with the changes between them. So has a
directory, for its names: a new name, a rename or a removal is durable only when the directory is
synced. A crash takes the durable side and some of the changes; a `Crash` says which.

Contents are shared until written to, so that a crash tester can afford many disks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Hashable
from enum import Enum
from random import Random
from typing import TypeVar

SECTOR_BYTES = 512


class Crash(Enum):
    """What a crash leaves of that which was not synced."""

    SYNCED = "nothing"
    EVERYTHING = "all of it"
    PREFIX = "of each file and directory the first changes"
    SUBSET = "of each file and directory any changes"
    TORN_BYTE = "the first writes of each file, the last of them cut at a byte; all names"
    TORN_SECTORS = "any sectors that were written; all names"
    ZEROS = "all sizes and names, but of the data only some, and zeros elsewhere"
    LOST_NAMES = "all data, and any changes of names"
    BOTH_NAMES = "all data and names, and of a renamed file or directory the old name too"
    MIXED = "of each file and each directory something else"


# A write at a position; without data, a new size.
Change = tuple[int, bytes | None]
# Which changes of a file survive: of the changes, the durable size, a random.
Survivors = Callable[[list[Change], int, Random], list[Change]]


class Inode:
    """A file."""

    __slots__ = ("changes", "data", "durable", "locked", "mtime_ms")

    def __init__(self, content: bytes = b"", mtime_ms: int = 0) -> None:
        self.data: bytes | bytearray = content
        self.durable: bytes | bytearray = content
        self.changes: list[Change] = []
        self.mtime_ms = mtime_ms
        self.locked = False

    def change(self, change: Change) -> None:
        data = self.data
        if isinstance(data, bytes):
            data = self.data = bytearray(data)
        _apply(data, change)
        self.changes.append(change)

    def sync(self) -> None:
        if not self.changes:
            return
        durable = self.durable
        if isinstance(durable, bytes):
            durable = self.durable = bytearray(durable)
        for change in self.changes:
            _apply(durable, change)
        self.changes.clear()

    def drop_changes(self) -> None:
        """A failed fsync: what was written is still read, but no later fsync writes it."""
        self.changes.clear()

    def copy(self) -> Inode:
        self.data, self.durable = bytes(self.data), bytes(self.durable)
        copy = Inode(self.data, self.mtime_ms)
        copy.durable = self.durable
        if self.changes:
            copy.changes = self.changes.copy()
        return copy

    def contents(self) -> Hashable:
        data = self.data = bytes(self.data)
        return data, self.mtime_ms

    def crashed(self, crash: Crash, random: Random) -> Inode:
        content = self.durable = bytes(self.durable)
        if self.changes:
            chosen = _choice(_DATA, crash, random)(self.changes, len(content), random)
            rebuilt = bytearray(content)
            for change in chosen:
                _apply(rebuilt, change)
            content = bytes(rebuilt)
        return Inode(content, self.mtime_ms)


def _apply(content: bytearray, change: Change) -> None:
    position, data = change
    gap = position - len(content)
    if gap > 0:
        content += bytes(gap)
    if data is None:
        del content[position:]
    elif gap >= 0:
        content += data
    else:
        content[position : position + len(data)] = data


def _none(changes: list[Change], size: int, random: Random) -> list[Change]:
    return []


def _all(changes: list[Change], size: int, random: Random) -> list[Change]:
    return changes


def _prefix(changes: list[Change], size: int, random: Random) -> list[Change]:
    return changes[: random.randrange(len(changes) + 1)]


def _subset(changes: list[Change], size: int, random: Random) -> list[Change]:
    kept = [random.random() < 0.5 for _ in changes]
    # File systems keep changes of a file's size in order: a write never survives the loss of a
    # truncation before it, or bytes that were cut off would stand behind the new ones again.
    last = max((i for i, keep in enumerate(kept) if keep), default=0)
    return [c for i, c in enumerate(changes) if kept[i] or (i < last and c[1] is None)]


def _torn_at_byte(changes: list[Change], size: int, random: Random) -> list[Change]:
    count = random.randrange(len(changes))
    position, data = changes[count]
    if data is None:
        return changes[:count]
    return [*changes[:count], (position, data[: random.randrange(len(data) + 1)])]


def _torn_by_sectors(changes: list[Change], size: int, random: Random) -> list[Change]:
    pieces: list[Change] = []
    for position, data in changes:
        if data is None:
            pieces.append((position, None))
            continue
        start = 0
        while start < len(data):
            end = start + SECTOR_BYTES - (position + start) % SECTOR_BYTES
            pieces.append((position + start, data[start:end]))
            start = end
    return _subset(pieces, size, random)


def _zeros(changes: list[Change], size: int, random: Random) -> list[Change]:
    """Every size arrived, and only some of the data."""
    left: list[Change] = []
    for position, data in changes:
        if data is None:
            size = position
            left.append((position, None))
        elif random.random() < 0.5:
            size = max(size, position + len(data))
            left.append((position, data))
        elif position + len(data) > size:
            size = position + len(data)
            left.append((size, None))
    return left


class Directory:
    """Names. A change: the name that goes, the name that comes, and what that one names."""

    __slots__ = ("changes", "durable", "names")

    def __init__(self, names: dict[str, Inode | Directory] | None = None) -> None:
        self.names: dict[str, Inode | Directory] = names or {}
        self.durable: dict[str, Inode | Directory] = self.names.copy()
        self.changes: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        _rename(self.names, change)
        self.changes.append(change)

    def sync(self) -> None:
        for change in self.changes:
            _rename(self.durable, change)
        self.changes.clear()

    def drop_changes(self) -> None:
        """A failed fsync, as for a file."""
        self.changes.clear()

    def contents(self) -> Hashable:
        return tuple((name, self.names[name].contents()) for name in sorted(self.names))

    def copy(self, done: dict[int, Inode | Directory]) -> Directory:
        copy = Directory({name: _copied(node, done) for name, node in self.names.items()})
        if self.changes or self.durable != self.names:
            copy.durable = {name: _copied(node, done) for name, node in self.durable.items()}
            copy.changes = [
                (old, new, None if node is None else _copied(node, done))
                for old, new, node in self.changes
            ]
        return copy

    def crashed(
        self, crash: Crash, random: Random, done: dict[int, Inode | Directory]
    ) -> Directory:
        names = self.durable
        if self.changes:
            names = names.copy()
            for change in _choice(_NAMES, crash, random)(self.changes, random):
                _rename(names, change)
        survived: dict[str, Inode | Directory] = {}
        for name, node in names.items():
            after = done.get(id(node))
            if after is None:
                if isinstance(node, Inode):
                    after = node.crashed(crash, random)
                else:
                    after = node.crashed(crash, random, done)
                done[id(node)] = after
            survived[name] = after
        return Directory(survived)


def _copied(node: Inode | Directory, done: dict[int, Inode | Directory]) -> Inode | Directory:
    copy = done.get(id(node))
    if copy is None:
        copy = node.copy() if isinstance(node, Inode) else node.copy(done)
        done[id(node)] = copy
    return copy


def _rename(names: dict[str, Inode | Directory], change: NameChange) -> None:
    old, new, node = change
    if old is not None:
        names.pop(old, None)
    if new is not None and node is not None:
        names[new] = node


NameChange = tuple[str | None, str | None, Inode | Directory | None]
NameSurvivors = Callable[[list[NameChange], Random], list[NameChange]]
Chosen = TypeVar("Chosen")


def _no_names(changes: list[NameChange], random: Random) -> list[NameChange]:
    return []


def _all_names(changes: list[NameChange], random: Random) -> list[NameChange]:
    return changes


def _first_names(changes: list[NameChange], random: Random) -> list[NameChange]:
    return changes[: random.randrange(len(changes) + 1)]


def _some_names(changes: list[NameChange], random: Random) -> list[NameChange]:
    return [change for change in changes if random.random() < 0.5]


def _both_names(changes: list[NameChange], random: Random) -> list[NameChange]:
    """A rename leaves the new name beside the old one."""
    return [
        (None, new, node) if new is not None and random.random() < 0.5 else (old, new, node)
        for old, new, node in changes
    ]


_DATA: dict[Crash, Survivors] = {
    Crash.SYNCED: _none,
    Crash.EVERYTHING: _all,
    Crash.PREFIX: _prefix,
    Crash.SUBSET: _subset,
    Crash.TORN_BYTE: _torn_at_byte,
    Crash.TORN_SECTORS: _torn_by_sectors,
    Crash.ZEROS: _zeros,
    Crash.LOST_NAMES: _all,
    Crash.BOTH_NAMES: _all,
}
_NAMES: dict[Crash, NameSurvivors] = {
    Crash.SYNCED: _no_names,
    Crash.EVERYTHING: _all_names,
    Crash.PREFIX: _first_names,
    Crash.SUBSET: _some_names,
    Crash.TORN_BYTE: _all_names,
    Crash.TORN_SECTORS: _all_names,
    Crash.ZEROS: _all_names,
    Crash.LOST_NAMES: _some_names,
    Crash.BOTH_NAMES: _both_names,
}


def _choice(table: dict[Crash, Chosen], crash: Crash, random: Random) -> Chosen:
    return table[crash if crash is not Crash.MIXED else random.choice(_UNMIXED)]


_UNMIXED = [crash for crash in Crash if crash is not Crash.MIXED]


class Tree:
    """Paths to nodes. A path may begin with a slash or not: there is one root."""

    __slots__ = ("root",)

    def __init__(self, root: Directory | None = None) -> None:
        self.root = root or Directory()

    def find(self, path: str) -> Inode | Directory:
        node: Inode | Directory = self.root
        for name in path.split("/"):
            if not name or name == ".":
                continue
            try:
                node = node.names[name]  # type: ignore[union-attr]
            except KeyError:
                raise _error(errno.ENOENT, path) from None
            except AttributeError:
                raise _error(errno.ENOTDIR, path) from None
        return node

    def file(self, path: str) -> Inode:
        node = self.find(path)
        if isinstance(node, Inode):
            return node
        raise _error(errno.EISDIR, path)

    def directory(self, path: str) -> Directory:
        node = self.find(path)
        if isinstance(node, Directory):
            return node
        raise _error(errno.ENOTDIR, path)

    def parent(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        return self.directory(above), name

    def add(self, path: str, node: Inode | Directory) -> None:
        parent, name = self.parent(path)
        if name in parent.names:
            raise _error(errno.EEXIST, path)
        parent.change((None, name, node))

    def remove(self, path: str) -> None:
        self.file(path)
        parent, name = self.parent(path)
        parent.change((name, None, None))

    def remove_directory(self, path: str) -> None:
        if self.directory(path).names:
            raise _error(errno.ENOTEMPTY, path)
        parent, name = self.parent(path)
        parent.change((name, None, None))

    def rename(self, old: str, new: str) -> None:
        node = self.find(old)
        source, old_name = self.parent(old)
        target, new_name = self.parent(new)
        replaced = target.names.get(new_name)
        if replaced is node:
            return
        if isinstance(node, Inode) and isinstance(replaced, Directory):
            raise _error(errno.EISDIR, new)
        if isinstance(node, Directory) and isinstance(replaced, Inode):
            raise _error(errno.ENOTDIR, new)
        if isinstance(replaced, Directory) and replaced.names:
            raise _error(errno.ENOTEMPTY, new)
        if source is target:
            source.change((old_name, new_name, node))
            return
        target.change((None, new_name, node))
        source.change((old_name, None, None))

    def contents(self) -> Hashable:
        return self.root.contents()

    def copy(self) -> Tree:
        return Tree(self.root.copy({}))

    def crashed(self, crash: Crash, random: Random) -> Tree:
        return Tree(self.root.crashed(crash, random, {}))


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
