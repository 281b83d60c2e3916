"""The snapshots of producer state in a partition's folder, each named by the offset it reaches.

Knows nothing of what is in them. One is written when a segment is rolled and at a clean stop; they
spare a start the reading of the whole log, and any of them may be missing or damaged.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from ottla.storage.errors import StorageError
from ottla.storage.folder import Folder
from ottla.storage.names import DELETED, SNAPSHOT, offset_name


class Snapshots:
    __slots__ = ("_folder", "offsets")

    def __init__(self, folder: Folder, offsets: list[int]) -> None:
        self._folder = folder
        self.offsets = sorted(offsets)

    @property
    def latest(self) -> int | None:
        return self.offsets[-1] if self.offsets else None

    def path(self, offset: int, state: str = "") -> str:
        return self._folder.file(offset_name(offset, SNAPSHOT, state))

    def read(self, offset: int) -> bytes:
        return self._folder.files.read_whole(self.path(offset))

    def write(self, offset: int, data: bytes, *, sync: bool) -> None:
        """Without `sync` the disk has it some time later; a torn one is found out by its CRC."""
        files, path = self._folder.files, self.path(offset)
        if files.exists(path):
            files.remove(path)
        file = files.create(path)
        try:
            file.append(data)
            if sync:
                file.sync_now()
        except StorageError:
            files.remove(path)
            raise
        file.close()
        if offset not in self.offsets:
            insort(self.offsets, offset)

    def remove(self, offset: int) -> None:
        number = bisect_left(self.offsets, offset)
        if number < len(self.offsets) and self.offsets[number] == offset:
            del self.offsets[number]
        if self._folder.files.exists(path := self.path(offset)):
            self._folder.files.remove(path)

    def remove_later(self, offset: int, *, due_ms: int) -> None:
        """With the segment that begins there."""
        number = bisect_left(self.offsets, offset)
        if number == len(self.offsets) or self.offsets[number] != offset:
            return
        del self.offsets[number]
        files = self._folder.files
        files.rename(self.path(offset), self.path(offset, DELETED))

        def remove() -> None:
            if files.exists(path := self.path(offset, DELETED)):
                files.remove(path)

        self._folder.log_dir.chores.remove(remove, due_ms=due_ms)

    def remove_outside(self, start: int, end: int) -> None:
        """Keeps those behind `start`, up to `end`."""
        low, high = bisect_right(self.offsets, start), bisect_right(self.offsets, end)
        for offset in self.offsets[:low] + self.offsets[high:]:
            self.remove(offset)

    def remove_strays(self, base_offsets: set[int]) -> None:
        """Of those that stand at no segment's beginning only the newest is worth anything, and only
        behind the last segment: it was written at a clean stop."""
        strays = [offset for offset in self.offsets if offset not in base_offsets]
        for offset in strays[:-1]:
            self.remove(offset)
        if strays and base_offsets and strays[-1] < max(base_offsets):
            self.remove(strays[-1])
