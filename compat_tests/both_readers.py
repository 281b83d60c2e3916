"""One file, by the specification (`format.py` and its siblings) and by the fast path: what one
reads the other must read, and build again.

Compressors differ, so of compressed batches the records that are packed count, not the packing.
"""

from pathlib import Path
from typing import Any

from compat_tests.dump_log import SUFFIXES, read_log
from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch, build_empty_batch
from ottla.protocol.records import BatchHeader, Record, read_header, uncompressed_records
from ottla.storage import checkpoints, format_index, format_text
from ottla.storage import format as spec
from ottla.storage.config import LogConfig
from ottla.storage.folder import Folder
from ottla.storage.format import Fields
from ottla.storage.log_dirs import parse_meta_properties
from ottla.storage.names import OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, parse_folder_name
from ottla.storage.producers import ProducerStates
from ottla.storage.segment import Segment
from ottla.storage.steps import at_once
from tests.log_rig import NOW, Rig

_TYPES = ("CreateTime", "LogAppendTime")
_FOREVER_MS = 1 << 62


def files_of_storage(directory: Path) -> list[Path]:
    """Those of a log directory and of its partitions, without what belongs to a quorum."""
    found = [path for path in directory.iterdir() if path.name in _TEXTS]
    for folder in directory.iterdir():
        name = parse_folder_name(folder.name)
        if folder.is_dir() and name and not name.state and not name.topic.startswith("__cluster"):
            found += [
                path for path in folder.iterdir() if path.suffix in SUFFIXES or path.name in _TEXTS
            ]
    return sorted(found)


def agree(path: Path) -> None:
    """AssertionError where the two differ."""
    check = _TEXTS.get(path.name) or _BINARIES[path.suffix]
    check(path, path.read_bytes())


# --- segments ---------------------------------------------------------------------------------


def _segment(path: Path, data: bytes) -> None:
    fast = read_log(path)
    specified = spec.parse_segment(data)
    assert spec.build_segment(specified) == data, path
    assert len(fast) == len(specified), path
    position = 0
    for (header, records), fields in zip(fast, specified, strict=True):
        where = (path, position)
        batch = data[position : position + header.size]
        position += header.size
        assert _fields_of(header) == {n: fields[n] for n in fields if n in _fields_of(header)}, (
            where
        )
        assert records == [_record(each) for each in fields["records"]], where
        built = _built_by_fast_path(fields)
        _must_be_same(built, batch, where)
        if header.record_count:
            _must_be_same(spec.build_batch(_described(header, records, fields)), batch, where)


def _must_be_same(built: bytes, stored: bytes, where: object) -> None:
    header, expected = read_header(built), read_header(stored)
    if expected.compression is Codec.NONE:
        assert built == stored, where
    unpacked = [
        uncompressed_records(batch, 0, each, decompressed_max=1 << 26)
        for batch, each in ((built, header), (stored, expected))
    ]
    assert unpacked[0] == unpacked[1], where
    assert header._replace(batch_length=0, crc=0) == expected._replace(batch_length=0, crc=0), where


def _fields_of(header: BatchHeader) -> Fields:
    fields = {name: value for name, value in header._asdict().items() if name != "attributes"}
    fields["attributes"] = {
        "unused": header.attributes >> 7,
        "has_delete_horizon": header.has_delete_horizon,
        "is_control": header.is_control,
        "is_transactional": header.is_transactional,
        "timestamp_type": _TYPES[header.timestamp_type],
        "compression": header.compression.name.lower(),
    }
    return fields


def _record(fields: Fields) -> Record:
    return Record(
        fields["offset"],
        fields["timestamp"],
        fields["key"],
        fields["value"],
        tuple((each["key"].decode(), each["value"]) for each in fields["headers"]),
    )


def _built_by_fast_path(fields: Fields) -> bytes:
    """From what the specification has read."""
    attributes = fields["attributes"]
    if not fields["records"]:
        header = read_header(spec.build_batch(fields))
        return bytes(build_empty_batch(header))
    base_timestamp = fields["base_timestamp"]
    is_stamped = attributes["timestamp_type"] == "LogAppendTime"
    return bytes(
        build_batch(
            [
                _record(each)._replace(timestamp=base_timestamp + each["timestamp_delta"])
                for each in fields["records"]
            ],
            base_offset=fields["base_offset"],
            last_offset=fields["base_offset"] + fields["last_offset_delta"],
            codec=Codec[attributes["compression"].upper()],
            log_append_time_ms=fields["max_timestamp"] if is_stamped else None,
            producer_id=fields["producer_id"],
            producer_epoch=fields["producer_epoch"],
            base_sequence=fields["base_sequence"],
            leader_epoch=fields["partition_leader_epoch"],
            transactional=attributes["is_transactional"],
            control=attributes["is_control"],
            delete_horizon_ms=base_timestamp if attributes["has_delete_horizon"] else None,
        )
    )


def _described(header: BatchHeader, records: list[Record], read: Fields) -> Fields:
    """For the specification, from what the fast path has read. The producers' own times, which a
    batch of LogAppendTime still holds, are only in the specification's reading."""
    deltas = [each["timestamp_delta"] for each in read["records"]]
    if not header.is_log_append_time:
        assert deltas == [record.timestamp - header.base_timestamp for record in records]
    return {
        **_fields_of(header),
        "compressed": None,
        "records": [
            {
                "timestamp_delta": delta,
                "offset_delta": record.offset - header.base_offset,
                "key": record.key,
                "value": record.value,
                "headers": [{"key": k.encode(), "value": v} for k, v in record.headers],
            }
            for record, delta in zip(records, deltas, strict=True)
        ],
    }


# --- what lies beside a segment ---------------------------------------------------------------


def _on_memory(path: Path, data: bytes, suffix: str) -> tuple[Segment, Segment]:
    """The segment of this index, and a new one to be filled."""
    rigs = [Rig(LogConfig()), Rig(LogConfig())]
    segments = []
    for rig in rigs:
        rig.files.make_directory("logs/t-0")
        folder = Folder(rig.log_dir, "t-0", LogConfig(segment_index_bytes=max(len(data), 120)))
        segments.append(Segment(folder, int(path.stem), size=0, now=NOW))
    file = rigs[0].files.create(segments[0].file_path(suffix))
    file.append(data)
    file.close()
    segments[1].create()
    return segments[0], segments[1]


def _written(segment: Segment, suffix: str) -> bytes:
    path = segment.file_path(suffix)
    return segment.folder.files.read_whole(path) if segment.folder.files.exists(path) else b""


def _offset_index(path: Path, data: bytes) -> None:
    read, new = _on_memory(path, data, OFFSET_INDEX)
    base_offset = int(path.stem)
    parsed = format_index.parse_offset_index(data, base_offset)
    assert format_index.build_offset_index(base_offset=base_offset, **parsed) == data, path
    entries = data[: len(data) - parsed["preallocated_bytes"]]
    assert bytes(at_once(read.offset_index.load())) == entries, path
    for each in parsed["entries"]:
        assert at_once(read.offset_index.floor(each["offset"])) == (
            each["offset"],
            each["position"],
        )
        new.offset_index.append(each["offset"], each["position"])
    new.offset_index.trim()
    assert _written(new, OFFSET_INDEX) == entries, path


def _time_index(path: Path, data: bytes) -> None:
    read, new = _on_memory(path, data, TIME_INDEX)
    base_offset = int(path.stem)
    parsed = format_index.parse_time_index(data, base_offset)
    assert format_index.build_time_index(base_offset=base_offset, **parsed) == data, path
    entries = data[: len(data) - parsed["preallocated_bytes"]]
    assert bytes(at_once(read.time_index.load())) == entries, path
    for each in parsed["entries"]:
        expected = (each["timestamp"], each["offset"])
        assert at_once(read.time_index.floor(each["timestamp"])) == expected, path
        new.time_index.maybe_append(each["timestamp"], each["offset"])
    new.time_index.trim()
    assert _written(new, TIME_INDEX) == entries, path


def _transaction_index(path: Path, data: bytes) -> None:
    read, new = _on_memory(path, data, TRANSACTION_INDEX)
    parsed = format_index.parse_transaction_index(data)
    assert format_index.build_transaction_index(parsed) == data, path
    entries = at_once(read.transaction_index.load())
    assert [{"version": 0, **each._asdict()} for each in entries] == parsed, path
    for each in entries:
        new.transaction_index.append(each)
    assert _written(new, TRANSACTION_INDEX) == data, path


def _snapshot(path: Path, data: bytes) -> None:
    parsed = format_index.parse_snapshot(data)
    assert format_index.build_snapshot(parsed) == data, path
    producers = ProducerStates(_FOREVER_MS)
    producers.load(data, offset=int(path.stem), wall_ms=0)
    assert producers.snapshot() == data, path
    assert producer_entries(producers) == parsed, path


def producer_entries(producers: ProducerStates) -> list[Fields]:
    """What we know of each producer, as a snapshot says it."""
    found = []
    for producer_id, each in producers.producers.items():
        last = each.batches[-1] if each.batches else None
        found.append(
            {
                "producer_id": producer_id,
                "epoch": each.epoch,
                "last_sequence": last.last_sequence if last else -1,
                "last_offset": last.last_offset if last else -1,
                "offset_delta": last.last_offset - last.first_offset if last else 0,
                "timestamp": each.last_timestamp,
                "coordinator_epoch": each.coordinator_epoch,
                "current_txn_first_offset": each.current_txn_first_offset,
            }
        )
    return found


# --- text -------------------------------------------------------------------------------------


def _epochs(path: Path, data: bytes) -> None:
    parsed = format_text.parse_leader_epoch_checkpoint(data)
    entries = checkpoints.parse_epochs(str(path), data)
    assert [(each["epoch"], each["start_offset"]) for each in parsed or []] == entries, path
    assert format_text.build_leader_epoch_checkpoint(parsed) == data, path
    if data:
        assert checkpoints.epochs_text(entries) == data, path


def _offsets(path: Path, data: bytes) -> None:
    parsed = format_text.parse_offset_checkpoint(data)
    entries = checkpoints.parse_offsets(str(path), data)
    described = {(each["topic"], each["partition"]): each["offset"] for each in parsed or []}
    assert described == entries, path
    assert format_text.build_offset_checkpoint(parsed) == data, path
    if data:
        assert checkpoints.offsets_text(entries) == data, path


def _partition_metadata(path: Path, data: bytes) -> None:
    parsed = format_text.parse_partition_metadata(data)
    topic_id = checkpoints.parse_partition_metadata(str(path), data)
    assert checkpoints.uuid_text(topic_id) == parsed["topic_id"], path
    assert checkpoints.partition_metadata_text(topic_id) == data, path
    assert format_text.build_partition_metadata(parsed) == data, path


def _meta_properties(path: Path, data: bytes) -> None:
    parsed = format_text.parse_meta_properties(data)
    properties: dict[str, Any] = parsed["properties"]
    meta = parse_meta_properties(str(path), data)
    assert meta.cluster_id == properties["cluster.id"], path
    assert str(meta.node_id) == properties["node.id"], path
    assert meta.directory_id is not None
    assert checkpoints.uuid_text(meta.directory_id) == properties["directory.id"], path
    assert format_text.build_meta_properties(parsed) == data, path


def _clean_shutdown(path: Path, data: bytes) -> None:
    parsed = format_text.parse_clean_shutdown(data)
    epoch = checkpoints.parse_clean_shutdown(data)
    assert parsed["brokerEpoch"] == epoch, path
    assert checkpoints.clean_shutdown_text(epoch) == data == format_text.build_json(parsed), path


_BINARIES = {
    ".log": _segment,
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _snapshot,
}
_TEXTS = {
    "leader-epoch-checkpoint": _epochs,
    "partition.metadata": _partition_metadata,
    "meta.properties": _meta_properties,
    ".kafka_cleanshutdown": _clean_shutdown,
    "recovery-point-offset-checkpoint": _offsets,
    "replication-offset-checkpoint": _offsets,
    "log-start-offset-checkpoint": _offsets,
    "cleaner-offset-checkpoint": _offsets,
}
