"""The specification of indexes and producer snapshots, byte by byte, and what it refuses."""

from collections.abc import Callable

import pytest
from crc32c import crc32c

from ottla.storage.format import Fields, FormatError
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


def test_index_entries_are_relative_on_disk_and_absolute_here() -> None:
    data = bytes.fromhex("00000003 00001000  0000000a 00002000")
    entries = [{"offset": 103, "position": 4096}, {"offset": 110, "position": 8192}]
    assert parse_offset_index(data, 100) == {"entries": entries, "preallocated_bytes": 0}
    assert build_offset_index(entries, 100) == data
    data = bytes.fromhex("0000018bcfe56800 00000003  0000018bcfe56801 00000003")
    entries = [
        {"timestamp": 1_700_000_000_000, "offset": 103},
        {"timestamp": 1_700_000_000_001, "offset": 103},
    ]
    assert parse_time_index(data, 100) == {"entries": entries, "preallocated_bytes": 0}
    assert build_time_index(entries, 100) == data


def test_the_zeros_of_a_preallocated_index_are_no_entries() -> None:
    entries = [{"offset": 1, "position": 1 << 24}]  # its last three bytes are zeros, too
    data = build_offset_index(entries, 0, 10_485_752)
    assert len(data) == 10_485_760
    assert parse_offset_index(data, 0) == {"entries": entries, "preallocated_bytes": 10_485_752}
    assert parse_time_index(bytes(10_485_756), 0)["entries"] == []


def test_a_time_index_of_one_zero_entry_means_it() -> None:
    entries = [{"timestamp": 0, "offset": 7}]
    assert parse_time_index(bytes(12), 7) == {"entries": entries, "preallocated_bytes": 0}


BROKEN_INDEXES = [  # parser, bytes, position, words of the reason
    (parse_offset_index, "00000001 00000010 0000", 8, "2 bytes are left"),
    (parse_offset_index, "00000001 00000010 00000001 00000020", 8, "offset 1 comes after 1"),
    (parse_offset_index, "00000002 00000010 00000001 00000020", 8, "offset 1 comes after 2"),
    (parse_offset_index, "00000001 00000010 00000002 00000010", 8, "position 16 comes after 16"),
    (parse_offset_index, "ffffffff 00000010", 0, "offset -1"),
    (parse_offset_index, "0000000000000000 00000001 00000010", 0, "position 0"),
    (parse_time_index, "0000000000000005 00000001 00", 12, "1 bytes are left"),
    (
        parse_time_index,
        "0000000000000005 00000001 0000000000000005 00000002",
        12,
        "timestamp 5 comes after 5",
    ),
    (
        parse_time_index,
        "0000000000000005 00000002 0000000000000006 00000001",
        12,
        "offset 1 comes after 2",
    ),
]


@pytest.mark.parametrize(("parse", "content", "position", "words"), BROKEN_INDEXES)
def test_a_broken_index_is_refused_with_position_and_reason(
    parse: Callable[[bytes, int], Fields], content: str, position: int, words: str
) -> None:
    with pytest.raises(FormatError) as refusal:
        parse(bytes.fromhex(content), 0)
    assert refusal.value.position == position
    assert words in refusal.value.reason


ABORTED = {"producer_id": 7, "first_offset": 3, "last_offset": 9, "last_stable_offset": 10}


def test_an_aborted_transaction_takes_34_bytes() -> None:
    data = build_transaction_index([ABORTED])
    assert data.hex() == "0000" + "".join(f"{value:016x}" for value in ABORTED.values())
    assert parse_transaction_index(data) == [{"version": 0, **ABORTED}]


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (build_transaction_index([ABORTED, ABORTED]), 34),
        (build_transaction_index([ABORTED])[:-1], 0),
        (b"\0\1" + build_transaction_index([ABORTED])[2:], 0),
    ],
    ids=["not rising", "cut", "version 1"],
)
def test_a_broken_transaction_index_is_refused(data: bytes, position: int) -> None:
    with pytest.raises(FormatError) as refusal:
        parse_transaction_index(data)
    assert refusal.value.position == position


PRODUCER = {
    "producer_id": 1,
    "epoch": 2,
    "last_sequence": 3,
    "last_offset": 4,
    "offset_delta": 5,
    "timestamp": 6,
    "coordinator_epoch": 7,
    "current_txn_first_offset": -1,
}


def test_a_snapshot_without_producers_takes_10_bytes() -> None:
    assert len(build_snapshot([])) == 10
    assert parse_snapshot(build_snapshot([])) == []


def test_a_flipped_bit_of_a_snapshot_is_found() -> None:
    whole = build_snapshot([PRODUCER, PRODUCER])
    assert parse_snapshot(whole) == [PRODUCER, PRODUCER]
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 4
        with pytest.raises(FormatError):
            parse_snapshot(bytes(flipped))


def test_a_snapshot_whose_count_does_not_fit_its_size_is_refused() -> None:
    for count in (0, 2, -1):
        covered = count.to_bytes(4, signed=True) + build_snapshot([PRODUCER])[10:]
        with pytest.raises(FormatError, match="entries do not make 56 bytes"):
            parse_snapshot(b"\0\1" + crc32c(covered).to_bytes(4) + covered)


def test_a_snapshot_that_is_cut_or_too_long_is_refused() -> None:
    whole = build_snapshot([PRODUCER])
    for data in [whole[:size] for size in range(len(whole))] + [whole + b"\0"]:
        with pytest.raises(FormatError):
            parse_snapshot(data)
