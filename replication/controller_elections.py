"""Deciding elections: those that somebody asks for, and those that are due from time to time.

Pure. A partition's preferred leader is its first replica; an unclean election is for a partition
that has no leader, and may lose data.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.replicas import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.replication.controller_state import (
    RECORDS_MAX,
    TOO_LARGE,
    ControllerState,
    Failure,
    Outcome,
)
from ottla.replication.metadata import TopicImage
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import NO_LEADER, PartitionRegistration
from ottla.replication.partition_change import Election

PREFERRED, UNCLEAN = 0, 1
# How many leaders are moved at once when nobody has asked for it.
ELECTIONS_AT_ONCE_MAX = 1_000
_DONE = Failure(ErrorCode.NONE)


def elect_leaders(
    state: ControllerState, request: ElectLeadersRequest
) -> Outcome[ElectLeadersResponse]:
    if request.election_type not in (PREFERRED, UNCLEAN):
        reason = f"Unknown election type {request.election_type}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    election = Election.PREFERRED if request.election_type == PREFERRED else Election.UNCLEAN
    results: list[ReplicaElectionResult] = []
    records: list[Versioned] = []

    def elect(name: str, indexes: list[int], *, names_all: bool) -> None:
        answers = []
        for index in indexes:
            found, made = _elected(state, name, index, election)
            records.extend(made)
            if not (names_all and found.code is ErrorCode.ELECTION_NOT_NEEDED):
                answers.append(
                    PartitionResult(
                        partition_id=index, error_code=found.code, error_message=found.message
                    )
                )
        results.append(ReplicaElectionResult(topic=name, partition_result=answers))

    if request.topic_partitions is None:
        for topic in state.image.topics.by_id.values():
            elect(topic.name, list(topic.partitions), names_all=True)
    else:
        for asked in request.topic_partitions:
            elect(asked.topic, asked.partitions, names_all=False)
    if len(records) > RECORDS_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LARGE)
    response = ElectLeadersResponse(throttle_time_ms=0, replica_election_results=results)
    return Outcome(response, records, is_atomic=False)


def _elected(
    state: ControllerState, name: str, index: int, election: Election
) -> tuple[Failure, list[Versioned]]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = state.topic(name)
    if topic is None:
        return Failure(unknown, f"No such topic as {name}"), []
    partition = topic.partitions.get(index)
    if partition is None:
        return Failure(unknown, f"No such partition as {name}-{index}"), []
    if _is_as_wanted(partition, election):
        code = ErrorCode.ELECTION_NOT_NEEDED
        return Failure(code, code.message), []
    record = _record(state, topic, index, partition, election)
    if record is not None:
        return _DONE, [record]
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if election is Election.PREFERRED:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return Failure(code, code.message), []


def _is_as_wanted(partition: PartitionRegistration, election: Election) -> bool:
    if election is Election.PREFERRED:
        return partition.leader == partition.preferred_replica
    return partition.leader != NO_LEADER


def _record(
    state: ControllerState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    election: Election,
) -> Versioned | None:
    change = state.change(topic, index, partition)
    change.election = election
    return change.record()


def balanced(state: ControllerState) -> list[Versioned]:
    """Preferred replicas lead again; leaderless partitions that allow it elect uncleanly."""
    records: list[Versioned] = []
    for topic, index, partition in state.partitions():
        if len(records) == ELECTIONS_AT_ONCE_MAX:
            break
        election = None
        if partition.leader == NO_LEADER and state.may_elect_uncleanly(topic.name):
            election = Election.UNCLEAN
        elif (
            state.settings.auto_leader_rebalance_enable
            and partition.leader != partition.preferred_replica
        ):
            election = Election.PREFERRED
        if election is not None:
            record = _record(state, topic, index, partition, election)
            if record is not None:
                records.append(record)
    return records
