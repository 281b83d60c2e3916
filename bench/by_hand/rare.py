"""What the codecs written by hand leave their straight line for: long, null and tagged.

Knows no message. Lengths and counts are compact: one more than they say, zero for null. Readers
take the position of the length and return the value and the position behind it.

Elsewhere a string that is cut short goes unnoticed at first, for slices do not complain. But every
struct ends in the count of its tags, and reading that fails then: nothing cut short gets through.
"""

from struct import Struct

from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint, write_uvarint

STRING_BYTES_MAX = 32767
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
ZERO = bytes(16)

# A dataclass's own constructor with keyword arguments takes three times as long.
new = object.__new__

# Lengths and counts of one byte.
ONE_BYTE = tuple(bytes([number]) for number in range(128))

# Replicas of a partition, partitions of a member: so many are usual.
UNPACK_INTS = tuple(Struct(f">{count}i").unpack_from for count in range(33))
# With the count in front, which is one more than it says.
PACK_INTS = tuple(Struct(f">B{count}i").pack for count in range(33))


def read_string(data: Buffer, at: int) -> tuple[str, int]:
    value, end = read_string_or_null(data, at)
    if value is None:
        raise ProtocolError("a string is null")
    return value, end


def read_string_or_null(data: Buffer, at: int) -> tuple[str | None, int]:
    size, at = read_uvarint(data, at)
    if size == 0:
        return None, at
    if size - 1 > STRING_BYTES_MAX:
        raise ProtocolError(f"a string of {size - 1} bytes")
    end = at + size - 1
    if end > len(data):
        raise ProtocolError("a string is cut short")
    return str(data[at:end], "utf-8", "replace"), end


def read_size(data: Buffer, at: int) -> tuple[int, int]:
    """A length or count as it is sent, which may not stand for null."""
    size, at = read_size_or_null(data, at)
    if size == 0:
        raise ProtocolError("a list, or bytes, is null")
    return size, at


def read_size_or_null(data: Buffer, at: int) -> tuple[int, int]:
    size, at = read_uvarint(data, at)
    if size - 1 > len(data) - at:
        raise ProtocolError(f"{size - 1} bytes or elements in {len(data) - at} bytes")
    return size, at


def read_ints(data: Buffer, at: int) -> tuple[list[int], int]:
    count, at = read_size(data, at)
    end = at + 4 * (count - 1)
    if end > len(data):
        raise ProtocolError(f"{count - 1} numbers in {len(data) - at} bytes")
    return list(Struct(f">{count - 1}i").unpack_from(data, at)), end


def read_tag_count(data: Buffer, at: int) -> tuple[int, int]:
    """How many tags there are; a count that is negative as Java has it stands for none."""
    count, at = read_uvarint(data, at)
    return (0 if count > INT32_MAX else count), at


def read_tag(data: Buffer, at: int) -> tuple[int, int, int]:
    """A tag, the size that its value is said to have, and the position of the value.

    Kafka goes by that size only where it does not know the tag.
    """
    tag, at = read_uvarint(data, at)
    size, at = read_uvarint(data, at)
    return tag, size, at


def skip_value(data: Buffer, at: int, size: int) -> int:
    if at + size > len(data):
        raise ProtocolError("a tagged field is cut short")
    return at + size


def skip_tags(data: Buffer, at: int) -> int:
    """The position behind a section of tags that nobody knows."""
    count, at = read_tag_count(data, at)
    for _ in range(count):
        _, size, at = read_tag(data, at)
        at = skip_value(data, at, size)
    return at


def long_size(size: int) -> bytes:
    """A length or count as it is sent."""
    out = bytearray()
    write_uvarint(out, size)
    return bytes(out)


def string_size(size: int) -> bytes:
    """The length of a string as it is sent."""
    if size - 1 > STRING_BYTES_MAX:
        raise ProtocolError(f"a string of {size - 1} bytes")
    return long_size(size)


def write_string(out: bytearray, value: str) -> None:
    text = value.encode("utf-8", "replace")
    out += string_size(len(text) + 1)
    out += text


def write_string_or_null(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_string(out, value)


def write_ints(out: bytearray, numbers: list[int]) -> None:
    count = len(numbers)
    out += long_size(count + 1)
    out += Struct(f">{count}i").pack(*numbers)


def tagged(fields: list[tuple[int, bytes | bytearray]]) -> bytearray:
    """A section of tags out of (tag, value) in the order of the tags."""
    out = bytearray()
    write_uvarint(out, len(fields))
    for tag, value in fields:
        write_uvarint(out, tag)
        write_uvarint(out, len(value))
        out += value
    return out
