"""Walking through records: what is plain is seen fast, and nothing else passes for it."""

from random import Random

import pytest

from ottla.protocol.record_build import build_batch
from ottla.protocol.record_walk import Walked, walk, walk_plain
from ottla.protocol.records import (
    NO_TIMESTAMP,
    Record,
    iterate_records,
    read_header,
    uncompressed_records,
)
from ottla.protocol.wire import ProtocolError
from tests.raw_batches import NOW_MS, SIZE_MAX, changed, new_records


def test_a_walk_tells_what_the_header_does_not() -> None:
    records = [Record(n, time, None, b"") for n, time in enumerate((5, 2, 9))]
    batch = build_batch(records)
    data = uncompressed_records(batch, 0, read_header(batch), decompressed_max=SIZE_MAX)
    assert walk(data, read_header(batch)) == Walked(
        min_timestamp=2, max_timestamp=9, has_null_key=True, offsets_in_order=True
    )


def test_a_walk_knows_that_times_wrap_in_java() -> None:
    batch = build_batch([Record(0, 0, None, b""), Record(1, 1, None, b"")])
    header = read_header(changed(batch, base_timestamp=2**63 - 1))
    walked = walk(bytes(batch[61:]), header)
    assert (walked.min_timestamp, walked.max_timestamp) == (-(2**63), 2**63 - 1)


def test_a_walk_agrees_with_decoding_on_mutated_batches() -> None:
    dice = Random(20261118)
    seeds = [build_batch(new_records(5, headers=(("h", b"x"),))), build_batch(new_records(80))]
    read = 0
    for _ in range(4000):
        mutated = bytearray(dice.choice(seeds))
        for _ in range(dice.choice((1, 1, 2))):
            at = 61 + dice.randrange(min(len(mutated) - 61, dice.choice((15, 1 << 20))))
            mutated[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        header = read_header(mutated)
        try:
            records = list(iterate_records(mutated, 0, header, decompressed_max=SIZE_MAX))
        except ProtocolError:
            with pytest.raises(ProtocolError):
                walk(bytes(mutated[61:]), header)
            continue
        read += 1
        times = [record.timestamp for record in records]
        assert walk(bytes(mutated[61:]), header) == Walked(
            min(times),
            max(NO_TIMESTAMP, *times),
            any(record.key is None for record in records),
            [record.offset for record in records] == list(range(len(records))),
        )
    assert 500 < read < 3500


def batch_of(
    sizes: list[int], *, key: bytes | None = b"key", times: list[int] | None = None
) -> bytearray:
    times = times or list(range(len(sizes)))
    return build_batch(
        [Record(n, NOW_MS + times[n], key, bytes(size)) for n, size in enumerate(sizes)]
    )


PLAIN = {
    "one": batch_of([100]),
    "one small": batch_of([3]),
    "alike": batch_of([1000] * 16),
    "alike and small": batch_of([20] * 64),
    "alike, with empty values": batch_of([0] * 9),
    "as large as may be": batch_of([8170] * 7),
    "of many sizes": batch_of([70, 1000, 8000, 99]),
    "small, of many sizes": batch_of([1, 0, 40, 7, 7, 7, 9]),
    "without keys": batch_of([100, 200, 300], key=None),
    "without keys, alike": batch_of([100] * 8, key=None),
    "with empty keys": batch_of([100, 200], key=b""),
    "with the longest keys": batch_of([100, 200] * 5, key=bytes(63)),
    "all at once": batch_of([100] * 9, times=[0] * 9),
    "within 63 ms": batch_of([100, 101, 102], times=[0, 63, 63]),
}
NOT_PLAIN = {
    "too many": batch_of([10] * 65),
    "with headers": build_batch(new_records(8, headers=(("h", b"x"),))),
    "larger than 8 KiB": batch_of([8192]),
    "small ones and large ones": batch_of([10, 1000]),
    "null values": build_batch([Record(0, NOW_MS, b"k", None)]),
    "keys of two lengths": build_batch(
        [Record(0, NOW_MS, b"1", bytes(99)), Record(1, NOW_MS, b"22", bytes(99))]
    ),
    "keys of 64 bytes": batch_of([100, 101], key=bytes(64)),
    "times that fall": batch_of([100, 101, 102], times=[0, 9, 8]),
    "times below the first": batch_of([100] * 7, times=[9, 8, 7, 6, 5, 4, 3]),
    "after 64 ms": batch_of([100] * 7, times=[0, 0, 0, 0, 0, 0, 64]),
}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("batch", PLAIN.values(), ids=PLAIN)
def test_plain_records_are_seen_to_be_plain(batch: bytearray, kind: type) -> None:
    header = read_header(batch)
    walked = walk(bytes(batch[61:]), header)
    plain = walk_plain(kind(batch), 61, header.record_count)
    assert plain is not None
    assert header.base_timestamp + plain.highest_delta == walked.max_timestamp
    assert plain.has_null_key is walked.has_null_key


@pytest.mark.parametrize("batch", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_other_records_are_left_to_the_proper_walk(batch: bytearray) -> None:
    assert walk_plain(batch, 61, read_header(batch).record_count) is None


def test_nothing_is_plain_that_a_walk_refuses_or_sees_otherwise() -> None:
    dice = Random(20261121)
    plain_count = 0
    for _ in range(40_000):
        mutated = bytearray(dice.choice(list(PLAIN.values())))
        for _ in range(dice.choice((0, 1, 1, 2))):
            at = 61 + dice.randrange(min(len(mutated) - 61, dice.choice((8, 120, 1 << 20))))
            mutated[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        if dice.random() < 0.2:
            del mutated[61 + dice.randrange(len(mutated) - 61) :]
        if dice.random() < 0.1:
            mutated += bytes(dice.randrange(1, 9))
        header = read_header(mutated)
        count = max(1, header.record_count + dice.choice((0, 0, 0, 0, -1, 1)))
        header = header._replace(record_count=count)
        plain = walk_plain(mutated, 61, header.record_count)
        if plain is not None:
            plain_count += 1
            walked = walk(bytes(mutated[61:]), header)
            assert walked.max_timestamp == header.base_timestamp + plain.highest_delta
            assert walked.min_timestamp >= header.base_timestamp
            assert walked.has_null_key is plain.has_null_key
            assert walked.offsets_in_order
    assert plain_count > 5000
