"""A whole node in memory, whose handlers are asked directly: no bytes, no socket, virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from random import Random
from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.config_sources import load
from ottla.broker.context import Context
from ottla.broker.dispatch import Route
from ottla.broker.main import started
from ottla.broker.world import World
from ottla.protocol.apis import APIS
from ottla.storage.clock import Now
from ottla.storage.memory_files import MemoryFiles
from tests.data_rig import FakeConnection
from tests.simulation.node.rig import Rig

WALL_MS = 1_800_000_000_000
_BY_NAME = {api.name: api for api in APIS.values()}

Story = Callable[["Node"], Awaitable[Any]]


class Node:
    """What a story sees of a node that serves."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def ask(self, request: Any, version: int) -> Any:
        """The handler's response, as it would be encoded."""
        api = _BY_NAME[type(request).__name__.removesuffix("Request")]
        connection: Any = FakeConnection()
        context = Context(api, version, 1, "a client", connection)
        answer = Route(api, version).handler(self.broker, context, request)
        return await answer if isawaitable(answer) else answer


def tell(
    story: Story,
    *,
    files: MemoryFiles | None = None,
    paths: Sequence[str] = ("data",),
    settings: Sequence[str] = (),
    stops: bool = True,
    seed: int = 1,
) -> Any:
    """Starts a node on these files, tells the story, and stops the node, or leaves it as it is. Its
    next incarnation has another seed."""
    rig = Rig()
    disk = disk_with(paths) if files is None else files

    async def all_of_it() -> Any:
        start_s = rig.loop.time()
        world = World(
            lambda: Now(int(rig.loop.time() * 1000), WALL_MS + int(rig.loop.time() - start_s)),
            Random(seed),
            disk,
            rig.loop,
        )
        loaded = load(settings=[f"log.dirs={','.join(paths)}", *settings], listen="127.0.0.1:9092")
        running = await started(world, loaded.config)
        result = await story(Node(running.broker))
        if stops:
            await running.stop()
        return result

    return rig.run(all_of_it())


def disk_with(
    paths: Sequence[str], *, delay_s: Callable[[str, str], float] | None = None
) -> MemoryFiles:
    files = MemoryFiles(delay_s=delay_s)
    for path in paths:
        files.make_directory(path)
    files.sync_directory_now("")
    return files
