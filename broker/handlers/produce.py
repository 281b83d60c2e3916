"""Produce: batches of a producer, each to the leader of its partition.

One request with one batch is the case that counts: it is answered without waiting, and with as few
objects as there can be. The records are views of the buffer that the request was received into:
they are appended before the handler returns, or copied.
"""

from __future__ import annotations

from ottla.broker.topic_creation import INTERNAL_TOPICS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.record_validate import InvalidBatch, NotOneBatch
from ottla.protocol.records import ATTRIBUTES_POSITION, MAGIC, MAGIC_POSITION, TRANSACTIONAL_FLAG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, TimerHandle
    from collections.abc import Awaitable, Callable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.replication.partition import Acknowledgement, Partition
    from ottla.storage.clock import Now

ADMIN_CLIENT = "__admin_client"
ACKS = frozenset({-1, 0, 1})

_TOPIC_ID_VERSION = 13
_ZSTD_VERSION = 7
_LEADER_VERSION = 10
_FLAGS_POSITION = ATTRIBUTES_POSITION + 1
# So many partitions, and so much for them, are served without a pause.
_AT_ONCE_MAX = 256
_AT_ONCE_BYTES = 4 << 20
# Of these refusals Kafka does not say where the log begins.
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def produce(
    broker: Broker, context: Context, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    topics = request.topic_data
    producing = _Producing(broker, context, request)
    if request.transactional_id is not None or _has_transactional(topics):
        # Every client takes this error for final, and there are no transactions yet.
        producing.refused_as_whole = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        topic = topics[0]
        done = producing.append(topic, topic.partition_data[0])
        topic_response = TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=[done]
        )
        return producing.answer([topic_response])
    wanted = _last_of_each(topics)
    size = sum(len(data.records or b"") for _, data in wanted)
    if len(wanted) <= _AT_ONCE_MAX and size <= _AT_ONCE_BYTES:
        return producing.answer(_grouped(wanted, [producing.append(*each) for each in wanted]))
    shared = broker.server.receive_buffer.obj
    for _, data in wanted:
        if isinstance(data.records, memoryview) and data.records.obj is shared:
            # Only a request that was too large for that buffer has memory of its own.
            data.records = bytearray(data.records)
    return producing.in_slices(wanted)


def _has_transactional(topics: list[TopicProduceData]) -> bool:
    """A transactional batch needs a transactional id, and those are not served."""
    for topic in topics:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) > _FLAGS_POSITION
                and records[_FLAGS_POSITION] & TRANSACTIONAL_FLAG
                and records[MAGIC_POSITION] == MAGIC
            ):
                return True
    return False


def _last_of_each(
    topics: list[TopicProduceData],
) -> list[tuple[TopicProduceData, PartitionProduceData]]:
    """A partition that is named twice gets the last batch, and one answer."""
    last = {
        (topic.name, topic.topic_id, data.index): (topic, data)
        for topic in topics
        for data in topic.partition_data
    }
    return list(last.values())


def _grouped(
    wanted: list[tuple[TopicProduceData, PartitionProduceData]],
    responses: list[PartitionProduceResponse],
) -> list[TopicProduceResponse]:
    topics: dict[tuple[str, bytes], TopicProduceResponse] = {}
    for (topic, _), response in zip(wanted, responses, strict=True):
        found = topics.get((topic.name, topic.topic_id))
        if found is None:
            found = TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=[]
            )
            topics[topic.name, topic.topic_id] = found
        found.partition_responses.append(response)
    return list(topics.values())


def _name_records(
    response: PartitionProduceResponse, error: InvalidBatch, partition: Partition
) -> None:
    """Which records are to blame, in Kafka's words."""
    place = ""
    if error.code is ErrorCode.INVALID_RECORD:
        place = f" in topic partition {partition.topic}-{partition.partition}"
    named = response.record_errors = [
        BatchIndexAndErrorMessage(
            batch_index=each.batch_index, batch_index_error_message=each.message + place
        )
        for each in error.record_errors
    ]
    response.error_message = error.message
    if place:
        first = ", ".join(
            f"RecordError(batchIndex={each.batch_index},"
            f" message='{each.batch_index_error_message}')"
            for each in named[:3]
        )
        response.error_message = (
            f"One or more records have been rejected due to {len(named)} record errors in total,"
            f" and only showing the first three errors at most: [{first}]"
        )


class _Producing:
    """One request on its way through its partitions."""

    __slots__ = (
        "acks",
        "broker",
        "context",
        "endpoints",
        "error",
        "now",
        "refused_as_whole",
        "timeout_ms",
        "uncounted",
        "zstd_allowed",
    )

    def __init__(self, broker: Broker, context: Context, request: ProduceRequest) -> None:
        self.broker = broker
        self.context = context
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.now: Now = broker.world.now()
        self.zstd_allowed = context.version >= _ZSTD_VERSION
        self.error: ErrorCode | None = None
        self.refused_as_whole: ErrorCode | None = None
        self.uncounted: list[tuple[Partition, int, PartitionProduceResponse]] | None = None
        self.endpoints: dict[int, NodeEndpoint] | None = None

    def append(
        self, topic: TopicProduceData, data: PartitionProduceData
    ) -> PartitionProduceResponse:
        partition: Partition | None = None
        index = data.index
        acks = self.acks
        try:
            if self.refused_as_whole is not None:
                raise KafkaError(self.refused_as_whole)
            partition = self._partition(topic, index)
            if acks not in ACKS:
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
            records = data.records
            if records is None:
                raise KafkaError(ErrorCode.INVALID_RECORD)
            if type(records) is not memoryview or records.readonly:
                # Small requests are decoded from a copy, which cannot be written to.
                records = bytearray(records)
            # Whatever else than a refusal comes out of an append leaves the log half changed.
            self.broker.is_changing = True
            appended = partition.append(
                records,
                acks=acks,
                now=self.now,
                zstd_allowed=self.zstd_allowed,
            )
            self.broker.is_changing = False
            # The memory that it came in is free for others, however long the answer takes.
            data.records = None
        except KafkaError as error:
            self.broker.is_changing = False
            return self._refused(topic, index, partition, error)
        response = PartitionProduceResponse(
            index=index,
            error_code=0,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start_offset,
        )
        end_offset = appended.last_offset + 1
        if acks and not partition.has_counted(end_offset, acks):
            if self.uncounted is None:
                self.uncounted = []
            self.uncounted.append((partition, end_offset, response))
        return response

    def _partition(self, topic: TopicProduceData, index: int) -> Partition:
        name = topic.name
        if self.context.version >= _TOPIC_ID_VERSION:
            image = self.broker.image.topics.by_id.get(topic.topic_id)
            if image is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            name = image.name
        node = self.broker.node
        partition = node.partitions.get((name, index)) or node.partition(name, index)
        if name in INTERNAL_TOPICS and self.context.client_id != ADMIN_CLIENT:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        return partition

    def _refused(
        self, topic: TopicProduceData, index: int, partition: Partition | None, error: KafkaError
    ) -> PartitionProduceResponse:
        code = self.error = error.code
        response = PartitionProduceResponse(index=index, error_code=code, base_offset=-1)
        if isinstance(error, NotOneBatch):
            if code is ErrorCode.CORRUPT_MESSAGE:
                response.error_message = error.message
        elif partition is not None and code not in _WITHOUT_LOG_START:
            response.log_start_offset = partition.log.log_start_offset
            if isinstance(error, InvalidBatch) and error.record_errors:
                _name_records(response, error, partition)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER and self.context.version >= _LEADER_VERSION:
            response.current_leader = self._leader(topic, index)
        return response

    def _leader(self, topic: TopicProduceData, index: int) -> LeaderIdAndEpoch:
        """Whom the producer should have asked; where that one is goes into the answer, too."""
        topics = self.broker.image.topics
        by_id = self.context.version >= _TOPIC_ID_VERSION
        image = topics.by_id.get(topic.topic_id) if by_id else topics.by_name.get(topic.name)
        registration = image.partitions.get(index) if image is not None else None
        if registration is None:
            return LeaderIdAndEpoch()
        found = self.broker.node_address(registration.leader, self.context)
        if found is not None:
            node_id, host, port, rack, _ = found
            self.endpoints = self.endpoints or {}
            self.endpoints[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        return LeaderIdAndEpoch(
            leader_id=registration.leader, leader_epoch=registration.leader_epoch
        )

    def answer(
        self, topics: list[TopicProduceResponse]
    ) -> ProduceResponse | Awaitable[ProduceResponse] | None:
        if not self.acks:
            if self.error is not None:
                # Who wants no answer learns of an error by losing the connection.
                reason = f"a produce request without acks failed: {self.error.name}"
                self.context.connection.close(reason)
            return None
        response = ProduceResponse(responses=topics)
        if self.endpoints:
            response.node_endpoints = list(self.endpoints.values())
        if self.uncounted:
            return _Waiting(
                self.broker, self.uncounted, self.acks, response, self.timeout_ms
            ).future
        return response

    async def in_slices(
        self, wanted: list[tuple[TopicProduceData, PartitionProduceData]]
    ) -> ProduceResponse | None:
        responses = []
        count = size = 0
        for topic, data in wanted:
            count += 1
            size += len(data.records or b"")
            if count > _AT_ONCE_MAX or size > _AT_ONCE_BYTES:
                count = size = 0
                await self.broker.pause()
            responses.append(self.append(topic, data))
        answer = self.answer(_grouped(wanted, responses))
        return answer if answer is None or isinstance(answer, ProduceResponse) else await answer


class _Waiting:
    """A response that leaves once every append in it counts, or its time is up."""

    __slots__ = ("_left", "_response", "_timer", "future")

    def __init__(
        self,
        broker: Broker,
        uncounted: list[tuple[Partition, int, PartitionProduceResponse]],
        acks: int,
        response: ProduceResponse,
        timeout_ms: int,
    ) -> None:
        loop = broker.world.loop
        self.future: Future[ProduceResponse] = loop.create_future()
        self._response = response
        self._left: dict[int, tuple[Partition, Acknowledgement, PartitionProduceResponse]] = {}
        for number, (partition, end_offset, part) in enumerate(uncounted):
            waiting = partition.when_counted(end_offset, acks, self._counted(number))
            self._left[number] = partition, waiting, part
        self._timer: TimerHandle = loop.call_later(max(0, timeout_ms) / 1000, self._expire)

    def _counted(self, number: int) -> Callable[[ErrorCode], None]:
        def done(error: ErrorCode) -> None:
            _, _, part = self._left.pop(number)
            if error:
                part.error_code = error
            if not self._left:
                self._finish()

        return done

    def _expire(self) -> None:
        """The records stay, and may yet count; nobody can tell the producer when."""
        for partition, waiting, part in self._left.values():
            partition.forget(waiting)
            part.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._finish()

    def _finish(self) -> None:
        self._timer.cancel()
        if not self.future.done():
            self.future.set_result(self._response)
