"""asyncio's own selector loop and transports, over virtual time and sockets in memory.

Time jumps to the next timer when nothing is ready. Futures and tasks are hashed by the order in
which they were made, so that sets of them, asyncio's and the clients', have one order. Nothing of
the machine comes in: no clock, no descriptor, no thread.
"""

from __future__ import annotations

import asyncio
from asyncio import base_events, events
from asyncio.selector_events import BaseSelectorEventLoop
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from itertools import count
from selectors import BaseSelector, SelectorKey
from socket import AF_INET, AF_INET6, SOCK_STREAM
from typing import TYPE_CHECKING, Any

from tests.simulation.node.processes import PROCESS, Process

if TYPE_CHECKING:
    from tests.simulation.node.network import MemorySocket, Network

STARTS_AT_S = 1_000.0
# What a turn of the loop takes: so even a client that asks again at once gets somewhere.
TURN_S = 5e-6
TURNS_WITHOUT_TIMER_MAX = 2_000_000


class Stuck(AssertionError):
    """Nothing is ready and no timer is set, or nothing ever ends."""


class SimulatedFuture(asyncio.Future[Any]):
    __slots__ = ("serial",)

    def __init__(self, serial: int, loop: SimulatedLoop) -> None:
        self.serial = serial
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.serial


class SimulatedTask(asyncio.Task[Any]):
    __slots__ = ("process", "serial")

    def __init__(self, serial: int, coroutine: Any, *, loop: SimulatedLoop, **kwargs: Any) -> None:
        self.serial = serial
        context = kwargs.get("context")
        self.process = PROCESS.get() if context is None else context.get(PROCESS)
        super().__init__(coroutine, loop=loop, **kwargs)
        if self.process is not None:
            self.process.tasks[self] = None
            self.add_done_callback(self.process.tasks.pop, context=_NOBODY)

    def __hash__(self) -> int:
        return self.serial


_NOBODY = Context()


class MemorySelector(BaseSelector):
    """Which sockets are ready. They say so themselves, by `changed`."""

    def __init__(self) -> None:
        self._keys: dict[int, SelectorKey] = {}
        self._ready: dict[int, None] = {}
        self.wait: Callable[[float | None], None] = lambda timeout: None

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys[fd] = SelectorKey(fd, fd, events, data)
        self._ready[fd] = None
        return key

    modify = register

    def unregister(self, fileobj: Any) -> SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._ready.pop(fd, None)
        return self._keys.pop(fd)

    def changed(self, fd: int) -> None:
        if fd in self._keys:
            self._ready[fd] = None

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        found = self._select() if self._ready else []
        self.wait(0 if found else timeout)
        return found

    def _select(self) -> list[tuple[SelectorKey, int]]:
        found = []
        for fd in sorted(self._ready):
            key = self._keys[fd]
            mask = SOCKETS[fd].ready_for() & key.events
            if mask:
                found.append((key, mask))
            else:
                del self._ready[fd]
        return found

    def _registered(self) -> Mapping[Any, SelectorKey]:
        return self._keys

    get_map = _registered


SOCKETS: dict[int, MemorySocket] = {}


class SimulatedLoop(BaseSelectorEventLoop):
    """One loop for all processes of a simulation."""

    network: Network

    def __init__(self) -> None:
        self._now_s = STARTS_AT_S
        self._serials = count()
        self._turns = 0
        self._memory = MemorySelector()
        self._memory.wait = self._wait
        super().__init__(self._memory)
        self._clock_resolution = 1e-9
        self.uncaught: list[tuple[Process | None, dict[str, Any]]] = []
        self._is_over = False
        # Kept to the end: what a dead process left behind must not be tidied up in the middle.
        self._made_transports: list[Any] = []

    # time

    def time(self) -> float:
        return self._now_s

    def _wait(self, timeout: float | None) -> None:
        """Called once in each turn, with what asyncio would wait."""
        self._now_s += TURN_S
        if timeout == 0:
            self._turns += 1
            if self._turns > TURNS_WITHOUT_TIMER_MAX:
                raise Stuck(f"{self._turns} turns without a pause")
            return
        self._turns = 0
        if timeout is None:
            raise Stuck("nothing is ready, and nothing will be")
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        self._now_s = max(self._now_s, scheduled[0].when())

    # what has an order

    def create_future(self) -> asyncio.Future[Any]:
        return SimulatedFuture(next(self._serials), self)

    def create_task(self, coro: Any, **kwargs: Any) -> Any:
        self._check_closed()  # type: ignore[attr-defined]
        return SimulatedTask(next(self._serials), coro, loop=self, **kwargs)

    # processes

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> events.Handle:
        handle = super().call_soon(callback, *args, context=context)
        _drop_if_dead(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        _drop_if_dead(handle)
        return handle

    def for_nobody(self, when: float, callback: Any, *args: Any) -> events.TimerHandle:
        """A timer that outlives every process: the network's, the scenario's."""
        return super().call_at(when, callback, *args, context=_NOBODY)

    def forget(self, process: Process) -> None:
        """Drops what a dead process was about to do."""
        for handle in [*self._ready, *self._scheduled]:  # type: ignore[attr-defined]
            if handle._context is not None and handle._context.get(PROCESS) is process:
                handle.cancel()
        self.network.disconnect(process)

    def set_exception_handler(self, handler: Any) -> None:
        process = PROCESS.get()
        if process is None:
            raise RuntimeError("a handler of nobody")
        process.on_exception = handler

    def call_exception_handler(self, context: Any) -> None:
        """To whom it belongs: a process must not die of what another one did."""
        if self._is_over:
            return
        process = _owner(context)
        if process is not None and process.on_exception is not None:
            if process.is_alive:
                process.run(process.on_exception, self, context)
            return
        self.uncaught.append((process, context))

    # what comes from outside

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **kwargs: Any
    ) -> Any:
        if kwargs.pop("sock", None) is None:
            _refuse({k: v for k, v in kwargs.items() if k not in ("family", "flags", "proto")})
            kwargs = {}
            sock: Any = await self.network.connect(str(host), int(port))
        return await super().create_connection(protocol_factory, sock=sock)

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **kwargs: Any
    ) -> base_events.Server:
        start, backlog = kwargs.pop("start_serving", True), kwargs.pop("backlog", 100)
        sock = kwargs.pop("sock", None)
        _refuse({k: v for k, v in kwargs.items() if k not in _HARMLESS})
        hosts = [host] if host is None or isinstance(host, str) else list(host)
        bound: Any = [sock] if sock else [self.network.bound(h or "0.0.0.0", port) for h in hosts]
        server = base_events.Server(self, bound, protocol_factory, None, backlog, None, None)
        if start:
            server._start_serving()  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        return server

    def _make_socket_transport(self, sock: Any, *args: Any, **kwargs: Any) -> Any:
        transport = super()._make_socket_transport(sock, *args, **kwargs)  # type: ignore[misc]
        transport._extra["socket"] = OutwardSocket(sock)
        self._made_transports.append(transport)
        return transport

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> list[Any]:
        name = "127.0.0.1" if host == "localhost" else str(host)
        family = AF_INET6 if ":" in name else AF_INET
        address = (name, port, 0, 0) if family == AF_INET6 else (name, port)
        return [(family, SOCK_STREAM, 6, "", address)]

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        """There are no threads here: done at once, told in the next turn."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except (OSError, ValueError, RuntimeError) as error:
            future.set_exception(error)
        return future

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Any, *args: Any
    ) -> None:
        pass

    def remove_signal_handler(self, sig: int) -> bool:
        return True

    def changed(self, fd: int) -> None:
        self._memory.changed(fd)

    def end(self, processes: Iterable[Process]) -> None:
        """The end of a simulation: nothing that was left in the middle says a word."""
        self._is_over = True
        for process in processes:
            process.is_alive = False
            self.forget(process)
            process.bury()
        for transport in self._made_transports:
            transport._sock = None
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        self.close()

    def _make_self_pipe(self) -> None:
        pass

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class OutwardSocket(TransportSocket):
    """What a protocol sees: nothing that could be handed to the kernel."""

    def fileno(self) -> int:
        return -1


def _drop_if_dead(handle: Any) -> None:
    process = handle._context.get(PROCESS)
    if process is not None and not process.is_alive:
        handle.cancel()


_HARMLESS = {"family", "flags", "reuse_address", "reuse_port", "keep_alive"}


def _refuse(arguments: dict[str, Any]) -> None:
    left = {name: value for name, value in arguments.items() if value is not None}
    if left:
        raise NotImplementedError(f"the simulated network knows nothing of {left}")


def _owner(context: dict[str, Any]) -> Process | None:
    if (handle := context.get("handle")) is not None:
        owner: Process | None = handle._context.get(PROCESS)
        return owner
    if (task := context.get("task") or context.get("future")) is not None:
        return getattr(task, "process", PROCESS.get())
    return PROCESS.get()
