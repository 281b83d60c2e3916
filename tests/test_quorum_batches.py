"""Batches of the metadata log: what is built is read again, and damage is told."""

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.raft_records import KRaftVersionRecord, LeaderChangeMessage
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record
from ottla.replication.quorum_batches import (
    Batch,
    control_batch,
    metadata_batch,
    metadata_batches,
    read_batches,
)
from ottla.storage.errors import CorruptFile
from ottla.storage.memory_files import MemoryFiles
from tests.quorum_rig import topic

VERSION = KRaftVersionRecord(version=0, k_raft_version=1)
LEADER = LeaderChangeMessage(version=0, leader_id=1, voters=[], granting_voters=[])


def of_metadata(*names: str, base_offset: int = 0) -> bytes:
    records = [topic(name) for name in names]
    return bytes(metadata_batch(records, base_offset=base_offset, epoch=3, timestamp_ms=5))


def of_control(base_offset: int = 0) -> bytes:
    messages = [LEADER, VERSION]
    return bytes(control_batch(messages, base_offset=base_offset, epoch=3, timestamp_ms=5))


def read(data: bytes) -> list[Batch]:
    files = MemoryFiles()
    file = files.create("file")
    file.append(data)
    return list(read_batches(file, file.size))


def test_what_is_built_is_read_again() -> None:
    first, second = read(of_metadata("a", "b", base_offset=7) + of_control(9))
    assert list(first.metadata()) == [topic("a"), topic("b")]
    assert (first.header.base_offset, first.header.last_offset) == (7, 8)
    assert first.header.partition_leader_epoch == 3
    assert second.header.is_control
    assert second.controls() == [VERSION], "who led is told by epochs"


def test_batches_larger_than_a_piece_are_read_whole() -> None:
    names = [f"{number:0200d}" for number in range(2_000)]
    data = of_metadata("before") + of_metadata(*names) + of_metadata("after")
    assert [len(list(batch.metadata())) for batch in read(data)] == [1, 2_000, 1]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (of_metadata("a")[:-1], "cut short"),
        (of_metadata("a")[:30], "cut short"),
        (of_metadata("a")[:-1] + b"?", "crc"),
        (of_metadata("a")[:16] + b"\x01" + of_metadata("a")[17:], "magic"),
    ],
)
def test_damage_is_told_with_its_place(data: bytes, reason: str) -> None:
    whole = of_metadata("whole")
    with pytest.raises(CorruptFile, match=f"position {len(whole)}.*{reason}"):
        read(whole + data)


@pytest.mark.parametrize("value", [None, b"", b"\x07", b"\x01\x7f\x00", b"\x01\x02\x00\xff"])
def test_a_record_that_is_none_is_told_with_its_offset(value: bytes | None) -> None:
    data = build_batch([Record(4, 0, None, value)], base_offset=4)
    (batch,) = read(bytes(data))
    with pytest.raises(CorruptFile, match="offset 4"):
        list(batch.metadata())


def test_a_file_that_ends_too_early_is_told() -> None:
    files = MemoryFiles()
    file = files.create("file")
    file.append(of_metadata("a"))
    with pytest.raises(CorruptFile, match="cut short"):
        list(read_batches(file, file.size + 100))


def test_too_many_bytes_are_no_batch() -> None:
    with pytest.raises(KafkaError) as refused:
        of_metadata(*["x" * 30_000] * 300)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize(
    ("count", "is_atomic", "sizes"),
    [
        (0, True, []),
        (3, True, [3]),
        (25_000, True, [25_000]),
        (25_000, False, [10_000, 10_000, 5_000]),
        (10_000, False, [10_000]),
    ],
)
def test_what_must_stay_together_does(count: int, is_atomic: bool, sizes: list[int]) -> None:
    records = [topic("a")] * count
    parts = metadata_batches(records, is_atomic=is_atomic)
    assert [len(part) for part in parts] == sizes
