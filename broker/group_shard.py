"""One partition of `__consumer_offsets`, and the machines that it is the log of.

Decides nothing: groups and offsets do. What they decided is appended and replayed at once; replies
leave when the high watermark has passed everything that was replayed by then. A partition is loaded
by replay when this node becomes its leader, and what waited is let go when it is not any more.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from ottla.coordinator.groups import Groups
from ottla.coordinator.offsets import Offsets
from ottla.coordinator.outcome import Outcome, Reply
from ottla.coordinator.outcome import Record as LogRecord
from ottla.coordinator.records import Decoded, decoded
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.group_records import GroupMetadataKey, OffsetCommitKey
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record, iterate_records, read_header
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.log import Isolation
from ottla.storage.producers import Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, Task, TimerHandle
    from typing import Any

    from ottla.broker.broker import Broker
    from ottla.replication.partition import Partition

    Decide = Callable[["Future[Any]"], Outcome]

logger = logging.getLogger(__name__)

ALL = -1
_LOAD_BYTES = 1 << 20
_DECOMPRESSED_BYTES_MAX = 128 << 20
_RECORDS_PER_SLICE = 500


class GroupShard:
    def __init__(
        self, broker: Broker, partition: Partition, groups: Groups, offsets: Offsets
    ) -> None:
        self._broker = broker
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.groups = groups
        self.offsets = offsets
        self._loading: Task[None] | None = None
        self._is_gone = False
        self._parked: dict[Future[Any], None] = {}
        self._timer: TimerHandle | None = None
        self._timer_ms = 0

    # ---- coming and going

    def load(self) -> None:
        self._loading = self._broker.begin(self._load())

    @property
    def is_loading(self) -> bool:
        return self._loading is not None

    async def _load(self) -> None:
        broker, now = self._broker, self._broker.world.now()
        count = 0
        try:
            async for batch in self._batches():
                for record in self._readable(batch):
                    self._replay_one(record.key, record.value)
                    count += 1
                    if count % _RECORDS_PER_SLICE == 0:
                        await broker.pause()
        except KafkaError as error:
            logger.error("coordinator.not_loaded %s error=%s", self.partition, error)
            return
        if self._is_gone:
            return
        self._loading = None
        self.offsets.loaded(now)
        for outcome in self.groups.loaded(now):
            self._carry_out(outcome)
        if count:
            logger.info("coordinator.loaded %s records=%d", self.partition, count)
        self._arm()

    def _readable(self, batch: Buffer) -> Iterator[Record]:
        """What cannot be read is passed over: nobody else is to suffer for it."""
        try:
            yield from iterate_records(batch, decompressed_max=_DECOMPRESSED_BYTES_MAX)
        except ProtocolError as error:
            logger.error("coordinator.batch_unreadable %s error=%s", self.partition, error)

    async def _batches(self) -> AsyncIterator[Buffer]:
        log = self.partition.log
        offset = log.log_start_offset
        while offset < log.log_end_offset and not self._is_gone:
            fetched = await log.read_cold(offset, _LOAD_BYTES, isolation=Isolation.LOG_END)
            position, data = 0, fetched.data
            if not data:
                return
            while position < len(data):
                header = read_header(data, position)
                if position + header.size > len(data):
                    break
                position += header.size
                if header.last_offset >= offset and not header.is_control:
                    yield memoryview(data)[position - header.size : position]
                offset = max(offset, header.last_offset + 1)

    def let_go(self) -> None:
        """This node does not lead the partition any more."""
        self._is_gone = True
        if self._timer is not None:
            self._timer.cancel()
        if self._loading is not None:
            self._loading.cancel()
        parked, self._parked = self._parked, {}
        for future in parked:
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))

    # ---- requests

    def check(self) -> None:
        if self._is_gone or not self.partition.is_leader:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if self._loading is not None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def run(self, decide: Decide) -> Future[Any]:
        """The reply to one request, whenever it comes."""
        self.check()
        future: Future[Any] = self._broker.world.loop.create_future()
        self._parked[future] = None
        future.add_done_callback(self._unpark)
        try:
            self._carry_out(decide(future))
        except BaseException:
            self._unpark(future)
            raise
        self._arm()
        return future

    def _unpark(self, future: Future[Any]) -> None:
        self._parked.pop(future, None)

    def read(self, ask: Callable[[], Any]) -> Any:
        """An answer from what was replayed by now: at once, or once it is committed."""
        self.check()
        answer = ask()
        end_offset = self.partition.log.log_end_offset
        if self.partition.has_counted(end_offset, ALL):
            return answer
        future: Future[Any] = self._broker.world.loop.create_future()
        self._parked[future] = None
        future.add_done_callback(self._unpark)
        self._reply_later([Reply(future, answer)], end_offset)
        return future

    async def settle(self) -> None:
        """Returns when all that was replayed by now is committed: then it may be told."""
        if not self.partition.has_counted(self.partition.log.log_end_offset, ALL):
            await self.read(lambda: None)

    # ---- the log

    def _carry_out(self, outcome: Outcome) -> None:
        if outcome.records:
            self._append(outcome.records)
        if not outcome.replies:
            return
        end_offset = self.partition.log.log_end_offset
        if self.partition.has_counted(end_offset, ALL):
            _reply(outcome.replies)
        else:
            self._reply_later(outcome.replies, end_offset)

    def _reply_later(self, replies: list[Reply], end_offset: int) -> None:
        def done(error: ErrorCode) -> None:
            if not error:
                _reply(replies)
                return
            for reply in replies:
                if not reply.to.done():
                    reply.to.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))

        self.partition.when_counted(end_offset, ALL, done)

    def _append(self, records: list[LogRecord]) -> None:
        broker = self._broker
        now = broker.world.now()
        listed = [
            Record(number, now.wall_ms, record.key, record.value)
            for number, record in enumerate(records)
        ]
        # Kafka writes sequence 0 here, of a producer that is none.
        batch = build_batch(listed, base_sequence=0)
        try:
            self.partition.append(batch, acks=ALL, now=now, origin=Origin.COORDINATOR)
        except KafkaError as error:
            # What is soft in the machines has gone on: they begin anew from the log.
            logger.error("coordinator.not_appended %s error=%s", self.partition, error)
            broker.coordinators.begin_anew(self)
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
        for record in records:
            self._replay_one(record.key, record.value)

    def _replay_one(self, key: Buffer | None, value: Buffer | None) -> None:
        if key is None:
            return
        try:
            record = decoded(key, value)
        except ProtocolError as error:
            logger.error("coordinator.record_unreadable %s error=%s", self.partition, error)
            return
        if record is not None:
            self._replay(record)

    def _replay(self, record: Decoded) -> None:
        if isinstance(record.key, OffsetCommitKey):
            self.offsets.replay(record)
        elif isinstance(record.key, GroupMetadataKey):
            self.groups.replay(record, self._broker.world.now())

    # ---- time

    def _arm(self) -> None:
        """One timer for all that the machines do by themselves."""
        due_ms = self.groups.deadline()
        if due_ms is None or (self._timer is not None and self._timer_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = due_ms
        delay_ms = max(0, due_ms - self._broker.world.now().monotonic_ms)
        self._timer = self._broker.world.loop.call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._broker.world.now()
        for outcome in self.groups.expire(now):
            try:
                self._carry_out(outcome)
            except KafkaError:
                return
        self._arm()

    async def tidy(self) -> None:
        """Forgets what was kept for long enough."""
        if self._is_gone or self._loading is not None:
            return
        for outcome in self.offsets.expired(self._broker.world.now()):
            self._carry_out(outcome)
            await self._broker.pause()
            if self._is_gone:
                return

    async def topics_deleted(self, topics: frozenset[str]) -> None:
        for outcome in self.offsets.topics_deleted(topics):
            self._carry_out(outcome)
            await self._broker.pause()
            if self._is_gone:
                return


def _reply(replies: Iterable[Reply]) -> None:
    for reply in replies:
        if not reply.to.done():
            reply.to.set_result(reply.response)
