"""State of share partitions, kept by the share coordinator. Between brokers only."""

from __future__ import annotations

from ottla.protocol.schema import Int8, Int16, Int32, Int64, String, Uuid, message, part, since


@message(key=83, versions=(0, 0), flexible=0)
class InitializeShareGroupStateRequest:
    group_id: String
    topics: list[InitializeStateData]


@part
class InitializeStateData:
    topic_id: Uuid
    partitions: list[InitializeShareGroupStateRequestPartitionData]


@part
class InitializeShareGroupStateRequestPartitionData:
    partition: Int32
    state_epoch: Int32
    start_offset: Int64


@message(key=83, versions=(0, 0), flexible=0)
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult]


@part
class InitializeStateResult:
    topic_id: Uuid
    partitions: list[InitializeShareGroupStateResponsePartitionResult]


@part
class InitializeShareGroupStateResponsePartitionResult:
    partition: Int32
    error_code: Int16
    error_message: String | None = None


@message(key=84, versions=(0, 0), flexible=0)
class ReadShareGroupStateRequest:
    group_id: String
    topics: list[ReadStateData]


@part
class ReadStateData:
    topic_id: Uuid
    partitions: list[ReadShareGroupStateRequestPartitionData]


@part
class ReadShareGroupStateRequestPartitionData:
    partition: Int32
    leader_epoch: Int32


@message(key=84, versions=(0, 0), flexible=0)
class ReadShareGroupStateResponse:
    results: list[ReadStateResult]


@part
class ReadStateResult:
    topic_id: Uuid
    partitions: list[ReadShareGroupStateResponsePartitionResult]


@part
class ReadShareGroupStateResponsePartitionResult:
    partition: Int32
    error_code: Int16
    error_message: String | None = None
    state_epoch: Int32
    start_offset: Int64
    state_batches: list[ReadShareGroupStateResponseStateBatch]


@part
class ReadShareGroupStateResponseStateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@message(key=85, versions=(0, 1), flexible=0)
class WriteShareGroupStateRequest:
    group_id: String
    topics: list[WriteStateData]


@part
class WriteStateData:
    topic_id: Uuid
    partitions: list[WriteShareGroupStateRequestPartitionData]


@part
class WriteShareGroupStateRequestPartitionData:
    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(1, ignorable=True, default=-1)
    state_batches: list[WriteShareGroupStateRequestStateBatch]


@part
class WriteShareGroupStateRequestStateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@message(key=85, versions=(0, 1), flexible=0)
class WriteShareGroupStateResponse:
    results: list[WriteStateResult]


@part
class WriteStateResult:
    topic_id: Uuid
    partitions: list[WriteShareGroupStateResponsePartitionResult]


@part
class WriteShareGroupStateResponsePartitionResult:
    partition: Int32
    error_code: Int16
    error_message: String | None = None


@message(key=86, versions=(0, 0), flexible=0)
class DeleteShareGroupStateRequest:
    group_id: String
    topics: list[DeleteStateData]


@part
class DeleteStateData:
    topic_id: Uuid
    partitions: list[DeleteShareGroupStateRequestPartitionData]


@part
class DeleteShareGroupStateRequestPartitionData:
    partition: Int32


@message(key=86, versions=(0, 0), flexible=0)
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult]


@part
class DeleteStateResult:
    topic_id: Uuid
    partitions: list[DeleteShareGroupStateResponsePartitionResult]


@part
class DeleteShareGroupStateResponsePartitionResult:
    partition: Int32
    error_code: Int16
    error_message: String | None = None


@message(key=87, versions=(0, 1), flexible=0)
class ReadShareGroupStateSummaryRequest:
    group_id: String
    topics: list[ReadStateSummaryData]


@part
class ReadStateSummaryData:
    topic_id: Uuid
    partitions: list[ReadShareGroupStateSummaryRequestPartitionData]


@part
class ReadShareGroupStateSummaryRequestPartitionData:
    partition: Int32
    leader_epoch: Int32


@message(key=87, versions=(0, 1), flexible=0)
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult]


@part
class ReadStateSummaryResult:
    topic_id: Uuid
    partitions: list[ReadShareGroupStateSummaryResponsePartitionResult]


@part
class ReadShareGroupStateSummaryResponsePartitionResult:
    partition: Int32
    error_code: Int16
    error_message: String | None = None
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(1, ignorable=True, default=-1)
