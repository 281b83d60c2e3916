"""Record batch v2: its header, its checksum, and the records inside.

Knows no log and no request. A batch passes through a broker undecoded: `read_header` looks at its
61 bytes, `check_crc` guards the rest, `patch` gives it the offset and leader epoch that the CRC
does not cover. `iterate_records` decodes, for those few who must. Building and validating stand in
modules of their own.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.protocol.checksum import crc32c
from ottla.protocol.compression import Codec
from ottla.protocol.wire import Buffer, ProtocolError

LOG_OVERHEAD = (
    12  # base offset and batch length: what stands before the bytes that the length counts
)
HEADER_SIZE = 61
MAGIC = 2
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21  # the CRC covers everything from here on
MAX_TIMESTAMP_POSITION = 35

HEADER = Struct(">qiibIhiqqqhii")

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

INT32_MAX = 0x7FFF_FFFF

_CODECS = tuple(Codec)
_LENGTH = Struct(">i")
_LEADER_EPOCH = Struct(">i")
_BASE_OFFSET = Struct(">q")


class TimestampType(IntEnum):
    """Who set the time of a record: its producer, or the broker that appended it."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class TruncatedBatch(ProtocolError):
    """There are fewer bytes than the batch, or its header, needs."""


class UnknownMagic(ProtocolError):
    """The batch is of another format than v2."""


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, in their order on the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def compression(self) -> Codec:
        """The codec; ProtocolError for the three numbers that name none."""
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones inside may go; it stands where a base timestamp stands otherwise."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None


# The constructor that a NamedTuple offers is a function in Python, and would double the time.
_new_header = tuple.__new__
_unpack_header = HEADER.unpack_from


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` later; after 2^31-1 comes 0."""
    return (sequence + increment) & INT32_MAX


def codec_of(attributes: int) -> Codec:
    try:
        return _CODECS[attributes & CODEC_MASK]
    except IndexError:
        number = attributes & CODEC_MASK
        raise ProtocolError(f"unknown compression codec {number}", "attributes") from None


def read_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """The header that begins at `position`; the records behind it need not be in `buf`.

    Raises TruncatedBatch when 61 bytes are not there, UnknownMagic for another format,
    and a plain ProtocolError for a length that does not even hold the header.
    """
    try:
        header = _new_header(BatchHeader, _unpack_header(buf, position))
    except StructError:
        raise TruncatedBatch(
            f"{len(buf) - position} bytes are left, a batch header takes {HEADER_SIZE}"
        ) from None
    if header[3] != MAGIC:
        raise UnknownMagic(f"magic is {header[3]}, not {MAGIC}", "magic")
    if header[1] < HEADER_SIZE - LOG_OVERHEAD:
        raise ProtocolError(f"batch length {header[1]} is below the header's own", "batch_length")
    return header


def crc_of(buf: Buffer, position: int, size: int) -> int:
    """The CRC32C of the batch of `size` bytes at `position`."""
    return crc32c(memoryview(buf)[position + ATTRIBUTES_POSITION : position + size])


def check_crc(buf: Buffer, position: int, header: BatchHeader) -> None:
    """Raise ProtocolError unless the batch is whole and carries the CRC of its bytes."""
    end = position + header[1] + LOG_OVERHEAD
    if len(buf) < end:
        raise TruncatedBatch(f"{len(buf) - position} bytes are left of a batch of {header.size}")
    computed = crc32c(memoryview(buf)[position + ATTRIBUTES_POSITION : end])
    if computed != header[4]:
        raise ProtocolError(f"stored crc is {header.crc}, computed crc is {computed}", "crc")


def patch(
    buf: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch its place in the log, in place; the CRC stays right."""
    _BASE_OFFSET.pack_into(buf, position, base_offset)
    _LEADER_EPOCH.pack_into(buf, position + LOG_OVERHEAD, leader_epoch)


def iterate_batches(buf: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch, one behind the other.

    Ends where the bytes end, also inside a batch; `whole_batches_end` says where that is.
    """
    while (size := _whole_batch_size(buf, position)) > 0:
        yield position, read_header(buf, position)
        position += size


def whole_batches_end(buf: Buffer, position: int = 0) -> int:
    """The position behind the last whole batch."""
    while (size := _whole_batch_size(buf, position)) > 0:
        position += size
    return position


def _whole_batch_size(buf: Buffer, position: int) -> int:
    """The size of the batch at `position`, 0 if it is cut short.

    Every other size is above 60, so a caller that goes on by it comes to an end.
    """
    left = len(buf) - position
    if left < LOG_OVERHEAD:
        return 0
    length: int = _LENGTH.unpack_from(buf, position + 8)[0]
    if length < HEADER_SIZE - LOG_OVERHEAD:
        raise ProtocolError(f"batch length {length} is below the header's own", "batch_length")
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= left else 0
