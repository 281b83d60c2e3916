"""Offsets of logs (by time, by leader epoch) and committed offsets of groups."""

from __future__ import annotations

from ottla.protocol.schema import (
    ZERO,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    message,
    part,
    since,
)


@message(key=2, versions=(1, 11), flexible=6)
class ListOffsetsRequest:
    replica_id: Int32
    isolation_level: Int8 = since(2, default=0)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = since(10, ignorable=True, default=0)


@part
class ListOffsetsTopic:
    name: String
    partitions: list[ListOffsetsPartition]


@part
class ListOffsetsPartition:
    partition_index: Int32
    current_leader_epoch: Int32 = since(4, ignorable=True, default=-1)
    timestamp: Int64


@message(key=2, versions=(1, 11), flexible=6)
class ListOffsetsResponse:
    throttle_time_ms: Int32 = since(2, ignorable=True, default=0)
    topics: list[ListOffsetsTopicResponse]


@part
class ListOffsetsTopicResponse:
    name: String
    partitions: list[ListOffsetsPartitionResponse]


@part
class ListOffsetsPartitionResponse:
    partition_index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = since(4, default=-1)


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochRequest:
    replica_id: Int32 = since(3, ignorable=True, default=-2)
    topics: list[OffsetForLeaderTopic]


@part
class OffsetForLeaderTopic:
    topic: String
    partitions: list[OffsetForLeaderPartition]


@part
class OffsetForLeaderPartition:
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: Int32
    topics: list[OffsetForLeaderTopicResult]


@part
class OffsetForLeaderTopicResult:
    topic: String
    partitions: list[EpochEndOffset]


@part
class EpochEndOffset:
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitRequest:
    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: String | None = since(7, default=None)
    retention_time_ms: Int64 = since(until=4, ignorable=True, default=-1)
    topics: list[OffsetCommitRequestTopic]


@part
class OffsetCommitRequestTopic:
    name: String = since(until=9, ignorable=True, default="")
    topic_id: Uuid = since(10, ignorable=True, default=ZERO)
    partitions: list[OffsetCommitRequestPartition]


@part
class OffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(6, ignorable=True, default=-1)
    committed_metadata: String | None


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitResponse:
    throttle_time_ms: Int32 = since(3, ignorable=True, default=0)
    topics: list[OffsetCommitResponseTopic]


@part
class OffsetCommitResponseTopic:
    name: String = since(until=9, ignorable=True, default="")
    topic_id: Uuid = since(10, ignorable=True, default=ZERO)
    partitions: list[OffsetCommitResponsePartition]


@part
class OffsetCommitResponsePartition:
    partition_index: Int32
    error_code: Int16


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchRequest:
    group_id: String = since(until=7, default="")
    topics: list[OffsetFetchRequestTopic] | None = since(until=7, null_since=2, default=[])
    groups: list[OffsetFetchRequestGroup] = since(8, default=[])
    require_stable: Bool = since(7, default=False)


@part
class OffsetFetchRequestTopic:
    name: String
    partition_indexes: list[Int32]


@part
class OffsetFetchRequestGroup:
    group_id: String
    member_id: String | None = since(9, ignorable=True, default=None)
    member_epoch: Int32 = since(9, ignorable=True, default=-1)
    topics: list[OffsetFetchRequestTopics] | None


@part
class OffsetFetchRequestTopics:
    name: String = since(until=9, ignorable=True, default="")
    topic_id: Uuid = since(10, ignorable=True, default=ZERO)
    partition_indexes: list[Int32]


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchResponse:
    throttle_time_ms: Int32 = since(3, ignorable=True, default=0)
    topics: list[OffsetFetchResponseTopic] = since(until=7, default=[])
    error_code: Int16 = since(2, until=7, ignorable=True, default=0)
    groups: list[OffsetFetchResponseGroup] = since(8, default=[])


@part
class OffsetFetchResponseTopic:
    name: String
    partitions: list[OffsetFetchResponsePartition]


@part
class OffsetFetchResponseGroup:
    group_id: String
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16 = 0


@part
class OffsetFetchResponsePartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(5, ignorable=True, default=-1)
    metadata: String | None
    error_code: Int16


@part
class OffsetFetchResponseTopics:
    name: String = since(until=9, ignorable=True, default="")
    topic_id: Uuid = since(10, ignorable=True, default=ZERO)
    partitions: list[OffsetFetchResponsePartitions]


@part
class OffsetFetchResponsePartitions:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: String | None
    error_code: Int16


@message(key=47, versions=(0, 0))
class OffsetDeleteRequest:
    group_id: String
    topics: list[OffsetDeleteRequestTopic]


@part
class OffsetDeleteRequestTopic:
    name: String
    partitions: list[OffsetDeleteRequestPartition]


@part
class OffsetDeleteRequestPartition:
    partition_index: Int32


@message(key=47, versions=(0, 0))
class OffsetDeleteResponse:
    error_code: Int16
    throttle_time_ms: Int32
    topics: list[OffsetDeleteResponseTopic]


@part
class OffsetDeleteResponseTopic:
    name: String
    partitions: list[OffsetDeleteResponsePartition]


@part
class OffsetDeleteResponsePartition:
    partition_index: Int32
    error_code: Int16
