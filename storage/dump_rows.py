"""What the files of a log directory hold, row by row, in Kafka's words.

The format itself is told in format.py and its siblings; here it is turned into rows to print. A row
is a dict whose "kind" says what it is. Files are read in pieces, rows are made one at a time: what
is kept in memory is one batch at most, and of a batch that is too large only the header.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ottla.protocol.wire import ProtocolError
from ottla.storage import format_text
from ottla.storage.dump_messages import METADATA_TOPIC, MessageDecoder, decoder_for
from ottla.storage.format import (
    HEADER_SIZE,
    LENGTH_END,
    Fields,
    FormatError,
    Read,
    walk_records,
    walk_segment,
)
from ottla.storage.format_control import parse_control_record
from ottla.storage.format_index import (
    OffsetIndexEntry,
    TimeIndexEntry,
    entries_size,
    walk_offset_index,
    walk_snapshot,
    walk_time_index,
    walk_transaction_index,
)
from ottla.storage.format_names import FileKind

BATCH_SIZE_MAX = 32 << 20  # for the same reason as DECOMPRESSED_SIZE_MAX
TEXT_SIZE_MAX = 8 << 20  # a checkpoint of 100,000 partitions has 4 MB
INT32_MAX = (1 << 31) - 1


@dataclass(slots=True)
class Source:
    """One file: what its name and its directory's name say, and the way to its bytes."""

    kind: FileKind
    offset: int
    topic: str | None
    read: Read
    size: int


def rows(source: Source, *, with_records: bool) -> Iterator[Fields]:
    """All that the file holds. FormatError where it cannot be read any further."""
    if source.kind in (FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT):
        return _segment_rows(source, with_records)
    if source.kind in TEXTS:
        return _text_rows(source)
    return _entry_rows(source)


# --- Segments -------------------------------------------------------------------------------------


def _segment_rows(source: Source, with_records: bool) -> Iterator[Fields]:
    is_snapshot = source.kind is FileKind.METADATA_SNAPSHOT
    decoder = decoder_for(METADATA_TOPIC if is_snapshot else source.topic) if with_records else None
    batch_count = record_count = 0
    for position, header in walk_segment(source.read, source.size):
        yield _batch_row(position, header)
        batch_count += 1
        record_count += header["record_count"]
        if with_records or header["attributes"]["is_control"]:
            try:
                yield from _record_rows(source, position, header, decoder)
            except FormatError as error:
                # The next batch can be found all the same.
                yield {"kind": "error", "position": error.position, "reason": error.reason}
    yield {"kind": "total", "batches": batch_count, "records": record_count}


def _batch_row(position: int, header: Fields) -> Fields:
    attributes = header["attributes"]
    row = {
        "kind": "batch",
        "baseOffset": header["base_offset"],
        "lastOffset": header["base_offset"] + header["last_offset_delta"],
        "count": header["record_count"],
        "baseSequence": header["base_sequence"],
        "lastSequence": _sequence(header, header["last_offset_delta"]),
        "producerId": header["producer_id"],
        "producerEpoch": header["producer_epoch"],
        "partitionLeaderEpoch": header["partition_leader_epoch"],
        "isTransactional": attributes["is_transactional"],
        "isControl": attributes["is_control"],
        "position": position,
        "size": LENGTH_END + header["batch_length"],
        "timestampType": attributes["timestamp_type"],
        "maxTimestamp": header["max_timestamp"],
        "compression": attributes["compression"],
        "magic": header["magic"],
        "crc": header["crc"],
    }
    if attributes["has_delete_horizon"]:
        row["deleteHorizonMs"] = header["base_timestamp"]
    return row


def _record_rows(
    source: Source, position: int, header: Fields, decoder: MessageDecoder | None
) -> Iterator[Fields]:
    size = LENGTH_END + header["batch_length"]
    if size > BATCH_SIZE_MAX:
        raise FormatError(position, f"the records of a batch of {size} bytes are not decoded")
    stored = source.read(position + HEADER_SIZE, size - HEADER_SIZE)
    for record in walk_records(header, stored, position):
        place = {"offset": record["offset"], "timestamp": record["timestamp"]}
        if header["attributes"]["is_control"]:
            yield {"kind": "control", **place, **_control(position, record)}
        else:
            sequence = _sequence(header, record["offset_delta"])
            row = {"kind": "record", **place, "sequence": sequence}
            yield row | _content(record, decoder) | _headers(record)


def _control(position: int, record: Fields) -> Fields:
    try:
        control = parse_control_record(record)
    except FormatError as error:
        raise FormatError(position, error.reason) from None
    value = control["value"]
    return {
        "type": control["type"],
        **(in_kafkas_case(value) if isinstance(value, dict) else {"value": value}),
    }


def _content(record: Fields, decoder: MessageDecoder | None) -> Fields:
    content = {"key": record["key"], "value": record["value"]}
    if decoder is None:
        return content
    try:
        return decoder.decode(**content)
    except ProtocolError as error:
        # It may be of a later Kafka: shown as it is.
        return {**content, "undecoded": str(error)}


def _headers(record: Fields) -> Fields:
    return {"headers": record["headers"]} if record["headers"] else {}


def _sequence(header: Fields, offset_delta: int) -> int:
    if header["base_sequence"] < 0:
        return -1
    # After 2^31 - 1 comes 0.
    return int(header["base_sequence"] + offset_delta & INT32_MAX)


# --- Indexes and producer snapshots ---------------------------------------------------------------


def _entry_rows(source: Source) -> Iterator[Fields]:
    read, size, offset = source.read, source.size, source.offset
    if source.kind is FileKind.OFFSET_INDEX:
        used_size = entries_size(read, size, OffsetIndexEntry)
        entries = walk_offset_index(read, size, offset)
    elif source.kind is FileKind.TIME_INDEX:
        used_size = entries_size(read, size, TimeIndexEntry)
        entries = walk_time_index(read, size, offset)
    elif source.kind is FileKind.TRANSACTION_INDEX:
        used_size, entries = size, walk_transaction_index(read, size)
    elif source.kind is FileKind.PRODUCER_SNAPSHOT:
        used_size, entries = size, walk_snapshot(read, size)
    else:  # a lock says nothing
        return
    for entry in entries:
        yield {"kind": "entry", **in_kafkas_case(entry)}
    if used_size < size:
        yield {"kind": "preallocated", "bytes": size - used_size}


# --- Text files -----------------------------------------------------------------------------------

TEXTS: dict[FileKind, Callable[[bytes], Any]] = {
    FileKind.LEADER_EPOCH_CHECKPOINT: format_text.parse_leader_epoch_checkpoint,
    FileKind.OFFSET_CHECKPOINT: format_text.parse_offset_checkpoint,
    FileKind.PARTITION_METADATA: format_text.parse_partition_metadata,
    FileKind.META_PROPERTIES: lambda data: format_text.parse_meta_properties(data)["properties"],
    FileKind.CLEAN_SHUTDOWN: format_text.parse_clean_shutdown,
    FileKind.QUORUM_STATE: format_text.parse_quorum_state,
}


def _text_rows(source: Source) -> Iterator[Fields]:
    if source.size > TEXT_SIZE_MAX:
        raise FormatError(0, f"{source.size} bytes are too many for such a file")
    content = TEXTS[source.kind](source.read(0, source.size))
    for entry in content if isinstance(content, list) else [content or {}]:
        if entry:
            # The file may name its fields as it likes, also "kind".
            yield {**in_kafkas_case(entry), "kind": "entry"}


def in_kafkas_case(value: Any) -> Any:
    """leader_epoch becomes leaderEpoch, at every depth; tagged fields that are not there go."""
    if isinstance(value, list):
        return [in_kafkas_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _camel(name): in_kafkas_case(item)
        for name, item in value.items()
        if (name, item) != ("tagged_fields", [])
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
