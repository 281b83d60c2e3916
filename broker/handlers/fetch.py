"""Fetch: batches from a partition leader, to consumers and followers.

What a session holds and what of it has changed is for `fetch_sessions.py` to know, reading the
partitions for `fetch_reads.py`; this waits until there is enough, and puts the answer together.
"""

from __future__ import annotations

from ottla.broker.fetch_reads import UNKNOWN, FetchReads
from ottla.broker.fetch_sessions import NO_SESSION, FetchSession, Watched
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, TimerHandle
    from collections.abc import Awaitable, Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

_TOPIC_ID_VERSION = 13
_REPLICA_STATE_VERSION = 15
_CONSUMER = -1
_NONE = ErrorCode.NONE


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
    if not fetching.reads.now():
        return fetching.aside()
    return fetching.answer() if fetching.is_enough() else fetching.wait()


class _Fetching:
    """One fetch, from its first look at the partitions to its answer."""

    __slots__ = (
        "_broker",
        "_context",
        "_epoch",
        "_is_full",
        "_request",
        "_session",
        "_timer",
        "_will_look",
        "_woken",
        "reads",
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
        self._request = request
        self._session = session
        self._epoch = session.epoch
        self._is_full = session.id == NO_SESSION
        self.reads = FetchReads(broker, context, request, session, replica)
        self._will_look = False
        self._woken: Future[None] | None = None
        self._timer: TimerHandle | None = None

    # what may be waited for

    def is_enough(self) -> bool:
        """Whether nobody has to wait for more."""
        reads, request = self.reads, self._request
        return (
            reads.has_news
            or reads.size_bytes >= min(request.min_bytes, reads.max_bytes)
            or request.max_wait_ms <= 0
            or all(each.partition is None for each in self._session.partitions.values())
        )

    def aside(self) -> Awaitable[FetchResponse]:
        """Goes on with what could not be read at once."""
        # From now on: the task that reads it begins later.
        self._session.watch()
        return self._when_read()

    async def _when_read(self) -> FetchResponse:
        await self.reads.aside()
        if self.is_enough():
            return self.answer()
        woken = self.wait()
        # What has changed while others were read.
        self.wake()
        return await woken

    def wait(self) -> Awaitable[FetchResponse]:
        """Waits from now on, whenever that what is returned is awaited."""
        loop = self._broker.world.loop
        session = self._session
        session.watch()
        session.waiting = self
        self._woken = loop.create_future()
        self._timer = loop.call_later(self._request.max_wait_ms / 1000, self.give_way)
        self._context.connection.on_close(self.give_way)
        return self._when_woken(self._woken)

    async def _when_woken(self, woken: Future[None]) -> FetchResponse:
        await woken
        if not self.reads.now():
            await self.reads.aside()
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
            if watched.partition is None:
                continue
            if self._is_to_be_told(watched):
                self.give_way()
                return
            size += self._readable_bytes(watched)
        if size >= min(self._request.min_bytes, self.reads.max_bytes):
            self.give_way()

    def _is_to_be_told(self, watched: Watched) -> bool:
        """Whether the client has to hear of something else than records."""
        partition = watched.partition
        epoch = watched.current_leader_epoch
        return (
            partition is None
            or not partition.is_in_service
            or (self.reads.leader_only and not partition.is_leader)
            or (epoch >= 0 and epoch != partition.leader_epoch)
        )

    def _readable_bytes(self, watched: Watched) -> int:
        partition, start = watched.partition, watched.start
        if partition is None or start is None:
            return 0
        found = partition.readable_bytes(start, self.reads.isolation)
        return min(found, watched.max_bytes)

    def give_way(self) -> None:
        """Ends the wait, whatever there is."""
        if self._session.waiting is self:
            self._session.waiting = None
        if self._timer is not None:
            self._timer.cancel()
        if self._woken is not None and not self._woken.done():
            self._context.connection.forget(self.give_way)
            self._woken.set_result(None)

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
        topics = self._topics()
        if session.wants_to_be_kept:
            self._broker.fetch_sessions.keep(session, self._broker.world.now())
        if not session.is_kept:
            session.let_go()
        response = FetchResponse(throttle_time_ms=0, session_id=session.id, responses=topics)
        if self.reads.endpoints:
            response.node_endpoints = list(self.reads.endpoints.values())
        return response

    def _topics(self) -> list[FetchableTopicResponse]:
        """What the client has to be told, in order; neighbours of one topic stand together."""
        session = self._session
        topics: list[FetchableTopicResponse] = []
        last: bytes | str | None = None
        is_full, has_unknown = self._is_full, self.reads.has_unknown
        for watched, data in self._in_order():
            if not _is_news(watched, data) and not is_full:
                continue
            # A new session has the order of its first answer; later who got records comes last.
            if has_unknown if is_full else data.records:
                session.move_to_end(watched)
            name = watched.topic_id if session.uses_topic_ids else watched.topic
            if name == last:
                topics[-1].partitions.append(data)
                continue
            last = name
            topic = FetchableTopicResponse(
                topic=watched.topic or "", topic_id=watched.topic_id, partitions=[data]
            )
            topics.append(topic)
        return topics

    def _in_order(self) -> Iterable[tuple[Watched, PartitionData]]:
        """As they were read; those that are not there at all come last, as in Kafka."""
        answers = self.reads.answers.items()
        if not self.reads.has_unknown:
            return answers
        return sorted(answers, key=lambda each: each[1].error_code in UNKNOWN)


def _is_news(watched: Watched, data: PartitionData) -> bool:
    """Whether the client does not know it already; and notes that it was told."""
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
