"""A loop, a network and a trace, for tests of the harness itself."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any

from tests.simulation.node.loop import SimulatedLoop
from tests.simulation.node.network import QUICK, Line, Network
from tests.simulation.node.processes import Process
from tests.simulation.node.trace import Trace


class Rig:
    def __init__(self, seed: int = 1, line: Line | None = QUICK) -> None:
        self.trace = Trace()
        self.loop = SimulatedLoop()
        self.trace.time = self.loop.time
        self.network = Network(self.loop, Random(seed), self.trace)
        if line is not None:
            self.network.line_of = lambda random: line
        self.processes = [Process(self.loop, name) for name in ("server", "client")]

    @property
    def server(self) -> Process:
        return self.processes[0]

    @property
    def client(self) -> Process:
        return self.processes[1]

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs it to its end as the client, then ends the simulation."""
        try:
            result = self.loop.run_until_complete(self.client.start(coroutine))
            if self.loop.uncaught:
                raise AssertionError(self.loop.uncaught)
            return result
        finally:
            self.loop.end(self.processes)
