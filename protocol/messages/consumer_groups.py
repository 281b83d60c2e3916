"""Consumer groups of KIP-848."""

from __future__ import annotations

from ottla.protocol.schema import (
    INT32_MIN,
    Bool,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    message,
    part,
    since,
)


@message(key=68, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest:
    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: String | None = since(1, default=None)
    server_assignor: String | None = None
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None


@part
class ConsumerGroupHeartbeatRequestTopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]


@message(key=68, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = None


@part
class ConsumerGroupHeartbeatResponseAssignment:
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions]


@part
class ConsumerGroupHeartbeatResponseTopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]


@message(key=69, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeRequest:
    group_ids: list[String]
    include_authorized_operations: Bool


@message(key=69, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeResponse:
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
    assignor_name: String
    members: list[Member]
    authorized_operations: Int32 = INT32_MIN


@part
class Member:
    member_id: String
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None = None
    assignment: ConsumerGroupDescribeResponseAssignment
    target_assignment: ConsumerGroupDescribeResponseAssignment
    member_type: Int8 = since(1, ignorable=True, default=-1)


@part
class ConsumerGroupDescribeResponseAssignment:
    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions]


@part
class ConsumerGroupDescribeResponseTopicPartitions:
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]
