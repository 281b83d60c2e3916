"""Metadata and DescribeTopicPartitions: who leads what, and topics made on the way."""

from __future__ import annotations

from bisect import bisect_left

from ottla.broker.handlers.cluster import CLUSTER_OPERATIONS
from ottla.broker.topic_creation import INTERNAL_TOPICS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.schema import INT32_MIN, ZERO
from ottla.storage.names import is_topic_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.replication.metadata import Image, TopicImage
    from ottla.replication.metadata_topics import PartitionRegistration

    Found = TopicImage | MetadataResponseTopic

# READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
_PARTITIONS_PER_SLICE = 2000


def metadata(
    broker: Broker, context: Context, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    _check(context, request)
    found = _found(broker, context, request)
    if sum(len(each.partitions) for each in found) > _PARTITIONS_PER_SLICE:
        return _in_slices(broker, context, request, found)
    return _response(broker, context, request, [_answer(broker.image, each) for each in found])


def _found(broker: Broker, context: Context, request: MetadataRequest) -> list[Found]:
    """What was asked for: topics that are there, and answers for those that are not."""
    image = broker.image
    if request.topics is None or (context.version == 0 and not request.topics):
        return list(image.topics.by_name.values())
    # Where a topic is named by its id, names are not looked at.
    ids = dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id != ZERO)
    if ids:
        return [image.topics.by_id.get(topic_id) or _unknown(topic_id) for topic_id in ids]
    names = list(dict.fromkeys(topic.name or "" for topic in request.topics))
    missing = [name for name in names if name not in image.topics.by_name]
    answers = {name: _missing(name) for name in missing}
    may_create = context.version < 4 or request.allow_auto_topic_creation
    if missing and may_create and broker.config["auto.create.topics.enable"]:
        for name, error in broker.topic_creation.ask(
            [name for name in missing if is_topic_name(name)]
        ).items():
            answers[name] = _refused(name, error)
    known = [image.topics.by_name[name] for name in names if name not in answers]
    return [*known, *(answers[name] for name in missing)]


def _check(context: Context, request: MetadataRequest) -> None:
    for topic in request.topics or ():
        if topic.name is None and context.version < 12:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Topic name can not be null for version {context.version}",
            )
        if topic.topic_id != ZERO and context.version < 12:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Topic IDs are not supported in requests for version {context.version}",
            )


async def _in_slices(
    broker: Broker, context: Context, request: MetadataRequest, found: list[Found]
) -> MetadataResponse:
    answered, count = [], 0
    for each in found:
        answered.append(_answer(broker.image, each))
        count += len(each.partitions)
        if count > _PARTITIONS_PER_SLICE:
            count = 0
            await broker.pause()
    return _response(broker, context, request, answered)


def _response(
    broker: Broker,
    context: Context,
    request: MetadataRequest,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in topics:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in broker.nodes(context)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.any_node_id(context),
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else INT32_MIN
        ),
    )


def _answer(image: Image, found: Found) -> MetadataResponseTopic:
    return found if isinstance(found, MetadataResponseTopic) else _known(image, found)


def _known(image: Image, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                error_code=_leader_error(image, registration),
                partition_index=index,
                leader_id=registration.leader,
                leader_epoch=registration.leader_epoch,
                replica_nodes=list(registration.replicas),
                isr_nodes=list(registration.isr),
                offline_replicas=offline(image, registration),
            )
            for index, registration in partitions_of(topic)
        ],
    )


def partitions_of(topic: TopicImage) -> Iterable[tuple[int, PartitionRegistration]]:
    return sorted(topic.partitions.items())


def _leader_error(image: Image, registration: PartitionRegistration) -> int:
    leader = image.brokers.get(registration.leader)
    if leader is None or leader.fenced:
        return int(ErrorCode.LEADER_NOT_AVAILABLE)
    return 0


def offline(image: Image, registration: PartitionRegistration) -> list[int]:
    """Replicas on brokers that are not there, or in directories that have failed."""
    found = []
    for replica, directory in zip(registration.replicas, registration.directories, strict=False):
        broker = image.brokers.get(replica)
        if broker is None or broker.fenced or not broker.has_online(directory):
            found.append(replica)
    return found


def _unknown(topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=int(ErrorCode.UNKNOWN_TOPIC_ID), name=None, topic_id=topic_id, partitions=[]
    )


def _missing(name: str) -> MetadataResponseTopic:
    is_good = is_topic_name(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_good else ErrorCode.INVALID_TOPIC_EXCEPTION
    return _refused(name, code)


def _refused(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=int(code), name=name, is_internal=name in INTERNAL_TOPICS, partitions=[]
    )


# --- DescribeTopicPartitions --------------------------------------------------------------


def describe_topic_partitions(
    broker: Broker, context: Context, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Sorted by name; a page ends after so many partitions, and says where the next begins."""
    image, cursor = broker.image, request.cursor
    limit = broker.config["max.request.partition.size.limit"]
    left = max(1, min(request.response_partition_limit, limit))
    if cursor is not None and cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor}",
        )
    asked = {topic.name for topic in request.topics}
    if cursor is not None and asked and cursor.topic_name not in asked:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic:"
            f" {cursor.topic_name}",
        )
    names = sorted(asked or image.topics.by_name)
    first = 0
    if cursor is not None:
        names = names[bisect_left(names, cursor.topic_name) :]
        first = cursor.partition_index if names and names[0] == cursor.topic_name else 0
    answer = DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=[])
    for name in names:
        if not left:
            answer.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=0
            )
            break
        topic = image.topics.by_name.get(name)
        if topic is None:
            answer.topics.append(_undescribed(name))
            continue
        pages = [(index, each) for index, each in partitions_of(topic) if index >= first]
        first = 0
        answer.topics.append(_described(image, topic, pages[:left]))
        if len(pages) > left:
            answer.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=pages[left][0]
            )
            break
        left -= len(pages)
    return answer


def _undescribed(name: str) -> DescribeTopicPartitionsResponseTopic:
    missing = _missing(name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing.error_code,
        name=name,
        topic_id=ZERO,
        is_internal=missing.is_internal,
        partitions=[],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(
    image: Image, topic: TopicImage, partitions: list[tuple[int, PartitionRegistration]]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=_leader_error(image, registration),
                partition_index=index,
                leader_id=registration.leader,
                leader_epoch=registration.leader_epoch,
                replica_nodes=list(registration.replicas),
                isr_nodes=list(registration.isr),
                eligible_leader_replicas=list(registration.elr),
                last_known_elr=list(registration.last_known_elr),
                offline_replicas=offline(image, registration),
            )
            for index, registration in partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
