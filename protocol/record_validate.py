"""What a leader checks on a produced batch before it appends it, and what it mends.

Knows no log and no clock. `validate_header` is for every batch and costs microseconds; `walk` goes
through the records, where that is wanted. `validate_produced` does both and says what is to change;
whatever a client did wrong is an InvalidBatch with Kafka's code for it.
"""

from struct import Struct
from typing import NamedTuple

from ottla.protocol.compression import Codec, DecompressedTooLarge
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    INT64_MAX,
    INT64_MIN,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    check_crc,
    decode_records,
    read_header,
    uncompressed_records,
)
from ottla.protocol.wire import Buffer, ProtocolError, finish_uvarint, finish_uvarlong, read_uvarint

RECORD_ERRORS_MAX = 1000
_RECORD_SIZE_MIN = 7
_LEGACY_LENGTH_MIN = 14  # the smallest length that any format of batch can have
_LENGTH = Struct(">i")
_LENGTH_POSITION = 8


class RecordError(NamedTuple):
    """Why the record with this index in its batch was refused."""

    batch_index: int
    message: str


class InvalidBatch(KafkaError):
    """A produced batch that is refused; `record_errors` names the records that are to blame."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: list[RecordError] | None = None
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors or []


class ProduceRules(NamedTuple):
    """What a topic wants of the batches that are produced to it."""

    message_size_max: int  # max.message.bytes
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = INT64_MAX
    compacted: bool = False
    codec: Codec | None = None  # compression.type; None leaves the producer's
    zstd_allowed: bool = True  # Produce from v7 on
    walked_count_max: int = INT64_MAX  # batches of more records are judged by their header
    decompressed_max: int = 100 * 1024 * 1024


class Walked(NamedTuple):
    """What only the records tell about a batch; a header that is trusted says it, too."""

    min_timestamp: int
    max_timestamp: int
    has_null_key: bool = False
    offsets_in_order: bool = True


class Produced(NamedTuple):
    """A batch that may be appended, and what has to be written into it."""

    header: BatchHeader
    max_timestamp: int
    must_rebuild: bool  # the topic wants another codec


def validate_produced(buf: Buffer, rules: ProduceRules, *, now_ms: int) -> Produced:
    """Judge the one batch at the start of `buf`; InvalidBatch if it may not be appended.

    A batch of more records than `rules.walked_count_max` is walked only if its header or its topic
    gives a reason.
    """
    header = validate_header(buf, rules)
    if header.record_count > rules.walked_count_max and not rules.compacted:
        believed = _believe(header)
        if not _is_suspicious(header, believed, rules, now_ms):
            return _accept(header, believed, rules, now_ms)
    data = _records_of(buf, header, rules)
    try:
        walked = walk(data, header)
    except ProtocolError as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{error}.") from None
    if _is_suspicious(header, walked, rules, now_ms):
        _refuse_records(data, header, rules, now_ms)
    produced = _accept(header, walked, rules, now_ms)
    if not walked.offsets_in_order and not produced.must_rebuild and header.attributes & CODEC_MASK:
        # Kafka wants to write such a batch anew and fails; uncompressed, it stores it as it is.
        raise InvalidBatch(ErrorCode.UNKNOWN_SERVER_ERROR, "The offset deltas do not rise by one.")
    return produced


def _accept(header: BatchHeader, walked: Walked, rules: ProduceRules, now_ms: int) -> Produced:
    log_append_time = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    return Produced(
        header,
        now_ms if log_append_time else walked.max_timestamp,
        rules.codec is not None and rules.codec != header.attributes & CODEC_MASK,
    )


def validate_header(buf: Buffer, rules: ProduceRules) -> BatchHeader:
    """The checks that need no record, in Kafka's order."""
    size = _size_of_batch(buf, 0)
    if size == 0:
        raise _invalid("There is no whole record batch.")
    if buf[MAGIC_POSITION] != MAGIC:
        raise _invalid(f"Record batches of magic {buf[MAGIC_POSITION]} are not taken.")
    if size < HEADER_SIZE:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"A record batch cannot take {size} bytes.")
    header = read_header(buf)
    codec = header.attributes & CODEC_MASK
    if codec == Codec.ZSTD and not rules.zstd_allowed:
        raise InvalidBatch(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Zstandard needs version 7 of Produce."
        )
    if _size_of_batch(buf, size) != 0:
        raise _invalid("There is more than one record batch for the partition.")
    if header.base_offset != 0:
        raise _invalid(f"The base offset of the batch is {header.base_offset}, not 0.")
    if size > rules.message_size_max:
        raise InvalidBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch takes {size} bytes, {rules.message_size_max} are allowed.",
        )
    try:
        check_crc(buf, 0, header)
    except ProtocolError as error:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"{error}.") from None
    if codec > Codec.ZSTD:
        # Kafka does not expect this case, and answers what it answers to its own faults.
        raise InvalidBatch(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"There is no compression codec {codec}."
        )
    _check_counts(header, codec)
    return header


def _check_counts(header: BatchHeader, codec: int) -> None:
    count = header.record_count
    if count < 1 or count != header.last_offset_delta + 1:
        raise _invalid(
            f"{count} records do not go with a last offset delta of {header.last_offset_delta}."
        )
    if codec == Codec.NONE and count * _RECORD_SIZE_MIN > header.size - HEADER_SIZE:
        raise _invalid(f"{count} records cannot stand in {header.size - HEADER_SIZE} bytes.")
    if header.attributes & CONTROL_FLAG:
        raise _invalid("Clients may not write control records.")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise _invalid(f"The sequence of an idempotent producer is {header.base_sequence}.")


def _size_of_batch(buf: Buffer, position: int) -> int:
    """The size of the batch at `position`; 0 if no batch, or not a whole one, is there."""
    left = len(buf) - position
    if left < LOG_OVERHEAD:
        return 0
    length: int = _LENGTH.unpack_from(buf, position + _LENGTH_POSITION)[0]
    if length < _LEGACY_LENGTH_MIN:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"A record batch has the length {length}.")
    if left <= MAGIC_POSITION:
        return 0
    if buf[position + MAGIC_POSITION] > MAGIC:
        magic = buf[position + MAGIC_POSITION]
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE, f"There are no record batches of magic {magic}."
        )
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= left else 0


def _records_of(buf: Buffer, header: BatchHeader, rules: ProduceRules) -> bytes:
    try:
        return uncompressed_records(buf, 0, header, decompressed_max=rules.decompressed_max)
    except DecompressedTooLarge as error:
        # A producer that hears this sends the records in smaller batches.
        raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, f"The batch {error}.") from None
    except ProtocolError as error:
        # Kafka does not expect this case, and answers what it answers to its own faults.
        raise InvalidBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"{error}.") from None


# Runs for every record that is produced, so varints of one and two bytes are read in place: calls
# would take half the time again.
def walk(data: bytes, header: BatchHeader) -> Walked:  # noqa: C901
    """Go through the records in `data`; ProtocolError if they are not what they say."""
    far, longer = finish_uvarint, finish_uvarlong
    at = index = number = 0
    lowest, highest = INT64_MAX, INT64_MIN
    null_key, in_order = False, True
    try:
        for index in range(header.record_count):  # noqa: B007
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                size, at = (size - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            end = at + (size >> 1)
            if size & 1 or end > len(data):
                raise ProtocolError("size is negative or above what is left")
            delta = data[at + 1]
            at += 2
            if delta > 127:
                more = data[at]
                delta, at = (delta - 128 + (more << 7), at + 1) if more < 128 else longer(data, at)
            delta = (delta >> 1) ^ -(delta & 1)
            if delta < lowest:
                lowest = delta
            if delta > highest:
                highest = delta
            delta = data[at]
            at += 1
            if delta > 127:
                more = data[at]
                delta, at = (delta - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            if delta != number:  # as zigzag varints
                in_order = False
            number += 2
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                size, at = (size - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            if size & 1:
                null_key = True
            else:
                at += size >> 1
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                size, at = (size - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            if not size & 1:
                at += size >> 1
            at = _skip_headers(data, at) if data[at] else at + 1
            if at != end:
                raise ProtocolError(f"ends {abs(at - end)} bytes off its size")
    except (IndexError, ProtocolError) as error:
        reason = error.reason if isinstance(error, ProtocolError) else "is cut short"
        raise ProtocolError(reason, f"records[{index}]") from None
    if at != len(data):
        raise ProtocolError(f"{len(data) - at} bytes are left behind the last record", "records")
    lowest, highest = _timestamps(data, header, lowest, highest)
    return Walked(lowest, highest, null_key, in_order)


def _skip_headers(data: bytes, at: int) -> int:
    count, at = read_uvarint(data, at)
    if count & 1 or count >> 1 > len(data) - at:
        raise ProtocolError("header count is negative or above what is left")
    for _ in range(count >> 1):
        size, at = read_uvarint(data, at)
        if size & 1:
            raise ProtocolError("header key is null")
        size, at = read_uvarint(data, at + (size >> 1))
        if not size & 1:
            at += size >> 1
    return at


def _timestamps(data: bytes, header: BatchHeader, lowest: int, highest: int) -> tuple[int, int]:
    """The least and the greatest timestamp, from the least and the greatest delta."""
    if header.is_log_append_time:
        lowest = highest = header.max_timestamp
    else:
        lowest += header.base_timestamp
        highest += header.base_timestamp
        if lowest < INT64_MIN or highest > INT64_MAX:
            # Java's arithmetic wraps, so the order of the deltas is not that of the timestamps.
            timestamps = [record.timestamp for record in decode_records(data, header)]
            lowest, highest = min(timestamps), max(timestamps)
    return lowest, max(NO_TIMESTAMP, highest)


def _believe(header: BatchHeader) -> Walked:
    """What the header says of the records."""
    if header.is_log_append_time:
        return Walked(header.max_timestamp, max(NO_TIMESTAMP, header.max_timestamp))
    lowest = min(header.base_timestamp, header.max_timestamp)
    return Walked(lowest, max(NO_TIMESTAMP, header.base_timestamp, header.max_timestamp))


def _is_suspicious(header: BatchHeader, walked: Walked, rules: ProduceRules, now_ms: int) -> bool:
    """A record may have to be refused. A record without timestamp looks too old, and is not."""
    if rules.compacted and walked.has_null_key:
        return True
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.is_log_append_time
    if header.is_log_append_time and header.max_timestamp == NO_TIMESTAMP:
        return True
    return (
        now_ms - walked.min_timestamp > rules.timestamp_before_max_ms
        or walked.max_timestamp - now_ms > rules.timestamp_after_max_ms
    )


def _refuse_records(data: bytes, header: BatchHeader, rules: ProduceRules, now_ms: int) -> None:
    """Raise InvalidBatch with the records that are to blame, if there are any."""
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(decode_records(data, header)):
        if rules.compacted and record.key is None:
            fault = "A compacted topic takes no record without a key."
        elif fault := _fault_of_time(record.timestamp, header, rules, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
        else:
            continue
        if len(errors) < RECORD_ERRORS_MAX:
            errors.append(RecordError(index, fault))
    if errors:
        raise InvalidBatch(code, f"Records were refused: {errors[0].message}", errors)


def _fault_of_time(timestamp: int, header: BatchHeader, rules: ProduceRules, now_ms: int) -> str:
    if timestamp == NO_TIMESTAMP or rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return "A producer may not set LogAppendTime." if header.is_log_append_time else ""
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = now_ms + rules.timestamp_after_max_ms
    if earliest <= timestamp <= latest:
        return ""
    return f"Timestamp {timestamp} is not within {earliest} and {latest}."


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
