"""Share groups (KIP-932): membership, fetching, acknowledging, their offsets."""

from __future__ import annotations

from ottla.protocol.schema import (
    INT32_MAX,
    INT32_MIN,
    Bool,
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


@message(key=76, versions=(1, 1), flexible=0)
class ShareGroupHeartbeatRequest:
    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: String | None = None
    subscribed_topic_names: list[String] | None = None


@message(key=76, versions=(1, 1), flexible=0)
class ShareGroupHeartbeatResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: ShareGroupHeartbeatResponseAssignment | None = None


@part
class ShareGroupHeartbeatResponseAssignment:
    topic_partitions: list[ShareGroupHeartbeatResponseTopicPartitions]


@part
class ShareGroupHeartbeatResponseTopicPartitions:
    topic_id: Uuid
    partitions: list[Int32]


@message(key=77, versions=(1, 1), flexible=0)
class ShareGroupDescribeRequest:
    group_ids: list[String]
    include_authorized_operations: Bool


@message(key=77, versions=(1, 1), flexible=0)
class ShareGroupDescribeResponse:
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
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    assignment: ShareGroupDescribeResponseAssignment


@part
class ShareGroupDescribeResponseAssignment:
    topic_partitions: list[ShareGroupDescribeResponseTopicPartitions]


@part
class ShareGroupDescribeResponseTopicPartitions:
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


@message(key=78, versions=(1, 2), flexible=0)
class ShareFetchRequest:
    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = INT32_MAX
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Int8 = since(2, ignorable=True, default=0)
    is_renew_ack: Bool = since(2, default=False)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]


@part
class FetchTopic:
    topic_id: Uuid
    partitions: list[FetchPartition]


@part
class ForgottenTopic:
    topic_id: Uuid
    partitions: list[Int32]


@part
class FetchPartition:
    partition_index: Int32
    acknowledgement_batches: list[ShareFetchRequestAcknowledgementBatch]


@part
class ShareFetchRequestAcknowledgementBatch:
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: list[Int8]


@message(key=78, versions=(1, 2), flexible=0)
class ShareFetchResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponseNodeEndpoint]


@part
class ShareFetchableTopicResponse:
    topic_id: Uuid
    partitions: list[ShareFetchResponsePartitionData]


@part
class ShareFetchResponseNodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


@part
class ShareFetchResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    acknowledge_error_code: Int16
    acknowledge_error_message: String | None = None
    current_leader: ShareFetchResponseLeaderIdAndEpoch
    records: Records
    acquired_records: list[AcquiredRecords]


@part
class ShareFetchResponseLeaderIdAndEpoch:
    leader_id: Int32
    leader_epoch: Int32


@part
class AcquiredRecords:
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


@message(key=79, versions=(1, 2), flexible=0)
class ShareAcknowledgeRequest:
    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Bool = since(2, default=False)
    topics: list[AcknowledgeTopic]


@part
class AcknowledgeTopic:
    topic_id: Uuid
    partitions: list[AcknowledgePartition]


@part
class AcknowledgePartition:
    partition_index: Int32
    acknowledgement_batches: list[ShareAcknowledgeRequestAcknowledgementBatch]


@part
class ShareAcknowledgeRequestAcknowledgementBatch:
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: list[Int8]


@message(key=79, versions=(1, 2), flexible=0)
class ShareAcknowledgeResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = since(2, ignorable=True, default=0)
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint]


@part
class ShareAcknowledgeTopicResponse:
    topic_id: Uuid
    partitions: list[ShareAcknowledgeResponsePartitionData]


@part
class ShareAcknowledgeResponseNodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


@part
class ShareAcknowledgeResponsePartitionData:
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    current_leader: ShareAcknowledgeResponseLeaderIdAndEpoch


@part
class ShareAcknowledgeResponseLeaderIdAndEpoch:
    leader_id: Int32
    leader_epoch: Int32


@message(key=90, versions=(0, 1), flexible=0)
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup]


@part
class DescribeShareGroupOffsetsRequestGroup:
    group_id: String
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None


@part
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: String
    partitions: list[Int32]


@message(key=90, versions=(0, 1), flexible=0)
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: Int32
    groups: list[DescribeShareGroupOffsetsResponseGroup]


@part
class DescribeShareGroupOffsetsResponseGroup:
    group_id: String
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: Int16
    error_message: String | None = None


@part
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: String
    topic_id: Uuid
    partitions: list[DescribeShareGroupOffsetsResponsePartition]


@part
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Int64 = since(1, ignorable=True, default=-1)
    error_code: Int16
    error_message: String | None = None


@message(key=91, versions=(0, 0), flexible=0)
class AlterShareGroupOffsetsRequest:
    group_id: String
    topics: list[AlterShareGroupOffsetsRequestTopic]


@part
class AlterShareGroupOffsetsRequestTopic:
    topic_name: String
    partitions: list[AlterShareGroupOffsetsRequestPartition]


@part
class AlterShareGroupOffsetsRequestPartition:
    partition_index: Int32
    start_offset: Int64


@message(key=91, versions=(0, 0), flexible=0)
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic]


@part
class AlterShareGroupOffsetsResponseTopic:
    topic_name: String
    topic_id: Uuid
    partitions: list[AlterShareGroupOffsetsResponsePartition]


@part
class AlterShareGroupOffsetsResponsePartition:
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None


@message(key=92, versions=(0, 0), flexible=0)
class DeleteShareGroupOffsetsRequest:
    group_id: String
    topics: list[DeleteShareGroupOffsetsRequestTopic]


@part
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: String


@message(key=92, versions=(0, 0), flexible=0)
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic]


@part
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: String
    topic_id: Uuid
    error_code: Int16
    error_message: String | None = None
