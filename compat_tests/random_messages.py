"""Random messages of our own classes, valid in a given version, and harm done to bytes.

Knows the schema, not the codecs: what it makes is judged by Kafka.
"""

import random
from typing import Any

from ottla.protocol.schema import ABSENT, PRIMITIVES, REQUIRED, Field, Schema, default_of

TEXTS = (
    "", "", "a", "topic", "é", "ß→\u00a0", "日本語", "\U0001f680", "a\U0001d11eb",
    '"\\/\b\t\r\n\0\x7f', "\u2028\uffff\ufffd", "x" * 127, "ä" * 64, "\U0001f680" * 40, "null",
)  # fmt: skip
DOUBLES = (0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 1e10, 123456789.125, 1.7976931348623157e308, 5e-324)
RANGES = {
    "Int8": (-(2**7), 2**7 - 1),
    "Int16": (-(2**15), 2**15 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "Uint16": (0, 2**16 - 1),
    "Uint32": (0, 2**32 - 1),
}


class RandomMessages:
    """A stream of messages that one seed decides."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._plain = False

    def message(self, schema: Schema, version: int) -> Any:
        self._plain = self._one(8)  # almost nothing is in it: fields are at their defaults
        return self._struct(schema, version, 0)

    def _struct(self, schema: Schema, version: int, depth: int) -> Any:
        values = {}
        for field in schema.fields:
            keep_default = field.tag is not None and self._one(3)
            if keep_default or not field.exists_in(version):
                values[field.name] = default_of(schema, field)
            else:
                values[field.name] = self._field(schema, field, version, depth)
        return schema.cls(**values)

    def _field(self, schema: Schema, field: Field, version: int, depth: int) -> Any:
        if (field.nullable_in(version) or field.default is ABSENT) and self._one(4):
            return None
        if field.default not in (REQUIRED, ABSENT) and self._one(6):
            return default_of(schema, field)
        if not field.array:
            return self._element(schema, field, version, depth)
        count = self._random.randrange(2 if self._plain or depth > 4 else 6 - depth)
        if depth == 0 and not self._plain and self._one(40):
            count = 200
        return [self._element(schema, field, version, depth) for _ in range(count)]

    def _element(self, schema: Schema, field: Field, version: int, depth: int) -> Any:
        if field.kind not in PRIMITIVES:
            return self._struct(schema.part(field), version, depth + 1)
        if field.kind in RANGES:
            return self._integer(*RANGES[field.kind])
        return getattr(self, f"_{field.kind.lower()}")()

    def _integer(self, least: int, most: int) -> int:
        if self._plain:
            return max(least, -self._random.randrange(2))
        if self._one(2):
            return self._random.randint(least, most)
        return self._random.choice((0, 1, 2, 127, least, most, max(least, -1), most // 2))

    def _bool(self) -> bool:
        return not self._plain and self._one(2)

    def _float64(self) -> float:
        return self._random.choice(DOUBLES)

    def _string(self) -> str:
        if self._plain:
            return ""
        if self._one(2000):
            return "x" * 32767
        return self._random.choice(TEXTS) + self._random.choice(TEXTS[:10])

    def _uuid(self) -> bytes:
        return bytes(16) if self._plain or self._one(4) else self._random.randbytes(16)

    def _bytes(self) -> bytes:
        size = 0 if self._plain else 200 if self._one(10) else self._random.randrange(20)
        return self._random.randbytes(size)

    def _records(self) -> bytes:
        return self._bytes()

    def _one(self, of: int) -> bool:
        return self._random.randrange(of) == 0


def mutated(data: bytes, source: random.Random) -> bytes:
    """The bytes after one to three harms: cut, grown, flipped, or given a telling value."""
    harmed = bytearray(data)
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(harmed) + 1)
        harm = source.randrange(6)
        if harm == 0:
            del harmed[at:]
        elif harm == 1:
            del harmed[at : at + source.randrange(1, 5)]
        elif harm == 2:
            harmed[at:at] = source.randbytes(source.randrange(1, 5))
        elif harm == 3:
            size = source.choice((1, 2, 4))
            harmed[at : at + size] = source.choice((b"\xff", b"\x7f", b"\x80", b"\x00")) * size
        elif at < len(harmed):
            harmed[at] = (
                source.randrange(256) if harm == 4 else harmed[at] ^ 1 << source.randrange(8)
            )
    return bytes(harmed)
