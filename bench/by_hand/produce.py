"""Produce requests by hand: with topic ids (version 13), and with topic names (version 10)."""

# What is straight-line has a branch for each string and each list.
# ruff: noqa: C901

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint

from .rare import (
    ONE_BYTE,
    ZERO,
    long_size,
    new,
    read_size,
    read_string,
    read_string_or_null,
    skip_tags,
    string_size,
)

_ACKS_TIMEOUT_COUNT = Struct(">hiB")
_NULL_ACKS_TIMEOUT_COUNT = Struct(">BhiB")
_ID_COUNT = Struct(">16sB")
_INDEX_SIZE = Struct(">iB")
_INDEX_LONG_SIZE = Struct(">iBB")

_read_acks_timeout_count = _ACKS_TIMEOUT_COUNT.unpack_from
_read_id_count = _ID_COUNT.unpack_from
_read_index_size = _INDEX_SIZE.unpack_from


def read_v13(data: Buffer) -> ProduceRequest:
    try:
        view = memoryview(data)
        message = new(ProduceRequest)
        size = data[0]
        if size == 0:
            message.transactional_id = None
            end = 1
        elif size < 128:
            message.transactional_id = str(data[1:size], "utf-8", "replace")
            end = size
        else:
            message.transactional_id, end = read_string_or_null(data, 0)
        message.acks, message.timeout_ms, count = _read_acks_timeout_count(data, end)
        at = end + 7
        if not 0 < count < 128:
            count, at = read_size(data, at - 1)
        message.topic_data = topics = []
        for _ in range(count - 1):
            topic = new(TopicProduceData)
            topic.name = ""
            topic.topic_id, count = _read_id_count(data, at)
            at += 17
            if not 0 < count < 128:
                count, at = read_size(data, at - 1)
            topic.partition_data = partitions = []
            for _ in range(count - 1):
                partition = new(PartitionProduceData)
                partition.index, size = _read_index_size(data, at)
                at += 5
                if size > 127:
                    second = data[at]
                    if second < 128:
                        size += (second << 7) - 128
                        at += 1
                    else:
                        size, at = read_uvarint(data, at - 1)
                if size:
                    end = at + size - 1
                    partition.records = view[at:end]
                    at = end
                else:
                    partition.records = None
                at = skip_tags(data, at) if data[at] else at + 1
                partitions.append(partition)
            at = skip_tags(data, at) if data[at] else at + 1
            topics.append(topic)
        if data[at]:
            skip_tags(data, at)
        return message
    except (IndexError, StructError):
        raise ProtocolError("ProduceRequest is cut short") from None


def read_v10(data: Buffer) -> ProduceRequest:
    try:
        view = memoryview(data)
        message = new(ProduceRequest)
        size = data[0]
        if size == 0:
            message.transactional_id = None
            end = 1
        elif size < 128:
            message.transactional_id = str(data[1:size], "utf-8", "replace")
            end = size
        else:
            message.transactional_id, end = read_string_or_null(data, 0)
        message.acks, message.timeout_ms, count = _read_acks_timeout_count(data, end)
        at = end + 7
        if not 0 < count < 128:
            count, at = read_size(data, at - 1)
        message.topic_data = topics = []
        for _ in range(count - 1):
            topic = new(TopicProduceData)
            topic.topic_id = ZERO
            size = data[at]
            if 0 < size < 128:
                end = at + size
                topic.name = str(data[at + 1 : end], "utf-8", "replace")
            else:
                topic.name, end = read_string(data, at)
            count = data[end]
            at = end + 1
            if not 0 < count < 128:
                count, at = read_size(data, end)
            topic.partition_data = partitions = []
            for _ in range(count - 1):
                partition = new(PartitionProduceData)
                partition.index, size = _read_index_size(data, at)
                at += 5
                if size > 127:
                    second = data[at]
                    if second < 128:
                        size += (second << 7) - 128
                        at += 1
                    else:
                        size, at = read_uvarint(data, at - 1)
                if size:
                    end = at + size - 1
                    partition.records = view[at:end]
                    at = end
                else:
                    partition.records = None
                at = skip_tags(data, at) if data[at] else at + 1
                partitions.append(partition)
            at = skip_tags(data, at) if data[at] else at + 1
            topics.append(topic)
        if data[at]:
            skip_tags(data, at)
        return message
    except (IndexError, StructError):
        raise ProtocolError("ProduceRequest is cut short") from None


def write_v13(message: ProduceRequest) -> bytes:
    topics = message.topic_data
    pieces: list[Buffer] = [_head(message, len(topics) + 1)]
    for topic in topics:
        partitions = topic.partition_data
        count = len(partitions) + 1
        if count < 128:
            pieces.append(_ID_COUNT.pack(topic.topic_id, count))
        else:
            pieces += (topic.topic_id, long_size(count))
        _write_partitions(pieces, partitions)
    pieces.append(b"\0")
    return b"".join(pieces)


def write_v10(message: ProduceRequest) -> bytes:
    topics = message.topic_data
    pieces: list[Buffer] = [_head(message, len(topics) + 1)]
    for topic in topics:
        name = topic.name.encode("utf-8", "replace")
        size = len(name) + 1
        count = len(topic.partition_data) + 1
        pieces += (
            ONE_BYTE[size] if size < 128 else string_size(size),
            name,
            ONE_BYTE[count] if count < 128 else long_size(count),
        )
        _write_partitions(pieces, topic.partition_data)
    pieces.append(b"\0")
    return b"".join(pieces)


def _head(message: ProduceRequest, count: int) -> bytes:
    if message.transactional_id is None and count < 128:
        return _NULL_ACKS_TIMEOUT_COUNT.pack(0, message.acks, message.timeout_ms, count)
    transactional_id = b""
    size = b"\0"
    if message.transactional_id is not None:
        transactional_id = message.transactional_id.encode("utf-8", "replace")
        size = string_size(len(transactional_id) + 1)
    numbers = _ACKS_TIMEOUT_COUNT.pack(message.acks, message.timeout_ms, 0)[:-1]
    return size + transactional_id + numbers + long_size(count)


def _write_partitions(pieces: list[Buffer], partitions: list[PartitionProduceData]) -> None:
    """Append the partitions and the empty section of tags of their topic."""
    for partition in partitions:
        records = partition.records
        if records is None:
            pieces += (_INDEX_SIZE.pack(partition.index, 0), b"\0")
            continue
        size = len(records) + 1
        if size < 128:
            head = _INDEX_SIZE.pack(partition.index, size)
        elif size < 16384:
            head = _INDEX_LONG_SIZE.pack(partition.index, size & 127 | 128, size >> 7)
        else:
            head = _INDEX_SIZE.pack(partition.index, 0)[:-1] + long_size(size)
        pieces += (head, records, b"\0")
    pieces.append(b"\0")
