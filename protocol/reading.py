"""What compiled readers call on the rare paths of a message: long lengths, and tagged fields.

`left` is what the message may still take of memory, in bytes.
"""

from __future__ import annotations

from ottla.protocol import memory
from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint

STRING_SIZE_MAX = 32767


def read_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """A compact length of two bytes or more; what is odd about it is the exact reader's matter."""
    value, pos = read_uvarint(buf, pos)
    if not 0 < value <= 0x7FFF_FFFF:
        raise ProtocolError("an odd length")
    return value, pos


def read_string_length(buf: Buffer, pos: int) -> tuple[int, int]:
    value, pos = read_length(buf, pos)
    if value > STRING_SIZE_MAX + 1:
        raise ProtocolError("a long string")
    return value, pos


def skip_tag(buf: Buffer, pos: int, end: int) -> int:
    """Skip the size and the bytes of an unknown tagged field."""
    size, pos = read_uvarint(buf, pos)
    if size > end - pos:
        raise ProtocolError(f"{size} bytes announced, {end - pos} left")
    return pos + size


def skip_tags(count: int, buf: Buffer, pos: int, end: int, left: int) -> tuple[int, int]:
    """Skip all tagged fields of a struct that knows none; their count stands before `pos`."""
    if count > 127:
        count, pos = read_tag_count(buf, pos - 1)
    left = charge_tags(count, left)
    for _ in range(count):
        _, pos = read_uvarint(buf, pos)
        pos = skip_tag(buf, pos, end)
    return pos, left


def charge_tags(count: int, left: int) -> int:
    """Charge tagged fields that are not kept: unknown ones, and those that come again."""
    left -= count * memory.UNKNOWN_TAG_BYTES
    if left < 0:
        raise ProtocolError(f"{count} unknown tagged fields are too many")
    return left


def charge(cost: int, left: int) -> int:
    if left < cost:
        raise ProtocolError("this would take too much memory")
    return left - cost


def read_tag_count(buf: Buffer, pos: int) -> tuple[int, int]:
    count, pos = read_uvarint(buf, pos)
    # Kafka counts with 32 bits: a count with the top bit set is negative, so there are none.
    return (count if count <= 0x7FFF_FFFF else 0), pos
