"""Variable-length integers, and the one error for bytes that cannot be read.

Knows bytes only. Readers take a buffer and a position and return the value and the position after
it; writers append to a bytearray. Every refusal is a ProtocolError: no IndexError leaves here.
"""

Buffer = bytes | bytearray | memoryview

_UINT32 = 0xFFFF_FFFF
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF


class ProtocolError(Exception):
    """Bytes that Kafka's protocol does not allow; `path` names the field where it was seen."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint; bits above the 32nd are dropped, as Kafka drops them."""
    value = shift = 0
    try:
        while True:
            byte = buf[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _UINT32, pos
            shift += 7
            if shift > 28:
                raise ProtocolError("varint is longer than 5 bytes")
    except IndexError:
        raise ProtocolError("varint is cut short") from None


def read_uvarlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read an unsigned 64-bit varint; bits above the 64th are dropped, as Kafka drops them."""
    value = shift = 0
    try:
        while True:
            byte = buf[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _UINT64, pos
            shift += 7
            if shift > 63:
                raise ProtocolError("varint is longer than 10 bytes")
    except IndexError:
        raise ProtocolError("varint is cut short") from None


def finish_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """The unsigned varint whose first byte, just before `pos`, said that more follow."""
    more = buf[pos]
    if more > 127:
        return read_uvarint(buf, pos - 1)
    return buf[pos - 1] - 128 + (more << 7), pos + 1


def finish_uvarlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """The same for 64 bits. Like `finish_uvarint` it leaves an IndexError to the caller."""
    more = buf[pos]
    if more > 127:
        return read_uvarlong(buf, pos - 1)
    return buf[pos - 1] - 128 + (more << 7), pos + 1


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read a zigzag 32-bit varint."""
    raw, pos = read_uvarint(buf, pos)
    return (raw >> 1) ^ -(raw & 1), pos


def read_varlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read a zigzag 64-bit varint."""
    raw, pos = read_uvarlong(buf, pos)
    return (raw >> 1) ^ -(raw & 1), pos


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned varint of 32 bits (64 bits are written the same way)."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    """Append a zigzag varint of a signed 32-bit value."""
    if 0 <= value < 64:
        out.append(value << 1)
        return
    write_uvarint(out, (value << 1 ^ value >> 31) & _UINT32)


def write_varlong(out: bytearray, value: int) -> None:
    """Append a zigzag varint of a signed 64-bit value."""
    write_uvarint(out, (value << 1 ^ value >> 63) & _UINT64)
