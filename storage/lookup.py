"""Finding batches in a segment: by offset, by time, and the bytes of a fetch.

Every lookup begins with a hint of an index and goes on over batch headers. A hint that the log does
not bear out means that the index is damaged: it is made again, and the lookup repeated.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    iterate_records,
    read_header,
)
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.errors import CorruptFile
from ottla.storage.names import LOG
from ottla.storage.steps import Read, Reading, at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.segment import Segment
    from ottla.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

# One entry of the offset index leads to about as much.
_CHUNK_BYTES = 4096 + 2 * HEADER_SIZE
_REBUILD_BYTES = 1 << 20
DECOMPRESSED_BYTES_MAX = 128 << 20
RELATIVE_OFFSET_MAX = 0x7FFF_FFFF


class Located(NamedTuple):
    """A batch, and where it begins in its segment's file."""

    position: int
    header: BatchHeader


class Slice(NamedTuple):
    """The bytes for a fetch: from the beginning of a batch on, maybe not to the end of one."""

    data: Buffer
    base_offset: int
    position: int
    is_first_incomplete: bool


class Headers:
    """Walks over the headers of a segment's batches, from a position on."""

    __slots__ = ("_at", "_data", "_start", "ahead_bytes", "segment")

    def __init__(self, segment: Segment, position: int, *, ahead_bytes: int = 0) -> None:
        self.segment = segment
        self._start = position
        self._data: Buffer = b""
        self._at = 0
        self.ahead_bytes = ahead_bytes
        """How much is read at once; headers alone need little."""

    def next(self) -> Reading[Located | None]:
        """The next batch; None at the end of the segment."""
        segment = self.segment
        if len(self._data) - self._at < HEADER_SIZE:
            self._start += self._at
            self._at = 0
            left = segment.size - self._start
            if left <= 0:
                return None
            yield from self._read(min(left, max(self.ahead_bytes, _CHUNK_BYTES)))
        position = self._start + self._at
        try:
            header = read_header(self._data, self._at)
        except ProtocolError as error:
            raise corrupt(segment, position, error.reason) from None
        if not 0 <= header[0] - segment.base_offset <= RELATIVE_OFFSET_MAX:
            raise corrupt(segment, position, f"offset {header[0]} cannot be in this segment")
        size = header[1] + LOG_OVERHEAD
        if size > segment.size - position:
            raise corrupt(segment, position, "the batch is cut short")
        self._at += size
        return Located(position, header)

    def _read(self, size: int) -> Reading[None]:
        file, position = self.segment.file, self._start
        self._data = yield Read(file, position, size, True)
        if len(self._data) < min(size, HEADER_SIZE):
            self._data = yield Read(file, position, min(size, _CHUNK_BYTES))

    def read_from(self, position: int, size: int) -> Reading[Buffer]:
        """The bytes at the position of a batch that was passed, if memory has them at hand."""
        at = position - self._start
        if at < 0 or at + size > len(self._data):
            return (yield Read(self.segment.file, position, size, True))
        return memoryview(self._data)[at : at + size]


def corrupt(segment: Segment, position: int, reason: str) -> CorruptFile:
    return CorruptFile(segment.file.path, where=f"position {position}", reason=reason)


def locate(segment: Segment, offset: int) -> Reading[Located | None]:
    """The first batch that ends at this offset or behind it."""
    found, _ = yield from _locate(segment, offset, ahead_bytes=0)
    return found


def _locate(
    segment: Segment, offset: int, *, ahead_bytes: int
) -> Reading[tuple[Located | None, Headers]]:
    """With the walk that came to it."""
    try:
        hint = yield from segment.offset_index.floor(offset)
        if hint is not None:
            headers = Headers(segment, hint[1])
            hinted = yield from _hinted(headers, *hint)
    except CorruptFile as error:
        rebuild_indexes(segment, str(error))
        hint = None
    if hint is None:
        return (yield from _walk_to(Headers(segment, 0, ahead_bytes=ahead_bytes), offset))
    if hint[0] == offset:
        return hinted, headers
    headers.ahead_bytes = ahead_bytes
    return (yield from _walk_to(headers, offset))


def _hinted(headers: Headers, last_offset: int, position: int) -> Reading[Located]:
    """The batch that the index leads to, if it is the one that the index means."""
    segment = headers.segment
    if not 0 <= position < segment.size:
        raise corrupt(segment, position, "the index leads behind the segment's end")
    found = yield from headers.next()
    if found is None or found.header.last_offset != last_offset:
        raise corrupt(segment, position, f"no batch ends at offset {last_offset} there")
    return found


def _walk_to(headers: Headers, offset: int) -> Reading[tuple[Located | None, Headers]]:
    while (found := (yield from headers.next())) is not None:
        if found.header[0] + found.header[6] >= offset:
            break
    return found, headers


def rebuild_indexes(segment: Segment, reason: str) -> None:
    """Makes the indexes again from the headers alone.

    It blocks: nobody may append, or do the same, half-way through. But it is rare.
    """
    logger.warning("index.rebuild segment=%s reason=%s", segment.file_path(LOG), reason)
    segment.reset_indexes()
    headers = Headers(segment, 0, ahead_bytes=_REBUILD_BYTES)
    while (found := at_once(headers.next())) is not None:
        segment.index((found.header,), found.position)
    segment.settle_indexes()


def read_slice(
    segment: Segment, offset: int, max_bytes: int, *, limit: int | None, minimum_one: bool
) -> Reading[Slice | None]:
    """Batches from that of `offset` on, in front of the position `limit`; None if there are none.

    `limit` is None where the upper bound is not in this segment, but in front of it.
    """
    ahead_bytes = 0 if limit is None else max_bytes
    located, headers = yield from _locate(segment, offset, ahead_bytes=ahead_bytes)
    if located is None:
        return None
    return (
        yield from slice_at(
            located, headers, max_bytes=max_bytes, limit=limit, minimum_one=minimum_one
        )
    )


def slice_at(
    located: Located, headers: Headers, *, max_bytes: int, limit: int | None, minimum_one: bool
) -> Reading[Slice]:
    """Batches from one on that was found."""
    position, header = located
    first_size = header.size
    wanted = max(max_bytes, first_size) if minimum_one else max_bytes
    if wanted <= 0 or limit is None:
        return Slice(b"", header.base_offset, position, False)
    size = min(limit - position, wanted)
    if size <= 0:
        return Slice(b"", header.base_offset, position, wanted < first_size)
    data = yield from headers.read_from(position, size)
    if len(data) < min(first_size, size):
        data = yield Read(headers.segment.file, position, size)
    return Slice(data, header.base_offset, position, wanted < first_size)


# times


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int
    """-1 where it is not known."""


def first_timestamp(segment: Segment) -> Reading[int]:
    """The max timestamp of the first batch."""
    first = yield from Headers(segment, 0).next()
    return NO_TIMESTAMP if first is None else first.header.max_timestamp


def latest_entry(segment: Segment) -> Reading[tuple[int, int]]:
    """The last entry of the time index, borne out by the log."""
    try:
        yield from segment.time_index.load()
        reason = yield from _doubt(segment, *segment.time_index.last_entry)
    except CorruptFile as error:
        reason = str(error)
    if reason is not None:
        rebuild_indexes(segment, reason)
    return segment.time_index.last_entry


def _doubt(segment: Segment, timestamp: int, offset: int) -> Reading[str | None]:
    """Why an entry of the time index cannot be right, None if it can."""
    if timestamp == NO_TIMESTAMP:
        if segment.size and (yield from first_timestamp(segment)) >= 0:
            return "the time index is empty"
        return None
    located = yield from locate(segment, offset)
    if located is None or located.header.base_offset > offset:
        return f"the time index names offset {offset}, which is not there"
    found = located.header.max_timestamp
    if found != timestamp:
        return f"the batch with offset {offset} is of {found}, not of {timestamp}"
    return None


def largest_timestamp(segment: Segment) -> Reading[int]:
    """The latest time of a record, that of the file where no record has one."""
    if not segment.is_latest_known:
        segment.max_timestamp_entry = yield from latest_entry(segment)
    return segment.largest_timestamp()


def latest_after_truncation(segment: Segment) -> Reading[tuple[int, int]]:
    """The latest time, where the last entries of the time index are gone."""
    timestamp, offset = segment.time_index.last_entry
    hint = yield from segment.offset_index.floor(offset)
    headers = Headers(segment, hint[1] if hint else 0)
    while (found := (yield from headers.next())) is not None:
        if found.header.max_timestamp > timestamp:
            timestamp, offset = found.header.max_timestamp, found.header.last_offset
    return timestamp, offset


def find_by_timestamp(
    segment: Segment, timestamp: int, starting_offset: int
) -> Reading[TimestampAndOffset | None]:
    """The first record that is not earlier, from `starting_offset` on."""
    entry = yield from segment.time_index.floor(timestamp)
    if entry is not None:
        reason = yield from _doubt(segment, *entry)
        if reason is not None:
            rebuild_indexes(segment, reason)
            entry = yield from segment.time_index.floor(timestamp)
    offset = max(segment.base_offset if entry is None else entry[1], starting_offset)
    located = yield from locate(segment, offset)
    if located is None:
        return None
    headers = Headers(segment, located.position)
    while (found := (yield from headers.next())) is not None:
        if found.header.max_timestamp >= timestamp:
            record = yield from _first_record(segment, found, timestamp, starting_offset)
            if record is not None:
                return record
    return None


def _first_record(
    segment: Segment, located: Located, timestamp: int, starting_offset: int
) -> Reading[TimestampAndOffset | None]:
    """A batch that cannot be decoded is passed over: it must stop nobody."""
    data = yield Read(segment.file, located.position, located.header.size)
    try:
        for record in iterate_records(
            data, 0, located.header, decompressed_max=DECOMPRESSED_BYTES_MAX
        ):
            if record.timestamp >= timestamp and record.offset >= starting_offset:
                epoch = located.header.partition_leader_epoch
                return TimestampAndOffset(record.timestamp, record.offset, epoch)
    except ProtocolError as error:
        logger.warning(
            "batch.undecodable error=%s", corrupt(segment, located.position, error.reason)
        )
    return None


# transactions


def doubt_aborted(
    segment: Segment, aborted: AbortedTransaction, begun_in: Segment
) -> Reading[str | None]:
    """Why an entry of the transaction index cannot be right, None if it can. What compaction has
    taken away says nothing against it."""
    located = yield from locate(segment, aborted.last_offset)
    if located is None:
        return "there is no marker"
    header = located.header
    if header.base_offset <= aborted.last_offset and not (
        header.is_control and header.producer_id == aborted.producer_id
    ):
        return f"the batch at offset {header.base_offset} is not its marker"
    located = yield from locate(begun_in, aborted.first_offset)
    if located is None or not located.header.base_offset <= aborted.first_offset:
        return None
    header = located.header
    if (
        header.base_offset != aborted.first_offset
        or header.producer_id != aborted.producer_id
        or not header.is_transactional
        or header.is_control
    ):
        return f"the batch at offset {header.base_offset} does not begin it"
    return None


def find_max_timestamp(segment: Segment) -> Reading[TimestampAndOffset | None]:
    """The first record that has the segment's latest time."""
    timestamp, offset = segment.max_timestamp_entry
    if timestamp < 0:
        return None
    located = yield from locate(segment, offset)
    if located is None:
        return None
    return (yield from _first_record(segment, located, timestamp, located.header.base_offset))
