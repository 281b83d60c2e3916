from typing import Any

import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import (
    build_batch,
    build_control_batch,
    build_empty_batch,
    build_end_transaction_marker,
    control_key,
)
from ottla.protocol.records import (
    ControlRecordType,
    Record,
    check_crc,
    iterate_records,
    read_control,
    read_coordinator_epoch,
    read_header,
)
from tests.raw_batches import NOW_MS, SIZE_MAX

RECORDS = [
    Record(100, 1_700_000_000_000, b"a", b"1"),
    Record(101, 1_699_999_999_000, None, b"", (("h", b"x"), ("n", None))),
    Record(170, 1_700_000_000_500, b"", None),
]

# What Kafka 4.3.1's builder wrote for the same records and arguments.
WRITTEN_BY_KAFKA: dict[str, tuple[list[Record], dict[str, Any], str]] = {
    "plain": (
        RECORDS,
        {"base_offset": 100},
        "000000000000006400000052ffffffff02edf5430a0000000000460000018bcfe568000000018bcfe569"
        "f4ffffffff"
        "ffffffffffffffffffff000000031000000002610231001c00cf0f0201000402680278026e011000e807"
        "8c01000100",
    ),
    "other first and last offset": (
        RECORDS,
        {"base_offset": 98, "last_offset": 180, "leader_epoch": 7},
        "0000000000000062000000520000000702780de8850000000000520000018bcfe568000000018bcfe569"
        "f4ffffffff"
        "ffffffffffffffffffff000000031000000402610231001c00cf0f0601000402680278026e011000e807"
        "9001000100",
    ),
    "a transaction": (
        RECORDS,
        {
            "base_offset": 100,
            "producer_id": 9,
            "producer_epoch": 2,
            "base_sequence": 2**31 - 1,
            "transactional": True,
        },
        "000000000000006400000052ffffffff029f5842ec0010000000460000018bcfe568000000018bcfe569"
        "f400000000"
        "0000000900027fffffff000000031000000002610231001c00cf0f0201000402680278026e011000e807"
        "8c01000100",
    ),
    "log append time": (
        RECORDS,
        {"base_offset": 100, "log_append_time_ms": 1_700_000_009_999},
        "000000000000006400000052ffffffff02d9fd22550008000000460000018bcfe568000000018bcfe58f"
        "0fffffffff"
        "ffffffffffffffffffff000000031000000002610231001c00cf0f0201000402680278026e011000e807"
        "8c01000100",
    ),
    "delete horizon": (
        RECORDS,
        {"base_offset": 100, "delete_horizon_ms": 1_700_086_400_000},
        "000000000000006400000059ffffffff02489b7fa30040000000460000018bd50bc4000000018bcfe569"
        "f4ffffffff"
        "ffffffffffffffffffff000000031600ffefb2520002610231002000cfffb2520201000402680278026e"
        "01140097e8"
        "b2528c01000100",
    ),
    "no timestamp": (
        [Record(0, -1, b"k", b"v")],
        {},
        "00000000000000000000003affffffff02461639eb000000000000ffffffffffffffffffffffffffffff"
        "ffffffffff"
        "ffffffffffffffffffff0000000110000000026b027600",
    ),
}


@pytest.mark.parametrize(
    "records, arguments, expected", WRITTEN_BY_KAFKA.values(), ids=WRITTEN_BY_KAFKA
)
def test_a_batch_is_built_as_kafka_builds_it(
    records: list[Record], arguments: dict[str, Any], expected: str
) -> None:
    assert build_batch(records, **arguments).hex() == expected
    assert build_batch(iter(records), **arguments).hex() == expected


@pytest.mark.parametrize("codec", Codec)
def test_only_the_records_are_compressed(codec: Codec) -> None:
    built = build_batch(RECORDS, base_offset=100, codec=codec)
    plain = read_header(build_batch(RECORDS, base_offset=100))
    header = read_header(built)
    check_crc(built, 0, header)
    assert header.compression is codec
    assert header._replace(attributes=0, batch_length=0, crc=0) == plain._replace(
        batch_length=0, crc=0
    )
    assert list(iterate_records(built, decompressed_max=SIZE_MAX)) == RECORDS


def test_a_batch_without_records_is_built_otherwise() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        build_batch([])


WRONG_OFFSETS: list[tuple[list[int], dict[str, Any]]] = [
    ([0, 0], {}),
    ([1, 0], {}),
    ([0], {"base_offset": 1}),
    ([0, 5], {"last_offset": 4}),
    ([0, 2**31], {}),
    ([0], {"last_offset": 2**31}),
]


@pytest.mark.parametrize("offsets, arguments", WRONG_OFFSETS)
def test_offsets_that_do_not_fit_are_refused(offsets: list[int], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="offset"):
        build_batch([Record(offset, 0, None, None) for offset in offsets], **arguments)


def test_a_lone_surrogate_in_a_header_is_written_as_java_writes_it() -> None:
    built = build_batch([Record(0, 0, None, None, (("\ud800x", b""),))])
    [record] = iterate_records(built, decompressed_max=SIZE_MAX)
    assert record.headers == (("?x", b""),)


def test_a_commit_marker_is_built_as_kafka_builds_it() -> None:
    built = build_end_transaction_marker(
        ControlRecordType.COMMIT,
        coordinator_epoch=5,
        producer_id=9,
        producer_epoch=2,
        timestamp=NOW_MS,
        base_offset=77,
        leader_epoch=3,
    )
    assert built.hex() == (
        "000000000000004d0000004200000003022b1b272c0030000000000000018bcfe568000000018bcfe568"
        "0000000000"
        "000000090002ffffffff000000012000000008000000010c00000000000500"
    )
    [record] = iterate_records(built, decompressed_max=SIZE_MAX)
    assert read_control(record).type is ControlRecordType.COMMIT
    assert read_coordinator_epoch(record) == 5


def test_an_abort_marker_is_built_as_kafka_builds_it() -> None:
    built = build_end_transaction_marker(
        ControlRecordType.ABORT,
        coordinator_epoch=0,
        producer_id=9,
        producer_epoch=2,
        timestamp=NOW_MS,
    )
    assert built.hex() == (
        "000000000000000000000042ffffffff02820d08cf0030000000000000018bcfe568000000018bcfe568"
        "0000000000"
        "000000090002ffffffff000000012000000008000000000c00000000000000"
    )


def test_a_leader_change_is_built_as_kafka_builds_it() -> None:
    message = bytes.fromhex("00000000000102000000010002000000010000")
    built = build_control_batch(
        ControlRecordType.LEADER_CHANGE,
        message,
        timestamp=NOW_MS,
        base_offset=10,
        leader_epoch=4,
    )
    assert built.hex() == (
        "000000000000000a0000004f00000004021154eaf90020000000000000018bcfe568000000018bcfe568"
        "00ffffffff"
        "ffffffffffffffffffff000000013a0000000800000002260000000000010200000001000200000001000000"
    )


def test_only_a_commit_or_an_abort_ends_a_transaction() -> None:
    with pytest.raises(ValueError, match="LEADER_CHANGE"):
        build_end_transaction_marker(
            ControlRecordType.LEADER_CHANGE,
            coordinator_epoch=0,
            producer_id=9,
            producer_epoch=2,
            timestamp=NOW_MS,
        )


def test_an_unknown_control_record_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="unknown"):
        control_key(ControlRecordType.UNKNOWN)


def test_compaction_leaves_an_empty_batch_as_kafka_leaves_it() -> None:
    records = [Record(offset, NOW_MS + offset - 100, b"k", b"v") for offset in range(100, 105)]
    full = build_batch(
        records,
        base_offset=100,
        codec=Codec.LZ4,
        producer_id=9,
        producer_epoch=1,
        base_sequence=6,
        leader_epoch=3,
        transactional=True,
    )
    empty = build_empty_batch(read_header(full))
    assert empty.hex() == (
        "0000000000000064000000310000000302a311aaec001000000004ffffffffffffffff0000018bcfe568"
        "0400000000"
        "0000000900010000000600000000"
    )
    assert read_header(empty).last_sequence == read_header(full).last_sequence
