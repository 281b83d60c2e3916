"""Fetch: batches from a partition leader to consumers and followers, with fetch sessions."""

from __future__ import annotations

from ottla.protocol.schema import (
    ABSENT,
    INT32_MAX,
    INT64_MAX,
    ZERO,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Uuid,
    message,
    part,
    since,
)


@message(key=1, versions=(4, 18), flexible=12)
class FetchRequest:
    cluster_id: String | None = since(12, tag=0, ignorable=True, default=None)
    replica_id: Int32 = since(until=14, default=-1)
    replica_state: ReplicaState | None = since(15, tag=1, default=ABSENT)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = INT32_MAX
    isolation_level: Int8 = 0
    session_id: Int32 = since(7, ignorable=True, default=0)
    session_epoch: Int32 = since(7, ignorable=True, default=-1)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = since(7, default=[])
    rack_id: String = since(11, ignorable=True, default="")


@part
class ReplicaState:
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@part
class FetchTopic:
    topic: String = since(until=12, ignorable=True, default="")
    topic_id: Uuid = since(13, ignorable=True, default=ZERO)
    partitions: list[FetchPartition]


@part
class ForgottenTopic:
    topic: String = since(until=12, ignorable=True, default="")
    topic_id: Uuid = since(13, ignorable=True, default=ZERO)
    partitions: list[Int32]


@part
class FetchPartition:
    partition: Int32
    current_leader_epoch: Int32 = since(9, ignorable=True, default=-1)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = since(12, default=-1)
    log_start_offset: Int64 = since(5, ignorable=True, default=-1)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = since(17, tag=0, ignorable=True, default=ZERO)
    high_watermark: Int64 = since(18, tag=1, ignorable=True, default=INT64_MAX)


@message(key=1, versions=(4, 18), flexible=12)
class FetchResponse:
    throttle_time_ms: Int32
    error_code: Int16 = since(7, ignorable=True, default=0)
    session_id: Int32 = since(7, default=0)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = since(16, tag=0, default=[])


@part
class FetchableTopicResponse:
    topic: String = since(until=12, ignorable=True, default="")
    topic_id: Uuid = since(13, ignorable=True, default=ZERO)
    partitions: list[PartitionData]


@part
class NodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


@part
class PartitionData:
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = since(5, ignorable=True, default=-1)
    diverging_epoch: EpochEndOffset | None = since(12, tag=0, default=ABSENT)
    current_leader: LeaderIdAndEpoch | None = since(12, tag=1, default=ABSENT)
    snapshot_id: SnapshotId | None = since(12, tag=2, default=ABSENT)
    aborted_transactions: list[AbortedTransaction] | None
    preferred_read_replica: Int32 = since(11, default=-1)
    records: Records | None


@part
class EpochEndOffset:
    epoch: Int32 = -1
    end_offset: Int64 = -1


@part
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@part
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@part
class AbortedTransaction:
    producer_id: Int64
    first_offset: Int64
