"""Deciding on which brokers a partition's replicas are to be, and telling who is on the way.

Pure. New replicas are added first; the old ones go when the new ones are in sync, with the change
of the ISR that makes them so.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.replication import reassignment
from ottla.replication.controller_state import (
    RECORDS_MAX,
    TOO_LARGE,
    ControllerState,
    Failure,
    Outcome,
    failure,
)
from ottla.replication.metadata import TopicImage
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import PartitionRegistration
from ottla.replication.new_partitions import check_assignment
from ottla.replication.partition_change import Election


def alter_partition_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest
) -> Outcome[AlterPartitionReassignmentsResponse]:
    may_change_factor = request.allow_replication_factor_change
    records: list[Versioned] = []
    responses = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            found = Failure(ErrorCode.NONE)
            try:
                record = _altered(state, topic.name, wanted, may_change_factor=may_change_factor)
            except KafkaError as error:
                found = failure(error)
            else:
                records += [] if record is None else [record]
            answers.append(
                ReassignablePartitionResponse(
                    partition_index=wanted.partition_index,
                    error_code=found.code,
                    error_message=found.message,
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    if len(records) > RECORDS_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LARGE)
    response = AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=may_change_factor,
        error_code=0,
        # Where nothing is asked Kafka's answer keeps its default.
        error_message=None if request.topics else "",
        responses=responses,
    )
    return Outcome(response, records)


def _altered(
    state: ControllerState, name: str, wanted: ReassignablePartition, *, may_change_factor: bool
) -> Versioned | None:
    topic = state.topic(name)
    if topic is None:
        reason = f"Unable to find a topic named {name}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        reason = f"Unable to find partition {name}:{wanted.partition_index}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
    if wanted.replicas is None:
        return _cancelled(state, topic, wanted.partition_index, partition)
    check_assignment(state, wanted.replicas)
    if not may_change_factor:
        _check_factor(partition, wanted.replicas)
    begun = reassignment.begin(partition.replicas, wanted.replicas)
    change = state.change(topic, wanted.partition_index, partition)
    change.replicas = begun.replicas
    if begun.removing:
        change.removing = begun.removing
    if begun.adding:
        change.adding = begun.adding
    return change.record()


def _check_factor(partition: PartitionRegistration, wanted: list[int]) -> None:
    if partition.is_reassigning:
        stays = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
        factor = len(stays)
    else:
        factor = len(partition.replicas)
    if factor != len(wanted):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(wanted)}",
        )


def _cancelled(
    state: ControllerState, topic: TopicImage, index: int, partition: PartitionRegistration
) -> Versioned | None:
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    back = reassignment.revert(partition)
    may_be_unclean = state.may_elect_uncleanly(topic.name)
    if back.unclean and not may_be_unclean:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{index} because it would"
            " require an unclean leader election.",
        )
    change = state.change(topic, index, partition)
    if may_be_unclean:
        change.election = Election.UNCLEAN
    change.isr = back.isr
    change.replicas = back.replicas
    change.removing = []
    change.adding = []
    return change.record()


def list_partition_reassignments(
    state: ControllerState, request: ListPartitionReassignmentsRequest
) -> Outcome[ListPartitionReassignmentsResponse]:
    if request.topics is None:
        wanted = [(topic, list(topic.partitions)) for topic in state.image.topics.by_id.values()]
    else:
        wanted = [
            (topic, asked.partition_indexes)
            for asked in request.topics
            if (topic := state.topic(asked.name)) is not None
        ]
    topics = []
    for topic, indexes in wanted:
        partitions = [
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
        ]
        if partitions:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=partitions))
    response = ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=0, error_message=None, topics=topics
    )
    return Outcome(response)
