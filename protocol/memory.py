"""What a message costs in memory once it is read, estimated before anything is allocated.

A peer may make us allocate 16 bytes for each byte that it sends, and 1 MiB on top; arrays are
charged against that before they are read. Sizes are those of a 64-bit CPython.
"""

from __future__ import annotations

from ottla.protocol.schema import PRIMITIVES, Field, Schema
from ottla.protocol.source import SIZES

FREE_BYTES = 1 << 20
# However much is sent, one message never becomes more than this.
OBJECT_BYTES_MAX = 64 << 20
# Of the 16 bytes for each byte received one is the copy that is read from. The fast reader leaves
# four more to the characters of strings, which it does not count: one may take 4 bytes.
_FAST_FACTOR = 11
_EXACT_FACTOR = 15

_HEADER_BYTES = 32  # of an object with slots, with what the garbage collector puts before it
_LIST_BYTES = 64
_INT_BYTES = 32
TEXT_BYTES = 80  # a string, without its characters
BYTES_BYTES = 48
_RECORDS_BYTES = 208  # a memoryview
# A growing list is copied now and then, and has some room to spare.
_SLOT_BYTES = 18
# An unknown tagged field is skipped, but skipping takes time: it is charged as if it were kept.
UNKNOWN_TAG_BYTES = 256


def fast_allowance(size: int) -> int:
    return min(_FAST_FACTOR * size + FREE_BYTES, OBJECT_BYTES_MAX)


def exact_allowance(size: int) -> int:
    return min(_EXACT_FACTOR * size + FREE_BYTES, OBJECT_BYTES_MAX)


def element_bytes(schema: Schema, field: Field, version: int, *, exact: bool) -> int:
    """What one element of an array costs, without the elements of arrays within it.

    The exact reader counts strings and bytes one by one, so they are left out of its estimate.
    """
    return _SLOT_BYTES + _value_bytes(schema, field, version, exact=exact)


def _value_bytes(schema: Schema, field: Field, version: int, *, exact: bool) -> int:
    if field.kind not in PRIMITIVES:
        return _struct_bytes(schema.part(field), version, exact=exact)
    if field.kind in ("Bool", "Int8"):
        return 0
    if field.kind in ("String", "Bytes"):
        return 0 if exact else TEXT_BYTES
    if field.kind == "Records":
        return _RECORDS_BYTES
    return BYTES_BYTES if field.kind == "Uuid" else _INT_BYTES


def _struct_bytes(schema: Schema, version: int, *, exact: bool) -> int:
    total = _HEADER_BYTES + 8 * len(schema.fields)
    for field in schema.fields:
        if not field.exists_in(version) or field.tag is not None:
            continue
        total += _LIST_BYTES if field.array else _value_bytes(schema, field, version, exact=exact)
    return total


def least_size(schema: Schema, field: Field, version: int, *, flexible: bool) -> int:
    """The fewest bytes that one element of an array can take on the wire."""
    if field.kind in SIZES:
        return SIZES[field.kind]
    if field.kind in PRIMITIVES:
        return 1 if flexible and field.compact else 2
    part = schema.part(field)
    total = int(flexible)
    for inner in part.fields:
        if not inner.exists_in(version) or inner.tag is not None:
            continue
        if inner.array:
            total += 1 if flexible else 4
        elif inner.kind not in PRIMITIVES and inner.nullable_in(version):
            total += 1
        else:
            total += least_size(part, inner, version, flexible=flexible)
    return max(total, 1)
