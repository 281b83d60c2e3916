"""The KRaft quorum: votes, epochs, snapshots, voters."""

from __future__ import annotations

from ottla.protocol.schema import (
    ABSENT,
    INT32_MAX,
    ZERO,
    Bool,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Uint16,
    Uuid,
    message,
    part,
    since,
)


@message(key=52, versions=(0, 2), flexible=0)
class VoteRequest:
    cluster_id: String | None = None
    voter_id: Int32 = since(1, ignorable=True, default=-1)
    topics: list[VoteRequestTopicData]


@part
class VoteRequestTopicData:
    topic_name: String
    partitions: list[VoteRequestPartitionData]


@part
class VoteRequestPartitionData:
    partition_index: Int32
    replica_epoch: Int32
    replica_id: Int32
    replica_directory_id: Uuid = since(1, ignorable=True, default=ZERO)
    voter_directory_id: Uuid = since(1, ignorable=True, default=ZERO)
    last_offset_epoch: Int32
    last_offset: Int64
    pre_vote: Bool = since(2, default=False)


@message(key=52, versions=(0, 2), flexible=0)
class VoteResponse:
    error_code: Int16
    topics: list[VoteResponseTopicData]
    node_endpoints: list[VoteResponseNodeEndpoint] = since(1, tag=0, default=[])


@part
class VoteResponseTopicData:
    topic_name: String
    partitions: list[VoteResponsePartitionData]


@part
class VoteResponseNodeEndpoint:
    node_id: Int32
    host: String
    port: Uint16


@part
class VoteResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32
    vote_granted: Bool


@message(key=53, versions=(0, 1), flexible=1)
class BeginQuorumEpochRequest:
    cluster_id: String | None = None
    voter_id: Int32 = since(1, ignorable=True, default=-1)
    topics: list[BeginQuorumEpochRequestTopicData]
    leader_endpoints: list[BeginQuorumEpochRequestLeaderEndpoint] = since(
        1, ignorable=True, default=[]
    )


@part
class BeginQuorumEpochRequestTopicData:
    topic_name: String
    partitions: list[BeginQuorumEpochRequestPartitionData]


@part
class BeginQuorumEpochRequestLeaderEndpoint:
    name: String
    host: String
    port: Uint16


@part
class BeginQuorumEpochRequestPartitionData:
    partition_index: Int32
    voter_directory_id: Uuid = since(1, ignorable=True, default=ZERO)
    leader_id: Int32
    leader_epoch: Int32


@message(key=53, versions=(0, 1), flexible=1)
class BeginQuorumEpochResponse:
    error_code: Int16
    topics: list[BeginQuorumEpochResponseTopicData]
    node_endpoints: list[BeginQuorumEpochResponseNodeEndpoint] = since(1, tag=0, default=[])


@part
class BeginQuorumEpochResponseTopicData:
    topic_name: String
    partitions: list[BeginQuorumEpochResponsePartitionData]


@part
class BeginQuorumEpochResponseNodeEndpoint:
    node_id: Int32
    host: String
    port: Uint16


@part
class BeginQuorumEpochResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32


@message(key=54, versions=(0, 1), flexible=1)
class EndQuorumEpochRequest:
    cluster_id: String | None = None
    topics: list[EndQuorumEpochRequestTopicData]
    leader_endpoints: list[EndQuorumEpochRequestLeaderEndpoint] = since(
        1, ignorable=True, default=[]
    )


@part
class EndQuorumEpochRequestTopicData:
    topic_name: String
    partitions: list[EndQuorumEpochRequestPartitionData]


@part
class EndQuorumEpochRequestLeaderEndpoint:
    name: String
    host: String
    port: Uint16


@part
class EndQuorumEpochRequestPartitionData:
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32
    preferred_successors: list[Int32] = since(until=0, ignorable=True, default=[])
    preferred_candidates: list[ReplicaInfo] = since(1, ignorable=True, default=[])


@part
class ReplicaInfo:
    candidate_id: Int32
    candidate_directory_id: Uuid


@message(key=54, versions=(0, 1), flexible=1)
class EndQuorumEpochResponse:
    error_code: Int16
    topics: list[EndQuorumEpochResponseTopicData]
    node_endpoints: list[EndQuorumEpochResponseNodeEndpoint] = since(1, tag=0, default=[])


@part
class EndQuorumEpochResponseTopicData:
    topic_name: String
    partitions: list[EndQuorumEpochResponsePartitionData]


@part
class EndQuorumEpochResponseNodeEndpoint:
    node_id: Int32
    host: String
    port: Uint16


@part
class EndQuorumEpochResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32


@message(key=55, versions=(0, 2), flexible=0)
class DescribeQuorumRequest:
    topics: list[DescribeQuorumRequestTopicData]


@part
class DescribeQuorumRequestTopicData:
    topic_name: String
    partitions: list[DescribeQuorumRequestPartitionData]


@part
class DescribeQuorumRequestPartitionData:
    partition_index: Int32


@message(key=55, versions=(0, 2), flexible=0)
class DescribeQuorumResponse:
    error_code: Int16
    error_message: String | None = since(2, ignorable=True, default="")
    topics: list[DescribeQuorumResponseTopicData]
    nodes: list[Node] = since(2, default=[])


@part
class DescribeQuorumResponseTopicData:
    topic_name: String
    partitions: list[DescribeQuorumResponsePartitionData]


@part
class Node:
    node_id: Int32
    listeners: list[DescribeQuorumResponseListener]


@part
class DescribeQuorumResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    error_message: String | None = since(2, ignorable=True, default="")
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]


@part
class DescribeQuorumResponseListener:
    name: String
    host: String
    port: Uint16


@part
class ReplicaState:
    replica_id: Int32
    replica_directory_id: Uuid = since(2, default=ZERO)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = since(1, ignorable=True, default=-1)
    last_caught_up_timestamp: Int64 = since(1, ignorable=True, default=-1)


@message(key=59, versions=(0, 1), flexible=0)
class FetchSnapshotRequest:
    cluster_id: String | None = since(tag=0, default=None)
    replica_id: Int32 = -1
    max_bytes: Int32 = INT32_MAX
    topics: list[FetchSnapshotRequestTopicSnapshot]


@part
class FetchSnapshotRequestTopicSnapshot:
    name: String
    partitions: list[FetchSnapshotRequestPartitionSnapshot]


@part
class FetchSnapshotRequestPartitionSnapshot:
    partition: Int32
    current_leader_epoch: Int32
    snapshot_id: FetchSnapshotRequestSnapshotId
    position: Int64
    replica_directory_id: Uuid = since(1, tag=0, ignorable=True, default=ZERO)


@part
class FetchSnapshotRequestSnapshotId:
    end_offset: Int64
    epoch: Int32


@message(key=59, versions=(0, 1), flexible=0)
class FetchSnapshotResponse:
    throttle_time_ms: Int32
    error_code: Int16
    topics: list[FetchSnapshotResponseTopicSnapshot]
    node_endpoints: list[FetchSnapshotResponseNodeEndpoint] = since(1, tag=0, default=[])


@part
class FetchSnapshotResponseTopicSnapshot:
    name: String
    partitions: list[FetchSnapshotResponsePartitionSnapshot]


@part
class FetchSnapshotResponseNodeEndpoint:
    node_id: Int32
    host: String
    port: Uint16


@part
class FetchSnapshotResponsePartitionSnapshot:
    index: Int32
    error_code: Int16
    snapshot_id: FetchSnapshotResponseSnapshotId
    current_leader: LeaderIdAndEpoch | None = since(tag=0, default=ABSENT)
    size: Int64
    position: Int64
    unaligned_records: Records


@part
class FetchSnapshotResponseSnapshotId:
    end_offset: Int64
    epoch: Int32


@part
class LeaderIdAndEpoch:
    leader_id: Int32
    leader_epoch: Int32


@message(key=80, versions=(0, 1), flexible=0)
class AddRaftVoterRequest:
    cluster_id: String | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[AddRaftVoterRequestListener]
    ack_when_committed: Bool = since(1, default=True)


@part
class AddRaftVoterRequestListener:
    name: String
    host: String
    port: Uint16


@message(key=80, versions=(0, 1), flexible=0)
class AddRaftVoterResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None


@message(key=81, versions=(0, 0), flexible=0)
class RemoveRaftVoterRequest:
    cluster_id: String | None
    voter_id: Int32
    voter_directory_id: Uuid


@message(key=81, versions=(0, 0), flexible=0)
class RemoveRaftVoterResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None


@message(key=82, versions=(0, 0), flexible=0)
class UpdateRaftVoterRequest:
    cluster_id: String | None
    current_leader_epoch: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[UpdateRaftVoterRequestListener]
    k_raft_version_feature: KRaftVersionFeature


@part
class UpdateRaftVoterRequestListener:
    name: String
    host: String
    port: Uint16


@part
class KRaftVersionFeature:
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=82, versions=(0, 0), flexible=0)
class UpdateRaftVoterResponse:
    throttle_time_ms: Int32
    error_code: Int16
    current_leader: CurrentLeader | None = since(tag=0, default=ABSENT)


@part
class CurrentLeader:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    host: String
    port: Int32
