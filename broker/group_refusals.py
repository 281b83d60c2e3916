"""Requests about groups that failed as a whole, each group and partition with its error.

Beside `refusals.py`, because these ask for groups by plain names, and old versions for one.
"""

from __future__ import annotations

from ottla.coordinator.group_answers import join_error
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    JoinGroupResponse,
)
from ottla.protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BATCHED_COORDINATORS, _BATCHED_FETCHES, _FETCH_ERROR, _NO_PROTOCOL = 4, 8, 2, 7


def _coordinators(request: Any, version: int, error: KafkaError) -> FindCoordinatorResponse:
    code = int(error.code)
    if version < _BATCHED_COORDINATORS:
        return FindCoordinatorResponse(
            error_code=code, error_message=error.message, node_id=-1, host="", port=-1
        )
    found = [
        Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=code, error_message=error.message
        )
        for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=found)


def _joined(request: Any, version: int, error: KafkaError) -> JoinGroupResponse:
    response = join_error(error.code, request.member_id)
    if version < _NO_PROTOCOL:
        response.protocol_name = ""
    return response


def _described(request: Any, version: int, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                error_code=int(error.code),
                group_id=group_id,
                group_state="",
                protocol_type="",
                protocol_data="",
                members=[],
            )
            for group_id in request.groups
        ]
    )


def _deleted(request: Any, version: int, error: KafkaError) -> DeleteGroupsResponse:
    results = [
        DeletableGroupResult(group_id=group_id, error_code=int(error.code))
        for group_id in request.groups_names
    ]
    return DeleteGroupsResponse(throttle_time_ms=0, results=results)


def _committed(request: Any, version: int, error: KafkaError) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=int(error.code)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _fetched(request: Any, version: int, error: KafkaError) -> OffsetFetchResponse:
    if version >= _BATCHED_FETCHES:
        groups = [
            OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=int(error.code))
            for group in request.groups
        ]
        return OffsetFetchResponse(groups=groups)
    return OffsetFetchResponse(error_code=int(error.code) if version >= _FETCH_ERROR else 0)


REFUSALS: dict[str, Callable[[Any, int, KafkaError], Any]] = {
    "FindCoordinator": _coordinators,
    "JoinGroup": _joined,
    "DescribeGroups": _described,
    "DeleteGroups": _deleted,
    "OffsetCommit": _committed,
    "OffsetFetch": _fetched,
}
