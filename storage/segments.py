"""The segments of one log, in order, and how they come and go on disk.

Knows files and offsets only: no producers, epochs or watermarks. Each change is made in an order
that a crash may cut anywhere; what it leaves behind is put right when the folder is next opened.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from ottla.storage.clock import Now
from ottla.storage.errors import StorageError
from ottla.storage.folder import Folder
from ottla.storage.lookup import largest_timestamp
from ottla.storage.names import CLEANED, DELETED, SWAP
from ottla.storage.segment import Segment
from ottla.storage.steps import Reading


class Segments:
    """Never empty once the log is open; the last one is active."""

    __slots__ = ("_all", "_bases", "_peaks", "folder")

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._all: list[Segment] = []
        self._bases: list[int] = []
        # For closed segments from the first one on: the latest time up to each.
        self._peaks: list[int] = []

    # looking

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all.copy())

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Segment:
        return self._all[number]

    @property
    def first(self) -> Segment:
        return self._all[0]

    @property
    def active(self) -> Segment:
        return self._all[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._all)

    def floor(self, offset: int) -> int:
        """The number of the last segment that does not begin behind this offset; -1 if none."""
        return bisect_right(self._bases, offset) - 1

    def holding(self, offset: int) -> Segment:
        """The last segment that does not begin behind this offset; the first one if all do."""
        return self._all[max(0, bisect_right(self._bases, offset) - 1)]

    def between(self, start: int, end: int) -> list[Segment]:
        """Those that may hold offsets from `start` on and below `end`."""
        return self._all[max(0, self.floor(start)) : bisect_left(self._bases, end)]

    def contains(self, segment: Segment) -> bool:
        number = self.floor(segment.base_offset)
        return number >= 0 and self._all[number] is segment

    def first_with_time(self, timestamp: int) -> Reading[Segment | None]:
        """The first segment that has this time or a later one."""
        peaks = self._peaks
        while len(peaks) < len(self._all) - 1 and (not peaks or peaks[-1] < timestamp):
            number = len(peaks)
            latest = yield from largest_timestamp(self._all[number])
            if peaks is not self._peaks:
                return (yield from self.first_with_time(timestamp))
            if number == len(peaks):
                peaks.append(max(latest, peaks[-1] if peaks else latest))
        number = bisect_left(peaks, timestamp)
        if number < len(peaks):
            return self._all[number]
        return self.active if self.active.largest_timestamp() >= timestamp else None

    # coming

    def add(self, segment: Segment) -> None:
        """Takes the place of one with the same base offset."""
        self._peaks = []
        number = bisect_left(self._bases, segment.base_offset)
        if number < len(self._bases) and self._bases[number] == segment.base_offset:
            self._all[number] = segment
        else:
            self._bases.insert(number, segment.base_offset)
            self._all.insert(number, segment)

    def roll(self, base_offset: int, now: Now, *, is_flushed: bool) -> Segment:
        """A new active segment. Where it fails, the old one is the last one still.

        If all of that one is flushed, so that no start may look at it again, its indexes must be on
        disk as well, before the new one has a name.
        """
        old = self.active
        if base_offset <= old.base_offset:
            raise ValueError(f"cannot roll {old} at offset {base_offset}")
        old.become_inactive()
        if is_flushed:
            old.flush_now()
        new = self._created(base_offset, now)
        self.add(new)
        return new

    def _created(self, base_offset: int, now: Now) -> Segment:
        segment = Segment(self.folder, base_offset, size=0, now=now)
        try:
            segment.create()
        except StorageError:
            segment.remove_files()
            raise
        return segment

    def begin(self, base_offset: int, now: Now) -> None:
        """The first segment of a log that is new."""
        self.add(self._created(base_offset, now))

    def start_at(self, base_offset: int, now: Now, *, one_by_one: bool) -> None:
        """Throws all away and begins anew. `one_by_one` as in `remove_behind`; there is no need for
        it where the log's start, on disk, is behind them all. Once the new segment has a name, all
        names that went before are gone in any crash."""
        old = self._all.copy()
        for segment in reversed(old):
            segment.rename(DELETED)
            if one_by_one:
                self.folder.sync_names_now()
        self.folder.sync_names_now()
        new = self._created(base_offset, now)
        self._all, self._bases, self._peaks = [new], [base_offset], []
        self._remove_later(old, now)

    # going

    def remove(self, segments: Iterable[Segment], now: Now) -> None:
        """Takes segments out of the log; their files go after file.delete.delay.ms. Nothing but the
        log's start may tell that they are gone: it must be on disk before."""
        removed = list(segments)
        for segment in removed:
            self._drop(segment)
        self._remove_later(removed, now)

    def remove_behind(self, offset: int, now: Now) -> list[Segment]:
        """Takes those out that begin behind this offset. From the last on, and the disk has each
        before the next goes: in a compacted log nobody could tell a hole that a crash leaves."""
        removed = [segment for segment in reversed(self._all) if segment.base_offset > offset]
        for segment in removed:
            self._drop(segment)
            self.folder.sync_names_now()
        self._remove_later(removed, now)
        return removed

    def _drop(self, segment: Segment) -> None:
        segment.rename(DELETED)
        self._peaks = []
        number = self._all.index(segment)
        del self._all[number], self._bases[number]

    def _remove_later(self, segments: list[Segment], now: Now) -> None:
        due_ms = now.monotonic_ms + self.folder.config.file_delete_delay_ms
        for segment in segments:
            self.folder.log_dir.chores.remove(segment.remove_files, due_ms=due_ms)

    def replace(self, new: list[Segment], old: list[Segment], now: Now) -> list[Segment]:
        """Puts cleaned segments, synced before, in the place of old ones. Returns those of the old
        that have no successor of the same base offset.

        The directory is synced between the steps: were a rename of the second to outlive one of the
        first, a crash would leave neither the old nor the new.
        """
        folder = self.folder
        new = sorted(new, key=lambda segment: segment.base_offset)
        old = [segment for segment in old if self.contains(segment)]
        for segment in reversed(new):
            if segment.state == CLEANED:
                segment.rename(SWAP)
        folder.sync_names_now()
        for segment in old:
            self._drop(segment)
        for segment in new:
            self.add(segment)
        folder.sync_names_now()
        for segment in new:
            segment.rename("")
        folder.sync_names_now()
        self._remove_later(old, now)
        bases = {segment.base_offset for segment in new}
        return [segment for segment in old if segment.base_offset not in bases]

    def close(self) -> None:
        for segment in self._all:
            segment.close()
