"""What stays of one segment when its log is cleaned, batch by batch.

Knows the last offset of each key, which somebody else has found out. A batch of which all stays is
copied as it is. One that loses its last record stays as an empty one where its producer, or a
reader who asks for the last offset, still needs to see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ottla.protocol.record_build import build_empty_batch
from ottla.protocol.records import (
    BatchHeader,
    ControlRecordType,
    iterate_records,
    read_control,
    read_header,
    uncompressed_records,
)
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.batch_filter import BatchRebuild, RecordScanner, Scanned
from ottla.storage.batch_reader import Batch, BatchReader
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.log import Log
from ottla.storage.long_work import Work
from ottla.storage.lookup import DECOMPRESSED_BYTES_MAX, corrupt
from ottla.storage.offset_map import OffsetMap
from ottla.storage.segment import Segment

RECORDS_PER_SLICE = 500
_BYTES_PER_SLICE = 1 << 20
# What a batch costs besides its records.
_BATCH_WEIGHT = 16
_WRITE_BYTES = 1 << 20


@dataclass(slots=True)
class Cleaned:
    """What a cleaning has done."""

    end_offset: int = 0
    """The log is clean up to here."""
    mapped_count: int = 0
    read_count: int = 0
    kept_count: int = 0
    moved_bytes: int = 0
    """Read in both passes, and written."""
    written_bytes: int = 0
    key_count: int = 0
    map_bytes: int = 0


class Pace:
    """Pauses a cleaning when it has worked for about a millisecond."""

    __slots__ = ("_bytes", "_check", "_cleaned", "_weight")

    def __init__(self, cleaned: Cleaned, check: Callable[[], None]) -> None:
        self._cleaned = cleaned
        self._check = check
        self._bytes = 0
        self._weight = 0

    def moved(self, size_bytes: int) -> Work[None]:
        """A batch of so many bytes was read or written."""
        self._cleaned.moved_bytes += size_bytes
        self._bytes += size_bytes
        self._weight += _BATCH_WEIGHT
        if self._weight >= RECORDS_PER_SLICE or self._bytes >= _BYTES_PER_SLICE:
            yield from self._pause()

    def walked(self, record_count: int) -> Work[None]:
        self._weight += record_count
        if self._weight >= RECORDS_PER_SLICE:
            yield from self._pause()

    def _pause(self) -> Work[None]:
        moved_bytes, self._bytes, self._weight = self._bytes, 0, 0
        yield moved_bytes
        self._check()


class SegmentCleaner:
    __slots__ = (
        "_cleaned",
        "_end_offset",
        "_headers",
        "_latest_offset",
        "_log",
        "_offsets",
        "_pace",
        "_pieces",
        "_pieces_bytes",
        "_segment",
        "_target",
        "_transactions",
        "_wall_ms",
    )

    def __init__(
        self,
        log: Log,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        pace: Pace,
        cleaned: Cleaned,
        *,
        latest_offset: int,
        end_offset: int,
        wall_ms: int,
    ) -> None:
        self._log = log
        self._offsets = offsets
        self._transactions = transactions
        self._pace = pace
        self._cleaned = cleaned
        self._latest_offset = latest_offset
        self._end_offset = end_offset
        self._wall_ms = wall_ms
        self._pieces: list[Buffer] = []
        self._pieces_bytes = 0
        self._headers: list[BatchHeader] = []

    def clean(self, segment: Segment, target: Segment) -> Work[None]:
        """Writes what stays of `segment` to the end of `target`."""
        self._segment, self._target = segment, target
        reader = BatchReader(segment)
        while (batch := (yield from reader.next())) is not None:
            yield from self._clean_batch(batch)
            yield from self._pace.moved(batch.header.size)
            if self._pieces_bytes >= _WRITE_BYTES:
                yield from self._write()
        yield from self._write()

    def _clean_batch(self, batch: Batch) -> Work[None]:
        header = batch.header
        is_done = self._is_done(batch)
        is_discarded = is_done
        if header.is_control:
            # A marker must be seen by those who are just reading its transaction, as a tombstone.
            horizon_ms = header.delete_horizon_ms
            is_discarded = is_done and horizon_ms is not None and horizon_ms <= self._wall_ms
        if is_discarded:
            kept = False
        else:
            kept = yield from self._keep_records(batch, is_emptied_marker=is_done)
        if not kept and self._stays_empty(header):
            empty = build_empty_batch(header)
            self._emit(empty, read_header(empty))

    def _is_done(self, batch: Batch) -> bool:
        """Whether its records belong to an aborted transaction, or it is the marker of nothing."""
        if batch.header.is_control:
            type = control_type(self._segment, batch)
            return self._transactions.on_control_batch(batch.header, type)
        return self._transactions.on_batch(batch.header)

    def _stays_empty(self, header: BatchHeader) -> bool:
        if header.next_offset == self._end_offset:
            return True
        producer = self._log.producers.producers.get(header.producer_id)
        if header.producer_id < 0 or producer is None:
            return False
        if producer.batches:
            return header.last_offset == producer.batches[-1].last_offset
        # Its epoch, which fences, is in its last marker alone.
        return header.is_control and header.producer_epoch == producer.epoch

    def _keep_records(self, batch: Batch, *, is_emptied_marker: bool) -> Work[bool]:
        """Whether any record stays."""
        header = batch.header
        data = records_bytes(self._segment, batch)
        count = kept_count = 0
        has_tombstone = False
        staying: list[Scanned] = []
        for records in scanned(self._segment, batch, data):
            staying = self._staying(header, records)
            count += len(records)
            kept_count += len(staying)
            has_tombstone |= not all([record[2] for record in staying])
            yield from self._pace.walked(len(records))
        self._cleaned.read_count += count
        self._cleaned.kept_count += kept_count
        if not kept_count:
            return False
        needs_horizon = (has_tombstone or is_emptied_marker) and not header.has_delete_horizon
        if kept_count == count and not needs_horizon:
            self._emit(bytes(memoryview(batch.data)[batch.at : batch.at + header.size]), header)
            return True
        horizon_ms = header.delete_horizon_ms
        if needs_horizon:
            horizon_ms = self._wall_ms + self._log.config.delete_retention_ms
        rebuild = BatchRebuild(data, header, horizon_ms)
        if count <= RECORDS_PER_SLICE:
            rebuild.add(staying)
        else:
            # What is inside one batch may be a hundred times its size: it is not kept in memory.
            for records in scanned(self._segment, batch, data):
                rebuild.add(self._staying(header, records))
                yield from self._pace.walked(len(records))
        new = rebuild.finish()
        self._emit(new, read_header(new))
        return True

    def _staying(self, header: BatchHeader, records: list[Scanned]) -> list[Scanned]:
        if header.is_control:
            return records
        horizon_ms = header.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self._wall_ms < horizon_ms
        latest_offset = self._latest_offset
        found = self._offsets.latest([record[1] for record in records])
        return [
            record
            for record, latest in zip(records, found, strict=True)
            if (record[0] >= latest and record[1] is not None and (record[2] or keeps_tombstones))
            or record[0] > latest_offset
        ]

    # writing

    def _emit(self, batch: Buffer, header: BatchHeader) -> None:
        self._pieces.append(batch)
        self._pieces_bytes += len(batch)
        self._headers.append(header)

    def _write(self) -> Work[None]:
        if not self._pieces:
            return
        if not self._target.can_hold(self._headers[-1].last_offset):
            reason = f"offset {self._headers[-1].last_offset} is too far from its beginning"
            raise corrupt(self._segment, self._segment.size, reason)
        written_bytes = self._pieces_bytes
        self._target.append(self._headers, b"".join(self._pieces))
        self._pieces, self._pieces_bytes, self._headers = [], 0, []
        self._cleaned.written_bytes += written_bytes
        yield from self._pace.moved(written_bytes)


def control_type(segment: Segment, batch: Batch) -> ControlRecordType | None:
    """What its first record says; None where it is empty."""
    header, data, at, position = batch
    try:
        for record in iterate_records(data, at, header, decompressed_max=DECOMPRESSED_BYTES_MAX):
            return read_control(record).type
    except ProtocolError as error:
        raise corrupt(segment, position, error.reason) from None
    return None


def records_bytes(segment: Segment, batch: Batch) -> bytes:
    """Its records, uncompressed."""
    header, data, at, position = batch
    try:
        return uncompressed_records(data, at, header, decompressed_max=DECOMPRESSED_BYTES_MAX)
    except ProtocolError as error:
        raise corrupt(segment, position, error.reason) from None


def scanned(segment: Segment, batch: Batch, data: bytes) -> Iterator[list[Scanned]]:
    """The records in `data`, some at a time."""
    scanner = RecordScanner(data, batch.header)
    try:
        while records := scanner.next(RECORDS_PER_SLICE):
            yield records
    except ProtocolError as error:
        raise corrupt(segment, batch.position, str(error)) from None
