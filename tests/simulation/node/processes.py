"""Simulated processes: what one started dies with it, at once and without a word.

Everything that runs in the loop runs in a context, and a context knows its process. So a process
is killed from outside: its callbacks are dropped, its tasks never run again, its sockets close.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.node.loop import SimulatedLoop

Handler = Callable[[Any, dict[str, Any]], object]


class Process:
    """One life of one program."""

    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.on_exception: Handler | None = None
        self._loop = loop
        self._context = Context()
        self._context.run(PROCESS.set, self)
        self.tasks: dict[Any, None] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls something as this process."""
        return self._context.copy().run(call, *arguments)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """A task of this process."""
        return self.run(self._loop.create_task, coroutine)

    def kill(self) -> None:
        self.is_alive = False
        self._loop.forget(self)

    def bury(self) -> None:
        """Ends the coroutines that were left in the middle. What they still do goes nowhere."""
        for task in list(self.tasks):
            task._log_destroy_pending = False
            with suppress(RuntimeError, OSError, ValueError):
                task.get_coro().close()
        self.tasks.clear()


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
