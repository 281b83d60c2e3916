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
from ottla.protocol.compression import Codec, decompress
from ottla.protocol.wire import (
    Buffer,
    ProtocolError,
    finish_uvarint,
    finish_uvarlong,
    read_uvarint,
)

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
INT64_MAX = 0x7FFF_FFFF_FFFF_FFFF
INT64_MIN = -INT64_MAX - 1

_CODECS = tuple(Codec)
_KNOWN_FLAGS = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG
_LENGTH = Struct(">i")
_LEADER_EPOCH = Struct(">i")
_BASE_OFFSET = Struct(">q")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")
_CONTROL_KEY = Struct(">hh")
_END_TRANSACTION = Struct(">hi")


class TimestampType(IntEnum):
    """Who set the time of a record: its producer, or the broker that appended it."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ControlRecordType(IntEnum):
    """What a control record says; a type of the future is UNKNOWN and is passed over."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1

    @classmethod
    def _missing_(cls, value: object) -> "ControlRecordType":
        return cls.UNKNOWN


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


Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record of a batch; its offset and timestamp are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class ControlRecord(NamedTuple):
    """What the key of a control record says."""

    version: int
    type: ControlRecordType


# The constructor that a NamedTuple offers is a function in Python, and would double the time.
_new_header = tuple.__new__
_new_record = tuple.__new__
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


def set_max_timestamp(
    buf: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    *,
    timestamp_type: TimestampType,
    max_timestamp: int,
) -> None:
    """Write time and kind of time into the batch, in place, with a new CRC where they change.

    As in Kafka, attribute bits without a meaning are lost when the batch is changed, else kept.
    """
    if header.timestamp_type is timestamp_type and header.max_timestamp == max_timestamp:
        return
    attributes = header.attributes & _KNOWN_FLAGS | timestamp_type << 3
    _ATTRIBUTES.pack_into(buf, position + ATTRIBUTES_POSITION, attributes)
    _TIMESTAMP.pack_into(buf, position + MAX_TIMESTAMP_POSITION, max_timestamp)
    _CRC.pack_into(buf, position + CRC_POSITION, crc_of(buf, position, header.size))


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


def uncompressed_records(
    buf: Buffer, position: int, header: BatchHeader, *, decompressed_max: int
) -> bytes:
    """The bytes of the records of the batch at `position`; empty if it holds none."""
    end = position + header.size
    if len(buf) < end:
        raise TruncatedBatch(f"{len(buf) - position} bytes are left of a batch of {header.size}")
    if header.record_count == 0:
        return b""
    if header.record_count < 0:
        raise ProtocolError(f"record count is {header.record_count}", "record_count")
    records = memoryview(buf)[position + HEADER_SIZE : end]
    if header.attributes & CODEC_MASK == Codec.NONE:
        return bytes(records)
    return decompress(header.compression, records, size_max=decompressed_max)


def iterate_records(
    buf: Buffer, position: int = 0, header: BatchHeader | None = None, *, decompressed_max: int
) -> Iterator[Record]:
    """The records of the batch at `position`.

    A record that lies about its size, a count that lies about the records, and bytes that are left
    over are ProtocolErrors, raised when the iteration comes to them.
    """
    if header is None:
        header = read_header(buf, position)
    data = uncompressed_records(buf, position, header, decompressed_max=decompressed_max)
    return decode_records(data, header)


def decode_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """The records in `data`, which `uncompressed_records` gave for the batch of `header`."""
    if header.base_offset > INT64_MAX - INT32_MAX:
        raise ProtocolError(f"base offset {header.base_offset} leaves no room", "base_offset")
    records = _decode(data, header.record_count, header.base_offset, header.base_timestamp)
    if not header.is_log_append_time:
        return records
    timestamp = header.max_timestamp
    return (record._replace(timestamp=timestamp) for record in records)


# Loading a coordinator and compacting a log read millions of records. So this is one long loop, and
# a varint of one byte is read in place: a call for each field would double the time.
def _decode(  # noqa: C901
    data: bytes, count: int, base_offset: int, base_timestamp: int
) -> Iterator[Record]:
    at = index = 0
    try:
        for index in range(count):  # noqa: B007
            size = data[at]
            at += 1
            if size > 127:
                size, at = finish_uvarint(data, at)
            end = at + (size >> 1)
            if size & 1 or end > len(data):
                raise ProtocolError("size is negative or above what is left")
            delta = data[at + 1]  # behind the attributes of the record, which say nothing
            at += 2
            if delta > 127:
                delta, at = finish_uvarlong(data, at)
            timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))
            if not INT64_MIN <= timestamp <= INT64_MAX:
                timestamp = wrap_int64(timestamp)
            delta = data[at]
            at += 1
            if delta > 127:
                delta, at = finish_uvarint(data, at)
            offset = base_offset + ((delta >> 1) ^ -(delta & 1))
            key = value = None
            size = data[at]
            at += 1
            if size > 127:
                size, at = finish_uvarint(data, at)
            if not size & 1:
                start = at
                at += size >> 1
                key = data[start:at]
            size = data[at]
            at += 1
            if size > 127:
                size, at = finish_uvarint(data, at)
            if not size & 1:
                start = at
                at += size >> 1
                value = data[start:at]
            headers, at = _read_headers(data, at) if data[at] else ((), at + 1)
            if at != end:
                raise ProtocolError(f"ends {abs(at - end)} bytes off its size")
            yield _new_record(Record, (offset, timestamp, key, value, headers))
    except (IndexError, ProtocolError) as error:
        reason = error.reason if isinstance(error, ProtocolError) else "is cut short"
        raise ProtocolError(reason, f"records[{index}]") from None
    if at != len(data):
        raise ProtocolError(f"{len(data) - at} bytes are left behind the last record", "records")


def _read_headers(data: bytes, at: int) -> tuple[Headers, int]:
    count, at = read_uvarint(data, at)
    if count & 1 or count >> 1 > len(data) - at:
        raise ProtocolError("header count is negative or above what is left")
    headers = []
    for _ in range(count >> 1):
        key, at = _read_bytes(data, at)
        if key is None:
            raise ProtocolError("header key is null")
        value, at = _read_bytes(data, at)
        headers.append((key.decode("utf-8", "replace"), value))
    return tuple(headers), at


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes behind their length; every negative length is null, as Kafka reads it."""
    size, at = read_uvarint(data, at)
    if size & 1:
        return None, at
    end = at + (size >> 1)
    if end > len(data):
        raise ProtocolError("length is above what is left")
    return data[at:end], end


def wrap_int64(value: int) -> int:
    """`value` as Java's long arithmetic leaves it."""
    return (value + INT64_MAX + 1) % (1 << 64) - INT64_MAX - 1


def read_control(record: Record) -> ControlRecord:
    """What a record of a control batch is; newer versions of its key are read as the first."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise ProtocolError("control record without a key of 4 bytes", "key")
    version, number = _CONTROL_KEY.unpack_from(record.key)
    if version < 0:
        raise ProtocolError(f"control record key of version {version}", "key")
    return ControlRecord(version, ControlRecordType(number))


def read_coordinator_epoch(record: Record) -> int:
    """The epoch of the coordinator that ended the transaction, from an ABORT or COMMIT record."""
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        raise ProtocolError("transaction marker without a value of 6 bytes", "value")
    version, epoch = _END_TRANSACTION.unpack_from(record.value)
    if version < 0:
        raise ProtocolError(f"transaction marker of version {version}", "value")
    return int(epoch)
