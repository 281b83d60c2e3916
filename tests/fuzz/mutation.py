"""Mutations of bytes: what flips, cuts, splices and repeats, knowing nothing of their meaning."""

from collections.abc import Callable
from random import Random

from tests.dense_wire import uvarint

# Where readers go wrong: lengths and counts around their limits, in every width.
EXTREMES = (
    *(bytes([byte]) for byte in (0, 1, 2, 0x7E, 0x7F, 0x80, 0x81, 0xC0, 0xED, 0xFE, 0xFF)),
    *(number.to_bytes(2, "big") for number in (0, 1, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFF)),
    *(number.to_bytes(4, "big") for number in (0, 1, 0xFFFFFF, 2**31 - 1, 2**31, 2**32 - 1)),
    *(number.to_bytes(8, "big") for number in (2**63 - 1, 2**63, 2**64 - 1)),
    *(uvarint(number) for number in (127, 128, 32768, 32769, 2**31 - 1, 2**31, 2**31 + 1)),
    *(uvarint(number) for number in (2**32 - 1, 2**32, 2**63, 2**64 - 1)),
    *(bytes.fromhex(text) for text in ("8000", "818000", "8080808000", "eda080", "f4908080")),
)


def flip(data: bytearray, other: bytes, dice: Random) -> None:
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def cut(data: bytearray, other: bytes, dice: Random) -> None:
    del data[dice.randrange(len(data)) :]


def remove(data: bytearray, other: bytes, dice: Random) -> None:
    at = dice.randrange(len(data))
    del data[at : at + dice.choice((1, 1, 2, 4, 8, 30))]


def overwrite(data: bytearray, other: bytes, dice: Random) -> None:
    extreme = dice.choice(EXTREMES)
    at = dice.randrange(len(data))
    data[at : at + len(extreme)] = extreme


def insert(data: bytearray, other: bytes, dice: Random) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = (
        dice.choice(EXTREMES) if dice.random() < 0.7 else dice.randbytes(dice.randint(1, 9))
    )


def repeat(data: bytearray, other: bytes, dice: Random) -> None:
    at = dice.randrange(len(data))
    piece = data[at : at + dice.choice((1, 2, 3, 5, 10, 40))]
    data[at:at] = piece * dice.choice((1, 1, 2, 8, 64))


def splice(data: bytearray, other: bytes, dice: Random) -> None:
    if other:
        data[dice.randrange(len(data)) :] = other[dice.randrange(len(other)) :]


def move(data: bytearray, other: bytes, dice: Random) -> None:
    at, size = dice.randrange(len(data)), dice.choice((1, 2, 4, 8, 16))
    piece = data[at : at + size]
    del data[at : at + size]
    to = dice.randrange(len(data) + 1)
    data[to:to] = piece


MUTATIONS: tuple[Callable[[bytearray, bytes, Random], None], ...] = (
    *(flip, flip, cut, remove, overwrite, overwrite, overwrite),
    *(insert, insert, repeat, splice, move),
)


def mutated(data: bytes, other: bytes, dice: Random) -> bytes:
    """`data` with some mutations; `other` is what it may be spliced with."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        if not found:
            found += dice.randbytes(dice.randint(1, 8))
        dice.choice(MUTATIONS)(found, other, dice)
    return bytes(found)
