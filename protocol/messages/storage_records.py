"""The producer snapshot file, and the records of tiered storage."""

from __future__ import annotations

from ottla.protocol.schema import (
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uint32,
    Uuid,
    message,
    part,
    since,
)


@message(versions=(1, 1))
class ProducerSnapshot:
    crc: Uint32
    producer_entries: list[ProducerEntry]


@part
class ProducerEntry:
    producer_id: Int64
    epoch: Int16
    last_sequence: Int32
    last_offset: Int64
    offset_delta: Int32
    timestamp: Int64
    coordinator_epoch: Int32
    current_txn_first_offset: Int64


@message(key=0, versions=(0, 0), flexible=0)
class RemoteLogSegmentMetadataRecord:
    remote_log_segment_id: RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry]
    segment_size_in_bytes: Int32
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8
    txn_index_empty: Bool = since(tag=0, default=False)


@part
class RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry:
    topic_id_partition: RemoteLogSegmentMetadataRecordTopicIdPartitionEntry
    id: Uuid


@part
class RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry:
    leader_epoch: Int32
    offset: Int64


@part
class RemoteLogSegmentMetadataRecordTopicIdPartitionEntry:
    name: String
    id: Uuid
    partition: Int32


@message(key=3, versions=(0, 0), flexible=0)
class RemoteLogSegmentMetadataSnapshotRecord:
    segment_id: Uuid
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry]
    segment_size_in_bytes: Int32
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8
    txn_index_empty: Bool = since(tag=0, default=False)


@part
class RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry:
    leader_epoch: Int32
    offset: Int64


@message(key=1, versions=(0, 0), flexible=0)
class RemoteLogSegmentMetadataUpdateRecord:
    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry
    broker_id: Int32
    event_timestamp_ms: Int64
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8


@part
class RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry:
    topic_id_partition: RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry
    id: Uuid


@part
class RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry:
    name: String
    id: Uuid
    partition: Int32


@message(key=2, versions=(0, 0), flexible=0)
class RemotePartitionDeleteMetadataRecord:
    topic_id_partition: RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry
    broker_id: Int32
    event_timestamp_ms: Int64
    remote_partition_delete_state: Int8


@part
class RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry:
    name: String
    id: Uuid
    partition: Int32
