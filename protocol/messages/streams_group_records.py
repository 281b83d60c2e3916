"""Records of `__consumer_offsets`: streams groups."""

from __future__ import annotations

from ottla.protocol.schema import Int8, Int16, Int32, Int64, String, Uint16, message, part, since


@message(key=17, versions=(0, 0))
class StreamsGroupMetadataKey:
    group_id: String


@message(key=17, versions=(0, 0), flexible=0)
class StreamsGroupMetadataValue:
    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = since(tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = since(tag=1, default=[])


@part
class LastAssignmentConfig:
    key: String
    value: String


@message(key=19, versions=(0, 0))
class StreamsGroupMemberMetadataKey:
    group_id: String
    member_id: String


@message(key=19, versions=(0, 0), flexible=0)
class StreamsGroupMemberMetadataValue:
    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue]


@part
class Endpoint:
    host: String
    port: Uint16


@part
class KeyValue:
    key: String
    value: String


@message(key=20, versions=(0, 0))
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: String


@message(key=20, versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(tag=0, default=0)


@message(key=21, versions=(0, 0))
class StreamsGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@message(key=21, versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds]
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds]
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds]


@part
class StreamsGroupTargetAssignmentMemberValueTaskIds:
    subtopology_id: String
    partitions: list[Int32]


@message(key=22, versions=(0, 0))
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@message(key=22, versions=(0, 0), flexible=0)
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds]
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds]
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds]
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds]
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds]
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds]


@part
class StreamsGroupCurrentMemberAssignmentValueTaskIds:
    subtopology_id: String
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = since(tag=0, default=[])


@message(key=23, versions=(0, 0))
class StreamsGroupTopologyKey:
    group_id: String


@message(key=23, versions=(0, 0), flexible=0)
class StreamsGroupTopologyValue:
    epoch: Int32
    subtopologies: list[Subtopology]


@part
class Subtopology:
    subtopology_id: String
    source_topics: list[String]
    source_topic_regex: list[String]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[String]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]


@part
class TopicInfo:
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[TopicConfig]


@part
class CopartitionGroup:
    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


@part
class TopicConfig:
    key: String
    value: String
