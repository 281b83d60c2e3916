"""Building record batches v2, byte for byte as Kafka builds them.

Knows no log and no clock: offsets and timestamps come with the records. What is built is a
bytearray, so that a log can patch it where it is.
"""

from collections.abc import Iterable
from struct import Struct

from ottla.protocol.compression import Codec, compress
from ottla.protocol.records import (
    CONTROL_FLAG,
    CRC_POSITION,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    ControlRecordType,
    Record,
    crc_of,
    wrap_int64,
)
from ottla.protocol.wire import write_varint, write_varlong

_CRC = Struct(">I")
_CONTROL_KEY = Struct(">hh")
_END_TRANSACTION = Struct(">hi")


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    log_append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """A batch of records with their own offsets, which rise from `base_offset`.

    `log_append_time_ms` makes it a batch of LogAppendTime. `last_offset` is what a compacted batch
    keeps from the one that it replaces, so that its last sequence stays, too.
    """
    listed = records if isinstance(records, list) else list(records)
    if not listed:
        raise ValueError("a batch needs a record; an empty one comes from build_empty_batch")
    base_timestamp = listed[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    written = _write_records(listed, base_offset, base_timestamp)
    if last_offset is None:
        last_offset = listed[-1].offset
    _check_offsets(listed, base_offset, last_offset)
    if log_append_time_ms is None:
        max_timestamp = max(NO_TIMESTAMP, max(record.timestamp for record in listed))
    else:
        max_timestamp = log_append_time_ms
    attributes = (
        codec
        | (LOG_APPEND_TIME_FLAG if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
    )
    return _assemble(
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=last_offset - base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(listed),
        ),
        written if codec is Codec.NONE else compress(codec, written, level),
    )


def build_empty_batch(header: BatchHeader) -> bytearray:
    """What compaction leaves of a batch without records: its offsets, times and producer."""
    kept = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
    return _assemble(
        header._replace(
            attributes=header.attributes & kept, base_timestamp=NO_TIMESTAMP, record_count=0
        ),
        b"",
    )


def build_control_batch(
    type: ControlRecordType,
    value: bytes,
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
) -> bytearray:
    """A batch of one control record: a leader change, what frames a snapshot, a marker."""
    return build_batch(
        [Record(base_offset, timestamp, control_key(type), value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=transactional,
        control=True,
    )


def build_end_transaction_marker(
    type: ControlRecordType,
    *,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The marker that commits or aborts what this producer wrote to a partition."""
    if type not in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
        raise ValueError(f"{type.name} ends no transaction")
    return build_control_batch(
        type,
        _END_TRANSACTION.pack(0, coordinator_epoch),
        timestamp=timestamp,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )


def control_key(type: ControlRecordType) -> bytes:
    """The key of a control record; a batch may hold several, as at the head of a snapshot."""
    if type is ControlRecordType.UNKNOWN:
        raise ValueError("an unknown control record cannot be written")
    return _CONTROL_KEY.pack(0, type)


def _assemble(header: BatchHeader, records: bytes | bytearray) -> bytearray:
    """The batch of `header` and `records`, with its length and CRC filled in."""
    length = HEADER_SIZE - LOG_OVERHEAD + len(records)
    batch = bytearray(HEADER.pack(*header._replace(batch_length=length)))
    batch += records
    _CRC.pack_into(batch, CRC_POSITION, crc_of(batch, 0, len(batch)))
    return batch


def _check_offsets(records: list[Record], base_offset: int, last_offset: int) -> None:
    previous = base_offset - 1
    for record in records:
        if record.offset <= previous:
            raise ValueError(f"offset {record.offset} does not follow {previous}")
        previous = record.offset
    if last_offset < previous or last_offset - base_offset > INT32_MAX:
        raise ValueError(f"last offset {last_offset} does not fit base {base_offset}")


def _write_records(records: list[Record], base_offset: int, base_timestamp: int) -> bytearray:
    out = bytearray()
    for offset, timestamp, key, value, headers in records:
        body = bytearray(1)  # the attributes of a record: none is defined
        delta = timestamp - base_timestamp
        if not INT64_MIN <= delta <= INT64_MAX:
            delta = wrap_int64(delta)
        write_varlong(body, delta)
        write_varint(body, offset - base_offset)
        _write_bytes(body, key)
        _write_bytes(body, value)
        write_varint(body, len(headers))
        for name, header_value in headers:
            # A lone surrogate is written as "?", as Java writes it.
            _write_bytes(body, name.encode("utf-8", "replace"))
            _write_bytes(body, header_value)
        write_varint(out, len(body))
        out += body
    return out


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)  # the varint of -1
        return
    write_varint(out, len(value))
    out += value
