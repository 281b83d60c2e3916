"""Creating, deleting and growing topics; DeleteRecords."""

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


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsRequest:
    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


@part
class CreatableTopic:
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


@part
class CreatableReplicaAssignment:
    partition_index: Int32
    broker_ids: list[Int32]


@part
class CreatableTopicConfig:
    name: String
    value: String | None


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsResponse:
    throttle_time_ms: Int32
    topics: list[CreatableTopicResult]


@part
class CreatableTopicResult:
    name: String
    topic_id: Uuid = since(7, ignorable=True, default=ZERO)
    error_code: Int16
    error_message: String | None
    topic_config_error_code: Int16 = since(5, tag=0, ignorable=True, default=0)
    num_partitions: Int32 = since(5, ignorable=True, default=-1)
    replication_factor: Int16 = since(5, ignorable=True, default=-1)
    configs: list[CreatableTopicConfigs] | None = since(5, ignorable=True, default=[])


@part
class CreatableTopicConfigs:
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = since(6, default=[])
    topic_names: list[String] = since(until=5, ignorable=True, default=[])
    timeout_ms: Int32


@part
class DeleteTopicState:
    name: String | None = None
    topic_id: Uuid


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsResponse:
    throttle_time_ms: Int32
    responses: list[DeletableTopicResult]


@part
class DeletableTopicResult:
    name: String | None = since(null_since=6)
    topic_id: Uuid = since(6, ignorable=True, default=ZERO)
    error_code: Int16
    error_message: String | None = since(5, ignorable=True, default=None)


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


@part
class CreatePartitionsTopic:
    name: String
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None


@part
class CreatePartitionsAssignment:
    broker_ids: list[Int32]


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsResponse:
    throttle_time_ms: Int32
    results: list[CreatePartitionsTopicResult]


@part
class CreatePartitionsTopicResult:
    name: String
    error_code: Int16
    error_message: String | None = None


@message(key=21, versions=(0, 2), flexible=2)
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


@part
class DeleteRecordsTopic:
    name: String
    partitions: list[DeleteRecordsPartition]


@part
class DeleteRecordsPartition:
    partition_index: Int32
    offset: Int64


@message(key=21, versions=(0, 2), flexible=2)
class DeleteRecordsResponse:
    throttle_time_ms: Int32
    topics: list[DeleteRecordsTopicResult]


@part
class DeleteRecordsTopicResult:
    name: String
    partitions: list[DeleteRecordsPartitionResult]


@part
class DeleteRecordsPartitionResult:
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16
