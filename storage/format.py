"""Kafka's disk format as a specification that runs: records, record batches, segments.

Read from the top it teaches the format; run, it is the oracle of the tests and the engine of
`ottla dump`. It shares only the compression codecs with the fast path, so that each checks the
other; it is slow, and no hot path may import it. Values are plain: int, bytes, str, list, dict.
What lies beside a segment: format_index.py, format_text.py. What control records say:
format_control.py. What the files and directories are called: format_names.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

from construct import (  # type: ignore[import-untyped]
    BitsInteger,
    BitStruct,
    Bytes,
    Computed,
    Const,
    Construct,
    ConstructError,
    Enum,
    ExprValidator,
    Flag,
    FocusedSeq,
    GreedyBytes,
    IfThenElse,
    Int8sb,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    IntegerError,
    Prefixed,
    PrefixedArray,
    Rebuild,
    Struct,
    Terminated,
    this,
)
from construct.core import stream_read, stream_write  # type: ignore[import-untyped]
from crc32c import crc32c

from ottla.protocol.compression import Codec, compress, decompress
from ottla.protocol.wire import ProtocolError

Fields = dict[str, Any]
Read = Callable[[int, int], bytes]  # (position, size) -> the bytes there; fewer at the file's end

# In JSON each byte takes about eight times its memory; larger batches are told, but not decoded.
DECOMPRESSED_SIZE_MAX = 32 << 20
HEADERS_MAX = 100_000  # the same of a record
PIECE_SIZE = 1 << 20


class FormatError(ValueError):
    """Bytes that are not Kafka's disk format: where they stand in the file, and what is wrong."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"position {position}: {reason}")
        self.position = position
        self.reason = reason


# --- Numbers --------------------------------------------------------------------------------------
# Numbers are big-endian and of fixed width, except inside records and in flexible messages.


class VariableInteger(Construct):  # type: ignore[misc]
    """As few bytes as the number needs: seven bits a byte, lowest first; the top bit: more follow.

    A signed number is folded before ("zigzag"), so that small negative ones are short as well:
    0, -1, 1, -2, 2 are written as 0, 1, 2, 3, 4.
    """

    def __init__(self, *, bits: int, signed: bool) -> None:
        super().__init__()
        self.bits = bits
        self.signed = signed

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        number = 0
        for shift in range(0, self.bits, 7):
            byte: int = stream_read(stream, 1, path)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                number &= (1 << self.bits) - 1
                return (number >> 1 ^ -(number & 1)) if self.signed else number
        raise IntegerError(f"a varint of {self.bits} bits does not end", path=path)

    def _build(self, number: int, stream: Any, context: Any, path: str) -> int:
        rest = (number << 1 ^ number >> self.bits - 1) if self.signed else number
        if not 0 <= rest < 1 << self.bits:
            raise IntegerError(f"{number} does not fit into {self.bits} bits", path=path)
        while rest > 0x7F:
            stream_write(stream, bytes([rest & 0x7F | 0x80]), 1, path)
            rest >>= 7
        stream_write(stream, bytes([rest]), 1, path)
        return number


Varint = VariableInteger(bits=32, signed=True)
Varlong = VariableInteger(bits=64, signed=True)
UnsignedVarint = VariableInteger(bits=32, signed=False)


# --- The record -----------------------------------------------------------------------------------

NullableBytes = FocusedSeq(
    "content",
    "length" / Rebuild(Varint, lambda this: -1 if this.content is None else len(this.content)),
    "content" / IfThenElse(this.length < 0, Computed(None), Bytes(this.length)),
)

RecordHeader = Struct(
    "key" / Prefixed(Varint, GreedyBytes) * "UTF-8, never null",
    "value" / NullableBytes,
)

# Kafka sets no limit; without one, a file of some kilobytes could take all memory.
HeaderCount = ExprValidator(Varint, lambda count, _: 0 <= count <= HEADERS_MAX)

Record = Prefixed(
    Varint,  # the size of all that follows, which must be used up
    Struct(
        "attributes" / Int8sb * "no bit of it has a meaning yet",
        "timestamp_delta" / Varlong * "to the batch's base timestamp; may be negative",
        "offset_delta" / Varint * "to the batch's base offset",
        "key" / NullableBytes,
        "value" / NullableBytes * "null on a compacted topic is a tombstone: the key is deleted",
        "headers" / PrefixedArray(HeaderCount, RecordHeader),
        Terminated,
        "offset" / Computed(this._.base_offset + this.offset_delta),
        "timestamp" / Computed(lambda this: record_timestamp(this._, this.timestamp_delta)),
    ),
)


def record_timestamp(batch: Mapping[str, Any], timestamp_delta: int) -> int:
    """A record's time, in ms since 1970; with LogAppendTime the batch has one for all records."""
    if batch["attributes"]["timestamp_type"] == "LogAppendTime":
        return int(batch["max_timestamp"])
    return int(batch["base_timestamp"]) + timestamp_delta


# --- The record batch -----------------------------------------------------------------------------
# Producers send batches, the log stores them, consumers and followers fetch them, all in this form.

BatchAttributes = BitStruct(
    "unused" / BitsInteger(9) * "stored as the producer sent it",
    "has_delete_horizon" / Flag * "compaction has set when tombstones and markers in here may go",
    "is_control" / Flag * "the records are for Kafka itself: format_control.py",
    "is_transactional" / Flag,
    "timestamp_type" / Enum(BitsInteger(1), CreateTime=0, LogAppendTime=1),
    "compression" / Enum(BitsInteger(3), none=0, gzip=1, snappy=2, lz4=3, zstd=4),
)

BatchHeader = Struct(
    "base_offset" / Int64sb * "of the first record as it was produced, even if compaction took it",
    "batch_length" / Int32sb * "the size of all that follows this field",
    "partition_leader_epoch" / Int32sb * "of the leader that appended the batch",
    "magic" / Const(2, Int8sb) * "the format: 2 since Kafka 0.11; 0 and 1 look otherwise",
    "crc" / Int32ub * "CRC-32C of all that follows; so the leader may set the fields before it",
    "attributes" / BatchAttributes,
    "last_offset_delta" / Int32sb * "to the base offset; compaction does not change it either",
    "base_timestamp" / Int64sb * "of the first record; if there is a delete horizon, the horizon",
    "max_timestamp" / Int64sb * "of the records; with LogAppendTime: when the leader appended them",
    "producer_id" / Int64sb * "-1: the producer is neither idempotent nor transactional",
    "producer_epoch" / Int16sb,
    "base_sequence" / Int32sb * "of the first record; each producer counts per partition; -1: none",
    "record_count" / Int32sb * "0 where compaction took them all and keeps the producer's sequence",
)  # the records follow, one behind the other; compressed, if they are, all in one piece

LENGTH_END = 12  # the batch's length counts from here
MAGIC_POSITION = 16  # in all formats
CRC_END = 21  # the CRC covers everything from here on
HEADER_SIZE = 61


def walk_segment(read: Read, size: int) -> Iterator[tuple[int, Fields]]:
    """The position and header of every batch; the records are checked by their CRC, not decoded.

    A segment (and a snapshot of the metadata log) is batches and nothing else. Offsets rise; after
    compaction there are gaps, within batches and between them.
    """
    position, last_offset = 0, -1
    while position < size:
        header = header_at(position, read(position, HEADER_SIZE), size - position)
        check_crc(position, header, read)
        if header["base_offset"] <= last_offset:
            reason = f"base offset {header['base_offset']} comes after offset {last_offset}"
            raise FormatError(position, reason)
        yield position, header
        last_offset = header["base_offset"] + header["last_offset_delta"]
        position += LENGTH_END + header["batch_length"]


def header_at(position: int, data: bytes, bytes_left: int) -> Fields:
    if not any(data):
        raise FormatError(position, "zeros instead of a batch: a torn or preallocated tail")
    if len(data) > MAGIC_POSITION and data[MAGIC_POSITION] != 2:
        reason = f"magic {data[MAGIC_POSITION]}: only batches of magic 2 are read (Kafka >= 0.11)"
        raise FormatError(position, reason)
    if len(data) < HEADER_SIZE:
        raise FormatError(position, f"{len(data)} bytes are left, a header takes {HEADER_SIZE}")
    header: Fields = plain(BatchHeader.parse(data))
    batch_size = LENGTH_END + header["batch_length"]
    if batch_size < HEADER_SIZE:
        raise FormatError(position, f"batch length {header['batch_length']} is less than a header")
    if batch_size > bytes_left:
        raise FormatError(position, f"{bytes_left} bytes are left of a batch of {batch_size}")
    for name in ("base_offset", "last_offset_delta", "record_count"):
        if header[name] < 0:
            raise FormatError(position, f"{name} is {header[name]}")
    return header


def check_crc(position: int, header: Fields, read: Read) -> None:
    crc = 0
    end = position + LENGTH_END + header["batch_length"]
    for piece in range(position + CRC_END, end, PIECE_SIZE):
        crc = crc32c(read(piece, min(PIECE_SIZE, end - piece)), crc)
    if crc != header["crc"]:
        raise FormatError(
            position, f"the CRC is {crc:#010x}, the header says {header['crc']:#010x}"
        )


def walk_records(header: Fields, stored: bytes, position: int = 0) -> Iterator[Fields]:
    """The records of the batch at `position`; `stored` is all that follows its header."""
    content = decompressed(header["attributes"]["compression"], stored, position)
    stream = BytesIO(content)
    for number in range(header["record_count"]):
        try:
            record = Record.parse_stream(stream, **header)
        except ConstructError as error:
            raise FormatError(position, f"record {number}: {reason_of(error)}") from None
        yield plain(record)
    if left := len(content) - stream.tell():
        raise FormatError(position, f"{left} bytes follow the last record")


def parse_segment(data: bytes) -> list[Fields]:
    """Every batch: the fields of its header, "records" (a list), and "compressed".

    "compressed" keeps the bytes of compressed records (else it is None): compressors differ, and
    only with these bytes can the same batch be built again.
    """
    batches = []
    for position, header in walk_segment(reader_of(data), len(data)):
        batch_end = position + LENGTH_END + header["batch_length"]
        stored = data[position + HEADER_SIZE : batch_end]
        records = list(walk_records(header, stored, position))
        compressed = None if header["attributes"]["compression"] == "none" else stored
        batches.append({**header, "records": records, "compressed": compressed})
    return batches


def parse_batch(data: bytes) -> Fields:
    """One batch, in the form of `parse_segment`; nothing may follow it."""
    batches = parse_segment(data)
    if len(batches) != 1:
        raise FormatError(0, f"{len(batches)} batches instead of one")
    return batches[0]


def build_segment(batches: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(map(build_batch, batches))


NEW_RECORD: Fields = {
    "attributes": 0,
    "timestamp_delta": 0,
    "key": None,
    "value": None,
    "headers": [],
}
NEW_ATTRIBUTES: Fields = {
    "unused": 0,
    "has_delete_horizon": False,
    "is_control": False,
    "is_transactional": False,
    "timestamp_type": "CreateTime",
    "compression": "none",
}
NEW_BATCH: Fields = {
    "base_offset": 0,
    "partition_leader_epoch": -1,
    "magic": 2,
    "base_timestamp": 0,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "compressed": None,
}


def build_batch(batch: Mapping[str, Any]) -> bytes:
    """The bytes of a batch in the form of `parse_segment`.

    What is left out gets the values above, or those that follow from the records. Length and CRC
    are always computed; "compressed", if it is there, stands for the records.
    """
    records = [
        {**NEW_RECORD, "offset_delta": number, **record}
        for number, record in enumerate(batch["records"])
    ]
    header = {
        **NEW_BATCH,
        "record_count": len(records),
        "last_offset_delta": max((record["offset_delta"] for record in records), default=0),
        **batch,
        "attributes": NEW_ATTRIBUTES | batch.get("attributes", {}),
    }
    latest = max((record["timestamp_delta"] for record in records), default=0)
    header.setdefault("max_timestamp", header["base_timestamp"] + latest)
    stored = header["compressed"]
    if stored is None:
        content = b"".join(Record.build(record, **header) for record in records)
        stored = compressed(header["attributes"]["compression"], content)
    header |= {"batch_length": HEADER_SIZE - LENGTH_END + len(stored), "crc": 0}
    crc = crc32c(BatchHeader.build(header)[CRC_END:] + stored)
    return bytes(BatchHeader.build({**header, "crc": crc})) + bytes(stored)


def compressed(compression: str, content: bytes) -> bytes:
    return content if compression == "none" else compress(Codec[compression.upper()], content)


def decompressed(compression: str | int, stored: bytes, position: int) -> bytes:
    if compression == "none":
        return stored
    if isinstance(compression, int):
        raise FormatError(position, f"compression {compression} is unknown")
    try:
        codec = Codec[compression.upper()]
        return decompress(codec, stored, size_max=DECOMPRESSED_SIZE_MAX)
    except ProtocolError as error:
        raise FormatError(position, f"the {compression} data cannot be read: {error}") from None


# --- From construct's values to plain ones --------------------------------------------------------


def plain(value: Any) -> Any:
    """Python's own types in place of construct's, which compare and print in their own way."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if not name.startswith("_")}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def reason_of(error: ConstructError) -> str:
    """Construct's complaint in one line, with the field that it is about."""
    names = str(error.path or "").split(" -> ")
    # Construct names a field that has a description twice.
    field = ".".join(name for name, before in zip(names[1:], names, strict=False) if name != before)
    reason = str(error).rpartition("\n")[2][:200]
    return f"{field}: {reason}" if field else reason


def reader_of(data: bytes) -> Read:
    return lambda position, size: data[position : position + size]
