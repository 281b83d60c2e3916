"""Offsets that groups have committed: OffsetCommit, OffsetFetch, OffsetDelete.

Their messages are in `protocol/messages/offsets.py`, beside those of the offsets of logs, which
`handlers/offsets.py` serves. What may be committed is for `coordinator/offsets.py` to say.
"""

from __future__ import annotations

from functools import partial

from ottla.coordinator.offsets import Commit, Committed
from ottla.coordinator.outcome import Outcome
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.protocol.schema import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.group_shard import GroupShard

_TOPIC_ID_VERSION = 10
_BATCHED_VERSION = 8


# --- OffsetCommit -------------------------------------------------------------------------


async def offset_commit(
    broker: Broker, context: Context, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    by_id = context.version >= _TOPIC_ID_VERSION
    response = OffsetCommitResponse(topics=[])
    commits: list[Commit] = []
    places: list[OffsetCommitResponsePartition] = []
    for topic in request.topics:
        name, topic_id, code = _known_topic(broker, topic.name, topic.topic_id, by_id=by_id)
        answered = OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=[]
        )
        response.topics.append(answered)
        for each in topic.partitions:
            found = code or _known_partition(broker, name, each.partition_index)
            place = OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=int(found)
            )
            answered.partitions.append(place)
            if not found:
                commits.append(_commit(name, topic_id, each))
                places.append(place)
    if not commits:
        return response
    try:
        shard = broker.coordinators.shard(request.group_id)
        commit = partial(_committing, broker, shard, context, request, commits)
        codes = await shard.run(commit)
    except KafkaError as error:
        codes = [error.code] * len(places)
    for place, code in zip(places, codes, strict=True):
        place.error_code = int(code)
    return response


def _known_topic(
    broker: Broker, name: str, topic_id: bytes, *, by_id: bool
) -> tuple[str, bytes, ErrorCode]:
    topics = broker.image.topics
    if by_id:
        found = topics.by_id.get(topic_id)
        if found is None:
            return "", topic_id, ErrorCode.UNKNOWN_TOPIC_ID
        return found.name, topic_id, ErrorCode.NONE
    named = topics.by_name.get(name)
    if named is None:
        return name, ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return name, named.id, ErrorCode.NONE


def _known_partition(broker: Broker, topic: str, index: int) -> ErrorCode:
    if broker.image.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _commit(topic: str, topic_id: bytes, asked: OffsetCommitRequestPartition) -> Commit:
    return Commit(
        topic,
        topic_id,
        asked.partition_index,
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata,
    )


def _committing(
    broker: Broker,
    shard: GroupShard,
    context: Context,
    request: OffsetCommitRequest,
    commits: list[Commit],
    token: object,
) -> Outcome:
    now = broker.world.now()
    shard.offsets.check_commit(
        request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        now=now,
        version=context.version,
    )
    records, codes = shard.offsets.commit(
        request.group_id, commits, now, retention_ms=request.retention_time_ms
    )
    bytes_max = shard.groups.settings().record_bytes_max
    if sum(len(each.key) + len(each.value or b"") + 20 for each in records) > bytes_max:
        raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    return Outcome(records).reply(token, codes)


# --- OffsetFetch --------------------------------------------------------------------------


async def offset_fetch(
    broker: Broker, context: Context, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    if context.version >= _BATCHED_VERSION:
        by_id = context.version >= _TOPIC_ID_VERSION
        return OffsetFetchResponse(
            groups=[await _fetched(broker, each, by_id=by_id) for each in request.groups]
        )
    topics = request.topics
    one = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=(
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
                for each in topics
            ]
        ),
    )
    found = await _fetched(broker, one, by_id=False)
    return _of_one_group(found, one, context.version)


async def _fetched(
    broker: Broker, asked: OffsetFetchRequestGroup, *, by_id: bool
) -> OffsetFetchResponseGroup:
    try:
        shard = broker.coordinators.shard(asked.group_id)
        topics = _topics(broker, shard, asked, by_id=by_id)
        await shard.settle()
    except KafkaError as error:
        return OffsetFetchResponseGroup(
            group_id=asked.group_id, topics=[], error_code=int(error.code)
        )
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=0)


def _topics(
    broker: Broker, shard: GroupShard, asked: OffsetFetchRequestGroup, *, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    group_id = asked.group_id
    if asked.topics is None:
        return list(_all(broker, shard, group_id, by_id=by_id))
    topics = []
    for topic in asked.topics:
        name, _, code = _known_topic(broker, topic.name, topic.topic_id, by_id=by_id)
        if not by_id:
            # Of a topic that is gone there may be an offset still.
            name, code = topic.name, ErrorCode.NONE
        partitions = [
            _told(index, None if code else shard.offsets.committed(group_id, name, index), code)
            for index in topic.partition_indexes
        ]
        topics.append(
            OffsetFetchResponseTopics(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return topics


def _all(
    broker: Broker, shard: GroupShard, group_id: str, *, by_id: bool
) -> Iterable[OffsetFetchResponseTopics]:
    for name, found in shard.offsets.all_of(group_id).items():
        topic = broker.image.topics.by_name.get(name)
        if by_id and topic is None:
            continue
        yield OffsetFetchResponseTopics(
            name=name,
            topic_id=topic.id if topic is not None else ZERO,
            partitions=[_told(index, each, ErrorCode.NONE) for index, each in found],
        )


def _told(index: int, found: Committed | None, code: ErrorCode) -> OffsetFetchResponsePartitions:
    if found is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, metadata="", error_code=int(code)
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        error_code=0,
    )


def _of_one_group(
    found: OffsetFetchResponseGroup, asked: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponse:
    """Old versions ask for one group; version 1 has no place for its error but the partitions."""
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in found.topics
    ]
    if found.error_code and version < 2:
        topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=-1,
                        metadata="",
                        error_code=found.error_code,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics or ()
        ]
    return OffsetFetchResponse(topics=topics, error_code=found.error_code)


# --- OffsetDelete -------------------------------------------------------------------------


async def offset_delete(
    broker: Broker, context: Context, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    shard = broker.coordinators.shard(request.group_id)
    topics: list[OffsetDeleteResponseTopic] = []
    asked: list[tuple[str, int]] = []
    places: list[OffsetDeleteResponsePartition] = []
    for topic in request.topics:
        answered = OffsetDeleteResponseTopic(name=topic.name, partitions=[])
        topics.append(answered)
        for each in topic.partitions:
            code = _known_partition(broker, topic.name, each.partition_index)
            place = OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=int(code)
            )
            answered.partitions.append(place)
            if not code:
                asked.append((topic.name, each.partition_index))
                places.append(place)

    def delete(token: object) -> Outcome:
        records, codes = shard.offsets.delete(request.group_id, asked)
        return Outcome(records).reply(token, codes)

    for place, code in zip(places, await shard.run(delete), strict=True):
        place.error_code = int(code)
    return OffsetDeleteResponse(error_code=0, throttle_time_ms=0, topics=topics)
