"""Java's `.properties`: `name=value` lines with escapes.

Knows no name. Java reads these files as Latin-1 with `\\uXXXX` for the rest, also those that Kafka
wrote in UTF-8; so what is written here is ASCII, which both read alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ottla.storage.errors import CorruptFile

_SPACE = " \t\f"
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|u|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {
    character: f"\\{character}" for character in "=:#!"
}
_NAME_END = re.compile(r"(?<!\\)(?:\\\\)*[ \t\f=:]")


def parse_properties(path: str, data: bytes) -> dict[str, str]:
    """Of a name that is there twice, the last value, as in Java."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(data.decode("latin-1")):
        found = _NAME_END.search(line)
        name_end = found.end() - 1 if found else len(line)
        value_start = name_end
        while value_start < len(line) and line[value_start] in _SPACE:
            value_start += 1
        if value_start < len(line) and line[value_start] in "=:":
            value_start += 1
        name, value = line[:name_end], line[value_start:].lstrip(_SPACE)
        where = f"line {number}"
        properties[_unescaped(path, where, name)] = _unescaped(path, where, value)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that mean something, those that end with a backslash joined to their next."""
    joined, start = "", 0
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        line = line.lstrip(_SPACE)
        if not joined:
            if not line or line[0] in "#!":
                continue
            start = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined += line[:-1]
            continue
        yield start, joined + line
        joined = ""
    if joined:
        yield start, joined


def _unescaped(path: str, where: str, text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] is None:
            raise CorruptFile(path, where=where, reason=r"\u without four hexadecimal digits")
        return _LETTERS.get(found[2], found[2])

    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(plain, text)
    # What Java keeps as two halves of a character becomes one.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def properties_text(properties: Mapping[str, str]) -> bytes:
    lines = (f"{_escaped(name, ' ')}={_escaped(value)}\n" for name, value in properties.items())
    return "".join(lines).encode("ascii")


def _escaped(text: str, spaces: str = "") -> str:
    escaped = []
    for at, character in enumerate(text):
        if character == " " and (spaces or at == 0):
            escaped.append("\\ ")
        elif character in _ESCAPED:
            escaped.append(_ESCAPED[character])
        elif " " <= character <= "~":
            escaped.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            escaped += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(escaped)
