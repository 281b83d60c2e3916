"""Cleaning a compacted log: of each key the last record stays, and no offset ever moves.

A first pass over the dirty part learns the last offset of each key. A second one goes over all
segments up to there, and writes what stays into new ones, which take the place of the old. Behind
that part the log may go on; whatever changes in it makes the cleaning end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

from ottla.protocol.errors import KafkaError
from ottla.storage.batch_reader import Batch, BatchReader
from ottla.storage.cleanable import LogToClean
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.clock import Now
from ottla.storage.errors import StorageError
from ottla.storage.long_work import Wait, Work, settled
from ottla.storage.lookup import RELATIVE_OFFSET_MAX, locate
from ottla.storage.names import CLEANED, LOG, OFFSET_INDEX, TIME_INDEX
from ottla.storage.offset_map import OffsetMap
from ottla.storage.segment import Segment
from ottla.storage.segment_cleaner import (
    Cleaned,
    Pace,
    SegmentCleaner,
    control_type,
    records_bytes,
    scanned,
)
from ottla.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)


class CleaningAborted(Exception):
    """The log is not what it was when its cleaning began."""


def clean(
    to_clean: LogToClean, offsets: OffsetMap, clock: Callable[[], Now]
) -> Work[Cleaned | None]:
    """Cleans as far as the keys fit into `offsets`. None where somebody has closed the work.

    Raises `CorruptFile` where a batch cannot be read, and `CleaningAborted`.
    """
    return (yield from _Cleaning(to_clean, offsets, clock).run())


class _Cleaning:
    """One round over one log."""

    def __init__(self, to_clean: LogToClean, offsets: OffsetMap, clock: Callable[[], Now]) -> None:
        self.log = to_clean.log
        self.start = to_clean.first_dirty_offset
        self.end = to_clean.first_uncleanable_offset
        self.offsets = offsets
        self.clock = clock
        self.wall_ms = clock().wall_ms
        self.cleaned = Cleaned()
        self.pace = Pace(self.cleaned, self.check)
        self.latest_offset = -1
        """Up to where the keys are known."""
        self.sources = [
            (segment, segment.size) for segment in self.log.segments.between(0, self.end)
        ]
        """Segments that were not cleaned yet, with their sizes."""

    def run(self) -> Work[Cleaned]:
        yield from self.map_keys()
        cleaned = self.cleaned
        cleaned.end_offset = self.latest_offset + 1
        cleaned.key_count, cleaned.map_bytes = self.offsets.count, self.offsets.size_bytes
        transactions = CleanedTransactions()
        cleaner = SegmentCleaner(
            self.log,
            self.offsets,
            transactions,
            self.pace,
            cleaned,
            latest_offset=self.latest_offset,
            end_offset=self.end,
            wall_ms=self.wall_ms,
        )
        for group in groups_of(self.log.segments.between(0, cleaned.end_offset), end=self.end):
            yield from self.clean_group(group, cleaner, transactions)
        return cleaned

    def check(self) -> None:
        """Somebody may have truncated the log, or deleted segments, while the work was paused."""
        # Segments are deleted from the first on, and truncated from the last.
        for segment, size in self.sources[:1] + self.sources[-1:]:
            if segment.size != size or segment.is_active or not self.log.segments.contains(segment):
                raise CleaningAborted(f"{self.log} has changed")

    def aborted(self, start: int, end: int) -> Work[list[AbortedTransaction]]:
        """Aborted transactions between the two. Those below the log's start nobody will read: their
        records and markers go as those of others do."""
        found = yield from self.log.aborted_transactions(start, end)
        return [each for each in found if each.last_offset >= self.log.log_start_offset]

    # the first pass

    def map_keys(self) -> Work[None]:
        segments = self.log.segments.between(self.start, self.end)
        transactions = CleanedTransactions()
        transactions.add((yield from self.aborted(self.start, self.end)))
        ends = [segment.base_offset for segment in segments[1:]] + [self.end]
        for segment, end in zip(segments, ends, strict=True):
            has_room = yield from self.map_segment(segment, transactions)
            if not has_room:
                return
            self.latest_offset = end - 1

    def map_segment(self, segment: Segment, transactions: CleanedTransactions) -> Work[bool]:
        """Whether all its keys found room."""
        located = yield from locate(segment, self.start)
        if located is None:
            return True
        reader = BatchReader(segment, located.position)
        while (batch := (yield from reader.next())) is not None:
            header = batch.header
            if header.is_control:
                transactions.on_control_batch(header, control_type(segment, batch))
            elif not transactions.on_batch(header):
                has_room = yield from self.map_batch(segment, batch)
                if not has_room:
                    return False
            if header.last_offset >= self.start:
                self.latest_offset = header.last_offset
            yield from self.pace.moved(header.size)
        return True

    def map_batch(self, segment: Segment, batch: Batch) -> Work[bool]:
        for records in scanned(segment, batch, records_bytes(segment, batch)):
            entries = [
                (record[0], record[1])
                for record in records
                if record[1] is not None and record[0] >= self.start
            ]
            taken = self.offsets.put(entries)
            if taken:
                self.latest_offset = entries[taken - 1][0]
            if taken < len(entries):
                return False
            self.cleaned.mapped_count += len(records)
            yield from self.pace.walked(len(records))
        return True

    # the second pass

    def clean_group(
        self, group: list[Segment], cleaner: SegmentCleaner, transactions: CleanedTransactions
    ) -> Work[None]:
        """Several segments become one, so that what is left of them does not lie scattered."""
        target = Segment(
            self.log.folder, group[0].base_offset, size=0, now=self.clock(), state=CLEANED
        )
        is_swapping = False
        try:
            target.create()
            transactions.keep = target.transaction_index.append
            for segment in group:
                after = self.log.segments[self.log.segments.floor(segment.base_offset) + 1]
                transactions.add((yield from self.aborted(segment.base_offset, after.base_offset)))
                yield from cleaner.clean(segment, target)
            target.become_inactive()
            yield Wait(target.flush_now, target.flush)
            yield settled(self.log.folder.files, self.log.folder.path)
            self.check()
            self.keep_time(group[-1], target)
            del self.sources[: len(group)]
            is_swapping = True
            self.swap(group, target)
        finally:
            if not is_swapping:
                with suppress(StorageError):
                    target.remove_files()

    def swap(self, group: list[Segment], target: Segment) -> None:
        try:
            self.log.replace_segments([target], group, self.clock())
        except KafkaError as error:
            # Only the next start can tell how far it came, and go on from there.
            path = target.file_path(LOG)
            self.log.folder.log_dir.fail(f"{path}: cannot be swapped in: {error}")
            raise

    def keep_time(self, source: Segment, target: Segment) -> None:
        """Retention goes by the file's own time where no record has one."""
        files = self.log.folder.files
        mtime_ms = files.mtime_ms(source.file_path(LOG))
        for suffix in (LOG, OFFSET_INDEX, TIME_INDEX):
            files.set_mtime_ms(target.file_path(suffix), mtime_ms)


def groups_of(segments: list[Segment], *, end: int) -> list[list[Segment]]:
    """Neighbours that fit into one segment together. The last one ends at `end` at the latest."""
    groups: list[list[Segment]] = []
    ends = [later.base_offset for _, later in pairwise(segments)] + [end]
    log_bytes = index_bytes = time_index_bytes = 0
    for segment, segment_end in zip(segments, ends, strict=True):
        config, files = segment.folder.config, segment.folder.files
        sizes = (
            segment.size,
            files.size(segment.file_path(OFFSET_INDEX)),
            files.size(segment.file_path(TIME_INDEX)),
        )
        if (
            groups
            and log_bytes + sizes[0] <= config.segment_bytes
            and index_bytes + sizes[1] <= config.segment_index_bytes
            and time_index_bytes + sizes[2] <= config.segment_index_bytes
            and (
                not segment.size
                or segment_end - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
            )
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            log_bytes = index_bytes = time_index_bytes = 0
        log_bytes += sizes[0]
        index_bytes += sizes[1]
        time_index_bytes += sizes[2]
    return groups
