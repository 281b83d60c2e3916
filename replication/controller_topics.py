"""Deciding what topics there are: creating and growing them.

Pure. Each topic of a request is decided for itself, all that succeed are written as one batch. The
codes and sentences are Kafka's: people read them in Kafka's tools.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata_records import TopicRecord
from ottla.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.replication import controller_configs, new_partitions
from ottla.replication.controller_state import (
    PARTITIONS_MAX,
    RECORDS_MAX,
    TOO_LARGE,
    ControllerState,
    Failure,
    Outcome,
    failure,
)
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import (
    RESERVED_DIRECTORIES,
    PartitionRegistration,
)
from ottla.replication.topic_names import CLUSTER_METADATA, why_invalid

_DUPLICATE = Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


# ---- CreateTopics


def create_topics(
    state: ControllerState, request: CreateTopicsRequest
) -> Outcome[CreateTopicsResponse]:
    counts = Counter(topic.name for topic in request.topics)
    wanted = [
        topic
        for topic in request.topics
        if counts[topic.name] == 1 and topic.name != CLUSTER_METADATA
    ]
    _check_count(state, wanted)
    response = CreateTopicsResponse(throttle_time_ms=0, topics=[])
    records: list[Versioned] = []
    for topic in wanted:
        try:
            made, result = _creation(state, topic)
        except KafkaError as error:
            response.topics.append(_refused(topic.name, failure(error)))
            continue
        if len(records) + len(made) > RECORDS_MAX:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LARGE)
        records += made
        response.topics.append(result)
    for name, count in counts.items():
        if count > 1:
            response.topics.append(_refused(name, _DUPLICATE))
        elif name == CLUSTER_METADATA:
            reason = f"Creation of internal topic {CLUSTER_METADATA} is prohibited."
            response.topics.append(_refused(name, Failure(ErrorCode.INVALID_REQUEST, reason)))
    return Outcome(response, [] if request.validate_only else records)


def _check_count(state: ControllerState, topics: list[CreatableTopic]) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += state.settings.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > PARTITIONS_MAX:
        reason = "Excessively large number of partitions per request."
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


def _refused(name: str, found: Failure) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=found.code, error_message=found.message)


def _creation(
    state: ControllerState, topic: CreatableTopic
) -> tuple[list[Versioned], CreatableTopicResult]:
    _check_name(state, topic.name)
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        reason = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    settings = {config.name: config.value for config in topic.configs if config.value is not None}
    configs = controller_configs.creation_records(state, topic.name, settings)
    partitions = _assigned(state, topic) if topic.assignments else _placed(state, topic)
    topic_id = new_topic_id(state.random)
    records = [
        Versioned(TopicRecord(name=topic.name, topic_id=topic_id)),
        *configs,
        *new_partitions.creation_records(topic_id, 0, partitions, state.level),
    ]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=0,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(
                name=config.name,
                value=None if config.is_sensitive else config.value,
                read_only=config.is_read_only,
                config_source=config.source,
                is_sensitive=config.is_sensitive,
            )
            for config in state.topic_configs(settings)
        ],
    )
    return records, result


def _check_name(state: ControllerState, name: str) -> None:
    if state.topic(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    collides = state.collision(name)
    if collides is not None:
        reason = f"Topic '{name}' collides with existing topic: {collides}"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    invalid = why_invalid(name)
    if invalid is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)


def _assigned(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    begin = "A manual partition assignment was specified, but"
    if topic.replication_factor != -1:
        reason = f"{begin} replication factor was not set to -1."
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    if topic.num_partitions != -1:
        reason = f"{begin} numPartitions was not set to -1."
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    found: dict[int, PartitionRegistration] = {}
    factor = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in found:
            reason = f"Found multiple manual partition assignments for partition {index}"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        replicas = assignment.broker_ids
        found[index] = new_partitions.assigned(state, index, replicas, replication_factor=factor)
        factor = len(replicas)
    if any(index not in found for index in range(len(found))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [found[index] for index in range(len(found))]


def _placed(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    factor, count = topic.replication_factor, topic.num_partitions
    if factor < -1 or factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < -1 or count == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    factor = state.settings.default_replication_factor if factor == -1 else factor
    count = state.settings.num_partitions if count == -1 else count
    try:
        placer = new_partitions.placer(state, replication_factor=factor)
    except KafkaError as error:
        reason = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise KafkaError(error.code, reason) from None
    return new_partitions.placed(state, placer, count, replication_factor=factor)


def new_topic_id(random: Random) -> bytes:
    """A random UUID as Java makes them, but none that is reserved or looks like an option."""
    while True:
        made = bytearray(random.randbytes(16))
        made[6] = made[6] & 0x0F | 0x40
        made[8] = made[8] & 0x3F | 0x80
        # In base64 it would begin with a dash, which tools take for an option.
        if made[0] >> 2 != 0b111110 and int.from_bytes(made, "big") >= RESERVED_DIRECTORIES:
            return bytes(made)


# ---- CreatePartitions


def create_partitions(
    state: ControllerState, request: CreatePartitionsRequest
) -> Outcome[CreatePartitionsResponse]:
    counts = Counter(topic.name for topic in request.topics)
    results = [_grown(name, _DUPLICATE) for name, count in counts.items() if count > 1]
    records: list[Versioned] = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            continue
        try:
            made = _growth(state, topic)
            if len(records) + len(made) > RECORDS_MAX:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LARGE)
        except KafkaError as error:
            results.append(_grown(topic.name, failure(error)))
            continue
        records += made
        results.append(_grown(topic.name, Failure(ErrorCode.NONE)))
    response = CreatePartitionsResponse(throttle_time_ms=0, results=results)
    return Outcome(response, [] if request.validate_only else records)


def _grown(name: str, found: Failure) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=found.code, error_message=found.message
    )


def _growth(state: ControllerState, topic: CreatePartitionsTopic) -> list[Versioned]:
    found = state.topic(topic.name)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(found.partitions)
    if topic.count == count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if topic.count < count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {count} partition(s); {topic.count} would not"
            " be an increase.",
        )
    additional = topic.count - count
    factor = len(next(iter(found.partitions.values())).replicas)
    if topic.assignments is None:
        if additional > PARTITIONS_MAX:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LARGE)
        placer = new_partitions.placer(state, replication_factor=factor)
        partitions = new_partitions.placed(state, placer, additional, replication_factor=factor)
    elif len(topic.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only"
            f" {len(topic.assignments)} assignment(s) were specified.",
        )
    else:
        partitions = [
            new_partitions.assigned(state, index, wanted.broker_ids, replication_factor=factor)
            for index, wanted in enumerate(topic.assignments, count)
        ]
    return new_partitions.creation_records(found.id, count, partitions, state.level)
