"""What is about to be appended: batches that were judged, before the log is touched.

Knows no log. A bad batch is refused here with the error that Kafka has for it.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.record_build import build_batch
from ottla.protocol.record_validate import Produced, ProduceRules, validate_produced
from ottla.protocol.records import (
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    UnknownMagic,
    check_crc,
    iterate_records,
    patch,
    read_control,
    read_coordinator_epoch,
    read_header,
    set_max_timestamp,
)
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.producers import Marker

Mutable = bytearray | memoryview

_CONTROL_BYTES_MAX = 1 << 20
# What the classes themselves do, in a fifth of the time.
_new_tuple = tuple.__new__
# Base offset, batch length and leader epoch stand at the beginning, one behind the other.
_pack_place = Struct(">qii").pack_into
NO_MARKERS: tuple[Marker | None, ...] = ()


class Incoming(NamedTuple):
    """Whole batches with their places in the log, their headers, and the markers among them."""

    data: Buffer
    headers: tuple[BatchHeader, ...]
    markers: tuple[Marker | None, ...] = NO_MARKERS
    """One for each header, or none at all."""
    log_append_time_ms: int = NO_TIMESTAMP


def rules_of(config: LogConfig, *, walked_count_max: int) -> ProduceRules:
    """What a topic wants of produced batches."""
    return ProduceRules(
        message_size_max=config.max_message_bytes,
        timestamp_type=config.message_timestamp_type,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        compacted=config.is_compacted,
        codec=config.compression_type,
        walked_count_max=walked_count_max,
    )


def from_client(
    data: Mutable,
    rules: ProduceRules,
    config: LogConfig,
    *,
    base_offset: int,
    leader_epoch: int,
    now: Now,
) -> Incoming:
    """The one batch that a client produced, mended where Kafka mends, in its place."""
    produced = validate_produced(data, rules, now_ms=now.wall_ms)
    header, max_timestamp, must_rebuild = produced
    append_time = NO_TIMESTAMP
    if (
        must_rebuild
        or header[8] != max_timestamp
        or header[1] + LOG_OVERHEAD != len(data)
        or header[5] & LOG_APPEND_TIME_FLAG
        or rules.timestamp_type
    ):
        data, header = _mended(data, produced, config, rules)
        if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_time = now.wall_ms
    _pack_place(data, 0, base_offset, header[1], leader_epoch)
    placed = (base_offset, header[1], leader_epoch, *header[3:])
    header = _new_tuple(BatchHeader, placed)
    return _new_tuple(Incoming, (data, (header,), NO_MARKERS, append_time))


def _mended(
    data: Mutable, produced: Produced, config: LogConfig, rules: ProduceRules
) -> tuple[Mutable, BatchHeader]:
    header = produced.header
    if produced.must_rebuild:
        data, header = _rebuilt(data, header, config, rules)
    if header.size != len(data):
        data = memoryview(data)[: header.size]
    set_max_timestamp(
        data,
        0,
        header,
        timestamp_type=rules.timestamp_type,
        max_timestamp=produced.max_timestamp,
    )
    return data, read_header(data)


def _rebuilt(
    data: Buffer, header: BatchHeader, config: LogConfig, rules: ProduceRules
) -> tuple[bytearray, BatchHeader]:
    """The same records, in the topic's compression."""
    codec = header.compression if config.compression_type is None else config.compression_type
    records = iterate_records(data, 0, header, decompressed_max=rules.decompressed_max)
    built = build_batch(
        [record._replace(offset=index) for index, record in enumerate(records)],
        codec=codec,
        level=config.compression_level(codec),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    if len(built) > rules.message_size_max:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Compressed for the topic, the record batch takes {len(built)} bytes,"
            f" {rules.message_size_max} are allowed.",
        )
    return built, read_header(built)


def from_coordinator(
    data: Mutable, config: LogConfig, *, base_offset: int, leader_epoch: int, now: Now
) -> Incoming:
    """Batches that this broker made itself, in their places: one behind the other."""
    found = checked_headers(data, size_max=config.max_message_bytes)
    is_append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    headers = []
    position = 0
    for header in found:
        if is_append_time:
            set_max_timestamp(
                data,
                position,
                header,
                timestamp_type=TimestampType.LOG_APPEND_TIME,
                max_timestamp=now.wall_ms,
            )
        patch(data, position, base_offset=base_offset, leader_epoch=leader_epoch)
        headers.append(read_header(data, position))
        base_offset += header.last_offset_delta + 1
        position += header.size
    return Incoming(
        data if position == len(data) else memoryview(data)[:position],
        tuple(headers),
        markers_of(data, headers),
        now.wall_ms if is_append_time else NO_TIMESTAMP,
    )


def from_leader(data: Buffer, *, leader_epoch: int) -> Incoming:
    """Batches as another replica has them. Those of a later leader are left out: this replica will
    hear of it, and truncate first."""
    headers = []
    position = 0
    for header in checked_headers(data, size_max=None):
        if header.partition_leader_epoch > leader_epoch:
            break
        headers.append(header)
        position += header.size
    if position != len(data):
        data = memoryview(data)[:position]
    return Incoming(data, tuple(headers), markers_of(data, headers))


def checked_headers(data: Buffer, *, size_max: int | None) -> list[BatchHeader]:
    """The headers of all whole batches, each with the right CRC."""
    headers = []
    position = 0
    try:
        while len(data) - position >= HEADER_SIZE:
            header = read_header(data, position)
            size = header.size
            if size_max is not None and size > size_max:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"The record batch takes {size} bytes, {size_max} are allowed.",
                )
            if size > len(data) - position:
                break
            check_crc(data, position, header)
            headers.append(header)
            position += size
    except UnknownMagic as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{error}.") from None
    except ProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{error}.") from None
    return headers


def markers_of(data: Buffer, headers: list[BatchHeader]) -> tuple[Marker | None, ...]:
    """What control batches say about transactions."""
    if not any(header.is_control for header in headers):
        return NO_MARKERS
    markers: list[Marker | None] = []
    position = 0
    for header in headers:
        is_marker = header.is_control and header.producer_id >= 0
        markers.append(marker_of(data, position, header) if is_marker else None)
        position += header.size
    return tuple(markers)


def marker_of(data: Buffer, position: int, header: BatchHeader) -> Marker | None:
    """The marker in a control batch; None where compaction has left it empty."""
    for record in iterate_records(data, position, header, decompressed_max=_CONTROL_BYTES_MAX):
        return Marker(read_control(record).type, read_coordinator_epoch(record))
    return None
