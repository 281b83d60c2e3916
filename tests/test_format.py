"""The specification of the disk format, against what a real Kafka wrote and against itself."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from construct import ConstructError  # type: ignore[import-untyped]
from crc32c import crc32c

from ottla.storage import format as disk_format
from ottla.storage.format import (
    NEW_ATTRIBUTES,
    Fields,
    FormatError,
    UnsignedVarint,
    Varint,
    Varlong,
    build_batch,
    build_segment,
    parse_batch,
    parse_segment,
    reader_of,
    walk_segment,
)
from ottla.storage.format_control import build_control_record, parse_control_record
from ottla.storage.format_index import (
    build_offset_index,
    build_snapshot,
    build_time_index,
    build_transaction_index,
    parse_offset_index,
    parse_snapshot,
    parse_time_index,
    parse_transaction_index,
)
from ottla.storage.format_names import (
    FileKind,
    parse_file_name,
)
from ottla.storage.format_text import (
    build_json,
    build_leader_epoch_checkpoint,
    build_meta_properties,
    build_offset_checkpoint,
    build_partition_metadata,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from tests import kafka_directories

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
ROUND_TRIPS: dict[FileKind, Callable[[bytes, int], bytes]] = {
    FileKind.SEGMENT: lambda data, _: build_segment(parse_segment(data)),
    FileKind.METADATA_SNAPSHOT: lambda data, _: build_segment(parse_segment(data)),
    FileKind.OFFSET_INDEX: lambda data, base_offset: build_offset_index(
        base_offset=base_offset, **parse_offset_index(data, base_offset)
    ),
    FileKind.TIME_INDEX: lambda data, base_offset: build_time_index(
        base_offset=base_offset, **parse_time_index(data, base_offset)
    ),
    FileKind.TRANSACTION_INDEX: lambda data, _: build_transaction_index(
        parse_transaction_index(data)
    ),
    FileKind.PRODUCER_SNAPSHOT: lambda data, _: build_snapshot(parse_snapshot(data)),
    FileKind.LEADER_EPOCH_CHECKPOINT: lambda data, _: build_leader_epoch_checkpoint(
        parse_leader_epoch_checkpoint(data)
    ),
    FileKind.OFFSET_CHECKPOINT: lambda data, _: build_offset_checkpoint(
        parse_offset_checkpoint(data)
    ),
    FileKind.PARTITION_METADATA: lambda data, _: build_partition_metadata(
        parse_partition_metadata(data)
    ),
    FileKind.META_PROPERTIES: lambda data, _: build_meta_properties(parse_meta_properties(data)),
    FileKind.CLEAN_SHUTDOWN: lambda data, _: build_json(parse_clean_shutdown(data)),
    FileKind.QUORUM_STATE: lambda data, _: build_json(parse_quorum_state(data)),
    FileKind.LOCK: lambda data, _: data,
}


def named(path: str) -> Fields:
    fields = parse_file_name(path.rpartition("/")[2])
    assert fields is not None
    return fields


def real_files(*kinds: FileKind) -> list[tuple[str, bytes]]:
    found = kafka_directories.files().items()
    return [(path, data) for path, data in found if named(path)["kind"] in kinds]


@cache
def real_batches() -> list[Fields]:
    segments = real_files(FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT)
    return [batch for _, data in segments for batch in parse_segment(data)]


# --- what a real Kafka wrote ----------------------------------------------------------------------


@pytest.mark.parametrize("path", kafka_directories.files())
def test_what_kafka_wrote_is_read_and_built_again_byte_for_byte(path: str) -> None:
    data, fields = kafka_directories.files()[path], named(path)
    assert ROUND_TRIPS[fields["kind"]](data, fields.get("offset", 0)) == data


def test_what_kafka_wrote_has_something_of_everything() -> None:
    """Or the test above would prove less than it says."""
    batches = real_batches()
    controls = [
        parse_control_record(record)["type"]
        for batch in batches
        if batch["attributes"]["is_control"]
        for record in batch["records"]
    ]
    assert {named(path)["kind"] for path in kafka_directories.files()} == set(FileKind)
    assert {batch["attributes"]["compression"] for batch in batches} == set(CODECS)
    assert {batch["attributes"]["timestamp_type"] for batch in batches} == {
        "CreateTime",
        "LogAppendTime",
    }
    for flag in ("is_control", "is_transactional", "has_delete_horizon"):
        assert {batch["attributes"][flag] for batch in batches} == {True, False}
    assert any(batch["records"] == [] for batch in batches)
    assert set(controls) == {
        "COMMIT",
        "ABORT",
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    }


def test_control_records_that_kafka_wrote_are_built_again() -> None:
    for batch in real_batches():
        for record in batch["records"] if batch["attributes"]["is_control"] else []:
            built = build_control_record(**parse_control_record(record))
            assert built == {"key": record["key"], "value": record["value"]}


def test_what_was_compressed_comes_back_from_our_own_compressors() -> None:
    for batch in real_batches():
        again = parse_batch(build_batch({**batch, "compressed": None}))
        assert again["records"] == batch["records"]


def test_an_index_that_kafka_wrote_leads_to_the_batch_with_that_last_offset() -> None:
    lookups = 0
    for path, data in real_files(FileKind.OFFSET_INDEX):
        log = kafka_directories.files()[path.replace(".index", ".log")]
        last_offsets = {
            position: header["base_offset"] + header["last_offset_delta"]
            for position, header in walk_segment(reader_of(log), len(log))
        }
        for entry in parse_offset_index(data, named(path)["offset"])["entries"]:
            assert last_offsets[entry["position"]] == entry["offset"]
            lookups += 1
    assert lookups > 10


def test_a_time_index_that_kafka_wrote_holds_the_latest_time_up_to_its_offset() -> None:
    lookups = 0
    for path, data in real_files(FileKind.TIME_INDEX):
        log = parse_segment(kafka_directories.files()[path.replace(".timeindex", ".log")])
        for entry in parse_time_index(data, named(path)["offset"])["entries"]:
            before = [batch for batch in log if batch["base_offset"] <= entry["offset"]]
            assert max(batch["max_timestamp"] for batch in before) == entry["timestamp"]
            lookups += 1
    assert lookups > 10


def test_a_transaction_index_that_kafka_wrote_names_the_abort_markers() -> None:
    for path, data in real_files(FileKind.TRANSACTION_INDEX):
        log = parse_segment(kafka_directories.files()[path.replace(".txnindex", ".log")])
        aborts = [
            (batch["producer_id"], batch["base_offset"])
            for batch in log
            if batch["attributes"]["is_control"]
            and parse_control_record(batch["records"][0])["type"] == "ABORT"
        ]
        entries = parse_transaction_index(data)
        assert [(entry["producer_id"], entry["last_offset"]) for entry in entries] == aborts


# --- the batch, byte by byte ----------------------------------------------------------------------

BATCH_HEX = """
    0000000000000005 00000048 00000007 02 649cadb8 0010 00000001
    0000018bcfe56800 0000018bcfe56801 0000000000000009 0002 00000003 00000002
    12 00 00 00 02 6b 04 7631 00
    18 00 02 02 01 01 04 02 68 00 02 67 01
"""
BATCH: Fields = {
    "base_offset": 5,
    "partition_leader_epoch": 7,
    "attributes": {"is_transactional": True},
    "base_timestamp": 1_700_000_000_000,
    "producer_id": 9,
    "producer_epoch": 2,
    "base_sequence": 3,
    "records": [
        {"key": b"k", "value": b"v1"},
        {
            "timestamp_delta": 1,
            "headers": [{"key": b"h", "value": b""}, {"key": b"g", "value": None}],
        },
    ],
}


def test_a_batch_is_laid_out_as_drawn_here() -> None:
    assert build_batch(BATCH) == bytes.fromhex(BATCH_HEX)


def test_a_batch_is_read_into_plain_values() -> None:
    no_bytes = {"key": None, "value": None}
    assert parse_batch(bytes.fromhex(BATCH_HEX)) == {
        "base_offset": 5,
        "batch_length": 72,
        "partition_leader_epoch": 7,
        "magic": 2,
        "crc": 0x649CADB8,
        "attributes": {**NEW_ATTRIBUTES, "is_transactional": True},
        "last_offset_delta": 1,
        "base_timestamp": 1_700_000_000_000,
        "max_timestamp": 1_700_000_000_001,
        "producer_id": 9,
        "producer_epoch": 2,
        "base_sequence": 3,
        "record_count": 2,
        "records": [
            {
                "attributes": 0,
                "timestamp_delta": 0,
                "offset_delta": 0,
                "key": b"k",
                "value": b"v1",
                "headers": [],
                "offset": 5,
                "timestamp": 1_700_000_000_000,
            },
            {
                "attributes": 0,
                "timestamp_delta": 1,
                "offset_delta": 1,
                **no_bytes,
                "headers": [{"key": b"h", "value": b""}, {"key": b"g", "value": None}],
                "offset": 6,
                "timestamp": 1_700_000_000_001,
            },
        ],
        "compressed": None,
    }


def test_what_is_read_holds_no_types_of_construct() -> None:
    def types(value: Any) -> set[type]:
        inner = list(value.values()) if isinstance(value, dict) else value
        inside = [types(item) for item in inner] if isinstance(value, dict | list) else []
        return {type(value)}.union(*inside)

    plain = {dict, list, int, str, bytes, bool, type(None)}
    assert types(parse_batch(bytes.fromhex(BATCH_HEX))) <= plain
    marker = {"key": b"\0\0\0\1", "value": bytes(6)}
    assert types(parse_control_record(marker)) <= plain


def test_with_log_append_time_all_records_have_the_time_of_the_batch() -> None:
    attributes = {"timestamp_type": "LogAppendTime"}
    batch = parse_batch(build_batch({**BATCH, "attributes": attributes, "max_timestamp": 99}))
    assert [record["timestamp"] for record in batch["records"]] == [99, 99]


def random_batch(dice: random.Random, base_offset: int, codec: str) -> Fields:
    def some_bytes() -> bytes | None:
        return dice.choice([None, b"", dice.randbytes(dice.randrange(300)), b"a" * 5000])

    def header() -> Fields:
        return {"key": dice.randbytes(dice.randrange(20)), "value": some_bytes()}

    count = dice.randrange(20)
    return {
        "base_offset": base_offset,
        "partition_leader_epoch": dice.choice([-1, 0, 2**31 - 1]),
        "attributes": {
            "unused": dice.randrange(2**9),
            "has_delete_horizon": dice.random() < 0.5,
            "is_control": dice.random() < 0.5,
            "is_transactional": dice.random() < 0.5,
            "timestamp_type": dice.choice(["CreateTime", "LogAppendTime"]),
            "compression": codec,
        },
        "last_offset_delta": count + dice.randrange(3),
        "base_timestamp": dice.choice([-1, 0, 2**62]),
        "max_timestamp": dice.choice([-1, 0, 2**63 - 1]),
        "producer_id": dice.choice([-1, 0, 2**63 - 1]),
        "producer_epoch": dice.choice([-1, 0, 2**15 - 1]),
        "base_sequence": dice.choice([-1, 0, 2**31 - 1]),
        "records": [
            {
                "attributes": dice.randrange(-128, 128),
                "timestamp_delta": dice.choice([0, -1, 2**62, -(2**63), dice.randrange(9999)]),
                "offset_delta": number,
                "key": some_bytes(),
                "value": some_bytes(),
                "headers": [header() for _ in range(dice.choice([0, 0, 1, 5]))],
            }
            for number in range(count)
        ],
    }


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return all(contains(whole[name], item) for name, item in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("codec", CODECS)
def test_whatever_is_built_is_read_again(codec: str) -> None:
    dice = random.Random(codec)
    given = [random_batch(dice, base_offset, codec) for base_offset in range(0, 1200, 30)]
    data = build_segment(given)
    read = parse_segment(data)
    assert contains(read, given)
    assert build_segment(read) == data


VARINTS = [  # kind, number, bytes
    (Varint, 0, "00"),
    (Varint, -1, "01"),
    (Varint, 1, "02"),
    (Varint, 63, "7e"),
    (Varint, 64, "8001"),
    (Varint, 2**31 - 1, "feffffff0f"),
    (Varint, -(2**31), "ffffffff0f"),
    (Varlong, 2**63 - 1, "feffffffffffffffff01"),
    (Varlong, -(2**63), "ffffffffffffffffff01"),
    (UnsignedVarint, 0, "00"),
    (UnsignedVarint, 300, "ac02"),
    (UnsignedVarint, 2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("kind", "number", "content"), VARINTS)
def test_a_varint_takes_as_few_bytes_as_it_needs(kind: Any, number: int, content: str) -> None:
    assert kind.build(number).hex() == content
    assert kind.parse(bytes.fromhex(content)) == number


BAD_VARINTS = [(Varint, "808080808000"), (Varlong, "80" * 10 + "00"), (Varint, "80"), (Varint, "")]


@pytest.mark.parametrize(("kind", "content"), BAD_VARINTS)
def test_a_varint_that_does_not_end_is_refused(kind: Any, content: str) -> None:
    with pytest.raises(ConstructError):
        kind.parse(bytes.fromhex(content))


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_number_that_a_varint_cannot_hold_is_not_built(number: int) -> None:
    with pytest.raises(ConstructError):
        Varint.build(number)


# --- what is not a segment ------------------------------------------------------------------------

FIRST = build_batch(BATCH)
SECOND = build_batch({**BATCH, "base_offset": 7})
WHOLE = FIRST + SECOND


def with_right_crc(batch: bytes) -> bytes:
    return batch[:17] + crc32c(batch[21:]).to_bytes(4) + batch[21:]


def records_of(content: bytes, count: int = 1) -> bytes:
    """A batch whose records are whatever the test says."""
    zstd = build_batch({"records": [], "record_count": count, "compressed": content})
    return with_right_crc(zstd)


BROKEN_SEGMENTS: dict[str, tuple[bytes, int, str]] = {  # bytes, position, words of the reason
    "cut within a header": (FIRST + SECOND[:40], 84, "40 bytes are left, a header takes 61"),
    "cut within the records": (FIRST + SECOND[:70], 84, "70 bytes are left of a batch of 84"),
    "zeros at the end": (FIRST + bytes(5000), 84, "zeros instead of a batch"),
    "magic 1": (FIRST + SECOND[:16] + b"\1" + SECOND[17:], 84, "magic 1"),
    "magic 0, shorter than a header of today": (FIRST + b"\1" * 16 + b"\0" * 10, 84, "magic 0"),
    "length below a header": (FIRST[:8] + b"\0\0\0\x30" + FIRST[12:], 0, "batch length 48"),
    "negative length": (FIRST[:8] + b"\xff" * 4 + FIRST[12:], 0, "batch length -1"),
    "length of 2 GiB": (FIRST[:8] + b"\x7f" + b"\xff" * 3 + FIRST[12:], 0, "bytes are left of"),
    "wrong CRC": (FIRST[:-1] + b"\0", 0, "the CRC is"),
    "the same batch twice": (FIRST + FIRST, 84, "base offset 5 comes after offset 6"),
    "a batch that begins with the last offset of the one before": (
        FIRST + build_batch({**BATCH, "base_offset": 6}),
        84,
        "base offset 6 comes after offset 6",
    ),
    "negative offset": (b"\xff" * 8 + FIRST[8:], 0, "base_offset is -1"),
    "negative count": (records_of(b"", -1), 0, "record_count is -1"),
    "unknown codec": (
        with_right_crc(FIRST[:22] + b"\x07" + FIRST[23:]),
        0,
        "compression 7 is unknown",
    ),
    "compressed garbage": (
        with_right_crc(FIRST[:22] + b"\x04" + FIRST[23:]),
        0,
        "the zstd data cannot be read",
    ),
    "fewer records than counted": (records_of(b"\x0c\0\0\0\1\1\0", 2), 0, "record 1: "),
    "more records than counted": (records_of(b"\x0c\0\0\0\1\1\0" * 2), 0, "7 bytes follow"),
    "record without a field": (records_of(b"\0"), 0, "record 0: attributes: stream"),
    "record of negative length": (records_of(b"\x01"), 0, "record 0"),
    "record longer than its batch": (records_of(b"\x7e\0"), 0, "record 0"),
    "record with something behind": (records_of(b"\x0e\0\0\0\1\1\0\0"), 0, "record 0"),
    "key longer than its record": (records_of(b"\x0c\0\0\0\x7e\1\0"), 0, "key.content"),
    "negative header count": (records_of(b"\x0c\0\0\0\1\1\1"), 0, "headers.count"),
    "null header key": (records_of(b"\x10\0\0\0\1\1\2\1\1"), 0, "headers"),
    "millions of headers": (
        records_of(
            disk_format.Varint.build(400_008) + b"\0\0\0\1\1\x80\xb5\x18" + b"\0\1" * 200_000
        ),
        0,
        "headers",
    ),
}


@pytest.mark.parametrize(
    ("data", "position", "words"), BROKEN_SEGMENTS.values(), ids=BROKEN_SEGMENTS
)
def test_a_broken_segment_is_refused_with_position_and_reason(
    data: bytes, position: int, words: str
) -> None:
    with pytest.raises(FormatError) as refusal:
        parse_segment(data)
    assert refusal.value.position == position
    assert words in refusal.value.reason
    assert "\n" not in str(refusal.value)


def test_a_segment_may_end_behind_a_batch_and_nowhere_else() -> None:
    for size in range(len(WHOLE)):
        if size in (0, len(FIRST)):
            assert len(parse_segment(WHOLE[:size])) == size // len(FIRST)
        else:
            with pytest.raises(FormatError):
                parse_segment(WHOLE[:size])


def test_a_flipped_bit_is_found_wherever_the_crc_covers() -> None:
    for position in range(8, len(FIRST)):
        if 12 <= position < 16:
            continue  # the leader epoch
        flipped = bytearray(FIRST)
        flipped[position] ^= 0x10
        with pytest.raises(FormatError):
            parse_segment(bytes(flipped))


def test_the_leader_may_set_offset_and_epoch_without_a_new_crc() -> None:
    moved = (1000).to_bytes(8) + FIRST[8:12] + (42).to_bytes(4) + FIRST[16:]
    batch = parse_batch(moved)
    assert batch["crc"] == parse_batch(FIRST)["crc"]
    assert [record["offset"] for record in batch["records"]] == [1000, 1001]
    assert batch["partition_leader_epoch"] == 42


def test_what_a_batch_may_decompress_to_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = {"records": [{"value": bytes(1 << 20)}], "attributes": {"compression": "gzip"}}
    data = build_batch(bomb)
    assert len(data) < 3000
    monkeypatch.setattr(disk_format, "DECOMPRESSED_SIZE_MAX", 1 << 19)
    with pytest.raises(FormatError, match="gzip data cannot be read"):
        parse_segment(data)


@pytest.mark.parametrize("data", [b"", WHOLE])
def test_one_batch_is_one_batch(data: bytes) -> None:
    with pytest.raises(FormatError, match="instead of one"):
        parse_batch(data)


def test_the_fast_path_does_not_load_the_specification() -> None:
    """It costs 50 ms to import; whoever serves must not pay for it."""
    import subprocess
    import sys

    program = (
        "import sys, ottla.protocol.records, ottla.protocol.frames, ottla.storage.disk_files; "
        "unwanted = ('construct', 'ottla.storage.format'); "
        "print([name for name in sys.modules if name.startswith(unwanted)])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
