"""The Metadata response of version 13 by hand."""

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
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

INT32_MIN = -(2**31)

_INT16 = Struct(">h")
_INT32_BYTE = Struct(">iB")
_INT16_BYTE = Struct(">hB")
_ID_INTERNAL_COUNT = Struct(">16s?B")
_PARTITION_COUNT = Struct(">hiiiB")
_PARTITION = Struct(">hiii")
_PACK_WITH_REPLICAS = tuple(Struct(f">hiiiB{count}i").pack for count in range(33))

_read_int32_byte = _INT32_BYTE.unpack_from
_read_int16_byte = _INT16_BYTE.unpack_from
_read_id_internal_count = _ID_INTERNAL_COUNT.unpack_from
_read_partition_count = _PARTITION_COUNT.unpack_from


def read_response_v13(data: bytes) -> MetadataResponse:
    try:
        message = new(MetadataResponse)
        message.cluster_authorized_operations = INT32_MIN
        message.throttle_time_ms, count = _read_int32_byte(data, 0)
        message.brokers, at = _read_brokers(data, 5, count)
        size = data[at]
        if 0 < size < 128:
            end = at + size
            message.cluster_id = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.cluster_id, end = read_string_or_null(data, at)
        message.controller_id, count = _read_int32_byte(data, end)
        at = end + 5
        if not 0 < count < 128:
            count, at = read_size(data, at - 1)
        message.topics = topics = []
        for _ in range(count - 1):
            topic = new(MetadataResponseTopic)
            topic.error_code, size = _read_int16_byte(data, at)
            at += 2
            if 0 < size < 128:
                end = at + size
                topic.name = data[at + 1 : end].decode("utf-8", "replace")
            else:
                topic.name, end = read_string_or_null(data, at)
            topic.topic_id, topic.is_internal, count = _read_id_internal_count(data, end)
            topic.partitions, at = _read_partitions(data, end + 18, count)
            topic.topic_authorized_operations, tags = _read_int32_byte(data, at)
            at = skip_tags(data, at + 4) if tags else at + 5
            topics.append(topic)
        message.error_code, tags = _read_int16_byte(data, at)
        if tags:
            skip_tags(data, at + 2)
        return message
    except (IndexError, StructError):
        raise ProtocolError("MetadataResponse is cut short") from None


def _read_brokers(data: bytes, at: int, count: int) -> tuple[list[MetadataResponseBroker], int]:
    if not 0 < count < 128:
        count, at = read_size(data, at - 1)
    brokers = []
    for _ in range(count - 1):
        broker = new(MetadataResponseBroker)
        broker.node_id, size = _read_int32_byte(data, at)
        at += 4
        if 0 < size < 128:
            end = at + size
            broker.host = data[at + 1 : end].decode("utf-8", "replace")
        else:
            broker.host, end = read_string(data, at)
        broker.port, size = _read_int32_byte(data, end)
        at = end + 4
        if size == 0:
            broker.rack = None
            end = at + 1
        elif size < 128:
            end = at + size
            broker.rack = data[at + 1 : end].decode("utf-8", "replace")
        else:
            broker.rack, end = read_string_or_null(data, at)
        at = skip_tags(data, end) if data[end] else end + 1
        brokers.append(broker)
    return brokers, at


def _read_partitions(
    data: bytes, at: int, count: int
) -> tuple[list[MetadataResponsePartition], int]:
    if not 0 < count < 128:
        count, at = read_size(data, at - 1)
    partitions = []
    for _ in range(count - 1):
        partition = new(MetadataResponsePartition)
        (
            partition.error_code,
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            count,
        ) = _read_partition_count(data, at)
        if 0 < count < 34:
            partition.replica_nodes = list(UNPACK_INTS[count - 1](data, at + 15))
            at += 11 + 4 * count
        else:
            partition.replica_nodes, at = read_ints(data, at + 14)
        count = data[at]
        if 0 < count < 34:
            partition.isr_nodes = list(UNPACK_INTS[count - 1](data, at + 1))
            at += 4 * count - 3
        else:
            partition.isr_nodes, at = read_ints(data, at)
        if data[at] == 1:
            partition.offline_replicas = []
            at += 1
        else:
            partition.offline_replicas, at = read_ints(data, at)
        at = skip_tags(data, at) if data[at] else at + 1
        partitions.append(partition)
    return partitions, at


def write_response_v13(message: MetadataResponse) -> bytearray:
    if message.cluster_authorized_operations != INT32_MIN:
        raise ProtocolError("cluster_authorized_operations does not exist in version 13")
    out = bytearray(_head(message))
    for topic in message.topics:
        if topic.name is None:
            out += _INT16_BYTE.pack(topic.error_code, 0)
        else:
            name = topic.name.encode("utf-8", "replace")
            size = len(name) + 1
            if size < 128:
                out += _INT16_BYTE.pack(topic.error_code, size)
            else:
                out += _INT16.pack(topic.error_code)
                out += string_size(size)
            out += name
        count = len(topic.partitions) + 1
        if count < 128:
            out += _ID_INTERNAL_COUNT.pack(topic.topic_id, topic.is_internal, count)
        else:
            out += _ID_INTERNAL_COUNT.pack(topic.topic_id, topic.is_internal, 0)
            out[-1:] = long_size(count)
        _write_partitions(out, topic.partitions)
        out += _INT32_BYTE.pack(topic.topic_authorized_operations, 0)
    out += _INT16_BYTE.pack(message.error_code, 0)
    return out


def _head(message: MetadataResponse) -> bytes:
    """All that stands before the topics."""
    count = len(message.brokers) + 1
    pieces = [message.throttle_time_ms.to_bytes(4, "big", signed=True), long_size(count)]
    for broker in message.brokers:
        host = broker.host.encode("utf-8", "replace")
        size = len(host) + 1
        pieces += (
            broker.node_id.to_bytes(4, "big", signed=True),
            ONE_BYTE[size] if size < 128 else string_size(size),
            host,
            broker.port.to_bytes(4, "big", signed=True),
        )
        if broker.rack is None:
            pieces.append(b"\0\0")
        else:
            rack = broker.rack.encode("utf-8", "replace")
            size = len(rack) + 1
            pieces += (ONE_BYTE[size] if size < 128 else string_size(size), rack, b"\0")
    if message.cluster_id is None:
        pieces.append(b"\0")
    else:
        cluster_id = message.cluster_id.encode("utf-8", "replace")
        size = len(cluster_id) + 1
        pieces += (ONE_BYTE[size] if size < 128 else string_size(size), cluster_id)
    pieces += (
        message.controller_id.to_bytes(4, "big", signed=True),
        long_size(len(message.topics) + 1),
    )
    return b"".join(pieces)


def _write_partitions(out: bytearray, partitions: list[MetadataResponsePartition]) -> None:
    for partition in partitions:
        numbers = partition.replica_nodes
        count = len(numbers)
        if count < 33:
            out += _PACK_WITH_REPLICAS[count](
                partition.error_code,
                partition.partition_index,
                partition.leader_id,
                partition.leader_epoch,
                count + 1,
                *numbers,
            )
        else:
            out += _PARTITION.pack(
                partition.error_code,
                partition.partition_index,
                partition.leader_id,
                partition.leader_epoch,
            )
            write_ints(out, numbers)
        numbers = partition.isr_nodes
        count = len(numbers)
        if count < 33:
            out += PACK_INTS[count](count + 1, *numbers)
        else:
            write_ints(out, numbers)
        if partition.offline_replicas:
            write_ints(out, partition.offline_replicas)
            out.append(0)
        else:
            out += b"\1\0"
