"""CreateTopics, DeleteTopics, CreatePartitions: the controller decides, these wait for it.

A topic is answered when this node serves it.
"""

from __future__ import annotations

from ottla.broker.deadlines import decided_within
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ottla.protocol.schema import ZERO
from ottla.replication.controller_state import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

# Before this version a client knew no error for a broker that deletes no topics.
_DELETION_DISABLED_SINCE = 3
_DELETES_BY_ID_SINCE = 6


async def create_topics(
    broker: Broker, context: Context, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    try:
        return await decided_within(
            broker,
            request.timeout_ms,
            lambda controller, now: controller.create_topics(request, now),
        )
    except KafkaError as error:
        code, reason = failure(error)
        results = [
            CreatableTopicResult(name=topic.name, error_code=code, error_message=reason)
            for topic in request.topics
        ]
        return CreateTopicsResponse(throttle_time_ms=0, topics=results)


async def delete_topics(
    broker: Broker, context: Context, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    try:
        _check_deletion(broker, context)
        return await decided_within(
            broker,
            request.timeout_ms,
            lambda controller, now: controller.delete_topics(request, now),
        )
    except KafkaError as error:
        code, reason = failure(error)
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
        if context.version < _DELETES_BY_ID_SINCE:
            asked = [(name, ZERO) for name in request.topic_names]
        results = [
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=code, error_message=reason
            )
            for name, topic_id in asked
        ]
        return DeleteTopicsResponse(throttle_time_ms=0, responses=results)


def _check_deletion(broker: Broker, context: Context) -> None:
    if broker.config["delete.topic.enable"]:
        return
    if context.version < _DELETION_DISABLED_SINCE:
        reason = "This version does not support topic deletion."
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)


async def create_partitions(
    broker: Broker, context: Context, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    try:
        return await decided_within(
            broker,
            request.timeout_ms,
            lambda controller, now: controller.create_partitions(request, now),
        )
    except KafkaError as error:
        code, reason = failure(error)
        results = [
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=reason)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(throttle_time_ms=0, results=results)
