"""Records of the metadata log: a message, its version, and the frame around both.

Knows no image and no log. A record's value is the frame's version (1), the record's key and
version, each a varint, and then the message, as Kafka's MetadataRecordSerde writes it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.protocol.messages import metadata_records
from ottla.protocol.schema import decode, encode, schema_of
from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint

FRAME_VERSION = 1


class Versioned(NamedTuple):
    """A message of the metadata log, and the version in which it is written."""

    message: Any
    version: int = 0


def _classes() -> dict[int, type]:
    """The classes of records by their keys; parts of records have none."""
    found = {}
    for value in vars(metadata_records).values():
        if isinstance(value, type) and hasattr(value, "__schema__"):
            key = schema_of(value).key
            if key is not None:
                found[key] = value
    return found


CLASSES = _classes()
_KEYS = {cls: key for key, cls in CLASSES.items()}


def encode_record(record: Versioned) -> bytes:
    """The value under which a record stands in the log."""
    key = _KEYS[type(record.message)]
    # Keys and versions are below 128: a varint is one byte.
    return bytes((FRAME_VERSION, key, record.version)) + encode(record.message, record.version)


def decode_record(value: Buffer) -> Versioned:
    frame, position = read_uvarint(value, 0)
    if frame != FRAME_VERSION:
        raise ProtocolError(f"a metadata record with frame version {frame}, which is unknown")
    key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    cls = CLASSES.get(key)
    if cls is None:
        raise ProtocolError(f"a metadata record with key {key}, which is unknown")
    return Versioned(decode(cls, version, memoryview(value)[position:]), version)
