"""The last offset of each key, in a table of a size that is fixed beforehand: 24 bytes a place.

Knows no log. A key is known by two of Python's own hashes, of itself and of itself behind a byte:
126 bits of SipHash under a secret of this process, so that nobody can make two keys meet. The table
is open to 7 tenths; its memory goes back to the system with `close`.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable
from sys import hash_info

BYTES_MAX = 128 << 20
_PLACE_BYTES = 24
_FILL_MAX = 0.7


def _keyed(key: bytes) -> int:
    """A second hash, for a Python whose own one is too short or is no SipHash."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(key, digest_size=8).digest(), signed=True)


def second_hash(algorithm: str, width: int) -> Callable[[bytes], int]:
    return hash if algorithm.startswith("siphash") and width == 64 else _keyed


_hash = second_hash(hash_info.algorithm, hash_info.width)


class OffsetMap:
    """Takes up to `key_count_max` keys, fewer if they do not fit into `bytes_max`."""

    __slots__ = ("_memory", "_places", "_size", "count", "count_max")

    def __init__(self, key_count_max: int, *, bytes_max: int = BYTES_MAX) -> None:
        place_count = min(int(key_count_max / _FILL_MAX) + 2, max(2, bytes_max // _PLACE_BYTES))
        self.count = 0
        self.count_max = max(1, min(key_count_max, int(place_count * _FILL_MAX)))
        self._memory = mmap.mmap(-1, place_count * _PLACE_BYTES)
        self._places = memoryview(self._memory).cast("q")
        self._size = 3 * place_count

    @property
    def size_bytes(self) -> int:
        return self._size * 8

    # Both loops run for every record of a log; a call for each would double their time.

    def put(self, entries: Iterable[tuple[int, bytes]]) -> int:
        """Enters offsets of keys, later ones last; returns how many of them there was room for."""
        places, size, taken, new = self._places, self._size, 0, self.count
        for offset, key in entries:
            if new >= self.count_max:
                break
            first, second = hash(key), _hash(b"\0" + key)
            at = first * 3 % size
            while places[at]:
                if places[at + 1] == first and places[at + 2] == second:
                    break
                at += 3
                if at == size:
                    at = 0
            else:
                places[at + 1] = first
                places[at + 2] = second
                new += 1
            places[at] = offset + 1
            taken += 1
        self.count = new
        return taken

    def latest(self, keys: Iterable[bytes | None]) -> list[int]:
        """The last offset of each key; -1 for one that is not there, and for none."""
        places, size, found = self._places, self._size, []
        for key in keys:
            if key is None:
                found.append(-1)
                continue
            first = hash(key)
            at = first * 3 % size
            while offset := places[at]:
                if places[at + 1] == first and places[at + 2] == _hash(b"\0" + key):
                    break
                at += 3
                if at == size:
                    at = 0
            found.append(offset - 1)
        return found

    def close(self) -> None:
        self._places.release()
        self._memory.close()
