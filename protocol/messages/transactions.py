"""Producer ids and transactions."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Int64, String, message, part, since


@message(key=22, versions=(0, 6), flexible=2)
class InitProducerIdRequest:
    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = since(3, default=-1)
    producer_epoch: Int16 = since(3, default=-1)
    enable2_pc: Bool = since(6, default=False)
    keep_prepared_txn: Bool = since(6, default=False)


@message(key=22, versions=(0, 6), flexible=2)
class InitProducerIdResponse:
    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = since(6, default=-1)
    ongoing_txn_producer_epoch: Int16 = since(6, default=-1)


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = since(4, default=[])
    v3_and_below_transactional_id: String = since(until=3, default="")
    v3_and_below_producer_id: Int64 = since(until=3, default=0)
    v3_and_below_producer_epoch: Int16 = since(until=3, default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = since(until=3, default=[])


@part
class AddPartitionsToTxnTransaction:
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: list[AddPartitionsToTxnTopic]


@part
class AddPartitionsToTxnTopic:
    name: String
    partitions: list[Int32]


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse:
    throttle_time_ms: Int32
    error_code: Int16 = since(4, ignorable=True, default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = since(4, default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = since(until=3, default=[])


@part
class AddPartitionsToTxnResult:
    transactional_id: String
    topic_results: list[AddPartitionsToTxnTopicResult]


@part
class AddPartitionsToTxnTopicResult:
    name: String
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


@part
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32
    partition_error_code: Int16


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest:
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: Int32
    error_code: Int16


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnRequest:
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnResponse:
    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = since(5, ignorable=True, default=-1)
    producer_epoch: Int16 = since(5, ignorable=True, default=-1)


@message(key=27, versions=(1, 2), flexible=1)
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker]


@part
class WritableTxnMarker:
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = since(2, ignorable=True, default=0)


@part
class WritableTxnMarkerTopic:
    name: String
    partition_indexes: list[Int32]


@message(key=27, versions=(1, 2), flexible=1)
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult]


@part
class WritableTxnMarkerResult:
    producer_id: Int64
    topics: list[WritableTxnMarkerTopicResult]


@part
class WritableTxnMarkerTopicResult:
    name: String
    partitions: list[WritableTxnMarkerPartitionResult]


@part
class WritableTxnMarkerPartitionResult:
    partition_index: Int32
    error_code: Int16


@message(key=28, versions=(0, 5), flexible=3)
class TxnOffsetCommitRequest:
    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = since(3, default=-1)
    member_id: String = since(3, default="")
    group_instance_id: String | None = since(3, default=None)
    topics: list[TxnOffsetCommitRequestTopic]


@part
class TxnOffsetCommitRequestTopic:
    name: String
    partitions: list[TxnOffsetCommitRequestPartition]


@part
class TxnOffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = since(2, ignorable=True, default=-1)
    committed_metadata: String | None


@message(key=28, versions=(0, 5), flexible=3)
class TxnOffsetCommitResponse:
    throttle_time_ms: Int32
    topics: list[TxnOffsetCommitResponseTopic]


@part
class TxnOffsetCommitResponseTopic:
    name: String
    partitions: list[TxnOffsetCommitResponsePartition]


@part
class TxnOffsetCommitResponsePartition:
    partition_index: Int32
    error_code: Int16


@message(key=61, versions=(0, 0), flexible=0)
class DescribeProducersRequest:
    topics: list[TopicRequest]


@part
class TopicRequest:
    name: String
    partition_indexes: list[Int32]


@message(key=61, versions=(0, 0), flexible=0)
class DescribeProducersResponse:
    throttle_time_ms: Int32
    topics: list[TopicResponse]


@part
class TopicResponse:
    name: String
    partitions: list[PartitionResponse]


@part
class PartitionResponse:
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    active_producers: list[ProducerState]


@part
class ProducerState:
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsRequest:
    transactional_ids: list[String]


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsResponse:
    throttle_time_ms: Int32
    transaction_states: list[DescribeTransactionsResponseTransactionState]


@part
class DescribeTransactionsResponseTransactionState:
    error_code: Int16
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TopicData]


@part
class TopicData:
    topic: String
    partitions: list[Int32]


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsRequest:
    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = since(1, default=-1)
    transactional_id_pattern: String | None = since(2, default=None)


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    unknown_state_filters: list[String]
    transaction_states: list[ListTransactionsResponseTransactionState]


@part
class ListTransactionsResponseTransactionState:
    transactional_id: String
    producer_id: Int64
    transaction_state: String


@message(key=67, versions=(0, 0), flexible=0)
class AllocateProducerIdsRequest:
    broker_id: Int32
    broker_epoch: Int64 = -1


@message(key=67, versions=(0, 0), flexible=0)
class AllocateProducerIdsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    producer_id_start: Int64
    producer_id_len: Int32
