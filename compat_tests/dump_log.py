"""What Kafka's DumpLogSegments says of the files of partitions, beside what we expect it to say.

Our words are made by the fast path, line by line as the tool prints them; where nothing is wrong
the two are equal. Some of its complaints are about what is right; those are expected, word by word.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from compat_tests.apache_kafka import Kafka
from ottla.protocol.records import (
    INT32_MAX,
    NO_SEQUENCE,
    BatchHeader,
    ControlRecordType,
    Record,
    check_crc,
    iterate_batches,
    iterate_records,
    read_control,
    read_coordinator_epoch,
)
from ottla.storage.format_index import (
    parse_offset_index,
    parse_snapshot,
    parse_time_index,
    parse_transaction_index,
)

DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_ABOUT = re.compile(r"\S[^/]*(/.*)")

Lines = dict[Path, list[str]]


def dumpable(directory: Path) -> list[Path]:
    """The files below that the tool reads."""
    return sorted(path for path in directory.rglob("0*") if path.suffix in SUFFIXES)


def dump(kafka: Kafka, paths: Iterable[Path], *options: str) -> tuple[Lines, Lines]:
    """What the tool prints of each file, and what it complains of."""
    said = kafka.run_tool(DUMP_LOG, *options, "--files", ",".join(map(str, paths)))
    assert said.returncode == 0, said.stdout[-1500:] + said.stderr[-1500:]
    printed: Lines = {}
    for line in said.stdout.splitlines():
        if line.startswith("Dumping "):
            lines = printed.setdefault(Path(line.removeprefix("Dumping ")), [])
        else:
            lines.append(line)
    complaints: Lines = {}
    for line in said.stderr.splitlines():
        if found := _ABOUT.fullmatch(line):
            lines = complaints.setdefault(Path(found[1]), [])
        lines.append(line)
    return printed, complaints


def expected_lines(path: Path) -> list[str]:
    return list(_LINES[path.suffix](path))


def expected_complaints(path: Path) -> list[str]:
    """What the tool says of files in which nothing is wrong."""
    if path.suffix == ".log":
        return _gaps(path)
    return _empty_batches(path) if path.suffix == ".timeindex" else []


def _gaps(path: Path) -> list[str]:
    """Of a log that begins behind 0, or was compacted."""
    gaps = []
    last = -1
    for _, records in read_log(path):
        for record in records:
            if record.offset != last + 1:
                gaps.append(f"  {last} is followed by {record.offset}")
            last = record.offset
    return [f"Non-consecutive offsets in {path}", *gaps] if gaps else []


def _empty_batches(path: Path) -> list[str]:
    """A batch that compaction has emptied keeps its time, and the tool looks for it in records."""
    empty = {
        header.last_offset: header.max_timestamp
        for header, records in read_log(path.with_suffix(".log"))
        if not records
    }
    entries = parse_time_index(path.read_bytes(), int(path.stem))["entries"]
    times = [each["timestamp"] for each in entries if each["offset"] in empty]
    assert times == [empty[each["offset"]] for each in entries if each["offset"] in empty]
    lines = [f"  Index timestamp: {time}, log timestamp: -1" for time in times]
    return [f"Found timestamp mismatch in :{path}", *lines] if lines else []


def read_log(path: Path) -> list[tuple[BatchHeader, list[Record]]]:
    """All batches of a file, which must end where a batch does."""
    data = path.read_bytes()
    found = []
    end = 0
    for position, header in iterate_batches(data):
        check_crc(data, position, header)
        records = list(iterate_records(data, position, header, decompressed_max=1 << 26))
        found.append((header, records))
        end = position + header.size
    assert end == len(data), f"{path} ends in {len(data) - end} bytes that are no batch"
    return found


def _log_lines(path: Path) -> Iterator[str]:
    yield f"Log starting offset: {int(path.stem)}"
    position = 0
    for header, records in read_log(path):
        yield _batch_line(header, position)
        position += header.size
        for record in records:
            yield _record_line(header, record)


def _batch_line(header: BatchHeader, position: int) -> str:
    horizon = header.delete_horizon_ms
    words = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": _java(header.is_transactional),
        "isControl": _java(header.is_control),
        "deleteHorizonMs": _optional(-1 if horizon is None else horizon),
        "position": position,
        TIMESTAMP_TYPES[header.timestamp_type]: header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": header.compression.name.lower(),
        "crc": header.crc,
        "isvalid": "true",
    }
    return _said(words)


def _record_line(header: BatchHeader, record: Record) -> str:
    sequence = header.base_sequence
    if sequence != NO_SEQUENCE:
        sequence = (sequence + record.offset - header.base_offset) & INT32_MAX
    words = {
        "offset": record.offset,
        TIMESTAMP_TYPES[header.timestamp_type]: record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headerKeys": f"[{','.join(name for name, _ in record.headers)}]",
    }
    if header.is_control:
        type_ = read_control(record).type
        if type_ in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
            words["endTxnMarker"] = type_.name
            words["coordinatorEpoch"] = read_coordinator_epoch(record)
    else:
        if record.key is not None:
            words["key"] = record.key.decode()
        if record.value is not None:
            words["payload"] = record.value.decode()
    return f"| {_said(words)}"


def _offset_index_lines(path: Path) -> Iterator[str]:
    entries = parse_offset_index(path.read_bytes(), int(path.stem))["entries"]
    yield from map(_said, entries) if entries else [f"{path} is empty."]


def _time_index_lines(path: Path) -> Iterator[str]:
    yield from map(_said, parse_time_index(path.read_bytes(), int(path.stem))["entries"])


def _transaction_index_lines(path: Path) -> Iterator[str]:
    for entry in parse_transaction_index(path.read_bytes()):
        yield _said(
            {
                "version": 0,
                "producerId": entry["producer_id"],
                "firstOffset": entry["first_offset"],
                "lastOffset": entry["last_offset"],
                "lastStableOffset": entry["last_stable_offset"],
            }
        )


def _snapshot_lines(path: Path) -> Iterator[str]:
    for entry in parse_snapshot(path.read_bytes()):
        yield producer_line(entry)


def producer_line(entry: dict[str, int]) -> str:
    words: dict[str, object] = {
        "producerId": entry["producer_id"],
        "producerEpoch": entry["epoch"],
        "coordinatorEpoch": entry["coordinator_epoch"],
        "currentTxnFirstOffset": _optional(entry["current_txn_first_offset"]),
        "lastTimestamp": entry["timestamp"],
    }
    if entry["last_offset"] < 0:
        return _said(words)
    first = (entry["last_sequence"] - entry["offset_delta"]) & INT32_MAX
    words |= {
        "firstSequence": first,
        "lastSequence": entry["last_sequence"],
        "lastOffset": entry["last_offset"],
        "offsetDelta": entry["offset_delta"],
        "timestamp": entry["timestamp"],
    }
    return _said(words)


_LINES = {
    ".log": _log_lines,
    ".index": _offset_index_lines,
    ".timeindex": _time_index_lines,
    ".txnindex": _transaction_index_lines,
    ".snapshot": _snapshot_lines,
}


def _said(words: dict[str, object]) -> str:
    return " ".join(f"{name}: {value}" for name, value in words.items())


def _java(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int) -> str:
    return "OptionalLong.empty" if value < 0 else f"OptionalLong[{value}]"
