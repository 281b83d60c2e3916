"""Produce: batches from a producer to a partition leader."""

from __future__ import annotations

from ottla.protocol.schema import (
    ABSENT,
    ZERO,
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


@message(key=0, versions=(3, 13), flexible=9)
class ProduceRequest:
    transactional_id: String | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]


@part
class TopicProduceData:
    name: String = since(until=12, ignorable=True, default="")
    topic_id: Uuid = since(13, ignorable=True, default=ZERO)
    partition_data: list[PartitionProduceData]


@part
class PartitionProduceData:
    index: Int32
    records: Records | None


@message(key=0, versions=(3, 13), flexible=9)
class ProduceResponse:
    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32 = 0
    node_endpoints: list[NodeEndpoint] = since(10, tag=0, default=[])


@part
class TopicProduceResponse:
    name: String = since(until=12, ignorable=True, default="")
    topic_id: Uuid = since(13, ignorable=True, default=ZERO)
    partition_responses: list[PartitionProduceResponse]


@part
class NodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


@part
class PartitionProduceResponse:
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = since(5, ignorable=True, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = since(8, ignorable=True, default=[])
    error_message: String | None = since(8, ignorable=True, default=None)
    current_leader: LeaderIdAndEpoch | None = since(10, tag=0, default=ABSENT)


@part
class BatchIndexAndErrorMessage:
    batch_index: Int32
    batch_index_error_message: String | None = None


@part
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
