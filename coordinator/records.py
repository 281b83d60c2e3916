"""Records of `__consumer_offsets` for classic groups and committed offsets: bytes and back.

Knows no group. A key begins with a number that says what it is, a value with its version, as Kafka
writes them.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

from ottla.coordinator.outcome import Record
from ottla.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.protocol.schema import decode, encode
from ottla.protocol.wire import Buffer, ProtocolError

_PREFIX = Struct(">h")

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2
# The versions that Kafka 4.3 writes.
OFFSET_COMMIT_VERSION = 4
GROUP_METADATA_VERSION = 3
# The only one that says when the commit expires.
_EXPIRING_VERSION = 1
_KEYS: dict[int, tuple[type[Any], type[Any]]] = {
    LEGACY_OFFSET_COMMIT: (OffsetCommitKey, OffsetCommitValue),
    OFFSET_COMMIT: (OffsetCommitKey, OffsetCommitValue),
    GROUP_METADATA: (GroupMetadataKey, GroupMetadataValue),
}


class Decoded(NamedTuple):
    key: Any
    value: Any
    """None for a tombstone."""


def group_record(key: str, value: GroupMetadataValue | None) -> Record:
    return _record(GROUP_METADATA, GroupMetadataKey(group=key), value, GROUP_METADATA_VERSION)


def offset_record(
    group: str, topic: str, partition: int, value: OffsetCommitValue | None
) -> Record:
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    version = OFFSET_COMMIT_VERSION
    if value is not None and value.expire_timestamp >= 0:
        version = _EXPIRING_VERSION
    return _record(OFFSET_COMMIT, key, value, version)


def _record(kind: int, key: Any, value: Any, version: int) -> Record:
    body = None if value is None else _PREFIX.pack(version) + encode(value, version)
    return Record(_PREFIX.pack(kind) + encode(key, 0), body)


def decoded(key: Buffer, value: Buffer | None) -> Decoded | None:
    """None for a kind of record that is not known here: it is left alone."""
    if len(key) < _PREFIX.size:
        raise ProtocolError("a key without a kind")
    classes = _KEYS.get(_PREFIX.unpack_from(key)[0])
    if classes is None:
        return None
    key_class, value_class = classes
    found = decode(key_class, 0, key[_PREFIX.size :])
    if value is None:
        return Decoded(found, None)
    if len(value) < _PREFIX.size:
        raise ProtocolError("a value without a version")
    (version,) = _PREFIX.unpack_from(value)
    return Decoded(found, decode(value_class, version, value[_PREFIX.size :]))
