"""Random values of every message, and where each pair of message and version is found.

Knows schemas, but neither readers nor writers: what it makes is what they must agree on.
"""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from ottla.protocol.apis import message_class, message_names
from ottla.protocol.schema import (
    ABSENT,
    PRIMITIVES,
    Field,
    Schema,
    default_of,
    empty,
    schema_of,
)

RANGES = {
    "Int8": (-(2**7), 2**7 - 1),
    "Int16": (-(2**15), 2**15 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "Uint16": (0, 2**16 - 1),
    "Uint32": (0, 2**32 - 1),
}
TEXTS = ("", "a", "topic", "é", "日本", "\U0001f980", "\0", "x" * 126, "x" * 127, "é" * 64)
FLOATS = (0.0, -0.0, 1.5, -2.25, 1e300, float("inf"))
# Most lists and strings are short; some are long enough for a length of two bytes.
COUNTS = (0, 0, 1, 1, 1, 2, 3)
LONG_COUNTS = (15, 16, 126, 127, 128, 300)


@cache
def schema_named(name: str) -> Schema:
    return schema_of(message_class(name))


def versions(name: str) -> range:
    first, last = schema_named(name).versions
    return range(first, last + 1)


NAMES = message_names()
PAIRS = [(name, version) for name in NAMES for version in versions(name)]


def parts_of(schema: Schema) -> Iterator[Schema]:
    """A message and the parts in it, at every depth."""
    yield schema
    for field in schema.fields:
        if field.kind not in PRIMITIVES:
            yield from parts_of(schema.part(field))


def random_message(name: str, version: int, dice: Random) -> Any:
    return random_struct(schema_named(name), version, dice)


def random_struct(schema: Schema, version: int, dice: Random) -> Any:
    values = {}
    for field in schema.fields:
        if not field.exists_in(version) or (field.tag is not None and dice.random() < 0.4):
            values[field.name] = default_of(schema, field)
        else:
            values[field.name] = random_field(schema, field, version, dice)
    return schema.cls(**values)


def random_field(schema: Schema, field: Field, version: int, dice: Random) -> Any:
    if field.nullable_in(version) and dice.random() < 0.25:
        return None
    if field.array:
        count = dice.choice(LONG_COUNTS if _may_be_long(field, dice) else COUNTS)
        return [random_element(schema, field, version, dice) for _ in range(count)]
    value = random_element(schema, field, version, dice)
    if field.default is ABSENT and value == empty(schema.part(field)):
        return None  # such a struct is never sent
    return value


def _may_be_long(field: Field, dice: Random) -> bool:
    return field.kind in PRIMITIVES and dice.random() < 0.1


def random_element(schema: Schema, field: Field, version: int, dice: Random) -> Any:
    kind = field.kind
    if kind not in PRIMITIVES:
        return random_struct(schema.part(field), version, dice)
    if kind in RANGES:
        return random_integer(*RANGES[kind], dice)
    if kind == "Bool":
        return dice.random() < 0.5
    if kind == "Float64":
        return dice.choice(FLOATS)
    if kind == "String":
        return dice.choice(TEXTS)
    if kind == "Uuid":
        return dice.randbytes(16)
    return dice.randbytes(dice.choice((0, 1, 20, 126, 127, 128)))


def random_integer(least: int, most: int, dice: Random) -> int:
    if dice.random() < 0.5:
        return dice.choice((least, most, 0, 1, least // 2, most // 3))
    return dice.randint(least, most)
