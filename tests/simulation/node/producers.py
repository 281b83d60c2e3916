"""Producers of aiokafka: they send, and write down what they were promised."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.node.ledger import Partition, Sent
from tests.simulation.node.plan import ProducerPlan

if TYPE_CHECKING:
    from tests.simulation.node.scenario import Scenario

RETRY_S = 0.5
STOP_S = 120.0
# A few are waited for now and then, so that one client is never too far ahead.
PENDING_MAX = 300


class Producing:
    """One plan's producer; when a life of it ends in an error that it does not survive, the next
    life begins."""

    def __init__(self, scenario: Scenario, plan: ProducerPlan) -> None:
        self._scenario = scenario
        self._ledger = scenario.ledger
        self._plan = plan
        self._random = Random(f"producer {scenario.plan.seed} {plan.number}")
        self._life = 0
        self._number = 0
        self._failed = False
        self._pending: dict[Any, None] = {}

    async def run(self) -> None:
        while not self._scenario.is_ending:
            self._life += 1
            self._failed = False
            producer = self._made()
            try:
                await self._live(producer)
            finally:
                await self._stopped(producer)

    def _made(self) -> Any:
        from aiokafka import AIOKafkaProducer

        plan = self._plan
        return AIOKafkaProducer(
            bootstrap_servers=self._scenario.bootstrap,
            client_id=f"producer-{plan.number}",
            acks=plan.acks,
            enable_idempotence=plan.is_idempotent,
            compression_type=plan.compression,
            linger_ms=plan.linger_ms,
            max_batch_size=plan.batch_bytes,
            request_timeout_ms=5_000,
            metadata_max_age_ms=10_000,
        )

    async def _live(self, producer: Any) -> None:
        from aiokafka.errors import KafkaError

        try:
            await producer.start()
        except KafkaError as error:
            self._scenario.note("start", self._plan.number, repr(error))
            await asyncio.sleep(RETRY_S)
            return
        while not self._scenario.is_ending and not self._failed:
            for _ in range(self._random.randint(1, self._plan.burst_max)):
                try:
                    await self._send(producer)
                except KafkaError as error:
                    self._scenario.note("unsent", self._plan.number, repr(error))
                    await asyncio.sleep(RETRY_S)
            if len(self._pending) > PENDING_MAX:
                await asyncio.wait(list(self._pending), timeout=RETRY_S)
            await asyncio.sleep(self._plan.pause_s * self._random.random() * 2)

    async def _send(self, producer: Any) -> None:
        partition = self._random.choice(self._plan.targets)
        self._number += 1
        name = f"{self._plan.number}.{self._life}"
        padding = "x" * self._random.randrange(self._plan.value_bytes_max)
        value = f"{name} {self._number} {padding}".encode()
        sent = Sent(name, self._number, value, self._plan.is_idempotent)
        # Before it is on its way: whoever reads it sooner than we hear of it must know it.
        self._ledger.send(partition, sent)
        future = await producer.send(
            partition[0], value, partition=partition[1], timestamp_ms=self._scenario.wall_ms()
        )
        self._pending[future] = None
        future.add_done_callback(lambda done: self._told(partition, value, done))

    def _told(self, partition: Partition, value: bytes, future: Any) -> None:
        self._pending.pop(future)
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._scenario.note("refused", *partition, value[:20], repr(error))
            # A producer that has lost its sequence cannot go on; any other can.
            self._failed = self._failed or not getattr(error, "retriable", False)
            return
        answer = future.result()
        if answer is None:
            return  # acks=0: nobody promised anything
        self._scenario.note("acknowledged", *partition, value[:20], answer.offset)
        promised = self._scenario.promised
        if promised is not None and not promised.done():
            promised.set_result(None)
        now_s = self._scenario.loop.time()
        self._ledger.acknowledge(partition, value, answer.offset, now_s=now_s)

    async def _stopped(self, producer: Any) -> None:
        from aiokafka.errors import KafkaError

        with suppress(KafkaError, asyncio.TimeoutError):
            await asyncio.wait_for(producer.stop(), STOP_S)
        for future in list(self._pending):
            future.cancel()
        self._pending.clear()
