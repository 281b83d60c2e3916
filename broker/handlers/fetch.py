"""Fetch: batches from a partition leader, to consumers and followers.

What a session holds and what of it has changed is for `fetch_sessions.py` to know; this reads the
partitions, waits until there is enough, and puts the answer together. What memory does not hold is
awaited, and so are fetches of very many partitions.
"""

from __future__ import annotations

from ottla.broker.fetch_sessions import NO_SESSION, FetchSession, Watched
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.storage.log import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, TimerHandle
    from collections.abc import Awaitable, Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.replication.partition import Partition
    from ottla.storage.log import Fetched
    from ottla.storage.transaction_index import AbortedTransaction as Aborted

_TOPIC_ID_VERSION = 13
_REPLICA_STATE_VERSION = 15
_LEADER_VERSION = 16
_RACK_VERSION = 11
_STORAGE_ERROR_VERSION = 6
_CONSUMER = -1
# So many partitions, and so much of them, are read without a pause.
_AT_ONCE_MAX = 128
_AT_ONCE_BYTES = 8 << 20
_NONE = ErrorCode.NONE
_EMPTY = b""
# What says that the partition is not there, and ends nobody's wait.
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def fetch(
    broker: Broker, context: Context, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    replica = request.replica_id
    if context.version >= _REPLICA_STATE_VERSION:
        state = request.replica_state
        replica = _CONSUMER if state is None else state.replica_id
    try:
        session = broker.fetch_sessions.begin(
            request,
            uses_topic_ids=context.version >= _TOPIC_ID_VERSION,
            is_follower=replica >= 0,
            now=broker.world.now(),
        )
    except KafkaError as error:
        return FetchResponse(throttle_time_ms=0, error_code=error.code, responses=[])
    fetching = _Fetching(broker, context, request, session, replica)
    if not fetching.read_now():
        return fetching.aside()
    return fetching.answer() if fetching.is_enough() else fetching.wait()


class _Fetching:
    """One fetch, from its first look at the partitions to its answer."""

    __slots__ = (
        "_answers",
        "_broker",
        "_context",
        "_endpoints",
        "_epoch",
        "_filled",
        "_has_news",
        "_has_unknown",
        "_is_cold",
        "_is_full",
        "_isolation",
        "_leader_only",
        "_left_bytes",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_minimum_one",
        "_replica",
        "_room",
        "_session",
        "_timer",
        "_will_look",
        "_woken",
    )

    def __init__(
        self,
        broker: Broker,
        context: Context,
        request: FetchRequest,
        session: FetchSession,
        replica: int,
    ) -> None:
        self._broker = broker
        self._context = context
        self._session = session
        self._epoch = session.epoch
        self._is_full = session.id == NO_SESSION
        self._replica = replica
        self._max_wait_ms = request.max_wait_ms
        self._max_bytes = min(request.max_bytes, broker.config["fetch.max.bytes"])
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        if replica >= 0:
            self._isolation = Isolation.LOG_END
        elif request.isolation_level == 1:
            self._isolation = Isolation.TXN_COMMITTED
        else:
            self._isolation = Isolation.HIGH_WATERMARK
        self._leader_only = replica >= 0 or context.version < _RACK_VERSION
        self._answers: dict[Watched, PartitionData] = {}
        self._endpoints: dict[int, NodeEndpoint] | None = None
        self._left_bytes = self._room = self._max_bytes
        self._minimum_one = True
        self._has_news = False
        self._has_unknown = False
        self._is_cold = False
        # Those whose records go into the answer, and count.
        self._filled: dict[Watched, None] = {}
        self._will_look = False
        self._woken: Future[None] | None = None
        self._timer: TimerHandle | None = None

    # reading

    def read_now(self) -> bool:
        """Reads what is marked; False if not all could be read at once: the rest is marked still,
        and for `_read_aside`."""
        self._begin_again()
        marked = self._session.take_marked()
        count = self._read(marked, 0)
        for watched in marked[count:]:
            watched.mark()
        return count == len(marked)

    def _begin_again(self) -> None:
        """While memory is short, because others do not read their answers, there is less to get."""
        room = self._broker.server.answer_bytes_left
        self._left_bytes = self._room = min(self._max_bytes, room)
        self._minimum_one = room > 0
        self._filled.clear()

    def _read(self, marked: list[Watched], start: int) -> int:
        """Reads partitions in their order; returns the number of the first that was not read: it
        is cold, or the others were much to read already."""
        isolation = self._isolation
        self._is_cold = False
        stop_at_bytes = self._left_bytes - _AT_ONCE_BYTES
        for number in range(start, min(len(marked), start + _AT_ONCE_MAX)):
            if self._left_bytes < stop_at_bytes:
                return number
            watched = marked[number]
            partition = self._partition(watched)
            if partition is None:
                continue
            max_bytes = min(watched.max_bytes, self._left_bytes)
            try:
                fetched = partition.log.read(
                    watched.fetch_offset,
                    max_bytes,
                    isolation=isolation,
                    minimum_one=self._minimum_one,
                )
                if fetched is None:
                    self._is_cold = True
                    return number
                self._take(watched, partition, fetched, max_bytes)
            except KafkaError as error:
                self._refuse(watched, error.code)
        return min(len(marked), start + _AT_ONCE_MAX)

    async def _read_aside(self) -> None:
        """Goes on with many partitions, much data, and what memory does not hold."""
        session = self._session
        marked = [each for each in session.take_marked() if each not in self._filled]
        for watched in self._filled:
            session.marked[watched] = None
        done = 0
        try:
            while done < len(marked):
                done = self._read(marked, done)
                if self._is_cold:
                    await self._read_cold(marked[done])
                    done += 1
                elif done < len(marked):
                    await self._broker.pause()
        finally:
            for watched in marked[done:]:
                watched.mark()

    async def _read_cold(self, watched: Watched) -> None:
        partition = self._partition(watched)
        if partition is None:
            return
        max_bytes = min(watched.max_bytes, self._left_bytes)
        try:
            fetched = await partition.log.read_cold(
                watched.fetch_offset,
                max_bytes,
                isolation=self._isolation,
                minimum_one=self._minimum_one,
            )
            self._take(watched, partition, fetched, max_bytes)
        except KafkaError as error:
            self._refuse(watched, error.code)

    def _partition(self, watched: Watched) -> Partition | None:
        """The partition to read from; None where the answer says already why not."""
        try:
            partition = watched.partition
            if partition is None or not partition.is_in_service:
                partition = self._found(watched)
            diverging = partition.check_reader(
                watched.fetch_offset,
                current_leader_epoch=watched.current_leader_epoch,
                last_fetched_epoch=watched.last_fetched_epoch,
                leader_only=self._leader_only,
            )
        except KafkaError as error:
            self._refuse(watched, error.code)
            return None
        if diverging is None:
            return partition
        data = self._answers[watched] = self._data(watched, partition, _EMPTY, None)
        data.diverging_epoch = EpochEndOffset(
            epoch=diverging.epoch, end_offset=diverging.end_offset
        )
        self._has_news = True
        self._session.marked[watched] = None
        return None

    def _found(self, watched: Watched) -> Partition:
        watched.watch(None)
        if watched.topic is None:
            topic = self._broker.image.topics.by_id.get(watched.topic_id)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            watched.topic = topic.name
        partition = self._broker.node.partition(watched.topic, watched.index)
        if self._session.uses_topic_ids and partition.topic_id != watched.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        watched.watch(partition)
        return partition

    def _take(
        self, watched: Watched, partition: Partition, fetched: Fetched, max_bytes: int
    ) -> None:
        if self._replica >= 0:
            partition.replica_fetched(
                self._replica,
                offset=watched.fetch_offset,
                log_start_offset=watched.follower_log_start_offset,
                now=self._broker.world.now(),
            )
        data, watched.start, is_first_incomplete, aborted = fetched
        size = len(data)
        if size and not is_first_incomplete:
            self._minimum_one = False
            self._left_bytes -= size
            self._filled[watched] = None
            self._session.marked[watched] = None
        else:
            data = _EMPTY
            if is_first_incomplete or max_bytes <= 0:
                # There may be something that there was no room for.
                self._session.marked[watched] = None
        self._answers[watched] = self._data(
            watched,
            partition,
            data,
            _aborted(aborted),
        )

    def _data(
        self,
        watched: Watched,
        partition: Partition,
        records: bytes | bytearray | memoryview,
        aborted: list[AbortedTransaction] | None,
    ) -> PartitionData:
        log = partition.log
        return PartitionData(
            partition_index=watched.index,
            error_code=0,
            high_watermark=log.high_watermark,
            last_stable_offset=-1 if self._replica >= 0 else log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=records,
        )

    def _refuse(self, watched: Watched, code: ErrorCode) -> None:
        """What is wrong is told each time, until it is right."""
        self._session.marked[watched] = None
        version = self._context.version
        aborted: list[AbortedTransaction] | None = None
        if code in _UNKNOWN:
            self._has_unknown = True
            aborted = []
        else:
            self._has_news = True
        if code is ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_VERSION:
            # Clients of that time know no such error.
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        data = PartitionData(
            partition_index=watched.index,
            error_code=code,
            high_watermark=-1,
            aborted_transactions=aborted,
            records=_EMPTY,
        )
        if version >= _LEADER_VERSION and code in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        ):
            data.current_leader = self._leader(watched)
        self._answers[watched] = data

    def _leader(self, watched: Watched) -> LeaderIdAndEpoch:
        """Whom the client should ask; where that one is goes into the answer, too."""
        topic = self._broker.image.topics.by_name.get(watched.topic or "")
        registration = None if topic is None else topic.partitions.get(watched.index)
        if registration is None:
            return LeaderIdAndEpoch()
        found = self._broker.node_address(registration.leader, self._context)
        if found is not None:
            self._endpoints = self._endpoints or {}
            node_id, host, port, rack, _ = found
            self._endpoints[node_id] = NodeEndpoint(
                node_id=node_id, host=host, port=port, rack=rack
            )
        return LeaderIdAndEpoch(
            leader_id=registration.leader, leader_epoch=registration.leader_epoch
        )

    # waiting

    def is_enough(self) -> bool:
        """Whether nobody has to wait for more."""
        return (
            self._has_news
            or self._room - self._left_bytes >= self._min_bytes
            or self._max_wait_ms <= 0
            or all(each.partition is None for each in self._session.partitions.values())
        )

    def wait(self) -> Awaitable[FetchResponse]:
        """Waits from now on, whenever that what is returned is awaited."""
        loop = self._broker.world.loop
        session = self._session
        session.watch()
        session.waiting = self
        self._woken = loop.create_future()
        self._timer = loop.call_later(self._max_wait_ms / 1000, self.give_way)
        self._context.connection.on_close(self.give_way)
        return self._when_woken(self._woken)

    async def _when_woken(self, woken: Future[None]) -> FetchResponse:
        await woken
        if not self.read_now():
            self._session.watch()
            await self._read_aside()
        return self.answer()

    def wake(self) -> None:
        """Something has changed. One request may change many partitions: look once, afterwards."""
        if not self._will_look:
            self._will_look = True
            self._broker.world.loop.call_soon(self._look)

    def _look(self) -> None:
        self._will_look = False
        if self._session.waiting is not self:
            return
        size = 0
        for watched in self._session.marked:
            partition = watched.partition
            if partition is None:
                continue
            epoch = watched.current_leader_epoch
            if (
                not partition.is_in_service
                or (self._leader_only and not partition.is_leader)
                or (epoch >= 0 and epoch != partition.leader_epoch)
                or watched.start is None
            ):
                self.give_way()
                return
            found = partition.readable_bytes(watched.start, self._isolation)
            size += min(found, watched.max_bytes)
        if size >= self._min_bytes:
            self.give_way()

    def give_way(self) -> None:
        """Ends the wait, whatever there is."""
        if self._session.waiting is self:
            self._session.waiting = None
        if self._timer is not None:
            self._timer.cancel()
        if self._woken is not None and not self._woken.done():
            self._context.connection.forget(self.give_way)
            self._woken.set_result(None)

    def aside(self) -> Awaitable[FetchResponse]:
        """Goes on with what could not be read at once."""
        # From now on: the task that reads it begins later.
        self._session.watch()
        return self._when_read()

    async def _when_read(self) -> FetchResponse:
        await self._read_aside()
        if self.is_enough():
            return self.answer()
        woken = self.wait()
        # What has changed while others were read.
        self.wake()
        return await woken

    # answering

    def answer(self) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:
            # The client has gone on without waiting for this one.
            return FetchResponse(
                throttle_time_ms=0,
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                session_id=session.id,
                responses=[],
            )
        topics: list[FetchableTopicResponse] = []
        last: bytes | str | None = None
        for watched, data in self._in_order():
            if not self._is_news(watched, data) and not self._is_full:
                continue
            if data.records:
                session.move_to_end(watched)
            name = watched.topic_id if session.uses_topic_ids else watched.topic
            if name == last:
                topics[-1].partitions.append(data)
            else:
                last = name
                topics.append(
                    FetchableTopicResponse(
                        topic=watched.topic or "", topic_id=watched.topic_id, partitions=[data]
                    )
                )
        if session.wants_to_be_kept:
            self._broker.fetch_sessions.keep(session, self._broker.world.now())
        if not session.is_kept:
            session.let_go()
        response = FetchResponse(throttle_time_ms=0, session_id=session.id, responses=topics)
        if self._endpoints:
            response.node_endpoints = list(self._endpoints.values())
        return response

    def _in_order(self) -> Iterable[tuple[Watched, PartitionData]]:
        """As they were read; those that are not there at all come last, as in Kafka."""
        answers = self._answers.items()
        if not self._has_unknown:
            return answers
        return sorted(answers, key=lambda each: each[1].error_code in _UNKNOWN)

    @staticmethod
    def _is_news(watched: Watched, data: PartitionData) -> bool:
        """Whether the client has to be told; and notes that it was."""
        is_news = (
            bool(data.records)
            or data.error_code != _NONE
            or watched.high_watermark != data.high_watermark
            or watched.log_start_offset != data.log_start_offset
            or data.diverging_epoch is not None
        )
        if is_news:
            watched.high_watermark = data.high_watermark
            watched.log_start_offset = data.log_start_offset
        return is_news


def _aborted(found: list[Aborted] | None) -> list[AbortedTransaction] | None:
    """None for readers who want all records."""
    if found is None:
        return None
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in found
    ]
