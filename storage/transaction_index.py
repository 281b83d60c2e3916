"""The transactions that were aborted in a segment: what readers of committed data leave out.

One entry for each abort marker; the file is made with the first. On a full disk entries wait in
memory until the segment is rolled: before that a crash makes them again from the log.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from struct import Struct
from typing import NamedTuple

from ottla.storage.errors import CorruptFile, DiskFull, OutOfResources
from ottla.storage.names import TRANSACTION_INDEX
from ottla.storage.steps import Read, Reading, at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.files import File
    from ottla.storage.segment import Segment

_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size
# An entry once it is read: a tuple and four numbers.
_MEMORY_BYTES = 208


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of the abort marker."""
    last_stable_offset: int
    """Up to where all was decided when this transaction was over."""


class TransactionIndex:
    """Entries in the order of their markers."""

    __slots__ = ("_entries", "_file", "_segment", "_unwritten", "borne_out", "is_wrong")

    def __init__(self, segment: Segment, *, is_new: bool) -> None:
        self._segment = segment
        self._file: File | None = None
        self._entries: list[AbortedTransaction] | None = [] if is_new else None
        self._unwritten = 0
        self.borne_out: set[int] = set()
        """Last offsets of entries that were compared with the log."""
        self.is_wrong = False

    def load(self) -> Reading[list[AbortedTransaction]]:
        entries = self._entries
        if entries is None:
            data = b""
            if self._segment.folder.files.exists(self.path):
                file = self._open()
                data = bytes((yield Read(file, 0, file.size))) if file.size else b""
            if self._entries is None:
                self._entries = self._parse(data)
            entries = self._entries
        if entries:
            self._segment.folder.log_dir.indexes.hold(self, len(entries) * _MEMORY_BYTES)
        return entries

    @property
    def is_known_to_be_empty(self) -> bool:
        """Told from memory alone."""
        return self._entries is not None and not self._entries

    def unload(self) -> None:
        """Forgets the entries, if the file has them."""
        if not self._unwritten:
            self._entries = None

    def _parse(self, data: bytes) -> list[AbortedTransaction]:
        if len(data) % ENTRY_SIZE:
            where = f"position {len(data) - len(data) % ENTRY_SIZE}"
            raise CorruptFile(self.path, where=where, reason="is no whole entry")
        entries: list[AbortedTransaction] = []
        before = self._segment.base_offset - 1
        over: dict[int, int] = {}
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if (
                version != 0
                or entry.last_offset <= before
                or not 0 <= entry.first_offset <= entry.last_offset
                or entry.last_stable_offset > entry.last_offset + 1
                or entry.first_offset <= over.get(entry.producer_id, -1)
            ):
                where = f"entry {len(entries)}"
                raise CorruptFile(self.path, where=where, reason=f"cannot be: {entry}")
            before = over[entry.producer_id] = entry.last_offset
            entries.append(entry)
        return entries

    def append(self, entry: AbortedTransaction) -> None:
        entries = at_once(self.load())
        if entries and entry.last_offset <= entries[-1].last_offset:
            raise ValueError(f"{entry} does not follow {entries[-1]} in {self.path}")
        entries.append(entry)
        self._unwritten += 1
        with suppress(DiskFull, OutOfResources):
            self.write_rest()

    def write_rest(self) -> None:
        """Brings the file up to date."""
        if self._unwritten and self._entries is not None:
            if self._file is None and not self._segment.folder.files.exists(self.path):
                self._file = self._segment.folder.files.create(self.path)
                self._segment.folder.names_changed()
            rest = self._entries[-self._unwritten :]
            self._open().append(b"".join(_ENTRY.pack(0, *entry) for entry in rest))
            self._unwritten = 0

    def collect(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> Reading[tuple[list[AbortedTransaction], bool]]:
        """Those that overlap the range, and whether later segments can have no more of them."""
        entries = yield from self.load()
        found = []
        start = bisect_left(entries, fetch_offset, key=lambda entry: entry.last_offset)
        for entry in entries[start:]:
            if entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drops transactions whose marker is at this offset or above."""
        entries = at_once(self.load())
        count = bisect_left(entries, offset, key=lambda entry: entry.last_offset)
        written = len(entries) - self._unwritten
        if count < written:
            self._open().truncate(count * ENTRY_SIZE)
        del entries[count:]
        self.borne_out.clear()
        self._unwritten = max(0, count - written)

    def reset(self) -> None:
        if self._segment.folder.files.exists(self.path):
            self._open().truncate(0)
        self._entries = []
        self._unwritten = 0
        self.borne_out.clear()

    @property
    def path(self) -> str:
        return self._segment.file_path(TRANSACTION_INDEX)

    def _open(self) -> File:
        if self._file is None:
            self._file = self._segment.folder.files.open(self.path)
        return self._file

    def sync_now(self) -> None:
        self.write_rest()
        if self._file is not None:
            self._file.sync_now()

    async def sync(self) -> None:
        self.write_rest()
        if self._file is not None:
            await self._file.sync()

    def close(self) -> None:
        self._segment.folder.log_dir.indexes.release(self)
        if self._file is not None:
            self._file.close()
            self._file = None
