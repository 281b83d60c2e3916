"""OffsetCommit and ListOffsets requests, both of version 10, by hand."""

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.wire import ProtocolError

from .rare import (
    ONE_BYTE,
    long_size,
    new,
    read_size,
    read_string,
    read_string_or_null,
    skip_tags,
    string_size,
)

_GENERATION_SIZE = Struct(">iB")
_GENERATION = Struct(">i")
_ID_COUNT = Struct(">16sB")
_COMMIT_SIZE = Struct(">iqiB")
_COMMIT = Struct(">iqi")
_REPLICA_ISOLATION_COUNT = Struct(">ibB")
_LIST_PARTITION = Struct(">iiqB")
_TIMEOUT_TAGS = Struct(">iB")

_read_generation_size = _GENERATION_SIZE.unpack_from
_read_id_count = _ID_COUNT.unpack_from
_read_commit_size = _COMMIT_SIZE.unpack_from
_read_list_partition = _LIST_PARTITION.unpack_from


def read_commit_v10(data: bytes) -> OffsetCommitRequest:
    try:
        message = new(OffsetCommitRequest)
        message.retention_time_ms = -1
        end = data[0]
        if 0 < end < 128:
            message.group_id = data[1:end].decode("utf-8", "replace")
        else:
            message.group_id, end = read_string(data, 0)
        message.generation_id_or_member_epoch, size = _read_generation_size(data, end)
        at = end + 4
        if 0 < size < 128:
            end = at + size
            message.member_id = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.member_id, end = read_string(data, at)
        size = data[end]
        if size == 0:
            message.group_instance_id = None
            at = end + 1
        elif size < 128:
            at = end + size
            message.group_instance_id = data[end + 1 : at].decode("utf-8", "replace")
        else:
            message.group_instance_id, at = read_string_or_null(data, end)
        count = data[at]
        at += 1
        if not 0 < count < 128:
            count, at = read_size(data, at - 1)
        message.topics, at = _read_commit_topics(data, at, count - 1)
        if data[at]:
            skip_tags(data, at)
        return message
    except (IndexError, StructError):
        raise ProtocolError("OffsetCommitRequest is cut short") from None


def _read_commit_topics(
    data: bytes, at: int, topic_count: int
) -> tuple[list[OffsetCommitRequestTopic], int]:
    topics = []
    for _ in range(topic_count):
        topic = new(OffsetCommitRequestTopic)
        topic.name = ""
        topic.topic_id, count = _read_id_count(data, at)
        at += 17
        if not 0 < count < 128:
            count, at = read_size(data, at - 1)
        topic.partitions = partitions = []
        for _ in range(count - 1):
            partition = new(OffsetCommitRequestPartition)
            (
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                size,
            ) = _read_commit_size(data, at)
            at += 16
            if 0 < size < 128:
                end = at + size
                partition.committed_metadata = data[at + 1 : end].decode("utf-8", "replace")
            else:
                partition.committed_metadata, end = read_string_or_null(data, at)
            at = skip_tags(data, end) if data[end] else end + 1
            partitions.append(partition)
        at = skip_tags(data, at) if data[at] else at + 1
        topics.append(topic)
    return topics, at


def write_commit_v10(message: OffsetCommitRequest) -> bytes:
    group_id = message.group_id.encode("utf-8", "replace")
    group_size = len(group_id) + 1
    member_id = message.member_id.encode("utf-8", "replace")
    member_size = len(member_id) + 1
    pieces = [
        ONE_BYTE[group_size] if group_size < 128 else string_size(group_size),
        group_id,
        _GENERATION.pack(message.generation_id_or_member_epoch),
        ONE_BYTE[member_size] if member_size < 128 else string_size(member_size),
        member_id,
    ]
    if message.group_instance_id is None:
        pieces.append(b"\0")
    else:
        instance_id = message.group_instance_id.encode("utf-8", "replace")
        size = len(instance_id) + 1
        pieces += (ONE_BYTE[size] if size < 128 else string_size(size), instance_id)
    count = len(message.topics) + 1
    pieces.append(ONE_BYTE[count] if count < 128 else long_size(count))
    for topic in message.topics:
        count = len(topic.partitions) + 1
        if count < 128:
            pieces.append(_ID_COUNT.pack(topic.topic_id, count))
        else:
            pieces += (topic.topic_id, long_size(count))
        _write_commits(pieces, topic.partitions)
    pieces.append(b"\0")
    return b"".join(pieces)


def _write_commits(pieces: list[bytes], partitions: list[OffsetCommitRequestPartition]) -> None:
    """Append the partitions and the empty section of tags of their topic."""
    for partition in partitions:
        index = partition.partition_index
        offset = partition.committed_offset
        epoch = partition.committed_leader_epoch
        if partition.committed_metadata is None:
            pieces += (_COMMIT_SIZE.pack(index, offset, epoch, 0), b"\0")
            continue
        metadata = partition.committed_metadata.encode("utf-8", "replace")
        size = len(metadata) + 1
        if size < 128:
            pieces += (_COMMIT_SIZE.pack(index, offset, epoch, size), metadata, b"\0")
        else:
            pieces += (_COMMIT.pack(index, offset, epoch), string_size(size), metadata, b"\0")
    pieces.append(b"\0")


def read_list_v10(data: bytes) -> ListOffsetsRequest:
    try:
        message = new(ListOffsetsRequest)
        message.replica_id, message.isolation_level, count = _REPLICA_ISOLATION_COUNT.unpack_from(
            data, 0
        )
        at = 6
        if not 0 < count < 128:
            count, at = read_size(data, 5)
        message.topics = topics = []
        for _ in range(count - 1):
            topic = new(ListOffsetsTopic)
            size = data[at]
            if 0 < size < 128:
                end = at + size
                topic.name = data[at + 1 : end].decode("utf-8", "replace")
            else:
                topic.name, end = read_string(data, at)
            count = data[end]
            at = end + 1
            if not 0 < count < 128:
                count, at = read_size(data, end)
            topic.partitions = partitions = []
            for _ in range(count - 1):
                partition = new(ListOffsetsPartition)
                (
                    partition.partition_index,
                    partition.current_leader_epoch,
                    partition.timestamp,
                    tags,
                ) = _read_list_partition(data, at)
                at = skip_tags(data, at + 16) if tags else at + 17
                partitions.append(partition)
            at = skip_tags(data, at) if data[at] else at + 1
            topics.append(topic)
        message.timeout_ms, tags = _TIMEOUT_TAGS.unpack_from(data, at)
        if tags:
            skip_tags(data, at + 4)
        return message
    except (IndexError, StructError):
        raise ProtocolError("ListOffsetsRequest is cut short") from None


def write_list_v10(message: ListOffsetsRequest) -> bytes:
    count = len(message.topics) + 1
    if count < 128:
        pieces = [_REPLICA_ISOLATION_COUNT.pack(message.replica_id, message.isolation_level, count)]
    else:
        head = _REPLICA_ISOLATION_COUNT.pack(message.replica_id, message.isolation_level, 0)
        pieces = [head[:-1], long_size(count)]
    for topic in message.topics:
        name = topic.name.encode("utf-8", "replace")
        size = len(name) + 1
        count = len(topic.partitions) + 1
        pieces += (
            ONE_BYTE[size] if size < 128 else string_size(size),
            name,
            ONE_BYTE[count] if count < 128 else long_size(count),
        )
        for partition in topic.partitions:
            pieces.append(
                _LIST_PARTITION.pack(
                    partition.partition_index,
                    partition.current_leader_epoch,
                    partition.timestamp,
                    0,
                )
            )
        pieces.append(b"\0")
    pieces.append(_TIMEOUT_TAGS.pack(message.timeout_ms, 0))
    return b"".join(pieces)
