"""Finding batches in a segment: by offset, by time, and the bytes of a fetch.

Every lookup begins with a hint of an index and goes on over batch headers. A hint that the log does
not bear out means that the index is damaged: it is made again, and the lookup repeated.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.protocol.records import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    iterate_records,
    read_header,
)
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.errors import CorruptFile
from ottla.storage.steps import Read, Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.segment import Segment

logger = logging.getLogger(__name__)

# One entry of the offset index leads to about as much.
_CHUNK_BYTES = 4096 + 2 * HEADER_SIZE
DECOMPRESSED_BYTES_MAX = 128 << 20


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

    __slots__ = ("_at", "_data", "_segment", "_start")

    def __init__(self, segment: Segment, position: int) -> None:
        self._segment = segment
        self._start = position
        self._data: Buffer = b""
        self._at = 0

    def next(self) -> Reading[Located | None]:
        """The next batch; None at the end of the segment."""
        segment = self._segment
        if len(self._data) - self._at < HEADER_SIZE:
            self._start += self._at
            self._at = 0
            left = segment.size - self._start
            if left <= 0:
                return None
            self._data = yield Read(segment.file, self._start, min(left, _CHUNK_BYTES))
        position = self._start + self._at
        try:
            header = read_header(self._data, self._at)
        except ProtocolError as error:
            raise corrupt(segment, position, error.reason) from None
        if header[1] + 12 > segment.size - position:
            raise corrupt(segment, position, "the batch is cut short")
        self._at += header[1] + 12
        return Located(position, header)


def corrupt(segment: Segment, position: int, reason: str) -> CorruptFile:
    return CorruptFile(segment.file.path, where=f"position {position}", reason=reason)


def locate(segment: Segment, offset: int) -> Reading[Located | None]:
    """The first batch that ends at this offset or behind it."""
    hint = None
    try:
        hint = yield from segment.offset_index.floor(offset)
    except CorruptFile as error:
        yield from _rebuild(segment, str(error))
        hint = yield from segment.offset_index.floor(offset)
    if hint is None:
        return (yield from _locate_from(segment, offset, 0, None))
    found = yield from _locate_hinted(segment, offset, hint)
    if found is not None or hint[1] < segment.size:
        return found
    return None


def _locate_hinted(segment: Segment, offset: int, hint: tuple[int, int]) -> Reading[Located | None]:
    last_offset, position = hint
    reason = "the index leads behind the end of the segment"
    if 0 <= position < segment.size:
        try:
            return (yield from _locate_from(segment, offset, position, last_offset))
        except CorruptFile as error:
            reason = error.reason
    yield from _rebuild(segment, reason)
    return (yield from _locate_from(segment, offset, 0, None))


def _locate_from(
    segment: Segment, offset: int, position: int, last_offset: int | None
) -> Reading[Located | None]:
    """`last_offset` is what the index says of the batch at `position`."""
    headers = Headers(segment, position)
    while (found := (yield from headers.next())) is not None:
        header = found.header
        end = header[0] + header[6]
        if last_offset is not None:
            if end != last_offset:
                reason = f"the batch ends at {end}, not at {last_offset}"
                raise corrupt(segment, position, reason)
            last_offset = None
        if end >= offset:
            return found
    return None


def _rebuild(segment: Segment, reason: str) -> Reading[None]:
    """Makes the indexes again from the headers alone."""
    logger.warning("index.rebuild segment=%s reason=%s", segment.file_path(".log"), reason)
    segment.reset_indexes()
    headers = Headers(segment, 0)
    while (found := (yield from headers.next())) is not None:
        segment.index((found.header,), found.position)
    segment.settle_indexes()


def read_slice(
    segment: Segment, offset: int, max_bytes: int, *, limit: int | None, minimum_one: bool
) -> Reading[Slice | None]:
    """Batches from that of `offset` on, in front of the position `limit`; None if there are none.

    `limit` is None where the upper bound is not in this segment, but in front of it.
    """
    located = yield from locate(segment, offset)
    if located is None:
        return None
    position, header = located
    first_size = header.size
    wanted = max(max_bytes, first_size) if minimum_one else max_bytes
    if wanted <= 0 or limit is None:
        return Slice(b"", header.base_offset, position, False)
    size = min(limit - position, wanted)
    if size <= 0:
        return Slice(b"", header.base_offset, position, wanted < first_size)
    data = yield Read(segment.file, position, size, True)
    if len(data) < min(first_size, size):
        data = yield Read(segment.file, position, size)
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
        yield from _rebuild(segment, reason)
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
            yield from _rebuild(segment, reason)
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


def find_max_timestamp(segment: Segment) -> Reading[TimestampAndOffset | None]:
    """The first record that has the segment's latest time."""
    timestamp, offset = segment.max_timestamp_entry
    if timestamp < 0:
        return None
    located = yield from locate(segment, offset)
    if located is None:
        return None
    return (yield from _first_record(segment, located, timestamp, located.header.base_offset))
