"""Consumers: aiokafka's by assignment, and one that asks as KIP-320 wants it asked.

The second keeps a copy of the logs. When it is told that its copy diverges it cuts it back, and in
the end its copy must be the log itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.records import iterate_batches, iterate_records
from tests.simulation.node.ledger import Broken, Partition, Stored
from tests.simulation.node.plan import ConsumerPlan
from tests.simulation.node.wire_client import BROKEN, WireClient

if TYPE_CHECKING:
    from tests.simulation.node.scenario import Scenario

RETRY_S = 0.5
FETCH_VERSION = 12
MAX_BYTES = 1 << 20
LATER = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}
NEW_SESSION = {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH}


class Consuming:
    """One consumer of aiokafka."""

    def __init__(self, scenario: Scenario, plan: ConsumerPlan) -> None:
        self._scenario = scenario
        self._plan = plan
        self._next: dict[Partition, int] = {}

    async def run(self) -> None:
        from aiokafka.errors import KafkaError

        while not self._scenario.is_ending:
            consumer = self._made()
            self._next.clear()
            try:
                await consumer.start()
                await self._consume(consumer)
            except KafkaError as error:
                self._scenario.note("consumer", self._plan.number, repr(error))
                await asyncio.sleep(RETRY_S)
            finally:
                # aiokafka lets the end of its own tasks through.
                with suppress(KafkaError, asyncio.TimeoutError, asyncio.CancelledError):
                    await asyncio.wait_for(consumer.stop(), 60)

    def _made(self) -> Any:
        from aiokafka import AIOKafkaConsumer

        return AIOKafkaConsumer(
            bootstrap_servers=self._scenario.bootstrap,
            client_id=f"consumer-{self._plan.number}",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=self._plan.max_wait_ms,
            fetch_min_bytes=self._plan.min_bytes,
            request_timeout_ms=5_000,
            metadata_max_age_ms=10_000,
            check_crcs=True,
        )

    async def _consume(self, consumer: Any) -> None:
        from aiokafka import TopicPartition

        consumer.assign([TopicPartition(*target) for target in self._plan.targets])
        while not self._scenario.is_ending:
            found = await consumer.getmany(timeout_ms=1_000)
            for place, records in found.items():
                for record in records:
                    self._saw((place.topic, place.partition), record.offset, record.value)

    def _saw(self, partition: Partition, offset: int, value: bytes) -> None:
        self._scenario.note("consumed", *partition, offset, value[:20])
        expected = self._next.get(partition, 0)
        was_cut = partition in self._scenario.ledger.bounds
        if offset != expected and not was_cut:
            raise Broken(f"{partition}: a consumer got {offset}, {expected} was next")
        self._next[partition] = offset + 1
        self._scenario.ledger.see(partition, offset, value)


class Copy:
    """What a reader has of one partition."""

    __slots__ = ("is_told", "partition", "records")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.records: list[Stored] = []
        self.is_told = False
        """The session knows where this copy ends."""

    @property
    def position(self) -> int:
        return len(self.records)

    @property
    def epoch(self) -> int:
        return self.records[-1].epoch if self.records else -1

    def cut(self, offset: int) -> None:
        del self.records[offset:]


class Copying:
    """Reads everything, in one fetch session, and tells each time with which epoch it stands
    where it stands."""

    def __init__(self, scenario: Scenario, *, name: str, with_session: bool) -> None:
        self._scenario = scenario
        self._client = WireClient(*scenario.address, name)
        self._name = name
        self._with_session = with_session
        self._session = (0, 0 if with_session else -1)
        self._random = Random(f"{name} {scenario.plan.seed}")
        self.copies = {partition: Copy(partition) for partition in scenario.plan.partitions}
        self.divergences = 0

    async def run(self) -> None:
        while not self._scenario.is_ending:
            await self.turn(max_wait_ms=self._random.choice((0, 300)))
            await asyncio.sleep(0.05 + 0.5 * self._random.random())
        self._client.close()

    async def catch_up(self, ends: dict[Partition, int]) -> None:
        """Reads on until it has as much as the logs have."""
        self._new_session()
        for _ in range(10_000):
            if all(self.copies[p].position == end for p, end in ends.items()):
                break
            await self.turn(max_wait_ms=0)
        else:
            places = {p: (copy.position, ends[p]) for p, copy in self.copies.items()}
            raise Broken(f"{self._name} does not get to the end: {places}")
        self._client.close()

    async def turn(self, *, max_wait_ms: int) -> None:
        """One fetch."""
        request = self._request(max_wait_ms)
        try:
            answer = await self._client.ask(request, FETCH_VERSION)
        except BROKEN:
            self._new_session()
            await asyncio.sleep(RETRY_S)
            return
        if answer.error_code in NEW_SESSION:
            self._new_session()
            return
        if answer.error_code:
            raise Broken(f"{self._name}: fetch answered {answer.error_code}")
        if self._with_session:
            self._session = (answer.session_id, self._session[1] + 1 if answer.session_id else 0)
        for topic in answer.responses:
            for data in topic.partitions:
                self._take(self.copies[topic.topic, data.partition_index], data)

    def _new_session(self) -> None:
        self._session = (0, 0 if self._with_session else -1)
        for copy in self.copies.values():
            copy.is_told = False

    def _request(self, max_wait_ms: int) -> Any:
        topics: dict[str, list[Any]] = {}
        for copy in self.copies.values():
            if copy.is_told and self._session[0]:
                continue
            copy.is_told = True
            topics.setdefault(copy.partition[0], []).append(
                FetchPartition(
                    partition=copy.partition[1],
                    fetch_offset=copy.position,
                    last_fetched_epoch=copy.epoch,
                    partition_max_bytes=MAX_BYTES,
                )
            )
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self._session[0],
            session_epoch=self._session[1],
            topics=[FetchTopic(topic=name, partitions=asked) for name, asked in topics.items()],
        )

    def _take(self, copy: Copy, data: Any) -> None:
        if data.error_code:
            if data.error_code in LATER:
                copy.is_told = False
                return
            raise Broken(f"{self._name}: {copy.partition} at {copy.position}: {data.error_code}")
        diverging = data.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            self._cut(copy, diverging.end_offset)
            return
        before = copy.position
        for position, header in iterate_batches(data.records or b""):
            for record in iterate_records(
                data.records, position, header, decompressed_max=MAX_BYTES
            ):
                if record.offset < copy.position:
                    continue
                if record.offset > copy.position:
                    raise Broken(f"{copy.partition}: {record.offset} behind {copy.position}")
                stored = Stored(record.offset, header.partition_leader_epoch, record.value or b"")
                copy.records.append(stored)
        if copy.position > before:
            copy.is_told = False
            self._scenario.note(self._name, *copy.partition, before, copy.position)

    def _cut(self, copy: Copy, end_offset: int) -> None:
        self._scenario.note("diverges", *copy.partition, copy.position, end_offset)
        bound = self._scenario.ledger.bounds.get(copy.partition)
        if end_offset >= copy.position:
            raise Broken(f"{copy.partition} diverges at {end_offset}, behind {copy.position}")
        if bound is None or end_offset < bound:
            raise Broken(f"{copy.partition} diverges at {end_offset}; {bound} was flushed")
        self.divergences += 1
        copy.cut(end_offset)
        copy.is_told = False
