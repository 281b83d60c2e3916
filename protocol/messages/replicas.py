"""Placement of replicas: elections, reassignments, in-sync replicas, log directories."""

from __future__ import annotations

from ottla.protocol.schema import (
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


@message(key=43, versions=(0, 2), flexible=2)
class ElectLeadersRequest:
    election_type: Int8 = since(1, default=0)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


@part
class TopicPartitions:
    topic: String
    partitions: list[Int32]


@message(key=43, versions=(0, 2), flexible=2)
class ElectLeadersResponse:
    throttle_time_ms: Int32
    error_code: Int16 = since(1, default=0)
    replica_election_results: list[ReplicaElectionResult]


@part
class ReplicaElectionResult:
    topic: String
    partition_result: list[PartitionResult]


@part
class PartitionResult:
    partition_id: Int32
    error_code: Int16
    error_message: String | None


@message(key=45, versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsRequest:
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = since(1, default=True)
    topics: list[ReassignableTopic]


@part
class ReassignableTopic:
    name: String
    partitions: list[ReassignablePartition]


@part
class ReassignablePartition:
    partition_index: Int32
    replicas: list[Int32] | None = None


@message(key=45, versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: Int32
    allow_replication_factor_change: Bool = since(1, ignorable=True, default=True)
    error_code: Int16
    error_message: String | None
    responses: list[ReassignableTopicResponse]


@part
class ReassignableTopicResponse:
    name: String
    partitions: list[ReassignablePartitionResponse]


@part
class ReassignablePartitionResponse:
    partition_index: Int32
    error_code: Int16
    error_message: String | None


@message(key=46, versions=(0, 0), flexible=0)
class ListPartitionReassignmentsRequest:
    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@part
class ListPartitionReassignmentsTopics:
    name: String
    partition_indexes: list[Int32]


@message(key=46, versions=(0, 0), flexible=0)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None
    topics: list[OngoingTopicReassignment]


@part
class OngoingTopicReassignment:
    name: String
    partitions: list[OngoingPartitionReassignment]


@part
class OngoingPartitionReassignment:
    partition_index: Int32
    replicas: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]


@message(key=56, versions=(2, 3), flexible=0)
class AlterPartitionRequest:
    broker_id: Int32
    broker_epoch: Int64 = -1
    topics: list[AlterPartitionRequestTopicData]


@part
class AlterPartitionRequestTopicData:
    topic_id: Uuid
    partitions: list[AlterPartitionRequestPartitionData]


@part
class AlterPartitionRequestPartitionData:
    partition_index: Int32
    leader_epoch: Int32
    new_isr: list[Int32] = since(until=2, default=[])
    new_isr_with_epochs: list[BrokerState] = since(3, default=[])
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


@part
class BrokerState:
    broker_id: Int32
    broker_epoch: Int64 = -1


@message(key=56, versions=(2, 3), flexible=0)
class AlterPartitionResponse:
    throttle_time_ms: Int32
    error_code: Int16
    topics: list[AlterPartitionResponseTopicData]


@part
class AlterPartitionResponseTopicData:
    topic_id: Uuid
    partitions: list[AlterPartitionResponsePartitionData]


@part
class AlterPartitionResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32
    isr: list[Int32]
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


@message(key=34, versions=(1, 2), flexible=2)
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir]


@part
class AlterReplicaLogDir:
    path: String
    topics: list[AlterReplicaLogDirTopic]


@part
class AlterReplicaLogDirTopic:
    name: String
    partitions: list[Int32]


@message(key=34, versions=(1, 2), flexible=2)
class AlterReplicaLogDirsResponse:
    throttle_time_ms: Int32
    results: list[AlterReplicaLogDirTopicResult]


@part
class AlterReplicaLogDirTopicResult:
    topic_name: String
    partitions: list[AlterReplicaLogDirPartitionResult]


@part
class AlterReplicaLogDirPartitionResult:
    partition_index: Int32
    error_code: Int16


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None


@part
class DescribableLogDirTopic:
    topic: String
    partitions: list[Int32]


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsResponse:
    throttle_time_ms: Int32
    error_code: Int16 = since(3, ignorable=True, default=0)
    results: list[DescribeLogDirsResult]


@part
class DescribeLogDirsResult:
    error_code: Int16
    log_dir: String
    topics: list[DescribeLogDirsTopic]
    total_bytes: Int64 = since(4, ignorable=True, default=-1)
    usable_bytes: Int64 = since(4, ignorable=True, default=-1)
    is_cordoned: Bool = since(5, ignorable=True, default=False)


@part
class DescribeLogDirsTopic:
    name: String
    partitions: list[DescribeLogDirsPartition]


@part
class DescribeLogDirsPartition:
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


@message(key=73, versions=(0, 0), flexible=0)
class AssignReplicasToDirsRequest:
    broker_id: Int32
    broker_epoch: Int64 = -1
    directories: list[AssignReplicasToDirsRequestDirectoryData]


@part
class AssignReplicasToDirsRequestDirectoryData:
    id: Uuid
    topics: list[AssignReplicasToDirsRequestTopicData]


@part
class AssignReplicasToDirsRequestTopicData:
    topic_id: Uuid
    partitions: list[AssignReplicasToDirsRequestPartitionData]


@part
class AssignReplicasToDirsRequestPartitionData:
    partition_index: Int32


@message(key=73, versions=(0, 0), flexible=0)
class AssignReplicasToDirsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    directories: list[AssignReplicasToDirsResponseDirectoryData]


@part
class AssignReplicasToDirsResponseDirectoryData:
    id: Uuid
    topics: list[AssignReplicasToDirsResponseTopicData]


@part
class AssignReplicasToDirsResponseTopicData:
    topic_id: Uuid
    partitions: list[AssignReplicasToDirsResponsePartitionData]


@part
class AssignReplicasToDirsResponsePartitionData:
    partition_index: Int32
    error_code: Int16
