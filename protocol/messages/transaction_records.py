"""Records of `__transaction_state`."""

from __future__ import annotations

from ottla.protocol.schema import Int8, Int16, Int32, Int64, String, message, part, since


@message(key=0, versions=(0, 0))
class TransactionLogKey:
    transactional_id: String


@message(key=0, versions=(0, 1), flexible=1)
class TransactionLogValue:
    producer_id: Int64
    previous_producer_id: Int64 = since(1, tag=0, default=-1)
    next_producer_id: Int64 = since(1, tag=1, default=-1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = since(1, tag=3, default=-1)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = since(1, tag=2, default=0)


@part
class PartitionsSchema:
    topic: String
    partition_ids: list[Int32]
