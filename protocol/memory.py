"""What a message costs in memory once it is read, estimated before anything is allocated.

A peer may make us allocate 16 bytes for each byte that it sends, and 1 MiB on top; arrays are
charged against that before they are read. Sizes are those of a 64-bit CPython.
"""

from __future__ import annotations

from ottla.protocol.schema import EMPTY, PRIMITIVES, Field, Schema
from ottla.protocol.source import SIZES

FREE_BYTES = 1 << 20
# However much is sent, one message never becomes more than this.
_OBJECT_BYTES_MAX = 64 << 20
# A message beyond this size is large because of the records or other bytes in it, not because of
# their number. It may become fewer objects, so that a hostile one is refused before it held up
# everybody else; the exact reader takes several times as long as the fast one.
_LARGE_MESSAGE_BYTES = 16 << 20
_LARGE_FAST_BYTES_MAX = 6 << 20
_LARGE_EXACT_BYTES_MAX = 256 << 10
# Of the 16 bytes for each byte received one is the copy that is read from. The fast reader leaves
# four more to the characters of strings, which it does not count: one may take 4 bytes.
_FAST_FACTOR = 11
_EXACT_FACTOR = 15

_HEADER_BYTES = 32  # of an object with slots, with what the garbage collector puts before it
_LIST_BYTES = 80
_EMPTY_LIST_BYTES = 56
# Integers of up to 60 bits take as much as one another, down to the -128 of an Int8.
_NUMBER_BYTES = {"Bool": 0, "Int64": 36, "Uuid": 50}
_INT_BYTES = 32
_RECORDS_BYTES = 200  # a memoryview
# Without the characters: any string; one that is ASCII; bytes.
TEXT_BYTES = 80
ASCII_BYTES = 50
BYTES_BYTES = 34
# A short string is found again by its bytes, which are kept for that.
KNOWN_TEXT_BYTES = 112
# Lists grow by an eighth; a list of numbers is unpacked into a tuple first.
_SLOT_BYTES = 10
_NUMBER_SLOT_BYTES = 18
# An unknown tagged field is skipped, but skipping takes time: it is charged as if it were kept.
UNKNOWN_TAG_BYTES = 256


# In a message that the fast reader takes (decoder.FAST_MAX), arrays with elements of up to so many
# bytes for each byte sent are not charged; what the denser ones may take is what then remains.
SMALL_FACTOR = 26
# The same for messages with records, of which the fast reader takes only the smaller ones.
SMALLER_FACTOR = 60
SMALL_BYTES = 256 << 10


def large_allowance(size: int) -> int:
    most = _LARGE_FAST_BYTES_MAX if size > _LARGE_MESSAGE_BYTES else _OBJECT_BYTES_MAX
    return min(_FAST_FACTOR * size + FREE_BYTES, most)


def exact_allowance(size: int) -> int:
    most = _LARGE_EXACT_BYTES_MAX if size > _LARGE_MESSAGE_BYTES else _OBJECT_BYTES_MAX
    return min(_EXACT_FACTOR * size + FREE_BYTES, most)


def element_bytes(schema: Schema, field: Field, version: int, *, exact: bool) -> int:
    """What one element of an array costs, without the elements of arrays within it.

    The exact reader counts strings and bytes one by one, so they are left out of its estimate.
    """
    slot = _NUMBER_SLOT_BYTES if field.kind in SIZES else _SLOT_BYTES
    return slot + _value_bytes(schema, field, version, exact=exact)


def tagged_bytes(schema: Schema, field: Field, version: int, *, exact: bool) -> int:
    """What a tagged field costs that was sent, without the elements of its array."""
    return _LIST_BYTES if field.array else _value_bytes(schema, field, version, exact=exact)


def _value_bytes(schema: Schema, field: Field, version: int, *, exact: bool) -> int:
    if field.kind not in PRIMITIVES:
        return _struct_bytes(schema.part(field), version, exact=exact)
    if field.kind in ("String", "Bytes"):
        return 0 if exact else TEXT_BYTES
    if field.kind == "Records":
        return _RECORDS_BYTES
    return _NUMBER_BYTES.get(field.kind, _INT_BYTES)


def _struct_bytes(schema: Schema, version: int, *, exact: bool) -> int:
    total = _HEADER_BYTES + 8 * len(schema.fields)
    for field in schema.fields:
        if field.exists_in(version) and field.tag is None:
            if field.array:
                total += _LIST_BYTES
            else:
                total += _value_bytes(schema, field, version, exact=exact)
        elif field.default is EMPTY:
            total += _struct_bytes(schema.part(field), version, exact=exact)
        elif isinstance(field.default, list):
            total += _EMPTY_LIST_BYTES
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
