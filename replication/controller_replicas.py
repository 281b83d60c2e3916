"""Deciding about replicas: who is in sync, who leads, and in which directory they are.

Pure. A leader proposes its ISR with the epochs that it knows, and the controller compares them with
its own: whoever is behind, or asks for more than it may, is refused and changes nothing.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.replicas import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
    BrokerState,
)
from ottla.replication import controller_partitions
from ottla.replication.controller_state import ControllerState, Outcome
from ottla.replication.metadata import TopicImage
from ottla.replication.metadata_brokers import BrokerImage
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
    merged,
)
from ottla.replication.metadata_versions import DIRECTORIES
from ottla.replication.partition_change import Election

# ---- AlterPartition


def alter_partition(
    state: ControllerState, request: AlterPartitionRequest
) -> Outcome[AlterPartitionResponse]:
    state.checked_broker(request.broker_id, request.broker_epoch)
    records: list[Versioned] = []
    topics = []
    for asked in request.topics:
        topic = state.image.topics.by_id.get(asked.topic_id)
        answers = []
        for data in asked.partitions:
            if topic is None:
                answers.append(_refused(data.partition_index, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            record, answer = _altered(state, request.broker_id, topic, data)
            records += record
            answers.append(answer)
        topics.append(AlterPartitionResponseTopicData(topic_id=asked.topic_id, partitions=answers))
    response = AlterPartitionResponse(throttle_time_ms=0, error_code=0, topics=topics)
    return Outcome(response, records, is_atomic=False)


def _refused(index: int, code: ErrorCode) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(
        partition_index=index,
        error_code=code,
        leader_id=0,
        leader_epoch=0,
        isr=[],
        partition_epoch=0,
    )


def _altered(
    state: ControllerState,
    broker_id: int,
    topic: TopicImage,
    data: AlterPartitionRequestPartitionData,
) -> tuple[list[Versioned], AlterPartitionResponsePartitionData]:
    index = data.partition_index
    partition = topic.partitions.get(index)
    if partition is None:
        return [], _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = data.new_isr_with_epochs or [BrokerState(broker_id=found) for found in data.new_isr]
    code = _why_not(state, broker_id, partition, data, isr)
    if code is not ErrorCode.NONE:
        return [], _refused(index, code)
    change = state.change(topic, index, partition)
    if state.may_elect_uncleanly(topic.name):
        change.election = Election.UNCLEAN
    change.isr = [found.broker_id for found in isr]
    change.recovery_state = data.leader_recovery_state
    record = change.record()
    records = [] if record is None else [record]
    if record is not None:
        partition = merged(partition, record.message)
        if record.message.leader not in (broker_id, NO_LEADER_CHANGE):
            # The change has ended a reassignment, and its leader with it.
            return records, _refused(index, ErrorCode.NEW_LEADER_ELECTED)
    answer = AlterPartitionResponsePartitionData(
        partition_index=index,
        error_code=0,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
    return records, answer


def _why_not(
    state: ControllerState,
    broker_id: int,
    partition: PartitionRegistration,
    data: AlterPartitionRequestPartitionData,
    isr: list[BrokerState],
) -> ErrorCode:
    newer_epochs = (
        data.leader_epoch > partition.leader_epoch
        or data.partition_epoch > partition.partition_epoch
    )
    if newer_epochs:
        # The broker has read more of the log than this node: it is not the controller any more.
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_possible(partition, data, isr):
        return ErrorCode.INVALID_REQUEST
    if not all(_may_be_in_sync(state, found) for found in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_possible(
    partition: PartitionRegistration,
    data: AlterPartitionRequestPartitionData,
    isr: list[BrokerState],
) -> bool:
    ids = [found.broker_id for found in isr]
    if len(set(ids)) != len(ids) or not set(ids) <= set(partition.replicas):
        return False
    if partition.leader not in ids:
        return False
    if data.leader_recovery_state not in (RECOVERED, RECOVERING):
        return False
    if data.leader_recovery_state == RECOVERING:
        # While a leader recovers from an unclean election nobody else has what it has.
        return len(ids) == 1 and partition.leader_recovery_state == RECOVERING
    return True


def _may_be_in_sync(state: ControllerState, found: BrokerState) -> bool:
    broker = state.image.brokers.get(found.broker_id)
    if broker is None or not broker.is_active:
        return False
    # A follower that has started anew must not come in by what its old self had (KIP-903).
    return found.broker_epoch in (-1, broker.epoch)


# ---- AssignReplicasToDirs


def assign_replicas_to_dirs(
    state: ControllerState, request: AssignReplicasToDirsRequest
) -> Outcome[AssignReplicasToDirsResponse]:
    if state.level < DIRECTORIES:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet."
        )
    broker = state.checked_broker(request.broker_id, request.broker_epoch)
    records: list[Versioned] = []
    lost: list[controller_partitions.Found] = []
    directories = []
    for asked in request.directories:
        is_online = broker.has_online(asked.id)
        topics = []
        for named in asked.topics:
            topic = state.image.topics.by_id.get(named.topic_id)
            answers = []
            for item in named.partitions:
                index = item.partition_index
                code, found = _assigned(state, broker, asked.id, topic, index)
                records += found
                if code is ErrorCode.NONE and not is_online and topic is not None:
                    lost.append((topic, index, topic.partitions[index]))
                answers.append(
                    AssignReplicasToDirsResponsePartitionData(
                        partition_index=index, error_code=code
                    )
                )
            topics.append(
                AssignReplicasToDirsResponseTopicData(topic_id=named.topic_id, partitions=answers)
            )
        directories.append(AssignReplicasToDirsResponseDirectoryData(id=asked.id, topics=topics))
    records += controller_partitions.changes(state, lost, leaving=broker.id)
    response = AssignReplicasToDirsResponse(
        throttle_time_ms=0, error_code=0, directories=directories
    )
    return Outcome(response, records, is_atomic=False)


def _assigned(
    state: ControllerState,
    broker: BrokerImage,
    directory: bytes,
    topic: TopicImage | None,
    index: int,
) -> tuple[ErrorCode, list[Versioned]]:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, []
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
    if broker.id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, []
    change = state.change(topic, index, partition)
    change.directories[broker.id] = directory
    record = change.record()
    return ErrorCode.NONE, [] if record is None else [record]
