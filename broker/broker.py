"""One broker, as its request handlers see it.

Holds the parts together and knows which addresses clients are told; what starts and stops it is in
main.py.
"""

from __future__ import annotations

from asyncio import sleep
from typing import NamedTuple

from ottla.broker.server import limits_of
from ottla.replication.metadata import Delta, Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any, TypeVar

    from ottla.broker.config import BrokerConfig
    from ottla.broker.context import Context
    from ottla.broker.controllers import Controllers
    from ottla.broker.coordinators import Coordinators
    from ottla.broker.fetch_sessions import FetchSessions
    from ottla.broker.membership import Membership
    from ottla.broker.node import Node
    from ottla.broker.producer_ids import ProducerIds
    from ottla.broker.replica_directories import ReplicaDirectories
    from ottla.broker.server import Server
    from ottla.broker.topic_creation import TopicCreation
    from ottla.broker.upkeep import Upkeep
    from ottla.broker.world import World
    from ottla.replication.quorum import Quorum
    from ottla.storage.log_dirs import LogDirectories
    from ottla.storage.logs import Logs
    from ottla.storage.steps import Slices

    T = TypeVar("T")

# How long long work goes on before others get their turn.
SLICE_MS = 3


class AdvertisedNode(NamedTuple):
    """A broker, and where a client of one connection reaches it."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class Broker:
    """Filled by main.py, part after part, before the first request."""

    world: World
    config: BrokerConfig
    controllers: Controllers
    coordinators: Coordinators
    quorum: Quorum
    directories: LogDirectories
    logs: Logs
    node: Node
    upkeep: Upkeep
    membership: Membership
    server: Server
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    topic_creation: TopicCreation
    replica_directories: ReplicaDirectories

    def __init__(self, world: World, config: BrokerConfig, *, node_id: int) -> None:
        self.world = world
        self.config = config
        self.node_id = node_id
        self.cluster_id = ""
        self.broker_epoch = -1
        self.image = Image()
        """What is committed, and served by this node."""
        self.is_changing = False
        """A change is half done: an error now must end the process."""
        self.directory_ids: dict[bytes, str] = {}
        """The paths of log directories."""
        self.on_fatal: Callable[[int, str], None] | None = None
        """Ends the process with an exit code, and one line that says why."""
        self._tasks: dict[Task[Any], None] = {}

    # addresses

    def nodes(self, context: Context, *, with_fenced: bool = False) -> list[AdvertisedNode]:
        """The brokers that clients on this connection's listener can reach."""
        found = []
        for broker in self.image.brokers.values():
            if broker.fenced and not with_fenced:
                continue
            address = self._address(broker.id, context)
            if address is not None:
                found.append(AdvertisedNode(broker.id, *address, broker.rack, broker.fenced))
        return found

    def node_address(self, node_id: int, context: Context) -> AdvertisedNode | None:
        """One broker; None where it is not there, or not on this listener."""
        broker = self.image.brokers.get(node_id)
        address = None if broker is None else self._address(node_id, context)
        if broker is None or address is None:
            return None
        return AdvertisedNode(node_id, *address, broker.rack, broker.fenced)

    def _address(self, node_id: int, context: Context) -> tuple[str, int] | None:
        """What was configured is told; else a client comes back where it has found us."""
        if node_id == self.node_id:
            configured = self.config.listeners.advertised.get(context.listener)
            if configured is None:
                return context.connection.dialled
            return configured.host, configured.port
        endpoint = self.image.brokers[node_id].endpoint(context.listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def any_node_id(self, context: Context) -> int:
        """Kafka names any live broker as the controller: all of them forward."""
        alive = [broker.id for broker in self.image.brokers.values() if not broker.fenced]
        if not alive:
            return -1
        return self.world.random.choice(alive) if len(alive) > 1 else alive[0]

    # features

    @property
    def finalized_features(self) -> dict[str, int]:
        return self.image.features.finalized | {"kraft.version": self.quorum.kraft_version}

    @property
    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        from ottla.replication.metadata_versions import SUPPORTED_FEATURES

        return SUPPORTED_FEATURES

    # work

    async def apply(self, image: Image, delta: Delta) -> None:
        """Makes this node serve what the image says, and then says so."""
        await self.node.apply(image, delta)
        self.image = image
        self.replica_directories.applied(delta)
        await self.coordinators.apply(image, delta)
        if delta.changed_configs:
            self.config = self.config.with_dynamic(image.configs)
            self.server.limits = limits_of(self.config)

    def begin(self, work: Coroutine[Any, Any, T]) -> Task[T]:
        """Work that nobody waits for. What it does not catch itself ends the process: it may have
        been in the midst of a change, and it would never be done again."""
        task = self.world.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: Task[Any]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def pause(self) -> None:
        """Lets everybody else have a turn."""
        await sleep(0)

    async def drive(self, slices: Slices[T]) -> T:
        """Long work beside the requests."""
        try:
            while True:
                next(slices)
                await sleep(0)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def fatal(self, reason: str, *, exit_code: int = 70) -> None:
        if self.on_fatal is not None:
            self.on_fatal(exit_code, reason)
