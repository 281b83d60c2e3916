"""Record batches as lists that can be compared, and random ones built by our own code."""

import base64
import random
from typing import Any

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch, build_empty_batch
from ottla.protocol.records import (
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Record,
    check_crc,
    iterate_batches,
    iterate_records,
)
from ottla.protocol.wire import ProtocolError

DECOMPRESSED_MAX = 64 << 20
TIMES = (-1, 0, 1, 1_700_000_000_000, 2**63 - 1)
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def listing(data: bytes) -> dict[str, Any]:
    """What the Java program says of the same bytes, but for the words of an error."""
    batches: list[dict[str, Any]] = []
    try:
        for position, header in iterate_batches(data):
            check_crc(data, position, header)
            batch = _described(header)
            batches.append(batch)
            found = iterate_records(data, position, header, decompressed_max=DECOMPRESSED_MAX)
            batch["records"] = records = []
            for record in found:
                records.append(_record(record))
    except ProtocolError as error:
        return {"batches": batches, "error": str(error)}
    return {"batches": batches}


def _described(header: BatchHeader) -> dict[str, Any]:
    described = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "next_offset": header.next_offset,
        "leader_epoch": header.partition_leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "codec": header.compression.name.lower(),
        "timestamp_type": TIMESTAMP_TYPES[header.timestamp_type],
        "transactional": header.is_transactional,
        "control": header.is_control,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "count": header.record_count,
        "size": header.size,
        "delete_horizon_ms": header.delete_horizon_ms,
    }
    if header.delete_horizon_ms is None:
        described["base_timestamp"] = header.base_timestamp
    return described


def _record(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [[key, _base64(value)] for key, value in record.headers],
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def built_again(data: bytes, position: int, header: BatchHeader, codec: Codec) -> bytes:
    """The batch at `position` out of its records, by our own builder, with another codec."""
    if header.record_count == 0:
        return bytes(build_empty_batch(header))
    # A batch of LogAppendTime still holds the times of its producer.
    unmarked = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME_FLAG)
    records = iterate_records(data, position, unmarked, decompressed_max=DECOMPRESSED_MAX)
    built = build_batch(
        records,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        codec=codec,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.partition_leader_epoch,
        transactional=header.is_transactional,
        control=header.is_control,
        delete_horizon_ms=header.delete_horizon_ms,
    )
    return bytes(built)


def random_batch(source: random.Random) -> bytes:
    """A batch of our own making: any codec, times, producer, gaps, nulls, headers."""
    base_offset = source.choice((0, source.randrange(1000), source.randrange(2**62)))
    records = []
    offset = base_offset
    for _ in range(300 if source.randrange(50) == 0 else source.randrange(1, 9)):
        headers = tuple(
            (source.choice(("", "k", "traceparent", "é日\U0001f680")), _some(source))
            for _ in range(source.choice((0, 0, 0, 1, 3)))
        )
        time = source.choice((*TIMES, 1_700_000_000_000 + source.randrange(10_000)))
        records.append(Record(offset, time, _some(source), _some(source), headers))
        offset += source.choice((1, 1, 1, 3))
    has_producer = source.randrange(2) == 0
    batch = build_batch(
        records,
        base_offset=base_offset,
        last_offset=source.choice((None, offset + 2)),
        codec=source.choice(list(Codec)),
        log_append_time_ms=source.choice((None, 1_700_000_000_123)),
        producer_id=source.randrange(2**63) if has_producer else NO_PRODUCER_ID,
        producer_epoch=source.randrange(2**15) if has_producer else NO_PRODUCER_EPOCH,
        base_sequence=_sequence(source) if has_producer else NO_SEQUENCE,
        leader_epoch=source.randrange(-1, 5),
        transactional=has_producer and source.randrange(2) == 0,
        delete_horizon_ms=source.choice((None, None, 1_600_000_000_000)),
    )
    return bytes(batch)


def _sequence(source: random.Random) -> int:
    return source.choice((0, source.randrange(2**31), 2**31 - 1 - source.randrange(3)))


def _some(source: random.Random) -> bytes | None:
    size = source.choice((None, 0, 3, 20, 100, 2000))
    if size is None:
        return None
    return source.randbytes(size) if source.randrange(2) else bytes(size)


def stored_payload(data: bytes, position: int, header: BatchHeader) -> bytes:
    return data[position + HEADER_SIZE : position + header.size]
