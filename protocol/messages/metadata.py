"""Metadata and DescribeTopicPartitions: who leads what."""

from __future__ import annotations

from ottla.protocol.schema import (
    INT32_MIN,
    ZERO,
    Bool,
    Int16,
    Int32,
    String,
    Uuid,
    message,
    part,
    since,
)


@message(key=3, versions=(0, 13), flexible=9)
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = since(null_since=1)
    allow_auto_topic_creation: Bool = since(4, default=True)
    include_cluster_authorized_operations: Bool = since(8, until=10, default=False)
    include_topic_authorized_operations: Bool = since(8, default=False)


@part
class MetadataRequestTopic:
    topic_id: Uuid = since(10, ignorable=True, default=ZERO)
    name: String | None = since(null_since=10)


@message(key=3, versions=(0, 13), flexible=9)
class MetadataResponse:
    throttle_time_ms: Int32 = since(3, ignorable=True, default=0)
    brokers: list[MetadataResponseBroker]
    cluster_id: String | None = since(2, ignorable=True, default=None)
    controller_id: Int32 = since(1, ignorable=True, default=-1)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = since(8, until=10, default=INT32_MIN)
    error_code: Int16 = since(13, ignorable=True, default=0)


@part
class MetadataResponseBroker:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = since(1, ignorable=True, default=None)


@part
class MetadataResponseTopic:
    error_code: Int16
    name: String | None = since(null_since=12)
    topic_id: Uuid = since(10, ignorable=True, default=ZERO)
    is_internal: Bool = since(1, ignorable=True, default=False)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: Int32 = since(8, default=INT32_MIN)


@part
class MetadataResponsePartition:
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = since(7, ignorable=True, default=-1)
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: list[Int32] = since(5, ignorable=True, default=[])


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest]
    response_partition_limit: Int32 = 2000
    cursor: DescribeTopicPartitionsRequestCursor | None = None


@part
class TopicRequest:
    name: String


@part
class DescribeTopicPartitionsRequestCursor:
    topic_name: String
    partition_index: Int32


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: Int32
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponseCursor | None = None


@part
class DescribeTopicPartitionsResponseTopic:
    error_code: Int16
    name: String | None
    topic_id: Uuid
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: Int32 = INT32_MIN


@part
class DescribeTopicPartitionsResponseCursor:
    topic_name: String
    partition_index: Int32


@part
class DescribeTopicPartitionsResponsePartition:
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32]
