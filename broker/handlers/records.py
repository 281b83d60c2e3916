"""DeleteRecords: everything before an offset is given up."""

from __future__ import annotations

from ottla.broker.topic_creation import INTERNAL_TOPICS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

_AT_ONCE_MAX = 32


async def delete_records(
    broker: Broker, context: Context, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    # A partition that is named twice gets the last offset, and one answer.
    wanted = {
        (topic.name, partition.partition_index): partition.offset
        for topic in request.topics
        for partition in topic.partitions
    }
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for number, ((name, index), offset) in enumerate(wanted.items(), 1):
        topics.setdefault(name, []).append(_deleted(broker, name, index, offset))
        if number % _AT_ONCE_MAX == 0:
            await broker.pause()
    return DeleteRecordsResponse(
        throttle_time_ms=0,
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=results)
            for name, results in topics.items()
        ],
    )


def _deleted(broker: Broker, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        partition = broker.node.partition(name, index)
        if name in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        low_watermark = partition.delete_records(offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=-1, error_code=error.code
        )
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=low_watermark, error_code=0
    )
