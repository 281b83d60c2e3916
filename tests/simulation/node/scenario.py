"""One seed, played from the first start to the last check.

The clients are aiokafka's, the node is the product; between them the network, below it the disk.
Whatever happens, in the end the logs are read whole and compared with what was promised.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.storage.memory_operations import Fault
from tests.simulation.node.clients import Clock, simulated
from tests.simulation.node.consumers import Consuming, Copying
from tests.simulation.node.disk import LASTING, PASSING, Disk
from tests.simulation.node.ledger import Broken, Ledger, Partition
from tests.simulation.node.loop import STARTS_AT_S, SimulatedLoop
from tests.simulation.node.machine import HOST, PORT, Machine
from tests.simulation.node.network import Network
from tests.simulation.node.plan import DOWN_S, Event, Plan
from tests.simulation.node.processes import Process
from tests.simulation.node.producers import Producing
from tests.simulation.node.trace import Trace
from tests.simulation.node.wire_client import BROKEN, WireClient

WALL_STARTS_AT_MS = 1_700_000_000_000
END_S = 400.0
HOUR_MS = 3_600_000
ATTEMPTS = 100
RETRY_S = 0.5
SETTLE_S = 15.0
PROMISE_S = 3.0


class Scenario:
    def __init__(self, plan: Plan, *, show: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.trace = Trace(show=show)
        self.loop = SimulatedLoop()
        self.trace.time = self.loop.time
        self.ledger = Ledger()
        self.network = Network(self.loop, Random(f"network {plan.seed}"), self.trace)
        self.is_ending = False
        self.counts: dict[str, int] = {}
        self.promised: asyncio.Future[Any] | None = None
        """Done with the next acknowledgement."""
        self._random = Random(f"events {plan.seed}")
        self._wall_offset_ms = 0
        self._clients = Process(self.loop, "clients")
        self._operator = Process(self.loop, "operator")
        disk = Disk(Random(f"disk {plan.seed}"), self.trace, self.wall_ms)
        self.machine = Machine(self.loop, disk, plan, self.wall_ms, self.note)
        self._epochs: dict[Partition, int] = {}
        self._copying = Copying(self, name="copy", with_session=plan.seed % 2 == 0)

    # what the clients ask

    @property
    def address(self) -> tuple[str, int]:
        return HOST, PORT

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{PORT}"

    def wall_ms(self) -> int:
        passed_s = self.loop.time() - STARTS_AT_S
        return WALL_STARTS_AT_MS + int(passed_s * 1000) + self._wall_offset_ms

    def note(self, kind: str, *what: object) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.trace.add(kind, *what)

    # the play

    def play(self) -> None:
        """Raises Broken where a promise was not kept."""
        clock = Clock(self.loop.time, lambda: self.wall_ms() / 1000)
        # Nothing may depend on when the collector comes by.
        gc.disable()
        try:
            with simulated(clock, Random(f"clients {self.plan.seed}")):
                main = self._operator.start(self._main())
                try:
                    self.loop.run_until_complete(main)
                finally:
                    self.loop.end([self._clients, self._operator, *self.machine.processes])
        finally:
            gc.enable()
            gc.collect()

    async def _main(self) -> None:
        await self.machine.start()
        await self._create_topics()
        await self._check_epochs()
        works: list[Awaitable[None]] = [
            *(Producing(self, plan).run() for plan in self.plan.producers),
            *(Consuming(self, plan).run() for plan in self.plan.consumers),
            self._copying.run(),
        ]
        clients = [self._clients.start(work) for work in works]  # type: ignore[arg-type]
        story = self._operator.start(self._story())
        await self._wait_for([story], [*clients, story], self.plan.lifetime_s + END_S)
        self.is_ending = True
        await self._wait_for(clients, clients, END_S)
        await self._check_all()

    async def _wait_for(self, awaited: list[Any], watched: list[Any], timeout_s: float) -> None:
        """Until all that is awaited is done; an error of anything ends it."""
        deadline_s = self.loop.time() + timeout_s
        while not all(each.done() for each in awaited):
            left_s = deadline_s - self.loop.time()
            running = [each for each in watched if not each.done()]
            await asyncio.wait(running, timeout=min(left_s, 1), return_when="FIRST_COMPLETED")
            for each in watched:
                if each.done():
                    each.result()
            self.machine.check()
            if left_s <= 0:
                raise Broken(f"still not done: {[each for each in awaited if not each.done()]}")
        for each in awaited:
            each.result()

    # the events

    async def _story(self) -> None:
        started_s = self.loop.time()
        for at_s, event in self.plan.events:
            await asyncio.sleep(max(0.0, started_s + at_s - self.loop.time()))
            self.note("event", event.name)
            await self._happens(event)
        await asyncio.sleep(max(0.0, started_s + self.plan.lifetime_s - self.loop.time()))

    async def _happens(self, event: Event) -> None:
        match event:
            case Event.RESTART:
                await self.machine.stop()
            case Event.KILL:
                self.machine.kill()
            case Event.POWER_CUT:
                await self._promise()
                self._cut_power()
            case Event.FULL:
                self.machine.disk.arm(self._random.choice(PASSING), self._random.choice((1, 30)))
                await asyncio.sleep(self._random.choice((0.5, 5.0)))
                self.machine.disk.fault = None
            case Event.FAILING:
                await self._fail_disk(self._random.choice(LASTING))
            case Event.JUMP:
                self._wall_offset_ms += self._random.choice((-HOUR_MS, HOUR_MS, -1_000, 60_000))
            case Event.CUT:
                self._disturb(lambda n: self.network.cut(n, arrives=self._random.random() < 0.5))
            case Event.STALL:
                seconds = self._random.choice((0.5, 4.0, 12.0))
                self._disturb(lambda number: self.network.stall(number, seconds))
        if not self.machine.is_up:
            self.ledger.unsure_lines = True
            await asyncio.sleep(self._random.choice(DOWN_S))
            await self.machine.start()
            await self._check_epochs()

    def _disturb(self, what: Callable[[int], None]) -> None:
        self.ledger.unsure_lines = True
        numbers = list(self.network.connected)
        for number in self._random.sample(numbers, min(len(numbers), self._random.randint(1, 3))):
            what(number)

    async def _promise(self) -> None:
        """Often until somebody was just told that his records are safe: the worst of moments."""
        if self._random.random() < 0.3:
            return
        self.promised = self.loop.create_future()
        await asyncio.wait([self.promised], timeout=PROMISE_S)
        self.promised = None

    def _cut_power(self) -> None:
        # Where acks come behind the fsync, nobody was told of anything that is not on the disk.
        if not self.plan.acks_after_fsync:
            self.ledger.power_cut(self.machine.flushed(), now_s=self.loop.time())
        self.machine.cut_power()

    async def _fail_disk(self, fault: Fault) -> None:
        """What a machine does whose disk fails: it stops, and comes back with another one, on
        which is what had been synced."""
        self.machine.expects_death = True
        self.machine.disk.arm(fault, 1)
        for _ in range(20):
            await asyncio.sleep(0.5)
            if not self.machine.is_up:
                break
        self._cut_power()
        self.machine.expects_death = False

    # the operator's own questions

    async def _asked(self, request: Any, version: int) -> Any:
        client = WireClient(HOST, PORT, "operator")
        for _ in range(ATTEMPTS):
            try:
                return await client.ask(request, version)
            except BROKEN:
                await asyncio.sleep(RETRY_S)
            finally:
                client.close()
        raise Broken(f"nobody answers {request}")

    async def _create_topics(self) -> None:
        topics = [
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=1,
                assignments=[],
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs.items()
                ],
            )
            for topic in self.plan.topics
        ]
        answer = await self._asked(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        for each in answer.topics:
            if each.error_code:
                raise Broken(f"{each.name} is not created: {each.error_code} {each.error_message}")

    async def _check_epochs(self) -> None:
        """A node that was started leads in higher epochs than before."""
        names = [MetadataRequestTopic(name=topic.name) for topic in self.plan.topics]
        answer = await self._asked(MetadataRequest(topics=names), 12)
        for topic in answer.topics:
            for each in topic.partitions:
                partition = (topic.name, each.partition_index)
                before = self._epochs.get(partition, -1)
                if each.error_code or each.leader_epoch <= before:
                    raise Broken(
                        f"{partition}: epoch {each.leader_epoch} behind {before}, "
                        f"error {each.error_code}"
                    )
                self._epochs[partition] = each.leader_epoch
        if len(self._epochs) < len(self.plan.partitions):
            raise Broken(f"partitions are missing: {sorted(self._epochs)}")

    async def _ends(self) -> dict[Partition, int]:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=-1)
                        for index in range(topic.partitions)
                    ],
                )
                for topic in self.plan.topics
            ],
        )
        answer = await self._asked(request, 9)
        ends = {}
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    raise Broken(f"{topic.name}-{each.partition_index}: {each.error_code}")
                ends[topic.name, each.partition_index] = each.offset
        return ends

    # the end

    async def _check_all(self) -> None:
        """As it is, after a clean restart, and after one that was none."""
        # What a stalled line still holds has to come in first.
        await asyncio.sleep(SETTLE_S)
        for death in (None, self.machine.stop, self._killed):
            if death is not None:
                await death()
                await self.machine.start()
                await self._check_epochs()
            ends = await self._ends()
            reader = Copying(self, name="last", with_session=False)
            await reader.catch_up(ends)
            for partition, copy in reader.copies.items():
                self.ledger.check(partition, copy.records)
            await self._copying.catch_up(ends)
            for partition, copy in self._copying.copies.items():
                if copy.records != reader.copies[partition].records:
                    raise Broken(f"{partition}: a reader that was told of divergences has another")
        self.note("end", *sorted(ends.items()))

    async def _killed(self) -> None:
        self.machine.kill()
