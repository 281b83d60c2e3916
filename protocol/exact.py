"""What the exact reader calls: every check, and memory counted value by value.

The fast reader refuses without a word; this is where the words are. Positions and sizes are bytes.
"""

from __future__ import annotations

import re

from ottla.protocol import memory
from ottla.protocol.reading import STRING_SIZE_MAX
from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint


def read_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """A compact length less one, as Kafka's 32-bit arithmetic has it: negative is null."""
    value, pos = read_uvarint(buf, pos)
    return (value - 1 if value <= 0x8000_0000 else -1), pos


def check_length(length: int, pos: int, end: int) -> None:
    if length > end - pos:
        raise ProtocolError(f"{length} bytes announced, {end - pos} left")


def check_string(length: int, pos: int, end: int) -> None:
    if length > STRING_SIZE_MAX:
        raise ProtocolError(f"a string of {length} bytes; {STRING_SIZE_MAX} are allowed")
    check_length(length, pos, end)


def check_array(count: int, least: int, pos: int, end: int, left: int) -> None:
    if count * least > end - pos:
        raise ProtocolError(f"{count} elements announced, {end - pos} bytes left")
    if left < 0:
        raise ProtocolError(f"{count} elements would take too much memory")


def read_bytes(raw: Buffer, left: int) -> tuple[bytes, int]:
    left -= memory.BYTES_BYTES + len(raw)
    if left < 0:
        raise ProtocolError("the bytes would take too much memory")
    return bytes(raw), left


def read_text(raw: Buffer, left: int, known: dict[bytes, str]) -> tuple[str, int]:
    """Decode as Java does, charge what it costs; the shortest strings are kept only once."""
    raw = bytes(raw)
    text = known.get(raw)
    if text is not None:
        return text, left
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = decode_as_java(raw)
    if text.isascii():
        left -= memory.ASCII_BYTES + len(text)
    else:
        left -= memory.TEXT_BYTES + 4 * len(text)
    if len(raw) <= 3 and len(known) < 4096:
        left -= memory.KNOWN_TEXT_BYTES
        known[raw] = text
    if left < 0:
        raise ProtocolError("the strings would take too much memory")
    return text, left


def decode_as_java(raw: bytes) -> str:
    """UTF-8 with U+FFFD for what is not; an encoded surrogate becomes one of them, as in Java."""
    # Python sees three faults, or two where the third byte is missing, and Java one.
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", raw).decode("utf-8", "replace")
