"""The two sparse indexes beside a segment: offset to position, and time to offset.

Entries are kept as the file holds them: those in the file (the head, loaded when needed, unloaded
when memory is short) and those that are not in it yet (the tail). Every entry is a hint: it is
checked against the batch that it points to, and all can be made again from the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import suppress
from struct import Struct

from ottla.protocol.records import NO_TIMESTAMP
from ottla.protocol.wire import Buffer
from ottla.storage.errors import CorruptFile, DiskFull, OutOfResources
from ottla.storage.names import OFFSET_INDEX, TIME_INDEX
from ottla.storage.steps import Read, Reading, at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.files import File
    from ottla.storage.segment import Segment

# The tail is written when it has so many bytes; sooner when the log is flushed.
_TAIL_BYTES_MAX = 4096


class Index:
    """Entries of one size, in rising order of the key that they begin with."""

    SUFFIX: str
    ENTRY_SIZE: int
    # Places that are kept for the last entry, when the segment is rolled.
    SPARE = 0

    __slots__ = (
        "_file",
        "_head",
        "_segment",
        "_tail",
        "_written",
        "count_max",
        "is_changed",
        "room",
    )

    def __init__(self, segment: Segment, *, is_new: bool) -> None:
        self._segment = segment
        self._file: File | None = None
        self._tail = bytearray()
        # Entries in the file; -1 while nobody has looked.
        self._written = 0 if is_new else -1
        self._head: bytearray | None = bytearray() if is_new else None
        self.is_changed = False
        """The file is not as the disk has it."""
        self.count_max = segment.folder.config.segment_index_bytes // self.ENTRY_SIZE
        self.room = self.count_max - self.SPARE
        """How many entries may still be added, once the index is loaded."""

    # entries

    @property
    def count(self) -> int:
        if self._written < 0:
            at_once(self.load())
        return self._written + len(self._tail) // self.ENTRY_SIZE

    def load(self) -> Reading[bytearray]:
        """The entries in the file."""
        head = self._head
        if head is None:
            file = self._open()
            size = file.size if self._written < 0 else self._written * self.ENTRY_SIZE
            data = (yield Read(file, 0, size)) if size else b""
            # Somebody else may have been faster while this one waited.
            head = self._set_head(data) if self._head is None else self._head
            self._let_go()
        if head:
            self._segment.folder.log_dir.indexes.hold(self, len(head))
        return head

    def _set_head(self, data: Buffer) -> bytearray:
        head = bytearray(data)
        if self._written < 0:
            self._strip_zeros(head)
        if len(head) % self.ENTRY_SIZE:
            raise CorruptFile(self.path, where=f"position {len(head)}", reason="is no whole entry")
        self._written = len(head) // self.ENTRY_SIZE
        self._head = head
        self._recount()
        return head

    def _strip_zeros(self, head: bytearray) -> None:
        """A preallocated file ends in zeros, which are no entries. A single entry may be zero."""
        if len(head) != self.ENTRY_SIZE:
            used = len(head.rstrip(b"\0"))
            del head[-(-used // self.ENTRY_SIZE) * self.ENTRY_SIZE :]

    def _recount(self) -> None:
        """The head was loaded, or entries were cut off."""
        self.room = self.count_max - self.SPARE - self.count

    def unload(self) -> None:
        """Forgets the head; the file has it."""
        self._head = None if self._written else bytearray()

    def _entry(self, number: int) -> bytearray:
        """The entry of that number; the head must be loaded if it is there."""
        at = number * self.ENTRY_SIZE
        written = self._written * self.ENTRY_SIZE
        if at >= written:
            return self._tail[at - written : at - written + self.ENTRY_SIZE]
        return (self._head or at_once(self.load()))[at : at + self.ENTRY_SIZE]

    def _floor(self, key: bytes) -> Reading[bytearray | None]:
        """The last entry whose key is not above `key`."""
        entries = self._tail
        size = self.ENTRY_SIZE
        length = len(key)
        if (not entries or entries[:length] > key) and self._written:
            entries = yield from self.load()
        slot = bisect_right(
            range(len(entries) // size),
            key,
            key=lambda i: bytes(entries[i * size : i * size + length]),
        )
        return entries[slot * size - size : slot * size] if slot else None

    # writing

    def _try_to_write_tail(self) -> None:
        # The log has the batch: a file that is behind is made again after a crash.
        with suppress(DiskFull, OutOfResources):
            self.write_tail()

    def write_tail(self) -> None:
        """Brings the file up to date."""
        tail = self._tail
        if not tail:
            return
        file = self._open()
        self.is_changed = True
        self._preallocate(file)
        file.write(self._written * self.ENTRY_SIZE, tail)
        self._written += len(tail) // self.ENTRY_SIZE
        if self._head is not None:
            self._head += tail
            self._segment.folder.log_dir.indexes.hold(self, len(self._head))
        self._tail = bytearray()

    def _preallocate(self, file: File) -> None:
        size = self.count_max * self.ENTRY_SIZE
        if self._segment.is_active and file.size < size:
            file.preallocate(size)

    def create(self) -> None:
        """Makes the file, as long as it may become."""
        files = self._segment.folder.files
        if files.exists(self.path):
            files.remove(self.path)
        self._file = files.create(self.path)
        self._segment.folder.names_changed()
        self.is_changed = True
        self._preallocate(self._file)

    def trim(self) -> None:
        """Brings the file up to date, and cuts what was preallocated."""
        self.write_tail()
        size = self.count * self.ENTRY_SIZE
        file = self._open()
        if file.size != size:
            self.is_changed = True
            file.truncate(size)

    def _truncate_entries(self, count: int) -> None:
        if count >= self._written >= 0:
            del self._tail[(count - self._written) * self.ENTRY_SIZE :]
        else:
            head = at_once(self.load())[: count * self.ENTRY_SIZE] if count else bytearray()
            self.is_changed = True
            self._open().truncate(count * self.ENTRY_SIZE)
            self._tail = bytearray()
            self._written = count
            self._head = head
            self._segment.folder.log_dir.indexes.hold(self, len(head))
        self._recount()

    def reset(self) -> None:
        """Throws every entry away."""
        if not self._segment.folder.files.exists(self.path):
            self.create()
        self._truncate_entries(0)

    # the file

    @property
    def path(self) -> str:
        return self._segment.file_path(self.SUFFIX)

    def _open(self) -> File:
        if self._file is None:
            try:
                self._file = self._segment.folder.files.open(self.path)
            except FileNotFoundError:
                raise CorruptFile(self.path, where="", reason="is missing") from None
        return self._file

    def _let_go(self) -> None:
        """Ten thousand partitions have twenty thousand of these files, and most rest."""
        if self._file is not None and not self.is_changed:
            self._file.close()
            self._file = None

    def sync_now(self) -> None:
        self.write_tail()
        self._open().sync_now()
        self.is_changed = False
        if not self._segment.is_active:
            self._let_go()

    async def sync(self) -> None:
        self.write_tail()
        file = self._open()
        self.is_changed = False
        await file.sync()

    def close(self) -> None:
        self._segment.folder.log_dir.indexes.release(self)
        if self._file is not None:
            self._file.close()
            self._file = None


_OFFSET_ENTRY = Struct(">ii")
_pack_offset_entry = _OFFSET_ENTRY.pack
_unpack_offset_entry = _OFFSET_ENTRY.unpack_from
_RELATIVE_OFFSET = Struct(">i")
_POSITION = Struct(">4xi")


class OffsetIndex(Index):
    """Last offset of a batch, relative to the segment's base, and the batch's position."""

    SUFFIX = OFFSET_INDEX
    ENTRY_SIZE = 8

    __slots__ = ("last_offset",)

    def __init__(self, segment: Segment, *, is_new: bool) -> None:
        super().__init__(segment, is_new=is_new)
        self.last_offset = segment.base_offset
        """Of the last entry; the segment's base offset where there is none."""

    def append(self, offset: int, position: int) -> None:
        if offset <= self.last_offset and self.count > 0:
            raise ValueError(f"offset {offset} does not follow {self.last_offset} in {self.path}")
        self.last_offset = offset
        self.room -= 1
        self._tail += _pack_offset_entry(offset - self._segment.base_offset, position)
        if len(self._tail) >= _TAIL_BYTES_MAX:
            self._try_to_write_tail()

    def floor(self, offset: int) -> Reading[tuple[int, int] | None]:
        """(last offset, position) of the last entry whose offset is not above `offset`."""
        relative = min(offset - self._segment.base_offset, 0x7FFF_FFFF)
        if relative < 0:
            return None
        entry = yield from self._floor(_RELATIVE_OFFSET.pack(relative))
        if entry is None:
            return None
        relative, position = _OFFSET_ENTRY.unpack(entry)
        return self._segment.base_offset + relative, position

    def around(self, offset: int) -> tuple[int, int, int] | None:
        """What `floor` finds (offset -1, position 0 for nothing), and the position of the entry
        behind it, 0 where there is none. None where memory cannot tell."""
        relative = offset - self._segment.base_offset
        if not 0 <= relative <= 0x7FFF_FFFF:
            return None
        key = _RELATIVE_OFFSET.pack(relative)
        entries = self._tail
        if not entries or entries[:4] > key:
            head = self._head
            if head is None:
                return None
            if head:
                entries = head
                self._segment.folder.log_dir.indexes.hold(self, len(entries))
        low, high = 0, len(entries) // 8
        while low < high:
            middle = (low + high) >> 1
            if entries[middle * 8 : middle * 8 + 4] > key:
                high = middle
            else:
                low = middle + 1
        if not low:
            return -1, 0, _unpack_offset_entry(entries, 0)[1] if entries else 0
        relative, position = _unpack_offset_entry(entries, low * 8 - 8)
        is_last = low * 8 == len(entries)
        behind = 0 if is_last else _unpack_offset_entry(entries, low * 8)[1]
        return self._segment.base_offset + relative, position, behind

    def offset_from_position(self, position: int) -> Reading[int | None]:
        """The offset of the first entry at this position or behind it."""
        head = yield from self.load()
        slot = bisect_left(
            range(self.count), position, key=lambda i: _POSITION.unpack(self._entry(i))[0]
        )
        if slot == self.count:
            return None
        del head
        return self._segment.base_offset + int(_OFFSET_ENTRY.unpack(self._entry(slot))[0])

    def truncate_to(self, offset: int) -> None:
        """Drops entries of this offset and above."""
        relative = offset - self._segment.base_offset
        self._truncate_entries(
            bisect_left(
                range(self.count), relative, key=lambda i: _OFFSET_ENTRY.unpack(self._entry(i))[0]
            )
        )

    def _recount(self) -> None:
        super()._recount()
        count = self.count
        relative = _OFFSET_ENTRY.unpack(self._entry(count - 1))[0] if count else 0
        if relative < 0:
            raise CorruptFile(self.path, where=f"entry {count - 1}", reason="offset is negative")
        self.last_offset = self._segment.base_offset + relative


_TIME_ENTRY = Struct(">qi")
_pack_time_entry = _TIME_ENTRY.pack
_TIMESTAMP = Struct(">q")


class TimeIndex(Index):
    """A time, and the last offset of the batch that brought it: nothing before it is later."""

    SUFFIX = TIME_INDEX
    ENTRY_SIZE = 12
    SPARE = 1

    __slots__ = ("_last_offset", "_last_timestamp")

    def __init__(self, segment: Segment, *, is_new: bool) -> None:
        super().__init__(segment, is_new=is_new)
        self._last_timestamp = NO_TIMESTAMP
        self._last_offset = segment.base_offset

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset); (-1, base offset) where there is none."""
        if self._written < 0:
            at_once(self.load())
        return self._last_timestamp, self._last_offset

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if the time has risen."""
        if self._written < 0:
            at_once(self.load())
        if timestamp > self._last_timestamp:
            self._last_timestamp = timestamp
            self._last_offset = offset
            self.room -= 1
            self._tail += _pack_time_entry(timestamp, offset - self._segment.base_offset)
            if len(self._tail) >= _TAIL_BYTES_MAX:
                self._try_to_write_tail()

    def floor(self, timestamp: int) -> Reading[tuple[int, int] | None]:
        """(timestamp, offset) of the last entry that is not later."""
        if timestamp < 0:
            return None
        entry = yield from self._floor(_TIMESTAMP.pack(timestamp))
        if entry is None:
            return None
        timestamp, relative = _TIME_ENTRY.unpack(entry)
        return timestamp, self._segment.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Drops entries of this offset and above."""
        relative = offset - self._segment.base_offset
        self._truncate_entries(
            bisect_left(
                range(self.count), relative, key=lambda i: _TIME_ENTRY.unpack(self._entry(i))[1]
            )
        )

    def _recount(self) -> None:
        super()._recount()
        count = self.count
        self._last_timestamp, self._last_offset = NO_TIMESTAMP, self._segment.base_offset
        if count:
            timestamp, relative = _TIME_ENTRY.unpack(self._entry(count - 1))
            if timestamp < 0 or relative < 0:
                where = f"entry {count - 1}"
                raise CorruptFile(self.path, where=where, reason="time or offset is negative")
            self._last_timestamp = timestamp
            self._last_offset = self._segment.base_offset + relative
