"""Bytes that become as much memory as they can: what a hostile peer would send.

Written by hand from the schema, without our writers, so that also what no writer writes can stand
in them: unknown tags, defaults that were sent, lengths that lie.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ottla.protocol.schema import PRIMITIVES, Field, Schema
from ottla.protocol.source import SIZES

TEXTS = (
    b"",
    b"a",
    b"ab",
    b"abc",
    b"abcd",
    "\u0100".encode(),
    "\u65e5".encode(),
    "\U0001f980".encode(),
    # One wide character makes all others as wide.
    b"a" * 60 + "\U0001f980".encode(),
    b"\xff" * 8,
)
UNKNOWN_TAGS = (b"\x00", b"\x01\x7e\x00", b"\x02\x7e\x00\x7f\x01\x00")

Path = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Style:
    """How elements are filled."""

    text: bytes = b""
    number: int = 0  # what each byte of a number is
    null: bool = True  # what may be null is null
    inner: int = 0  # elements in arrays that are not on the path
    unknown: bytes = b"\x00"  # the tagged fields of each struct that knows none
    known_tags: bool = False  # known tags are sent, whether they hold a default or not


def random_style(dice: Random) -> Style:
    return Style(
        text=dice.choice(TEXTS),
        number=dice.choice((0, 0x7F, 0x80)),
        null=dice.random() < 0.5,
        inner=dice.choice((0, 0, 1, 2)),
        unknown=dice.choice(UNKNOWN_TAGS) if dice.random() < 0.3 else b"\x00",
        known_tags=dice.random() < 0.4,
    )


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def array_paths(schema: Schema, version: int) -> Iterator[Path]:
    """The way to each array of a message: the fields that lead there, the array last."""
    for field in schema.fields:
        if field.exists_in(version):
            if field.array:
                yield (field,)
            if field.kind not in PRIMITIVES:
                for path in array_paths(schema.part(field), version):
                    yield (field, *path)


def blown_up(schema: Schema, version: int, path: Path, count: int, style: Style) -> bytes:
    """A message whose array at the end of `path` holds `count` elements, the others few or none."""
    return _Writer(schema.is_flexible(version), version, style, path, count).struct(schema, 0)


class _Writer:
    def __init__(self, flexible: bool, version: int, style: Style, path: Path, count: int) -> None:
        self.flexible = flexible
        self.version = version
        self.style = style
        self.path = path
        self.count = count

    def struct(self, schema: Schema, depth: int) -> bytes:
        """`depth` is how much of the path lies behind, -1 beside it."""
        out, tags = bytearray(), {}
        for field in schema.fields:
            if not field.exists_in(self.version):
                continue
            on_path = 0 <= depth < len(self.path) and self.path[depth] is field
            below = depth + 1 if on_path else -1
            if field.tag is None:
                out += self.field(schema, field, below)
            elif on_path or self.style.known_tags:
                tags[field.tag] = self.field(schema, field, below)
        if self.flexible:
            out += self.tags(tags)
        return bytes(out)

    def tags(self, tags: dict[int, bytes]) -> bytes:
        if not tags:
            return self.style.unknown
        pieces = (
            uvarint(tag) + uvarint(len(content)) + content for tag, content in sorted(tags.items())
        )
        return uvarint(len(tags)) + b"".join(pieces)

    def field(self, schema: Schema, field: Field, depth: int) -> bytes:
        null = self.style.null and depth < 0 and field.nullable_in(self.version)
        if field.array:
            return self.array(schema, field, depth, null=null)
        if field.kind in PRIMITIVES:
            return self.value(field, null=null)
        if not field.nullable_in(self.version):
            return self.struct(schema.part(field), depth)
        if null:
            return b"\x00" if field.tag is not None else b"\xff"
        return b"\x01" + self.struct(schema.part(field), depth)

    def array(self, schema: Schema, field: Field, depth: int, *, null: bool) -> bytes:
        if null:
            return self.length(field, -1, 4)
        count = self.style.inner
        if depth >= 0:
            count = self.count if depth == len(self.path) else 1
        out = self.length(field, count, 4)
        if field.kind in PRIMITIVES:
            element = self.value(Field(kind=field.kind, compact=field.compact), null=False)
        else:
            element = self.struct(schema.part(field), depth)
        return out + element * count

    def value(self, field: Field, *, null: bool) -> bytes:
        if field.kind in SIZES:
            return bytes([self.style.number]) * SIZES[field.kind]
        size = 2 if field.kind == "String" else 4
        if null:
            return self.length(field, -1, size)
        return self.length(field, len(self.style.text), size) + self.style.text

    def length(self, field: Field, length: int, size: int) -> bytes:
        if self.flexible and field.compact:
            return uvarint(length + 1)
        return length.to_bytes(size, "big", signed=True)
