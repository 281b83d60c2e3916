"""The snapshots of producer state in a partition's folder, each named by the offset it reaches.

Knows nothing of what is in them. One is written when a segment is rolled, and is on disk before the
recovery point passes it; another at a clean stop. Each stands where a segment begins or the log
ends. Any may be missing or damaged: then more batches are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from ottla.storage.errors import StorageError
from ottla.storage.folder import Folder
from ottla.storage.names import DELETED, SNAPSHOT, offset_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.files import File


class Snapshots:
    __slots__ = ("_folder", "_unsynced", "offsets")

    def __init__(self, folder: Folder, offsets: list[int]) -> None:
        self._folder = folder
        self.offsets = sorted(offsets)
        self._unsynced: dict[int, File] = {}

    @property
    def latest(self) -> int | None:
        return self.offsets[-1] if self.offsets else None

    def path(self, offset: int, state: str = "") -> str:
        return self._folder.file(offset_name(offset, SNAPSHOT, state))

    def up_to(self, offset: int) -> list[int]:
        """The offsets of those that reach no farther, the farthest first."""
        return self.offsets[: bisect_right(self.offsets, offset)][::-1]

    def read(self, offset: int) -> bytes:
        return self._folder.files.read_whole(self.path(offset))

    # writing

    def write(self, offset: int, data: bytes) -> None:
        """The disk has it when it is synced; a torn one is found out by its CRC."""
        self.remove(offset)
        file = self._folder.files.create(self.path(offset))
        self._folder.names_changed()
        try:
            file.append(data)
        except StorageError:
            self._folder.files.remove(file.path)
            raise
        self._unsynced[offset] = file
        insort(self.offsets, offset)

    def sync_now(self, offset: int) -> None:
        """Blocks until the disk has those that reach no farther; their names come later."""
        for each in [each for each in self._unsynced if each <= offset]:
            self._unsynced[each].sync_now()
            self._unsynced.pop(each).close()

    async def sync(self, offset: int) -> None:
        for each in [each for each in self._unsynced if each <= offset]:
            file = self._unsynced.get(each)
            if file is not None:
                await file.sync()
                if self._unsynced.get(each) is file:
                    del self._unsynced[each]
                    file.close()

    def close(self) -> None:
        """Does not sync."""
        for file in self._unsynced.values():
            file.close()
        self._unsynced.clear()

    # going

    def remove(self, offset: int) -> None:
        number = bisect_left(self.offsets, offset)
        if number < len(self.offsets) and self.offsets[number] == offset:
            del self.offsets[number]
        if (file := self._unsynced.pop(offset, None)) is not None:
            file.close()
        if self._folder.files.exists(path := self.path(offset)):
            self._folder.files.remove(path)
            self._folder.names_changed()

    def remove_later(self, offset: int, *, due_ms: int) -> None:
        """With the segment that begins there."""
        number = bisect_left(self.offsets, offset)
        if number == len(self.offsets) or self.offsets[number] != offset:
            return
        del self.offsets[number]
        if (file := self._unsynced.pop(offset, None)) is not None:
            file.close()
        files = self._folder.files
        files.rename(self.path(offset), self.path(offset, DELETED))
        self._folder.names_changed()

        def remove() -> None:
            if files.exists(path := self.path(offset, DELETED)):
                files.remove(path)

        self._folder.log_dir.chores.remove(remove, due_ms=due_ms)

    def remove_behind(self, offset: int) -> None:
        for each in self.offsets[bisect_right(self.offsets, offset) :]:
            self.remove(each)

    def remove_strays(self, base_offsets: list[int], end: int) -> None:
        """Keeps those where a segment begins, or the log ends."""
        places = {*base_offsets, end}
        for offset in [each for each in self.offsets if each not in places]:
            self.remove(offset)
