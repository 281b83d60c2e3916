"""InitProducerId for idempotent producers, and DescribeProducers."""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.replication.topic_names import why_invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

_NONE = -1
_PRODUCERS_AT_ONCE_MAX = 2000


async def init_producer_id(
    broker: Broker, context: Context, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """A producer without a transactional id gets a new id each time, whatever it has already."""
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        # Every client takes this error for final, and there are no transactions yet.
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (request.producer_id == _NONE) is not (request.producer_epoch == _NONE):
        return _refused(ErrorCode.INVALID_REQUEST)
    try:
        producer_id = await broker.producer_ids.take()
    except KafkaError as error:
        return _refused(error.code)
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=0, producer_id=producer_id, producer_epoch=0
    )


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_epoch=_NONE)


async def describe_producers(
    broker: Broker, context: Context, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        refusal = _refusal(broker, topic.name)
        partitions = []
        for index in topic.partition_indexes:
            if refusal is None:
                partitions.append(await _described(broker, topic.name, index))
            else:
                code, message = refusal
                partitions.append(
                    PartitionResponse(
                        partition_index=index,
                        error_code=code,
                        error_message=message,
                        active_producers=[],
                    )
                )
            await broker.pause()
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    return DescribeProducersResponse(throttle_time_ms=0, topics=topics)


def _refusal(broker: Broker, name: str) -> tuple[ErrorCode, str] | None:
    reason = why_invalid(name)
    if reason is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, reason
    if name not in broker.image.topics.by_name:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return unknown, unknown.message
    return None


async def _described(broker: Broker, name: str, index: int) -> PartitionResponse:
    response = PartitionResponse(partition_index=index, error_code=0, active_producers=[])
    try:
        partition = broker.node.partition(name, index)
    except KafkaError as error:
        response.error_code = error.code
        return response
    known = list(partition.log.producers.producers.items())
    for number, (producer_id, producer) in enumerate(known, 1):
        batches = producer.batches
        response.active_producers.append(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=batches[-1].last_sequence if batches else _NONE,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
        )
        if number % _PRODUCERS_AT_ONCE_MAX == 0:
            await broker.pause()
    return response
