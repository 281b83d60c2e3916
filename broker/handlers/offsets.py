"""ListOffsets and OffsetForLeaderEpoch: where the logs of partitions begin and end, and what is
where in time.

A lookup by time may need what memory does not hold, and is awaited then.
"""

from __future__ import annotations

from collections import Counter

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.offsets import (
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.storage.errors import StorageError
from ottla.storage.log import Isolation
from ottla.storage.steps import when_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.replication.partition import Partition

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
# Since which version of the request a client may ask for it.
_FIRST_VERSIONS = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_CONSUMER, _DEBUGGING = -1, -2
_LEADER_EPOCH_VERSION = 4
_NOT_AVAILABLE_VERSION = 5
_AT_ONCE_MAX = 64


async def list_offsets(
    broker: Broker, context: Context, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    named = Counter(
        (topic.name, wanted.partition_index)
        for topic in request.topics
        for wanted in topic.partitions
    )
    lookup = _Lookup(broker, context, request)
    by_name: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    number = 0
    for topic in request.topics:
        found = by_name.setdefault(topic.name, {})
        for wanted in topic.partitions:
            index = wanted.partition_index
            if named[topic.name, index] > 1:
                found[index] = _answer(index, ErrorCode.INVALID_REQUEST)
            else:
                found[index] = await lookup.find(topic.name, wanted)
            number += 1
            if number % _AT_ONCE_MAX == 0:
                await broker.pause()
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(found.values()))
            for name, found in by_name.items()
        ]
    )


def _answer(
    index: int,
    error: ErrorCode = ErrorCode.NONE,
    *,
    timestamp: int = -1,
    offset: int = -1,
    leader_epoch: int = -1,
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=error,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )


class _Lookup:
    """How one request wants its partitions to be looked at."""

    __slots__ = ("_broker", "_isolation", "_leader_only", "_version")

    def __init__(self, broker: Broker, context: Context, request: ListOffsetsRequest) -> None:
        self._broker = broker
        self._version = context.version
        self._leader_only = request.replica_id != _DEBUGGING
        self._isolation = Isolation.LOG_END
        if request.replica_id == _CONSUMER:
            is_committed = request.isolation_level == 1
            self._isolation = Isolation.TXN_COMMITTED if is_committed else Isolation.HIGH_WATERMARK

    async def find(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        timestamp = wanted.timestamp
        if timestamp < EARLIEST_PENDING_UPLOAD or (
            self._version < _FIRST_VERSIONS.get(timestamp, 0)
        ):
            return _answer(wanted.partition_index, ErrorCode.UNSUPPORTED_VERSION)
        try:
            partition = self._broker.node.partition(topic, wanted.partition_index)
            partition.check_reader(
                0,
                current_leader_epoch=wanted.current_leader_epoch,
                last_fetched_epoch=-1,
                leader_only=self._leader_only,
            )
            partition.log.check()
            answer = await self._find_in(partition, wanted)
            if self._version < _LEADER_EPOCH_VERSION:
                answer.leader_epoch = -1
            return answer
        except KafkaError as error:
            code = error.code
            if code is ErrorCode.OFFSET_NOT_AVAILABLE and self._version < _NOT_AVAILABLE_VERSION:
                code = ErrorCode.LEADER_NOT_AVAILABLE
            return _answer(wanted.partition_index, code)

    async def _find_in(
        self, partition: Partition, wanted: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        timestamp, index, log = wanted.timestamp, wanted.partition_index, partition.log
        end_offset = partition.readable_end(self._isolation)
        if timestamp == LATEST:
            self._check_caught_up(partition)
            return _answer(index, offset=end_offset, leader_epoch=partition.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            start_offset = log.log_start_offset
            if timestamp == EARLIEST_LOCAL:
                start_offset = log.local_log_start_offset
            epoch = partition.epoch_at_start()
            return _answer(index, offset=start_offset, leader_epoch=epoch)
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            # Nothing is tiered.
            return _answer(index)
        reading = (
            log.offset_of_max_timestamp()
            if timestamp == MAX_TIMESTAMP
            else log.offset_for_timestamp(timestamp)
        )
        try:
            found = await when_read(reading)
        except StorageError as error:
            raise log.refused(error) from error
        if found is None or found.offset >= end_offset:
            self._check_caught_up(partition)
            return _answer(index)
        return _answer(
            index, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
        )

    def _check_caught_up(self, partition: Partition) -> None:
        """A leader that is new does not know yet how far it counts what it has."""
        is_client = self._isolation is not Isolation.LOG_END
        if is_client and partition.rules.epoch_start_offset > partition.log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)


async def offset_for_leader_epoch(
    broker: Broker, context: Context, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    topics = []
    number = 0
    for topic in request.topics:
        found = []
        for wanted in topic.partitions:
            found.append(_end_of_epoch(broker, topic.topic, wanted))
            number += 1
            if number % _AT_ONCE_MAX == 0:
                await broker.pause()
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=found))
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)


def _end_of_epoch(broker: Broker, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    index = wanted.partition
    try:
        partition = broker.node.partition(topic, index)
        partition.check_reader(
            0, current_leader_epoch=wanted.current_leader_epoch, last_fetched_epoch=-1
        )
    except KafkaError as error:
        return EpochEndOffset(error_code=error.code, partition=index)
    epoch, end_offset = partition.end_offset_for_epoch(wanted.leader_epoch)
    return EpochEndOffset(error_code=0, partition=index, leader_epoch=epoch, end_offset=end_offset)
