"""Records of `__consumer_offsets`: consumer groups of KIP-848."""

from __future__ import annotations

from ottla.protocol.schema import (
    EMPTY,
    Bytes,
    Int8,
    Int32,
    Int64,
    String,
    Uuid,
    message,
    part,
    since,
)


@message(key=3, versions=(0, 0))
class ConsumerGroupMetadataKey:
    group_id: String


@message(key=3, versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue:
    epoch: Int32
    metadata_hash: Int64 = since(tag=0, default=0)


@message(key=4, versions=(0, 0))
class ConsumerGroupPartitionMetadataKey:
    group_id: String


@message(key=4, versions=(0, 0), flexible=0)
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata]


@part
class TopicMetadata:
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: list[PartitionMetadata]


@part
class PartitionMetadata:
    partition: Int32
    racks: list[String]


@message(key=5, versions=(0, 0))
class ConsumerGroupMemberMetadataKey:
    group_id: String
    member_id: String


@message(key=5, versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None
    classic_member_metadata: ClassicMemberMetadata | None = since(tag=0, default=EMPTY)


@part
class ClassicMemberMetadata:
    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


@part
class ClassicProtocol:
    name: String
    metadata: Bytes


@message(key=6, versions=(0, 0))
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: String


@message(key=6, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(tag=0, default=0)


@message(key=7, versions=(0, 0))
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@message(key=7, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition]


@part
class TopicPartition:
    topic_id: Uuid
    partitions: list[Int32]


@message(key=8, versions=(0, 0))
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@message(key=8, versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


@part
class TopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = since(tag=0, default=[])


@message(key=16, versions=(0, 0))
class ConsumerGroupRegularExpressionKey:
    group_id: String
    regular_expression: String


@message(key=16, versions=(0, 0), flexible=0)
class ConsumerGroupRegularExpressionValue:
    topics: list[String]
    version: Int64
    timestamp: Int64
