"""Bytes of a message as its schema has them, with something odd here and there.

A mutation of bytes seldom hits a count without breaking all behind it; what is written here is
right up to the odd place and right after it: a null where none may be, a count that lies, tags
that are unknown, come again, in another order, or belong to another version.
"""

from random import Random

from ottla.protocol.schema import PRIMITIVES, Field, Schema
from ottla.protocol.source import SIZES
from tests.dense_wire import uvarint

ODD_LENGTHS = (-1, -2, 0, 1, 127, 128, 32767, 32768, 65535, 2**31 - 2, 2**31 - 1, -(2**31))
ODD_TEXTS = (
    *(b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf0\x9f\xa6", b"\0", b"\0", b"x" * 300),
    *(b"x" * 32767, b"x" * 32768),
)
TEXTS = (b"", b"a", b"ab", b"topic", "\u00e9".encode(), "\U0001f980".encode(), b"x" * 127)
NUMBERS = (0, 0xFF, 0x7F, 0x80)


class OddWriter:
    """Writes one message; each place is odd with the given probability."""

    def __init__(self, schema: Schema, version: int, dice: Random, oddity: float) -> None:
        self.schema = schema
        self.version = version
        self.flexible = schema.is_flexible(version)
        self.dice = dice
        self.oddity = oddity

    def message(self) -> bytes:
        return self.struct(self.schema)

    def odd(self) -> bool:
        return self.dice.random() < self.oddity

    def struct(self, schema: Schema) -> bytes:
        out = bytearray()
        for field in schema.fields:
            if field.tag is None and field.exists_in(self.version):
                out += self.field(schema, field)
        if self.flexible:
            out += self.tags(schema)
        return bytes(out)

    def tags(self, schema: Schema) -> bytes:
        """Known tags, or some of them; where it is odd in no order, twice, and unknown ones."""
        known = [field for field in schema.fields if field.tag is not None]
        sent = [field for field in known if self.dice.random() < 0.5]
        odd = self.odd()
        if not odd:
            sent = [field for field in sent if field.exists_in(self.version)]
        pieces = [self.tag(schema, field) for field in sent]
        if odd:
            unknown = uvarint(self.dice.choice((9, 100, 1000, 2**32 - 1)))
            content = self.dice.randbytes(self.dice.choice((0, 1, 5)))
            pieces.append(unknown + uvarint(len(content)) + content)
            pieces += self.dice.choices(pieces, k=self.dice.choice((0, 1, 5, 200)))
            self.dice.shuffle(pieces)
        count = len(pieces)
        if self.odd():
            count = self.dice.choice((0, 1, count + 1, 2**31 - 1, 2**31, 2**32 - 1))
        return uvarint(count) + b"".join(pieces)

    def tag(self, schema: Schema, field: Field) -> bytes:
        if field.kind not in PRIMITIVES and not field.array and field.nullable_in(self.version):
            is_null = self.dice.random() < 0.3
            content = b"\0" if is_null else b"\1" + self.struct(schema.part(field))
        else:
            content = self.field(schema, field)
        size = len(content)
        if self.odd():
            size = self.dice.choice((0, size + 1, 2**31 - 1, 2**32 - 1))
        return uvarint(field.tag or 0) + uvarint(size) + content

    def field(self, schema: Schema, field: Field) -> bytes:
        if field.array:
            return self.array(schema, field)
        if field.kind in PRIMITIVES:
            return self.value(field)
        if field.nullable_in(self.version) and field.tag is None:
            sign: bytes = self.dice.choice((b"\xff", b"\1", b"\1", b"\0", b"\x80", b"\x7f"))
            return sign if sign >= b"\x80" else sign + self.struct(schema.part(field))
        return self.struct(schema.part(field))

    def array(self, schema: Schema, field: Field) -> bytes:
        if field.nullable_in(self.version) and self.dice.random() < 0.2:
            return self.length(field, -1, 4)
        count = self.dice.choice((0, 1, 1, 1, 2, 2, 3, 20))
        if field.kind in PRIMITIVES:
            plain = Field(kind=field.kind, compact=field.compact)
            elements = [self.value(plain) for _ in range(count)]
        else:
            elements = [self.struct(schema.part(field)) for _ in range(min(count, 3))]
        return self.length(field, len(elements), 4) + b"".join(elements)

    def value(self, field: Field) -> bytes:
        if field.kind in SIZES:
            size = SIZES[field.kind]
            if self.odd():
                return bytes([self.dice.choice(NUMBERS)]) * size
            return self.dice.randbytes(size)
        size = 2 if field.kind == "String" else 4
        if field.nullable_in(self.version) and self.dice.random() < 0.2:
            return self.length(field, -1, size)
        text = self.dice.choice(ODD_TEXTS if self.odd() else TEXTS)
        return self.length(field, len(text), size) + text

    def length(self, field: Field, length: int, size: int) -> bytes:
        if self.odd():
            length = self.dice.choice((*ODD_LENGTHS, length + 1, length - 1))
        if not (self.flexible and field.compact):
            return (length % (1 << 8 * size)).to_bytes(size, "big")
        written = uvarint((length + 1) % 2**32)
        if self.odd():  # padded, as no writer does it and every reader takes it
            written = bytes([*written[:-1], written[-1] | 0x80, 0])
        return written
