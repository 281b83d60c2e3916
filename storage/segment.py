"""One segment: a stretch of a log in a file, with the indexes beside it.

Only the last segment of a log is appended to. Files and indexes of the others are opened when
somebody asks for them, so that a log of a thousand segments costs a thousand small objects.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.records import LOG_OVERHEAD, NO_TIMESTAMP, BatchHeader
from ottla.protocol.wire import Buffer
from ottla.storage.clock import Now
from ottla.storage.errors import CorruptFile, DiskFailed, StorageError
from ottla.storage.files import File
from ottla.storage.folder import Folder
from ottla.storage.index import OffsetIndex, TimeIndex
from ottla.storage.lookup import (
    RELATIVE_OFFSET_MAX,
    first_timestamp,
    latest_after_truncation,
    latest_entry,
    locate,
    rebuild_indexes,
)
from ottla.storage.names import LOG, SEGMENT_SUFFIXES, TRANSACTION_INDEX, offset_name
from ottla.storage.steps import at_once
from ottla.storage.transaction_index import TransactionIndex

_UNKNOWN = -2


class Segment:
    """Batches from `base_offset` on."""

    __slots__ = (
        "_file",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_since_index_entry_bytes",
        "_time_index",
        "_transaction_index",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "folder",
        "is_active",
        "is_dirty",
        "is_full",
        "is_new",
        "jitter_ms",
        "size",
        "state",
    )

    def __init__(
        self, folder: Folder, base_offset: int, *, size: int, now: Now, state: str = ""
    ) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.size = size
        """Bytes of batches; the file is longer where it was preallocated."""
        self.state = state
        self.is_active = False
        self.is_dirty = False
        """Something of it may not be on disk."""
        self.is_full = False
        """An index has no place for another entry."""
        self.is_new = False
        self.created_ms = now.wall_ms
        self.jitter_ms = folder.segment_jitter_ms()
        self.first_timestamp = _UNKNOWN
        """The max timestamp of the first batch, by which the segment's age is told."""
        self._max_timestamp = _UNKNOWN
        self._max_timestamp_offset = base_offset
        self._since_index_entry_bytes = 0
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transaction_index: TransactionIndex | None = None

    def create(self) -> None:
        """Makes its files. What a crash has left in their places goes first."""
        self.is_new = True
        self.is_active = True
        self.is_dirty = True
        self.max_timestamp_entry = (NO_TIMESTAMP, self.base_offset)
        files = self.folder.files
        for suffix in (LOG, TRANSACTION_INDEX):
            if files.exists(path := self.file_path(suffix)):
                files.remove(path)
        self._file = files.create(self.file_path(LOG))
        self.folder.names_changed()
        if self.folder.config.preallocate:
            self._file.preallocate(self.folder.config.segment_bytes)
        self.offset_index.create()
        self.time_index.create()
        self.is_full = self.offset_index.room <= 0 or self.time_index.room <= 0

    def __repr__(self) -> str:
        return f"Segment({self.file_path(LOG)}, {self.size} bytes)"

    # files

    def file_path(self, suffix: str) -> str:
        return self.folder.file(offset_name(self.base_offset, suffix, self.state))

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self.folder.files.open(self.file_path(LOG))
        return self._file

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._offset_index = OffsetIndex(self, is_new=self.is_new)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self, is_new=self.is_new)
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        if self._transaction_index is None:
            self._transaction_index = TransactionIndex(self, is_new=self.is_new)
        return self._transaction_index

    # appending

    def append(self, headers: Sequence[BatchHeader], data: Buffer) -> int:
        """Adds whole batches, and returns the position of the first."""
        position = self.write(data)
        self.index(headers, position)
        return position

    def write(self, data: Buffer) -> int:
        """The first half of an append, all or nothing; `index` or `cut_back` must follow."""
        position = self.size
        self.is_dirty = True
        file = self._file or self.file
        if file.size == position:
            file.append(data)
        else:
            file.write(position, data)
        self.size = position + len(data)
        return position

    def index(self, headers: Sequence[BatchHeader], position: int) -> None:
        """Enters batches into the indexes; the first begins at `position`."""
        if not position:
            self.first_timestamp = headers[0][8]
        interval_bytes = self.folder.config.index_interval_bytes
        since_bytes = self._since_index_entry_bytes
        for header in headers:
            last_offset = header[0] + header[6]
            if header[8] > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = header[8], last_offset
            if since_bytes > interval_bytes:
                self._enter(last_offset, position)
                since_bytes = 0
            size = header[1] + LOG_OVERHEAD
            position += size
            since_bytes += size
        self._since_index_entry_bytes = since_bytes

    def _enter(self, last_offset: int, position: int) -> None:
        offset_index = self._offset_index or self.offset_index
        time_index = self._time_index or self.time_index
        offset_index.append(last_offset, position)
        time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self.is_full = offset_index.room <= 0 or time_index.room <= 0

    def reset_indexes(self) -> None:
        """Throws away what leads to batches, to be made again."""
        self.is_dirty = True
        self.offset_index.reset()
        self.time_index.reset()
        self.max_timestamp_entry = (NO_TIMESTAMP, self.base_offset)
        self._since_index_entry_bytes = 0

    def settle_indexes(self) -> None:
        """Ends what `reset_indexes` has begun."""
        if not self.is_active:
            self._finish_indexes()

    def _finish_indexes(self) -> None:
        self.time_index.maybe_append(*self.max_timestamp_entry)
        self.offset_index.trim()
        self.time_index.trim()

    def cut_back(self, size: int) -> None:
        """Takes back an append that was not indexed yet."""
        self.is_dirty = True
        self.file.truncate(size)
        self.size = size

    def can_hold(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def should_roll(
        self, added_bytes: int, max_timestamp: int, last: BatchHeader, now: Now
    ) -> bool:
        """Whether batches of that size and time, ending in `last`, belong into a new segment."""
        config = self.folder.config
        size = self.size
        if size:
            first = self.first_timestamp
            waited_ms = max_timestamp - first if first >= 0 else self.waited_ms(max_timestamp, now)
            if waited_ms > config.segment_age_max_ms - self.jitter_ms:
                return True
        return (
            size > config.segment_bytes - added_bytes
            or self.is_full
            or last[0] + last[6] - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def waited_ms(self, max_timestamp: int, now: Now) -> int:
        """How much older than these records the first batch is."""
        if self.first_timestamp >= 0:
            return max_timestamp - self.first_timestamp
        if self.first_timestamp == _UNKNOWN and self.size:
            self.first_timestamp = at_once(first_timestamp(self))
            return self.waited_ms(max_timestamp, now)
        return now.wall_ms - self.created_ms

    # times

    @property
    def max_timestamp(self) -> int:
        """The latest time of a record, -1 if none has one."""
        return self.max_timestamp_entry[0]

    @property
    def is_latest_known(self) -> bool:
        """Whether the latest time is had without reading."""
        return self._max_timestamp != _UNKNOWN

    @property
    def max_timestamp_entry(self) -> tuple[int, int]:
        """That time, and the last offset of the first batch that has it."""
        if self._max_timestamp == _UNKNOWN:
            self._max_timestamp, self._max_timestamp_offset = at_once(latest_entry(self))
        return self._max_timestamp, self._max_timestamp_offset

    @max_timestamp_entry.setter
    def max_timestamp_entry(self, entry: tuple[int, int]) -> None:
        self._max_timestamp, self._max_timestamp_offset = entry

    def largest_timestamp(self) -> int:
        """By which retention goes: where no record has a time, that of the file."""
        latest = self.max_timestamp
        return latest if latest >= 0 else self.folder.files.mtime_ms(self.file_path(LOG))

    # from active to gone

    def become_active(self) -> None:
        """Gets ready to be appended to; a log that was opened waits with it until it must."""
        self.is_active = True
        try:
            at_once(self.offset_index.load())
            at_once(self.time_index.load())
        except CorruptFile as error:
            rebuild_indexes(self, str(error))
        _ = self.max_timestamp_entry
        self.is_full = self.offset_index.room <= 0 or self.time_index.room <= 0

    def become_inactive(self) -> None:
        """Brings files to the form that they keep. Where it fails it can be done again."""
        self._finish_indexes()
        self.transaction_index.write_rest()
        if self.file.size != self.size:
            self.is_dirty = True
            self.file.truncate(self.size)
        self.is_dirty |= self.offset_index.is_changed or self.time_index.is_changed
        self.is_active = False

    def truncate_to(self, offset: int) -> int:
        """Drops the batch that holds this offset, and all behind it. Returns the bytes dropped."""
        located = at_once(locate(self, offset))
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        size = self.size
        if located is not None:
            self.cut_back(located.position)
        if not self.size:
            self.first_timestamp = _UNKNOWN
        self._since_index_entry_bytes = 0
        self.max_timestamp_entry = at_once(latest_after_truncation(self))
        return size - self.size

    def flush_now(self) -> None:
        """Blocks until the disk has it. The indexes of an active segment need not be there: it is
        recovered after a crash, and they are made again."""
        if not self.is_dirty:
            return
        self.is_dirty = False
        self.file.sync_now()
        self.transaction_index.sync_now()
        if not self.is_active:
            self.offset_index.sync_now()
            self.time_index.sync_now()

    def flush_truncation_now(self) -> None:
        """Blocks until what was cut off is gone from the disk, also from the indexes: the log may
        be rolled next, and recovered from there."""
        self.offset_index.sync_now()
        self.time_index.sync_now()
        self.flush_now()

    async def flush(self) -> None:
        if not self.is_dirty:
            return
        # Whoever comes meanwhile must find it dirty until the disk has it.
        size = self.size
        is_active = self.is_active
        await self.file.sync()
        await self.transaction_index.sync()
        if not is_active:
            await self.offset_index.sync()
            await self.time_index.sync()
        if self.size == size and self.is_active == is_active:
            self.is_dirty = False

    def rest(self) -> None:
        """Gives up what is opened again when it is needed."""
        if self._file is not None and not self.is_dirty:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Gives the files free. Does not sync."""
        for each in (self._file, self._offset_index, self._time_index, self._transaction_index):
            if each is not None:
                each.close()
        self._file = None

    def rename(self, state: str) -> None:
        """Puts `state` behind the names of its files, in place of what stood there. All or none."""
        files = self.folder.files
        pairs = [
            (self.file_path(suffix), self.folder.file(offset_name(self.base_offset, suffix, state)))
            for suffix in SEGMENT_SUFFIXES
        ]
        done: list[tuple[str, str]] = []
        try:
            for old, new in pairs:
                if files.exists(old):
                    files.rename(old, new)
                    self.folder.names_changed()
                    done.append((old, new))
        except StorageError as error:
            self._rename_back(done, error)
            raise
        self.state = state

    def _rename_back(self, done: list[tuple[str, str]], error: StorageError) -> None:
        try:
            for old, new in reversed(done):
                self.folder.files.rename(new, old)
        except StorageError as second:
            reason = f"{error}; and its files cannot get their names back: {second}"
            raise DiskFailed(self.file_path(LOG), reason) from second

    def remove_files(self) -> None:
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            if self.folder.files.exists(path := self.file_path(suffix)):
                self.folder.files.remove(path)
