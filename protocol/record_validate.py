"""What a leader checks on a produced batch before it appends it, and what it mends.

Knows no log and no clock. `validate_produced` says what is to change; whatever a client did wrong
is an InvalidBatch with Kafka's code for it. It is written twice: what nearly all producers send
is waved through in a few microseconds, and everything else is looked at properly.
"""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.protocol.checksum import crc32c
from ottla.protocol.compression import Codec, DecompressedTooLarge
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.record_walk import Walked, walk, walk_plain
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_SIZE,
    INT64_MAX,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    TimestampType,
    check_crc,
    decode_records,
    read_header,
    uncompressed_records,
)
from ottla.protocol.wire import Buffer, ProtocolError

RECORD_ERRORS_MAX = 1000
_RECORD_SIZE_MIN = 7
_LEGACY_LENGTH_MIN = 14  # the smallest length that any format of batch can have
_LENGTH = Struct(">i")
_LENGTH_POSITION = 8
_PLAIN_FLAGS = CODEC_MASK | TRANSACTIONAL_FLAG
_ZSTD = int(Codec.ZSTD)
_unpack_header = HEADER.unpack_from
# What the classes themselves do, in a fifth of the time.
_new_header = tuple.__new__
_new_produced = tuple.__new__


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


class NotOneBatch(InvalidBatch):
    """The bytes are not one batch of the one format that is taken."""


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
    header = _plain_header(buf, rules, now_ms)
    if header is None:
        header = validate_header(buf, rules)
        if header.record_count > rules.walked_count_max and not rules.compacted:
            believed = _believe(header)
            if not _is_suspicious(header, believed, rules, now_ms):
                return _accept(header, believed, rules, now_ms)
    elif header[12] > rules.walked_count_max and not rules.compacted:
        return _new_produced(Produced, (header, header[8], False))
    elif not header[5] & CODEC_MASK:
        plain = walk_plain(buf, HEADER_SIZE, header[12])
        if (
            plain is not None
            and header[7] + plain[0] == header[8]
            and not (plain[1] and rules.compacted)
        ):
            return _new_produced(Produced, (header, header[8], False))
    return _walked(buf, header, rules, now_ms)


def _plain_header(buf: Buffer, rules: ProduceRules, now_ms: int) -> BatchHeader | None:
    """The header, if all that it says is right and nothing has to be changed in it. None where
    `validate_header` has to look; nearly all producers send batches that spare it the trouble."""
    try:
        fields = _unpack_header(buf, 0)
    except StructError:
        return None
    base, length, _, magic, crc, attributes, delta, first, latest, producer, _, sequence, count = (
        fields
    )
    size = length + LOG_OVERHEAD
    codec = attributes & CODEC_MASK
    # The rules by their numbers, which is faster: the most bytes, the kind of time, how long before
    # and after now, (compacted), codec, zstd.
    if (
        base
        or magic != MAGIC
        or size != len(buf)
        or size > rules[0]
        or attributes & ~_PLAIN_FLAGS
        or delta != count - 1
        or count < 1
        or (producer >= 0 and sequence < 0)
        or rules[1]
        or not 0 <= first <= latest <= now_ms + rules[3]
        or now_ms - first > rules[2]
        or (rules[5] is not None and rules[5] != codec)
        or (codec >= _ZSTD and (codec > _ZSTD or not rules[6]))
        or (codec == 0 and count * _RECORD_SIZE_MIN > size - HEADER_SIZE)
        or crc32c(memoryview(buf)[ATTRIBUTES_POSITION:]) != crc
    ):
        return None
    return _new_header(BatchHeader, fields)


def _walked(buf: Buffer, header: BatchHeader, rules: ProduceRules, now_ms: int) -> Produced:
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
        raise NotOneBatch(ErrorCode.INVALID_RECORD, "There is no whole record batch.")
    if buf[MAGIC_POSITION] != MAGIC:
        magic = buf[MAGIC_POSITION]
        raise NotOneBatch(
            ErrorCode.INVALID_RECORD, f"Record batches of magic {magic} are not taken."
        )
    if size < HEADER_SIZE:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"A record batch cannot take {size} bytes.")
    header = read_header(buf)
    codec = header.attributes & CODEC_MASK
    if codec == Codec.ZSTD and not rules.zstd_allowed:
        raise InvalidBatch(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Zstandard needs version 7 of Produce."
        )
    if _size_of_batch(buf, size) != 0:
        raise NotOneBatch(
            ErrorCode.INVALID_RECORD, "There is more than one record batch for the partition."
        )
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
        raise NotOneBatch(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LEGACY_LENGTH_MIN})",
        )
    if left <= MAGIC_POSITION:
        return 0
    if buf[position + MAGIC_POSITION] > MAGIC:
        magic = buf[position + MAGIC_POSITION]
        raise NotOneBatch(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
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
            fault = "Compacted topic cannot accept message without key"
        elif fault := _fault_of_time(index, record.timestamp, header, rules, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
        else:
            continue
        if len(errors) < RECORD_ERRORS_MAX:
            errors.append(RecordError(index, fault))
    if errors:
        # Kafka's words, here and below: they come to people through their producers.
        reason = "invalid timestamp" if code is ErrorCode.INVALID_TIMESTAMP else "invalid records"
        reason = f"One or more records have been rejected due to {reason}"
        raise InvalidBatch(code, reason, errors)


def _fault_of_time(
    index: int, timestamp: int, header: BatchHeader, rules: ProduceRules, now_ms: int
) -> str:
    if timestamp == NO_TIMESTAMP or rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return "A producer may not set LogAppendTime." if header.is_log_append_time else ""
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = now_ms + rules.timestamp_after_max_ms
    if earliest <= timestamp <= latest:
        return ""
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range."
        f" The timestamp should be within [{earliest}, {latest}]"
    )


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
