"""A broker with partitions, logs in memory and virtual time: as much as produce and fetch need."""

from __future__ import annotations

from asyncio import base_events
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.broker.broker import AdvertisedNode
from ottla.broker.context import Context
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.world import World
from ottla.protocol.apis import APIS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata_records import PartitionRecord, TopicRecord
from ottla.protocol.schema import decode, encode
from ottla.replication.metadata import Delta, Image
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import PartitionRegistration
from ottla.replication.partition import Partition
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.recovery import create_log
from tests.log_rig import DEFAULT, NOW, Rig

NODE_ID = 1
FAR_LEADER = AdvertisedNode(2, "far", 9092, None, False)


class _NoSockets:
    """Nothing ever arrives; waiting for it takes no time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise AssertionError("nothing will ever happen")
        self._loop.seconds += timeout
        return []


class VirtualLoop(base_events.BaseEventLoop):
    """asyncio's loop, whose time jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self._selector = _NoSockets(self)

    def time(self) -> float:
        return self.seconds

    def _process_events(self, events: list[Any]) -> None: ...
    def _write_to_self(self) -> None: ...

    def turn(self, count: int = 5) -> None:
        """Lets what is ready run, for some rounds."""
        for _ in range(count):
            self.call_soon(self.stop)
            self.run_forever()


class FakeConnection:
    listener = "PLAINTEXT"
    peer_host = "127.0.0.1"
    dialled = ("127.0.0.1", 9092)

    def __init__(self) -> None:
        self.is_closed = False
        self.reason: str | None = None
        self.callbacks: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        self.callbacks.remove(callback)

    def close(self, reason: str | None = None) -> None:
        self.is_closed = True
        self.reason = reason
        for callback in list(self.callbacks):
            callback()


def topic_id(name: str) -> bytes:
    return name.encode()[-16:].rjust(16, b"\1")


@dataclass
class Broker:
    """What handlers ask of a broker."""

    config: dict[str, Any] = field(default_factory=lambda: {"fetch.max.bytes": 55 << 20})
    after_fsync: bool = False
    slots: int = 1000

    def __post_init__(self) -> None:
        self.rig = Rig()
        self.loop = VirtualLoop()
        self.random = Random(5)
        self.wall_ms = NOW.wall_ms
        self.world = World(self.now, self.random, self.rig.files, self.loop)
        self.image = Image()
        self.node = self
        self.node_id = NODE_ID
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.offline: dict[tuple[str, int], ErrorCode] = {}
        self.fetch_sessions = FetchSessions(self.slots, random=self.random)
        self.pauses = 0
        self.is_changing = False
        self.server = self
        self.answer_bytes_left = 1 << 30
        self.receive_buffer = memoryview(bytearray(1 << 16))
        self.connection = FakeConnection()

    def now(self) -> Now:
        elapsed_ms = round(self.loop.seconds * 1000)
        return Now(NOW.monotonic_ms + elapsed_ms, self.wall_ms + elapsed_ms)

    async def pause(self) -> None:
        self.pauses += 1

    def begin(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.create_task(work)

    def node_address(self, node_id: int, context: Context) -> AdvertisedNode | None:
        return FAR_LEADER if node_id == FAR_LEADER.node_id else None

    # the cluster

    def create(
        self,
        name: str,
        count: int = 1,
        *,
        config: LogConfig = DEFAULT,
        id: bytes | None = None,
        leader: int = NODE_ID,
        replicas: tuple[int, ...] = (NODE_ID,),
        isr: tuple[int, ...] | None = None,
        epoch: int = 0,
        min_insync_replicas: int = 1,
    ) -> list[Partition]:
        identity = id or topic_id(name)
        delta = Delta(self.image)
        delta.replay(Versioned(TopicRecord(name=name, topic_id=identity)))
        for index in range(count):
            record = PartitionRecord(
                partition_id=index,
                topic_id=identity,
                replicas=list(replicas),
                isr=list(isr or replicas),
                removing_replicas=[],
                adding_replicas=[],
                leader=leader,
                leader_epoch=epoch,
                partition_epoch=0,
                directories=[],
            )
            delta.replay(Versioned(record))
        self.image = delta.apply(offset=self.image.offset + 1, epoch=1)
        made = []
        for index in range(count):
            log = create_log(
                self.rig.log_dir, name, index, config, topic_id=identity, now=self.now()
            )
            partition = Partition(
                name,
                index,
                identity,
                log,
                min_insync_replicas=min_insync_replicas,
                run=self.loop.create_task if self.after_fsync else None,
            )
            self.partitions[name, index] = partition
            self.lead(partition)
            made.append(partition)
        return made

    def lead(self, partition: Partition, **changes: Any) -> None:
        """As the image says, or with changes."""
        registration = self.registration(partition)._replace(**changes)
        if registration.leader == NODE_ID:
            partition.become_leader(registration, now=self.now())
        else:
            partition.become_follower(registration)

    def registration(self, partition: Partition) -> PartitionRegistration:
        found = self.image.partition(partition.topic, partition.partition)
        assert found is not None
        return found

    def drop(self, name: str, index: int = 0, *, code: ErrorCode | None = None) -> None:
        """The node has this partition no more."""
        partition = self.partitions.pop((name, index))
        partition.retire()
        partition.log.delete()
        if code is not None:
            self.offline[name, index] = code

    def partition(self, name: str, index: int) -> Partition:
        found = self.partitions.get((name, index))
        if found is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(self.offline.get((name, index), unknown))
        return found

    # requests

    def ask(
        self,
        handler: Callable[..., Any],
        request: Any,
        version: int,
        *,
        client_id: str = "test",
        connection: FakeConnection | None = None,
    ) -> Any:
        """Sends a request through its bytes. Returns the answer, or a task if it is not there."""
        key = type(request).__schema__.key
        request = decode(type(request), version, memoryview(bytearray(encode(request, version))))
        at = connection or self.connection
        context = Context(APIS[key], version, 1, client_id, at)  # type: ignore[arg-type]
        answer = handler(self, context, request)
        if isinstance(answer, Awaitable):
            task = self.loop.create_task(_encoded(answer, version))
            self.loop.turn()
            return task.result() if task.done() else task
        return _round_trip(answer, version)

    def run(self, task: Any) -> Any:
        """Lets time pass until a task is done."""
        return self.loop.run_until_complete(task)


async def _encoded(answer: Awaitable[Any], version: int) -> Any:
    return _round_trip(await answer, version)


def _round_trip(answer: Any, version: int) -> Any:
    """What the client reads."""
    if answer is None:
        return None
    return decode(type(answer), version, encode(answer, version))
