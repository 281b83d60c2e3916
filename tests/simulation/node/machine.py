"""A machine with one node on it: the product itself, started, stopped, killed and unplugged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from ottla.storage.clock import Now
from tests.simulation.node.disk import Disk
from tests.simulation.node.ledger import Broken, Partition
from tests.simulation.node.loop import SimulatedLoop
from tests.simulation.node.processes import Process

if TYPE_CHECKING:
    from tests.simulation.node.plan import Plan

HOST, PORT = "127.0.0.1", 9092
DATA = "data"
START_S = 120.0
STOP_S = 60.0


class Machine:
    def __init__(
        self,
        loop: SimulatedLoop,
        disk: Disk,
        plan: Plan,
        wall_ms: Callable[[], int],
        note: Callable[..., None],
    ) -> None:
        self.disk = disk
        self.processes: list[Process] = []
        self.expects_death = False
        self._loop = loop
        self._plan = plan
        self._wall_ms = wall_ms
        self._note = note
        self._running: Any = None
        self._died: str | None = None
        disk.make_directory(DATA)
        disk.start()

    @property
    def is_up(self) -> bool:
        return self._running is not None

    # lives

    async def start(self) -> None:
        """Until it serves."""
        process = Process(self._loop, f"node {len(self.processes) + 1}")
        self.processes.append(process)
        self._note("start", process.name)
        task = process.start(self._started())
        await asyncio.wait([task], timeout=START_S)
        if not task.done():
            raise Broken(f"{process.name} does not start")
        self._running = task.result()
        self._note("started", process.name)

    async def _started(self) -> Any:
        from ottla.broker.config_sources import load
        from ottla.broker.main import started
        from ottla.broker.world import World

        settings = {
            "ottla.ack.after.fsync": str(self._plan.acks_after_fsync).lower(),
            **self._plan.settings,
        }
        loaded = load(
            settings=[f"{name}={value}" for name, value in settings.items()],
            listen=f"{HOST}:{PORT}",
            data=DATA,
        )
        number = len(self.processes)
        world = World(
            self._now, Random(f"node {self._plan.seed} {number}"), self.disk.files, self._loop
        )
        self._loop.set_exception_handler(lambda loop, context: self._dies(number, context))
        running = await started(world, loaded.config)
        running.broker.on_fatal = lambda code, reason: self._dies(number, f"{code} {reason}")
        return running

    def _now(self) -> Now:
        return Now(int(self._loop.time() * 1000), self._wall_ms())

    def _dies(self, number: int, reason: object) -> None:
        """The node ends itself: the shell would exit here."""
        if number == len(self.processes) and self._died is None:
            self._died = str(reason)
            self._note("died", reason)
            # From outside: a process cannot drop the callback that it is in.
            self._loop.for_nobody(self._loop.time(), self._end, number)

    def _end(self, number: int) -> None:
        if number == len(self.processes) and self.processes[-1].is_alive:
            self._gone()
            self.disk.killed()

    def check(self) -> None:
        """A node dies of nothing but its disk."""
        if self._died is not None and not self.expects_death:
            raise Broken(f"the node stopped: {self._died}")

    # deaths

    async def stop(self) -> None:
        """Cleanly; then all is on the disk, and a power cut takes nothing."""
        task = self.processes[-1].start(self._running.stop())
        await asyncio.wait([task], timeout=STOP_S)
        if not task.done():
            raise Broken("the node does not stop")
        task.result()
        self._gone()
        self.disk.killed()

    def kill(self) -> None:
        self._gone()
        self.disk.killed()

    def cut_power(self) -> None:
        self._loop.network.unplug(self.processes[-1])
        self._gone()
        self.disk.crashed()

    def _gone(self) -> None:
        self._running = None
        self._died = None
        self.processes[-1].kill()

    # looking inside

    def flushed(self) -> dict[Partition, int]:
        """Up to where each log is on the disk, as the node believes."""
        if self._running is None:
            return {}
        logs = self._running.broker.logs.current
        return {partition: log.recovery_point for partition, log in logs.items()}
