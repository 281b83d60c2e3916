"""Our own answers, in the shape in which Apache Kafka's are recorded and compared.

Knows no Kafka: `tests/test_recorded_messages.py` sets these answers beside recorded ones,
`compat_tests` beside those of a running Java program.
"""

import base64
import json
from typing import Any

from ottla.protocol.apis import message_class
from ottla.protocol.compression import Codec
from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.record_build import build_batch, build_empty_batch
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_SEQUENCE,
    BatchHeader,
    Record,
    check_crc,
    iterate_batches,
    iterate_records,
)
from ottla.protocol.schema import decode, decode_prefix, encode
from ottla.protocol.wire import ProtocolError

Pair = tuple[str, int]

REFUSED = "refused"
DECOMPRESSED_MAX = 64 << 20
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
GZIP_SYSTEM = 9


def canonical(value: object) -> str:
    """JSON as text, so that 1, 1.0 and true differ, and -0.0 from 0.0."""
    return json.dumps(value, sort_keys=True)


def kafkas(answer: dict[str, Any]) -> str:
    """An answer of Kafka's, in which the words of a refusal do not count."""
    return REFUSED if "error" in answer else canonical(answer)


def read_or_refused(pair: Pair, data: bytes) -> str:
    """What a message says, how we would write it, and how many bytes were left."""
    name, version = pair
    try:
        message, size = decode_prefix(message_class(name), version, data)
    except ProtocolError:
        return REFUSED
    encoded = encode(message, version).hex()
    described = to_json(message, version)
    return canonical({"hex": encoded, "json": described, "left": len(data) - size})


def written_or_refused(pair: Pair, json: Any) -> str:
    name, version = pair
    try:
        return encode(from_json(message_class(name), version, json), version).hex()
    except ProtocolError:
        return REFUSED


def converted_or_refused(pair: Pair, to: int, data: bytes) -> str:
    """Bytes of one version, written in another."""
    try:
        return encode(decode(message_class(pair[0]), pair[1], data), to).hex()
    except ProtocolError:
        return REFUSED


def batches_read(data: bytes) -> dict[str, Any]:
    """Every batch and record in the bytes; "error" where reading on is refused."""
    batches: list[dict[str, Any]] = []
    try:
        for position, header in iterate_batches(data):
            check_crc(data, position, header)
            batch = _described(header)
            batches.append(batch)
            batch["records"] = records = []
            for record in iterate_records(
                data, position, header, decompressed_max=DECOMPRESSED_MAX
            ):
                records.append(_record(record))
    except ProtocolError as error:
        return {"batches": batches, "error": str(error)}
    return {"batches": batches}


def batches_or_refused(read: dict[str, Any]) -> str:
    """Refused, or all that was read; for Kafka's answer and for ours."""
    if "error" in read:
        return REFUSED
    for batch in read["batches"]:
        if batch["base_sequence"] < NO_SEQUENCE or batch["last_offset"] < batch["base_offset"]:
            batch.pop("last_sequence", None)  # it follows from nonsense; Kafka adds, we wrap
    return canonical(read)


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
    """The batch at `position` out of its records, by our own builder, in any codec."""
    if header.record_count == 0:
        return bytes(build_empty_batch(header))
    # A batch of LogAppendTime still holds the times of its producer.
    unmarked = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME_FLAG)
    built = build_batch(
        iterate_records(data, position, unmarked, decompressed_max=DECOMPRESSED_MAX),
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


def decided_bytes(batch: bytes, codec: Codec) -> bytes:
    """The bytes of a batch that its records decide, whoever compressed them.

    A gzip member names the system that wrote it; snappy and zstd may pack in many ways.
    """
    if codec in (Codec.NONE, Codec.LZ4):
        return batch
    header = batch[ATTRIBUTES_POSITION:HEADER_SIZE]
    if codec is Codec.GZIP:
        payload = batch[HEADER_SIZE:]
        return header + payload[:GZIP_SYSTEM] + payload[GZIP_SYSTEM + 1 :]
    return header
