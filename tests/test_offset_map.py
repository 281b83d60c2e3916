"""The last offset of each key, in memory of a fixed size."""

from random import Random
from sys import hash_info

import pytest

from ottla.storage import offset_map
from ottla.storage.offset_map import OffsetMap, second_hash


def test_a_key_has_its_last_offset() -> None:
    offsets = OffsetMap(10)
    assert offsets.put([(0, b"a"), (1, b"b"), (2, b"a"), (3, b"")]) == 4
    assert offsets.latest([b"a", b"b", b"", b"c", None]) == [2, 1, 3, -1, -1]
    assert offsets.count == 3
    offsets.close()


def test_it_does_what_a_dict_does() -> None:
    random = Random(1)
    offsets, expected = OffsetMap(3_000), dict[bytes, int]()
    for offset in range(10_000):
        key = random.randbytes(random.choice((0, 1, 2, 40)))
        if len(expected) == 3_000:
            break
        assert offsets.put([(offset, key)]) == 1
        expected[key] = offset
    assert offsets.count == len(expected)
    assert offsets.latest(expected) == list(expected.values())
    assert set(offsets.latest([random.randbytes(9) for _ in range(2_000)])) == {-1}
    offsets.close()


def test_a_full_map_takes_nothing_more_whatever_the_key() -> None:
    offsets = OffsetMap(3)
    entries = [(number, b"%d" % number) for number in range(5)]
    assert offsets.put(entries) == 3
    assert offsets.put([(9, b"0")]) == 0
    assert offsets.latest([b"0", b"2", b"3"]) == [0, 2, -1]
    offsets.close()


@pytest.mark.parametrize("key_count", [0, 1, 2, 7, 1_000])
def test_as_many_keys_fit_as_were_announced(key_count: int) -> None:
    offsets = OffsetMap(key_count)
    taken = offsets.put((number, b"%d" % number) for number in range(2_000))
    assert taken == max(1, key_count)
    assert offsets.size_bytes <= 24 * (key_count / 0.7 + 2)
    offsets.close()


@pytest.mark.parametrize("bytes_max", [0, 48, 24_000])
def test_memory_is_bounded_whatever_was_announced(bytes_max: int) -> None:
    offsets = OffsetMap(1 << 62, bytes_max=bytes_max)
    assert offsets.size_bytes == max(48, bytes_max)
    assert offsets.count_max == max(1, int(bytes_max / 24 * 0.7))
    offsets.close()


def test_every_place_is_used_when_keys_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_map, "hash", lambda key: 5, raising=False)
    offsets = OffsetMap(20)
    offsets.put([(number, b"%d" % number) for number in range(20)])
    assert offsets.latest([b"%d" % number for number in range(21)]) == [*range(20), -1]
    offsets.close()


def test_a_python_with_a_weaker_hash_gets_a_second_one() -> None:
    assert second_hash("siphash13", 64) is hash
    for algorithm, width in (("fnv", 64), ("siphash24", 32)):
        second = second_hash(algorithm, width)
        assert second(b"a") != second(b"b") and -(1 << 63) <= second(b"a") < 1 << 63
    assert hash_info.width == 64


def test_a_map_can_be_closed_twice() -> None:
    offsets = OffsetMap(1)
    offsets.close()
    offsets.close()
