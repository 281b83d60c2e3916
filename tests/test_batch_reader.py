"""The whole batches of a segment, in pieces of a megabyte."""

from collections.abc import Callable

import pytest

from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record
from ottla.storage import batch_reader
from ottla.storage.batch_reader import Batch, BatchReader
from ottla.storage.errors import CorruptFile
from ottla.storage.steps import at_once
from tests.log_rig import NOW, Rig, append


def read_all(reader: BatchReader) -> list[Batch]:
    found = []
    while (batch := at_once(reader.next())) is not None:
        found.append(batch)
    return found


@pytest.mark.parametrize("piece_bytes", [1, 61, 100, 1_000, 1 << 20])
def test_batches_come_whole_however_large_a_piece_is(
    piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reader, "PIECE_BYTES", piece_bytes)
    log = Rig().create()
    append(log, 1, 7, 2, 30, 1)
    segment = log.segments.first
    batches = read_all(BatchReader(segment))
    assert [each.header.base_offset for each in batches] == [0, 1, 8, 10, 40]
    whole = segment.file.read(0, segment.size)
    joined = b"".join(bytes(each.data[each.at : each.at + each.header.size]) for each in batches)
    assert joined == whole
    assert [
        each.header.base_offset for each in read_all(BatchReader(segment, batches[3].position))
    ] == [10, 40]


def test_a_batch_larger_than_a_piece_is_read_whole() -> None:
    log = Rig().create()
    large = build_batch([Record(0, NOW.wall_ms, b"k", bytes(1 << 20))])
    append(log, 1)
    log.append_as_follower(_at(large, 1), leader_epoch=0, now=NOW)
    append(log, 1)
    assert [each.header.base_offset for each in read_all(BatchReader(log.segments.first))] == [
        0,
        1,
        2,
    ]


def _at(batch: bytearray, offset: int) -> bytearray:
    batch[:8] = offset.to_bytes(8)
    batch[12:16] = bytes(4)
    return batch


DAMAGE: list[tuple[Callable[[bytearray], None], str]] = [
    (lambda data: data.__setitem__(16, 1), "magic"),
    (lambda data: data.__setitem__(17, data[17] ^ 1), "crc"),
    (lambda data: data.__setitem__(8, 1), "cut short"),
    (lambda data: data.__setitem__(slice(8, 12), bytes(4)), "batch length 0"),
    (lambda data: data.__setitem__(slice(0, 8), b"\xff" * 8), "does not follow"),
    (lambda data: data.__setitem__(slice(0, 8), (1 << 40).to_bytes(8)), "too far"),
    (lambda data: data.__setitem__(slice(23, 27), b"\xff" * 4), "does not follow"),
    (lambda data: data.__delitem__(slice(-1, None)), "cut short"),
    (lambda data: data.__delitem__(slice(50, None)), "50 bytes are left"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGE)
def test_a_batch_that_is_not_right_is_named(
    damage: Callable[[bytearray], None], reason: str
) -> None:
    log = Rig().create()
    append(log, 2)
    segment = log.segments.first
    data = bytearray(segment.file.read(0, segment.size))
    damage(data)
    segment.file.truncate(0)
    segment.file.append(data)
    segment.size = len(data)
    with pytest.raises(CorruptFile, match=f"position 0.*{reason}"):
        read_all(BatchReader(segment))


def test_a_batch_larger_than_any_can_be_is_not_taken_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_reader, "DECOMPRESSED_BYTES_MAX", 100)
    log = Rig().create()
    append(log, 5)
    with pytest.raises(CorruptFile, match="the batch is of"):
        read_all(BatchReader(log.segments.first))
