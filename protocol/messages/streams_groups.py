"""Streams groups of KIP-1071."""

from __future__ import annotations

from ottla.protocol.schema import (
    INT32_MIN,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    message,
    part,
)


@message(key=88, versions=(0, 0), flexible=0)
class StreamsGroupHeartbeatRequest:
    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: StreamsGroupHeartbeatRequestTopology | None = None
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    process_id: String | None = None
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None
    client_tags: list[StreamsGroupHeartbeatRequestKeyValue] | None = None
    task_offsets: list[StreamsGroupHeartbeatRequestTaskOffset] | None = None
    task_end_offsets: list[StreamsGroupHeartbeatRequestTaskOffset] | None = None
    shutdown_application: Bool = False


@part
class StreamsGroupHeartbeatRequestTopology:
    epoch: Int32
    subtopologies: list[StreamsGroupHeartbeatRequestSubtopology]


@part
class StreamsGroupHeartbeatRequestTaskIds:
    subtopology_id: String
    partitions: list[Int32]


@part
class StreamsGroupHeartbeatRequestEndpoint:
    host: String
    port: Uint16


@part
class StreamsGroupHeartbeatRequestKeyValue:
    key: String
    value: String


@part
class StreamsGroupHeartbeatRequestTaskOffset:
    subtopology_id: String
    partition: Int32
    offset: Int64


@part
class StreamsGroupHeartbeatRequestSubtopology:
    subtopology_id: String
    source_topics: list[String]
    source_topic_regex: list[String]
    state_changelog_topics: list[StreamsGroupHeartbeatRequestTopicInfo]
    repartition_sink_topics: list[String]
    repartition_source_topics: list[StreamsGroupHeartbeatRequestTopicInfo]
    copartition_groups: list[CopartitionGroup]


@part
class StreamsGroupHeartbeatRequestTopicInfo:
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[StreamsGroupHeartbeatRequestKeyValue]


@part
class CopartitionGroup:
    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


@message(key=88, versions=(0, 0), flexible=0)
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag: Int32
    task_offset_interval_ms: Int32
    status: list[Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None


@part
class Status:
    status_code: Int8
    status_detail: String


@part
class StreamsGroupHeartbeatResponseTaskIds:
    subtopology_id: String
    partitions: list[Int32]


@part
class EndpointToPartitions:
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint
    active_partitions: list[TopicPartition]
    standby_partitions: list[TopicPartition]


@part
class StreamsGroupHeartbeatResponseEndpoint:
    host: String
    port: Uint16


@part
class TopicPartition:
    topic: String
    partitions: list[Int32]


@message(key=89, versions=(0, 0), flexible=0)
class StreamsGroupDescribeRequest:
    group_ids: list[String]
    include_authorized_operations: Bool


@message(key=89, versions=(0, 0), flexible=0)
class StreamsGroupDescribeResponse:
    throttle_time_ms: Int32
    groups: list[DescribedGroup]


@part
class DescribedGroup:
    error_code: Int16
    error_message: String | None = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    topology: StreamsGroupDescribeResponseTopology | None = None
    members: list[Member]
    authorized_operations: Int32 = INT32_MIN


@part
class StreamsGroupDescribeResponseTopology:
    epoch: Int32
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = None


@part
class Member:
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String
    client_host: String
    topology_epoch: Int32
    process_id: String
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = None
    client_tags: list[StreamsGroupDescribeResponseKeyValue]
    task_offsets: list[StreamsGroupDescribeResponseTaskOffset]
    task_end_offsets: list[StreamsGroupDescribeResponseTaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: Bool


@part
class StreamsGroupDescribeResponseSubtopology:
    subtopology_id: String
    source_topics: list[String]
    repartition_sink_topics: list[String]
    state_changelog_topics: list[StreamsGroupDescribeResponseTopicInfo]
    repartition_source_topics: list[StreamsGroupDescribeResponseTopicInfo]


@part
class StreamsGroupDescribeResponseEndpoint:
    host: String
    port: Uint16


@part
class StreamsGroupDescribeResponseKeyValue:
    key: String
    value: String


@part
class StreamsGroupDescribeResponseTaskOffset:
    subtopology_id: String
    partition: Int32
    offset: Int64


@part
class Assignment:
    active_tasks: list[StreamsGroupDescribeResponseTaskIds]
    standby_tasks: list[StreamsGroupDescribeResponseTaskIds]
    warmup_tasks: list[StreamsGroupDescribeResponseTaskIds]


@part
class StreamsGroupDescribeResponseTopicInfo:
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[StreamsGroupDescribeResponseKeyValue]


@part
class StreamsGroupDescribeResponseTaskIds:
    subtopology_id: String
    partitions: list[Int32]
