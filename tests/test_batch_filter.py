"""Batches with records taken out, beside what our own builder makes of those that are left."""

from random import Random
from typing import Any

import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import (
    INT64_MAX,
    INT64_MIN,
    Headers,
    Record,
    read_header,
    uncompressed_records,
)
from ottla.protocol.wire import ProtocolError
from ottla.storage.batch_filter import BatchRebuild, RecordScanner, Scanned

HEADERS: tuple[Headers, ...] = ((), (("a", b"1"),), (("b", None), ("é", b"x" * 200)))
TIMES = (-1, 0, 5, 1 << 20, 1_700_000_000_000, INT64_MAX, INT64_MIN)


def scan(data: bytes | bytearray, count: int = 1 << 20) -> tuple[bytes, list[Scanned]]:
    header = read_header(data)
    records = uncompressed_records(data, 0, header, decompressed_max=1 << 24)
    scanner = RecordScanner(records, header)
    found: list[Scanned] = []
    while more := scanner.next(count):
        found += more
    return records, found


def some_records(random: Random, base_offset: int) -> list[Record]:
    records: list[Record] = []
    offset = base_offset
    for _ in range(random.randrange(1, 12)):
        offset += random.choice((0, 1, 70, 20_000)) if records else 0
        key = random.choice((None, b"", random.randbytes(random.choice((3, 300)))))
        value = random.choice((None, b"", random.randbytes(random.choice((3, 300, 20_000)))))
        records.append(Record(offset, random.choice(TIMES), key, value, random.choice(HEADERS)))
        offset += 1
    return records


@pytest.mark.parametrize("seed", range(150))
def test_what_is_left_is_a_batch_of_what_was_kept(seed: int) -> None:
    random = Random(seed)
    base_offset = random.choice((0, 1 << 40))
    records = some_records(random, base_offset)
    last_offset = records[-1].offset + random.choice((0, 0, 9))
    append_time_ms = random.choice((None, None, 1_700_000_000_500))
    how: dict[str, Any] = {
        "base_offset": base_offset,
        "last_offset": last_offset,
        "log_append_time_ms": append_time_ms,
        "producer_id": 9,
        "producer_epoch": 2,
        "base_sequence": 5,
        "leader_epoch": 3,
        "transactional": random.randrange(2) == 0,
    }
    old_horizon = random.choice((None, 1_700_000_000_000))
    codec = random.choice(list(Codec))
    batch = build_batch(records, codec=codec, delete_horizon_ms=old_horizon, **how)
    data, scanned = scan(batch, random.choice((1, 3, 99)))
    assert [each[:3] for each in scanned] == [
        (each.offset, each.key, each.value is not None) for each in records
    ]
    kept = sorted(random.sample(range(len(records)), random.randrange(1, len(records) + 1)))
    horizon = random.choice((old_horizon, 1_700_000_009_000))
    rebuild = BatchRebuild(data, read_header(batch), horizon)
    rebuild.add([scanned[index] for index in kept])
    expected = [records[index] for index in kept]
    if append_time_ms is not None:
        expected = [each._replace(timestamp=append_time_ms) for each in expected]
    assert rebuild.finish() == build_batch(
        expected,
        codec=codec,
        delete_horizon_ms=horizon,
        **how,
    )


def test_bits_without_a_meaning_are_lost() -> None:
    batch = build_batch([Record(0, 1, b"k", b"v")])
    data, scanned = scan(batch)
    header = read_header(batch)._replace(attributes=0x180)
    rebuild = BatchRebuild(data, header, None)
    rebuild.add(scanned)
    assert read_header(rebuild.finish()).attributes == 0


BAD = [  # where, the byte there, what is said; a record of size 14 begins at 0
    (0, 0x0F, "size is negative"),
    (0, 0x7E, "above what is left"),
    (0, 0x00, "longer than its size"),
    (4, 0x7E, "is"),
]


@pytest.mark.parametrize(("at", "byte", "reason"), BAD)
def test_records_that_lie_about_their_sizes_are_refused(at: int, byte: int, reason: str) -> None:
    batch = build_batch([Record(0, 1, b"k", b"v")])
    data = bytearray(batch[61:])
    data[at] = byte
    scanner = RecordScanner(bytes(data), read_header(batch))
    with pytest.raises(ProtocolError, match=reason) as caught:
        scanner.next(9)
    assert "records[0]" in str(caught.value)


@pytest.mark.parametrize("count", [1, 3])
def test_a_count_that_lies_is_refused(count: int) -> None:
    batch = build_batch([Record(0, 1, b"k", b"v"), Record(1, 1, b"k", b"v")])
    header = read_header(batch)._replace(record_count=count)
    scanner = RecordScanner(bytes(batch[61:]), header)
    with pytest.raises(ProtocolError, match=r"left behind|cut short"):
        while scanner.next(9):
            pass


@pytest.mark.parametrize("seed", range(40))
def test_damaged_records_are_read_or_refused(seed: int) -> None:
    random = Random(seed)
    batch = build_batch(some_records(random, 0))
    header = read_header(batch)
    for _ in range(50):
        data = bytearray(batch[61:])
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
        scanner = RecordScanner(bytes(data), header)
        rebuild = BatchRebuild(bytes(data), header, 77)
        try:
            while records := scanner.next(5):
                rebuild.add(records)
        except ProtocolError:
            continue
        rebuild.finish()
