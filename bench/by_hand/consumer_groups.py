"""The ConsumerGroupHeartbeat request of version 1 by hand."""

# What is straight-line has a branch for each string and each list.
# ruff: noqa: C901

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from ottla.protocol.wire import ProtocolError

from .rare import (
    ONE_BYTE,
    PACK_INTS,
    UNPACK_INTS,
    long_size,
    new,
    read_ints,
    read_size,
    read_string,
    read_string_or_null,
    skip_tags,
    string_size,
    write_ints,
)

_EPOCH_SIZE = Struct(">iB")
_EPOCH = Struct(">i")
_TIMEOUT_COUNT = Struct(">iB")
_ID_COUNT = Struct(">16sB")

_read_epoch_size = _EPOCH_SIZE.unpack_from
_read_timeout_count = _TIMEOUT_COUNT.unpack_from
_read_id_count = _ID_COUNT.unpack_from


def read_heartbeat_v1(data: bytes) -> ConsumerGroupHeartbeatRequest:
    try:
        message = new(ConsumerGroupHeartbeatRequest)
        end = data[0]
        if 0 < end < 128:
            message.group_id = data[1:end].decode("utf-8", "replace")
        else:
            message.group_id, end = read_string(data, 0)
        size = data[end]
        if 0 < size < 128:
            at = end + size
            message.member_id = data[end + 1 : at].decode("utf-8", "replace")
        else:
            message.member_id, at = read_string(data, end)
        message.member_epoch, size = _read_epoch_size(data, at)
        at += 4
        if size == 0:
            message.instance_id = None
            at += 1
        else:
            message.instance_id, at = read_string_or_null(data, at)
        if data[at] == 0:
            message.rack_id = None
            at += 1
        else:
            message.rack_id, at = read_string_or_null(data, at)
        message.rebalance_timeout_ms, count = _read_timeout_count(data, at)
        at += 5
        if count == 0:
            message.subscribed_topic_names = None
        else:
            message.subscribed_topic_names, at = _read_names(data, at - 1)
        if data[at] == 0:
            message.subscribed_topic_regex = None
            at += 1
        else:
            message.subscribed_topic_regex, at = read_string_or_null(data, at)
        if data[at] == 0:
            message.server_assignor = None
            at += 1
        else:
            message.server_assignor, at = read_string_or_null(data, at)
        if data[at] == 0:
            message.topic_partitions = None
            at += 1
        else:
            message.topic_partitions, at = _read_topic_partitions(data, at)
        if data[at]:
            skip_tags(data, at)
        return message
    except (IndexError, StructError):
        raise ProtocolError("ConsumerGroupHeartbeatRequest is cut short") from None


def _read_names(data: bytes, at: int) -> tuple[list[str], int]:
    count, at = read_size(data, at)
    names = []
    for _ in range(count - 1):
        size = data[at]
        if 0 < size < 128:
            end = at + size
            names.append(data[at + 1 : end].decode("utf-8", "replace"))
            at = end
        else:
            name, at = read_string(data, at)
            names.append(name)
    return names, at


def _read_topic_partitions(
    data: bytes, at: int
) -> tuple[list[ConsumerGroupHeartbeatRequestTopicPartitions], int]:
    topic_count, at = read_size(data, at)
    topics = []
    for _ in range(topic_count - 1):
        topic = new(ConsumerGroupHeartbeatRequestTopicPartitions)
        topic.topic_id, count = _read_id_count(data, at)
        if 0 < count < 34:
            topic.partitions = list(UNPACK_INTS[count - 1](data, at + 17))
            at += 13 + 4 * count
        else:
            topic.partitions, at = read_ints(data, at + 16)
        at = skip_tags(data, at) if data[at] else at + 1
        topics.append(topic)
    return topics, at


def write_heartbeat_v1(message: ConsumerGroupHeartbeatRequest) -> bytes:
    group_id = message.group_id.encode("utf-8", "replace")
    group_size = len(group_id) + 1
    member_id = message.member_id.encode("utf-8", "replace")
    member_size = len(member_id) + 1
    pieces = [
        ONE_BYTE[group_size] if group_size < 128 else string_size(group_size),
        group_id,
        ONE_BYTE[member_size] if member_size < 128 else string_size(member_size),
        member_id,
        _EPOCH.pack(message.member_epoch),
        b"\0" if message.instance_id is None else _string(message.instance_id),
        b"\0" if message.rack_id is None else _string(message.rack_id),
        _EPOCH.pack(message.rebalance_timeout_ms),
    ]
    names = message.subscribed_topic_names
    if names is None:
        pieces.append(b"\0")
    else:
        pieces.append(long_size(len(names) + 1))
        for name in names:
            pieces.append(_string(name))
    pieces += (
        b"\0"
        if message.subscribed_topic_regex is None
        else _string(message.subscribed_topic_regex),
        b"\0" if message.server_assignor is None else _string(message.server_assignor),
        b"\0\0"
        if message.topic_partitions is None
        else _topic_partitions(message.topic_partitions),
    )
    return b"".join(pieces)


def _string(value: str) -> bytes:
    text = value.encode("utf-8", "replace")
    size = len(text) + 1
    return (ONE_BYTE[size] if size < 128 else string_size(size)) + text


def _topic_partitions(topics: list[ConsumerGroupHeartbeatRequestTopicPartitions]) -> bytes:
    """The topics, and the empty section of tags of the message, which stands behind them."""
    out = bytearray(long_size(len(topics) + 1))
    for topic in topics:
        out += topic.topic_id
        count = len(topic.partitions)
        if count < 33:
            out += PACK_INTS[count](count + 1, *topic.partitions)
        else:
            write_ints(out, topic.partitions)
        out.append(0)
    out.append(0)
    return bytes(out)
