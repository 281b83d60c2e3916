"""Deciding which topics go, asked for by name or by id.

Pure. Whatever is asked for in two ways at once is refused; the others go in one batch.
"""

from __future__ import annotations

from collections import Counter

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata_records import RemoveTopicRecord
from ottla.protocol.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ottla.protocol.schema import ZERO
from ottla.replication.controller_state import (
    RECORDS_MAX,
    TOO_LARGE,
    ControllerState,
    Outcome,
)
from ottla.replication.metadata_records import Versioned


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest
) -> Outcome[DeleteTopicsResponse]:
    names = Counter(request.topic_names)
    for topic in request.topics:
        if topic.name is not None and topic.topic_id == ZERO:
            names[topic.name] += 1
    ids = Counter(
        topic.topic_id for topic in request.topics if topic.name is None and topic.topic_id != ZERO
    )
    responses = [
        *_contradictions(request),
        *(_by_id(state, topic_id, count, names) for topic_id, count in ids.items()),
        *(_named(state, name, count, ids) for name, count in names.items()),
    ]
    # An id whose name was asked for as well is answered under its name alone.
    answers = [found for found in responses if found is not None]
    gone = [found.topic_id for found in answers if found.error_code == ErrorCode.NONE]
    if len(gone) > RECORDS_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LARGE)
    records = [Versioned(RemoveTopicRecord(topic_id=topic_id)) for topic_id in gone]
    return Outcome(DeleteTopicsResponse(throttle_time_ms=0, responses=answers), records)


def _contradictions(request: DeleteTopicsRequest) -> list[DeletableTopicResult]:
    answers = []
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO:
            reason = "Neither topic name nor id were specified."
            answers.append(_invalid(None, ZERO, reason))
        elif topic.name is not None and topic.topic_id != ZERO:
            reason = "You may not specify both topic name and topic id."
            answers.append(_invalid(topic.name, topic.topic_id, reason))
    return answers


def _by_id(
    state: ControllerState, topic_id: bytes, count: int, names: Counter[str]
) -> DeletableTopicResult | None:
    if count > 1:
        return _invalid(None, topic_id, "Duplicate topic id.")
    topic = state.image.topics.by_id.get(topic_id)
    if topic is None:
        return _answer(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    if names[topic.name] == 1:
        return None
    return _answer(topic.name, topic_id, ErrorCode.NONE)


def _named(
    state: ControllerState, name: str, count: int, ids: Counter[bytes]
) -> DeletableTopicResult:
    if count > 1:
        return _invalid(name, ZERO, "Duplicate topic name.")
    topic = state.topic(name)
    if topic is None:
        return _answer(name, ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.id in ids:
        reason = "The provided topic name maps to an ID that was already supplied."
        return _invalid(name, topic.id, reason)
    return _answer(name, topic.id, ErrorCode.NONE)


def _answer(name: str | None, topic_id: bytes, code: ErrorCode) -> DeletableTopicResult:
    reason = None if code is ErrorCode.NONE else code.message
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=reason)


def _invalid(name: str | None, topic_id: bytes, reason: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=reason
    )
