"""What the records of Kafka's own topics say: offsets, groups, transactions, cluster metadata.

Their keys and values are messages of the protocol. A coordinator's key begins with the record's
type, its value with the version of the message; in the metadata log the value alone tells both.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ottla.protocol.jsonform import to_json
from ottla.protocol.schema import decode_prefix, schema_of
from ottla.protocol.wire import ProtocolError, read_uvarint
from ottla.storage.format import Fields

METADATA_TOPIC = "__cluster_metadata"
FAMILIES = {
    METADATA_TOPIC: ("metadata_records",),
    "__consumer_offsets": (
        "group_records",
        "consumer_group_records",
        "share_group_records",
        "streams_group_records",
    ),
    "__transaction_state": ("transaction_records",),
    "__share_group_state": ("share_records",),
}

METADATA_FRAME_VERSION = 1
# As a message, and then as JSON, a value takes many times its bytes.
VALUE_SIZE_MAX = 16 << 20


class MessageDecoder:
    """Reads the records of one topic; knows the messages that belong there by their numbers."""

    def __init__(self, topic: str) -> None:
        self._is_metadata = topic == METADATA_TOPIC
        self._keys: dict[int, type] = {}
        self._values: dict[int, type] = {}
        for message in _messages(topic):
            number = schema_of(message).key
            is_key = message.__name__.endswith("Key")
            if number is not None:
                (self._keys if is_key else self._values)[number] = message

    def decode(self, key: bytes | None, value: bytes | None) -> Fields:
        """{"key", "value"} as messages, each {"message", "version", "json"} or None.

        ProtocolError where the bytes are no such message; an unknown type is among the reasons.
        """
        for content in (key, value):
            if content is not None and len(content) > VALUE_SIZE_MAX:
                raise ProtocolError(f"{len(content)} bytes are too many to decode")
        if self._is_metadata:
            return {"key": None, "value": None if value is None else self._metadata(value)}
        if key is None:
            raise ProtocolError("a record without a key")
        number, content = _int16(key)
        return {
            "key": _message(self._keys, number, 0, content),
            "value": None if value is None else _message(self._values, number, *_int16(value)),
        }

    def _metadata(self, value: bytes) -> Fields:
        frame_version, position = read_uvarint(value, 0)
        if frame_version != METADATA_FRAME_VERSION:
            raise ProtocolError(f"frame version {frame_version} is unknown")
        number, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
        return _message(self._values, number, version, value[position:])


def decoder_for(topic: str | None) -> MessageDecoder | None:
    """A decoder for one of Kafka's own topics; None for a topic of users."""
    return MessageDecoder(topic) if topic in FAMILIES else None


def _messages(topic: str) -> Iterator[type]:
    for family in FAMILIES[topic]:
        module = import_module(f"ottla.protocol.messages.{family}")
        for content in vars(module).values():
            if isinstance(content, type) and hasattr(content, "__schema__"):
                yield content


def _int16(content: bytes) -> tuple[int, bytes]:
    if len(content) < 2:
        raise ProtocolError("too short for a version")
    return int.from_bytes(content[:2], signed=True), content[2:]


def _message(messages: dict[int, type], number: int, version: int, content: bytes) -> Fields:
    if number not in messages:
        raise ProtocolError(f"type {number} is unknown")
    message: Any
    message, size = decode_prefix(messages[number], version, content)
    if left := len(content) - size:
        raise ProtocolError(f"{left} bytes follow the message")
    name = messages[number].__name__
    return {"message": name, "version": version, "json": to_json(message, version)}
