"""Records of `__consumer_offsets`: share groups."""

from __future__ import annotations

from ottla.protocol.schema import Int8, Int32, Int64, String, Uuid, message, part, since


@message(key=10, versions=(0, 0))
class ShareGroupMemberMetadataKey:
    group_id: String
    member_id: String


@message(key=10, versions=(0, 0), flexible=0)
class ShareGroupMemberMetadataValue:
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]


@message(key=11, versions=(0, 0))
class ShareGroupMetadataKey:
    group_id: String


@message(key=11, versions=(0, 0), flexible=0)
class ShareGroupMetadataValue:
    epoch: Int32
    metadata_hash: Int64


@message(key=12, versions=(0, 0))
class ShareGroupTargetAssignmentMetadataKey:
    group_id: String


@message(key=12, versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(tag=0, default=0)


@message(key=13, versions=(0, 0))
class ShareGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@message(key=13, versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition]


@part
class TopicPartition:
    topic_id: Uuid
    partitions: list[Int32]


@message(key=14, versions=(0, 0))
class ShareGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@message(key=14, versions=(0, 0), flexible=0)
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]


@part
class TopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]


@message(key=15, versions=(0, 0))
class ShareGroupStatePartitionMetadataKey:
    group_id: String


@message(key=15, versions=(0, 0), flexible=0)
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]


@part
class TopicPartitionsInfo:
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


@part
class TopicInfo:
    topic_id: Uuid
    topic_name: String
