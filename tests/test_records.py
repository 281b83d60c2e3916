"""The header of a batch and the records inside; building has tests of its own."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.compression import Codec, DecompressedTooLarge, compress
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import (
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    ControlRecord,
    ControlRecordType,
    Record,
    TimestampType,
    TruncatedBatch,
    UnknownMagic,
    check_crc,
    crc_of,
    increment_sequence,
    iterate_batches,
    iterate_records,
    patch,
    read_control,
    read_coordinator_epoch,
    read_header,
    set_max_timestamp,
    whole_batches_end,
)
from ottla.protocol.wire import ProtocolError
from tests.raw_batches import NOW_MS, SIZE_MAX, new_records, raw_batch

HEADER_FIELDS = BatchHeader(
    base_offset=7,
    batch_length=49 + 10,
    partition_leader_epoch=3,
    magic=2,
    crc=0,
    attributes=0,
    last_offset_delta=4,
    base_timestamp=1000,
    max_timestamp=1004,
    producer_id=11,
    producer_epoch=1,
    base_sequence=5,
    record_count=5,
)


def batch(records: bytes = b"0123456789", **fields: int) -> bytearray:
    """A batch whose records are bytes of no meaning; its CRC is right unless it is given."""
    header = HEADER_FIELDS._replace(batch_length=49 + len(records))._replace(**fields)
    built = bytearray(HEADER.pack(*header) + records)
    if "crc" not in fields:
        built[17:21] = crc_of(built, 0, len(built)).to_bytes(4, "big")
    return built


def test_a_header_is_read_field_by_field() -> None:
    header = read_header(b"xx" + batch(), 2)
    assert header._replace(crc=0) == HEADER_FIELDS
    assert (header.size, header.last_offset, header.next_offset) == (71, 11, 12)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_holds_a_header(kind: type) -> None:
    assert read_header(kind(batch()))._replace(crc=0) == HEADER_FIELDS


ATTRIBUTES = [  # attributes, codec, log append time, transactional, control, delete horizon
    (0, Codec.NONE, False, False, False, False),
    (1, Codec.GZIP, False, False, False, False),
    (4 | 8, Codec.ZSTD, True, False, False, False),
    (16 | 32, Codec.NONE, False, True, True, False),
    (64 | 3, Codec.LZ4, False, False, False, True),
    (-128, Codec.NONE, False, False, False, False),
]


@pytest.mark.parametrize(
    "attributes, codec, log_append, transactional, control, horizon", ATTRIBUTES
)
def test_the_bits_of_the_attributes(
    attributes: int,
    codec: Codec,
    log_append: bool,
    transactional: bool,
    control: bool,
    horizon: bool,
) -> None:
    header = read_header(batch(attributes=attributes))
    assert header.compression is codec
    assert header.is_log_append_time is log_append
    assert header.is_transactional is transactional
    assert header.is_control is control
    assert header.has_delete_horizon is horizon
    assert header.delete_horizon_ms == (1000 if horizon else None)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_nobody_knows_is_refused_when_asked_for(codec: int) -> None:
    header = read_header(batch(attributes=codec))
    with pytest.raises(ProtocolError, match="unknown compression codec"):
        _ = header.compression


SEQUENCES = [  # base, delta, last
    (0, 0, 0),
    (5, 4, 9),
    (2**31 - 1, 0, 2**31 - 1),
    (2**31 - 1, 1, 0),
    (2**31 - 3, 9, 6),
]


@pytest.mark.parametrize("base, delta, last", SEQUENCES)
def test_sequences_wrap_to_zero(base: int, delta: int, last: int) -> None:
    assert increment_sequence(base, delta) == last
    assert read_header(batch(base_sequence=base, last_offset_delta=delta)).last_sequence == last


def test_a_batch_without_sequence_has_no_last_one() -> None:
    assert read_header(batch(base_sequence=-1)).last_sequence == -1


def test_a_header_cut_short_is_told_from_one_of_another_format() -> None:
    with pytest.raises(TruncatedBatch):
        read_header(batch()[: HEADER_SIZE - 1])
    with pytest.raises(UnknownMagic):
        read_header(batch(magic=1))


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_a_length_below_the_headers_own_is_refused(length: int) -> None:
    broken = batch(batch_length=length)
    with pytest.raises(ProtocolError, match="below the header"):
        read_header(broken)
    with pytest.raises(ProtocolError, match="below the header"):
        list(iterate_batches(broken))
    with pytest.raises(ProtocolError, match="below the header"):
        whole_batches_end(broken)


def test_a_batch_with_a_wrong_crc_is_refused() -> None:
    good = batch()
    check_crc(good, 0, read_header(good))
    for position in range(21, len(good)):
        broken = bytearray(good)
        broken[position] ^= 1
        with pytest.raises(ProtocolError, match="crc"):
            check_crc(broken, 0, read_header(good))


def test_a_batch_cut_short_has_no_crc() -> None:
    with pytest.raises(TruncatedBatch):
        check_crc(batch()[:-1], 0, read_header(batch()))


def test_a_patched_batch_keeps_its_crc() -> None:
    buf = bytearray(b"xx") + batch()
    patch(buf, 2, base_offset=2**62, leader_epoch=9)
    header = read_header(buf, 2)
    check_crc(buf, 2, header)
    assert header._replace(crc=0) == HEADER_FIELDS._replace(
        base_offset=2**62, partition_leader_epoch=9
    )


def test_batches_follow_one_another_up_to_one_cut_short() -> None:
    first, second, third = batch(b"a" * 5), batch(b""), batch(b"b" * 9)
    whole = bytes(first + second)
    for end in range(len(third)):
        buf = whole + third[:end]
        assert [position for position, _ in iterate_batches(buf)] == [0, 66]
        assert whole_batches_end(buf) == len(whole)
    assert [header.size for _, header in iterate_batches(whole + third)] == [66, 61, 70]
    assert whole_batches_end(whole + third) == len(whole) + 70


def test_a_batch_of_another_format_ends_the_iteration() -> None:
    iterator = iterate_batches(batch() + batch(magic=0))
    next(iterator)
    with pytest.raises(UnknownMagic):
        next(iterator)


RECORDS = {
    "one": [Record(0, NOW_MS, b"key", b"value")],
    "nulls": [Record(0, NOW_MS, None, None)],
    "nothing": [Record(0, NOW_MS, b"", b"", (("", b""),))],
    "headers": [Record(0, NOW_MS, b"k", b"v", (("trace", b"1"), ("trace", None), ("ü€𝄞", b"")))],
    "no timestamps": [Record(0, -1, b"k", b"v"), Record(1, -1, b"k", b"v")],
    "times that go back": [Record(n, NOW_MS - 10**n, b"k", b"v") for n in range(9)],
    "gaps": [Record(offset, NOW_MS, b"k", None) for offset in (3, 70, 9000, 2**31 - 1)],
    "lengths of more bytes": [
        Record(n, NOW_MS, bytes(size), bytes(size + 1), (("h" * size, bytes(size)),))
        for n, size in enumerate((63, 64, 65, 8191, 8192, 8193))
    ],
    "the last times there are": [Record(0, 0, b"", b""), Record(1, 2**63 - 1, b"", b"")],
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("records", RECORDS.values(), ids=RECORDS)
def test_the_records_of_a_batch_come_back(records: list[Record], codec: Codec) -> None:
    built = b"x" + build_batch(records, codec=codec) + b"xx"
    assert list(iterate_records(built, 1, decompressed_max=SIZE_MAX)) == records


TEXTS = st.text(max_size=5).filter(lambda text: text.isprintable())
BYTES = st.binary(max_size=200)
INT64 = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    steps=st.lists(st.integers(1, 2**20), min_size=1, max_size=20),
    times=st.lists(INT64 | st.integers(NOW_MS - 999, NOW_MS + 999), min_size=20, max_size=20),
    values=st.lists(st.none() | BYTES, min_size=40, max_size=40),
    headers=st.lists(st.tuples(TEXTS, st.none() | BYTES), max_size=3),
    base_offset=st.integers(0, 2**62),
    codec=st.sampled_from(Codec),
)
def test_any_records_come_back(
    steps: list[int],
    times: list[int],
    values: list[bytes | None],
    headers: list[tuple[str, bytes | None]],
    base_offset: int,
    codec: Codec,
) -> None:
    records = [
        Record(
            base_offset + sum(steps[:n]), times[n], values[2 * n], values[2 * n + 1], tuple(headers)
        )
        for n in range(len(steps))
    ]
    built = build_batch(records, base_offset=base_offset, codec=codec)
    header = read_header(built)
    check_crc(built, 0, header)
    assert header.max_timestamp == max(-1, *(record.timestamp for record in records))
    assert list(iterate_records(built, 0, header, decompressed_max=SIZE_MAX)) == records


def test_log_append_time_hides_the_times_of_the_records() -> None:
    built = build_batch(new_records(3), log_append_time_ms=77)
    times = [record.timestamp for record in iterate_records(built, decompressed_max=SIZE_MAX)]
    assert times == [77, 77, 77]


def test_a_delete_horizon_is_the_base_of_the_times() -> None:
    built = build_batch(new_records(3), delete_horizon_ms=NOW_MS + 5000)
    assert read_header(built).delete_horizon_ms == NOW_MS + 5000
    assert list(iterate_records(built, decompressed_max=SIZE_MAX)) == new_records(3)


def test_a_patched_batch_moves_its_records() -> None:
    built = build_batch(new_records(2))
    patch(built, 0, base_offset=100, leader_epoch=1)
    offsets = [record.offset for record in iterate_records(built, decompressed_max=SIZE_MAX)]
    assert offsets == [100, 101]


def test_an_empty_batch_has_no_records_whatever_stands_behind_its_header() -> None:
    empty = raw_batch(b"left over", record_count=0)
    assert list(iterate_records(empty, decompressed_max=SIZE_MAX)) == []


def test_an_invalid_header_key_is_read_with_replacement_characters() -> None:
    records = bytes.fromhex("16 00 00 00 01 01 02 04 ff 41 02 62".replace(" ", ""))
    [record] = iterate_records(raw_batch(records, record_count=1), decompressed_max=SIZE_MAX)
    assert record.headers == (("\ufffdA", b"b"),)


# One record with every field in one byte: size, attributes, time, offset, key, value, no headers.
PLAIN = bytes.fromhex("1200 0000 026b 0476 7600".replace(" ", ""))
BAD_RECORDS = {
    "one record less than the count": (2, PLAIN),
    "one record more than the count": (1, PLAIN * 2),
    "junk behind the last": (1, PLAIN + b"\0"),
    "cut short": (1, PLAIN[:-1]),
    "size too small": (1, b"\x10" + PLAIN[1:]),
    "size too large": (1, b"\x14" + PLAIN[1:] + b"\0"),
    "size too large, before another record": (2, b"\x14" + PLAIN[1:] + PLAIN),
    "size above what is left": (1, b"\x7e" + PLAIN[1:]),
    "negative size": (1, b"\x01" + PLAIN[1:]),
    "negative size that looks like the right one": (1, b"\x13" + PLAIN[1:]),
    "size without end": (1, b"\xff" * 6),
    "size of 2 GiB": (1, b"\xfe\xff\xff\xff\x0f" + PLAIN[1:]),
    "key longer than the record": (1, PLAIN[:4] + b"\x7e" + PLAIN[5:]),
    "key of 2 GiB": (1, b"\x1a" + PLAIN[1:4] + b"\xfe\xff\xff\xff\x0f" + PLAIN[5:]),
    "value longer than the record": (1, PLAIN[:6] + b"\x7e" + PLAIN[7:]),
    "negative header count": (1, PLAIN[:-1] + b"\x01"),
    "header count above what is left": (1, PLAIN[:-1] + b"\x7e"),
    "null header key": (1, b"\x16" + PLAIN[1:-1] + b"\x02\x01\x00"),
    "header key longer than the record": (1, b"\x16" + PLAIN[1:-1] + b"\x02\x7e\x00"),
    "header value longer than the record": (1, b"\x16" + PLAIN[1:-1] + b"\x02\x00\x7e"),
    "time without end": (1, b"\x26" + b"\0" + b"\xff" * 11 + PLAIN[3:]),
    "offset without end": (1, b"\x1c" + b"\0\0" + b"\xff" * 6 + PLAIN[4:]),
    "negative count": (-1, PLAIN),
    "negative count of nothing": (-1, b""),
    "count of 2 billion": (2**31 - 1, PLAIN),
}


def test_the_plain_record_of_the_table_below_is_right() -> None:
    built = raw_batch(PLAIN, record_count=1, base_timestamp=5)
    assert list(iterate_records(built, decompressed_max=99)) == [Record(0, 5, b"k", b"vv")]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count, records", BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_records_that_lie_are_refused(count: int, records: bytes, codec: Codec) -> None:
    built = raw_batch(compress(codec, records), record_count=count, attributes=codec)
    with pytest.raises(ProtocolError):
        list(iterate_records(built, decompressed_max=SIZE_MAX))


def test_the_error_names_the_record() -> None:
    built = raw_batch(PLAIN * 2 + PLAIN[:-1], record_count=3)
    with pytest.raises(ProtocolError) as refused:
        list(iterate_records(built, decompressed_max=SIZE_MAX))
    assert refused.value.path == "records[2]"


def test_records_are_refused_that_would_decompress_to_too_much() -> None:
    built = build_batch([Record(0, 0, None, bytes(10_000))], codec=Codec.ZSTD)
    with pytest.raises(DecompressedTooLarge):
        list(iterate_records(built, decompressed_max=10_000))


def test_a_batch_cut_short_has_no_records() -> None:
    with pytest.raises(TruncatedBatch):
        list(iterate_records(build_batch(new_records())[:-1], decompressed_max=SIZE_MAX))


def test_offsets_beyond_the_last_are_refused() -> None:
    built = raw_batch(PLAIN, record_count=1, base_offset=2**63 - 1)
    with pytest.raises(ProtocolError, match="base offset"):
        list(iterate_records(built, decompressed_max=SIZE_MAX))


def test_a_time_beyond_the_last_wraps_as_in_java() -> None:
    record = b"\x12\0\x02" + PLAIN[3:]  # one millisecond after the base
    built = raw_batch(record, record_count=1, base_timestamp=2**63 - 1)
    [read] = iterate_records(built, decompressed_max=SIZE_MAX)
    assert read.timestamp == -(2**63)


TIMES = [  # attributes before, kind of time asked for, attributes after
    (0, TimestampType.CREATE_TIME, 0),
    (8, TimestampType.CREATE_TIME, 0),
    (16 | 2, TimestampType.LOG_APPEND_TIME, 16 | 8 | 2),
    (64 | 32, TimestampType.CREATE_TIME, 64 | 32),
    (128 | 512 - 32768, TimestampType.LOG_APPEND_TIME, 8),
]


@pytest.mark.parametrize("before, timestamp_type, after", TIMES)
def test_a_new_max_timestamp_gets_a_new_crc(
    before: int, timestamp_type: TimestampType, after: int
) -> None:
    buf = bytearray(b"xx") + raw_batch(PLAIN, attributes=before) + b"x"
    header = read_header(buf, 2)
    set_max_timestamp(buf, 2, header, timestamp_type=timestamp_type, max_timestamp=99)
    changed_header = read_header(buf, 2)
    check_crc(buf, 2, changed_header)
    crc = changed_header.crc
    assert changed_header == header._replace(attributes=after, max_timestamp=99, crc=crc)


def test_a_max_timestamp_that_is_right_leaves_the_batch_as_it_is() -> None:
    built = raw_batch(PLAIN, attributes=512, max_timestamp=99, crc=1)
    before = bytes(built)
    create_time = TimestampType.CREATE_TIME
    header = read_header(built)
    set_max_timestamp(built, 0, header, timestamp_type=create_time, max_timestamp=99)
    assert built == before


CONTROL = [  # key, version, type
    ("00000000", 0, ControlRecordType.ABORT),
    ("00000001", 0, ControlRecordType.COMMIT),
    ("00000002", 0, ControlRecordType.LEADER_CHANGE),
    ("00000006", 0, ControlRecordType.KRAFT_VOTERS),
    ("00000007", 0, ControlRecordType.UNKNOWN),
    ("0005000100", 5, ControlRecordType.COMMIT),
]


@pytest.mark.parametrize("key, version, type", CONTROL)
def test_the_key_of_a_control_record(key: str, version: int, type: ControlRecordType) -> None:
    record = Record(0, 0, bytes.fromhex(key), b"")
    assert read_control(record) == ControlRecord(version, type)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_control_record_without_a_right_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        read_control(Record(0, 0, key, b""))


def test_a_marker_names_the_epoch_of_its_coordinator() -> None:
    assert read_coordinator_epoch(Record(0, 0, b"", bytes.fromhex("000000000005"))) == 5
    assert read_coordinator_epoch(Record(0, 0, b"", bytes.fromhex("000900000005ff"))) == 5


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\5"])
def test_a_marker_without_a_right_value_is_refused(value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        read_coordinator_epoch(Record(0, 0, b"", value))


def test_mutated_batches_are_read_or_refused() -> None:
    dice = Random(20261118)
    seeds = [build_batch(records, codec=codec) for records in RECORDS.values() for codec in Codec]
    refused = 0
    for _ in range(5000):
        mutated = bytearray(dice.choice(seeds))
        for _ in range(dice.choice((1, 1, 2, 5))):
            at = dice.randrange(min(len(mutated), dice.choice((61, 80, 1 << 20))))
            mutated[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        try:
            for position, header in iterate_batches(mutated):
                list(iterate_records(mutated, position, header, decompressed_max=100_000))
        except ProtocolError:
            refused += 1
    assert 1000 < refused < 4900
