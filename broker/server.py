"""The listeners and their connections: who may connect, who is closed, who holds how much memory.

Knows no API: `serve` is handed in. Sockets are bound before the broker is ready, so that a port is
known and taken, and accepted from only afterwards.
"""

from __future__ import annotations

import logging
import socket as sockets
from typing import NamedTuple

from ottla.broker.connection import Connection
from ottla.protocol.frames import FrameBuffers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, AbstractServer, Future
    from collections.abc import Awaitable, Callable

    from ottla.broker.config import BrokerConfig
    from ottla.broker.world import World
    from ottla.protocol.wire import Buffer

    Serve = Callable[[Connection, Buffer], "list[Buffer] | Awaitable[list[Buffer] | None] | None"]

logger = logging.getLogger(__name__)

_RECEIVED_BYTES_MAX = 256 << 10
_SWEEP_S = 1.0
# A peer that does not read for so long makes room for others where memory is short, and is not
# waited for once its connection ends.
_UNREAD_MS_MAX = 10_000
# Descriptors that are kept for files, whoever connects; of a small limit, a quarter.
_RESERVED_DESCRIPTORS = 1024


class Limits(NamedTuple):
    """What the peers together may take."""

    request_size_max: int = 100 << 20
    idle_ms_max: int = 10 * 60 * 1000
    connections_max: int = 2**31 - 1
    connections_max_per_ip: int = 2**31 - 1
    connections_per_ip_overrides: dict[str, int] | None = None
    bytes_in_flight_max: int = 512 << 20
    backlog: int = 512


def limits_of(config: BrokerConfig) -> Limits:
    return Limits(
        request_size_max=config["socket.request.max.bytes"],
        idle_ms_max=config["connections.max.idle.ms"],
        connections_max=config["max.connections"],
        connections_max_per_ip=config["max.connections.per.ip"],
        connections_per_ip_overrides=config.connections_per_ip_overrides,
        bytes_in_flight_max=config["ottla.bytes.in.flight.max"],
        backlog=config["socket.listen.backlog.size"],
    )


class Server:
    """All connections of a broker."""

    def __init__(
        self, world: World, limits: Limits, serve: Serve, *, descriptors_max: int | None = None
    ) -> None:
        """`descriptors_max` is how many this process may have; None where there is no limit."""
        self._world = world
        self.limits = limits
        self._first_reserved: int | None = None
        if descriptors_max is not None:
            reserve = min(_RESERVED_DESCRIPTORS, descriptors_max // 4)
            self._first_reserved = descriptors_max - reserve
        self._is_told_of_shortage = False
        self.loop: AbstractEventLoop = world.loop
        self.serve = serve
        self.request_size_max = limits.request_size_max
        self.receive_buffer = memoryview(bytearray(_RECEIVED_BYTES_MAX))
        self.frame_buffers = FrameBuffers()
        self.now_ms = world.now().monotonic_ms
        """The time of the last sweep: near enough for idle connections."""
        self._servers: list[AbstractServer] = []
        self._connections: dict[Connection, None] = {}
        self._per_ip: dict[str, int] = {}
        # Unfinished frames, the oldest first, and answers that their peers do not read.
        self._held: dict[Connection, int] = {}
        self._owed: dict[Connection, int] = {}
        self._bytes_in_flight = 0
        self._is_draining = False
        self._drained: Future[None] | None = None
        self._sweep = self.loop.call_later(_SWEEP_S, self._sweep_idle)

    # listeners

    async def bind(self, listener: str, host: str, port: int) -> int:
        """Takes the address, and returns the port; nobody is served yet. A name may stand for
        several addresses, and an empty one for all: they share the port."""
        if port:
            return await self._bind(listener, host or None, port)
        for number, address in enumerate(await self._addresses(host)):
            try:
                port = await self._bind(listener, address, port)
            except OSError:
                # Of the port that was free at the first address nothing is known at the others.
                if not number:
                    raise
        return port

    async def _addresses(self, host: str) -> list[str]:
        if not host:
            return ["0.0.0.0", "::"]
        found = await self.loop.getaddrinfo(host, None, type=sockets.SOCK_STREAM)
        return list(dict.fromkeys(str(each[4][0]) for each in found))

    async def _bind(self, listener: str, host: str | None, port: int) -> int:
        server = await self.loop.create_server(
            lambda: Connection(self, listener),
            host,
            port,
            backlog=self.limits.backlog,
            start_serving=False,
        )
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        for server in self._servers:
            await server.start_serving()

    def close(self) -> None:
        """Gives the addresses back."""
        self._sweep.cancel()
        for server in self._servers:
            server.close()

    async def stop(self, *, patience_s: float) -> None:
        """Takes no more connections and requests; answers that are under way still leave."""
        self.close()
        self._is_draining = True
        for connection in list(self._connections):
            connection.drain()
        if self._connections:
            self._drained = self.loop.create_future()
            timer = self.loop.call_later(patience_s, self._give_up)
            await self._drained
            timer.cancel()

    def _give_up(self) -> None:
        for connection in list(self._connections):
            connection.abort("the broker stops")

    # what connections report

    def opened(self, connection: Connection, socket: sockets.socket | None) -> None:
        self._connections[connection] = None
        host = connection.peer_host
        count = self._per_ip[host] = self._per_ip.get(host, 0) + 1
        limits = self.limits
        overrides = limits.connections_per_ip_overrides or {}
        if self._is_draining:
            connection.close("the broker stops")
        elif socket is not None and self._is_reserved(socket.fileno()):
            connection.close("descriptors are short")
        elif count > overrides.get(host, limits.connections_max_per_ip):
            connection.close("too many connections from this address")
        elif len(self._connections) > limits.connections_max:
            connection.close("too many connections")
        connection.last_active_ms = self.now_ms
        if socket is not None:
            self._set_options(socket)

    def _is_reserved(self, descriptor: int) -> bool:
        """A new descriptor is the lowest that was free: all below it are in use."""
        if self._first_reserved is None or descriptor < self._first_reserved:
            return False
        if not self._is_told_of_shortage:
            self._is_told_of_shortage = True
            logger.warning("server.descriptors_short connections=%d", len(self._connections))
        return True

    def _set_options(self, socket: sockets.socket) -> None:
        try:
            socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
            if socket.family in (sockets.AF_INET, sockets.AF_INET6):
                socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        except OSError:
            # Some systems refuse it where the peer has gone already, of which we hear soon.
            return

    def closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        left = self._per_ip.get(connection.peer_host, 1) - 1
        if left:
            self._per_ip[connection.peer_host] = left
        else:
            self._per_ip.pop(connection.peer_host, None)
        self.holds(connection, 0)
        self.owes(connection, 0)
        if not self._connections and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    # memory

    @property
    def answer_bytes_left(self) -> int:
        """How large an answer may be now, so that all in flight stays within its limit."""
        return max(0, self.limits.bytes_in_flight_max - self._bytes_in_flight)

    def holds(self, connection: Connection, count: int) -> None:
        """The memory of an unfinished frame."""
        self._bytes_in_flight += count - self._held.get(connection, 0)
        if count:
            # The entry keeps its place: who began first goes first.
            self._held[connection] = count
            self._make_room()
        else:
            self._held.pop(connection, None)

    def owes(self, connection: Connection, count: int) -> None:
        """Answers that the peer has not read."""
        self._bytes_in_flight += count - self._owed.pop(connection, 0)
        if count:
            # The entry goes to the end: who has read nothing for longest goes first.
            self._owed[connection] = count
            self._make_room()

    def _make_room(self) -> None:
        """Who does not read what was sent pays before anybody whose request is still to come."""
        if self._bytes_in_flight <= self.limits.bytes_in_flight_max:
            return
        for unread in self._owed:
            if self._idle_ms(unread) >= _UNREAD_MS_MAX:
                self._sacrifice(unread, "memory is short, and it does not read its answers")
                return
            break
        if self._held:
            slowest = next(iter(self._held))
            self._sacrifice(slowest, "memory is short, and its request is the slowest to come")

    def _sacrifice(self, connection: Connection, reason: str) -> None:
        """At once, so that the next one is not it again."""
        self._bytes_in_flight -= self._held.pop(connection, 0) + self._owed.pop(connection, 0)
        connection.abort(reason)

    def drained(self, connection: Connection) -> None:
        self.owes(connection, 0)

    # answers that take their time

    def wait_for(
        self,
        answer: Awaitable[list[Buffer] | None],
        answered: Callable[[list[Buffer] | None], None],
    ) -> None:
        from asyncio import ensure_future

        future = ensure_future(answer, loop=self.loop)
        future.add_done_callback(lambda done: None if done.cancelled() else answered(done.result()))

    # idle connections

    def _idle_ms(self, connection: Connection) -> int:
        return self.now_ms - connection.last_active_ms

    def _sweep_idle(self) -> None:
        before_ms = self.now_ms
        self.now_ms = self._world.now().monotonic_ms
        self._is_told_of_shortage = False
        stalled_ms = max(0, self.now_ms - before_ms - int(2000 * _SWEEP_S))
        for connection in list(self._connections):
            # Nobody is blamed for a time in which we did not look.
            connection.last_active_ms += stalled_ms
            self._judge(connection)
        self._sweep = self.loop.call_later(_SWEEP_S, self._sweep_idle)

    def _judge(self, connection: Connection) -> None:
        idle_ms, idle_ms_max = self._idle_ms(connection), self.limits.idle_ms_max
        if connection.is_ending:
            if idle_ms > _UNREAD_MS_MAX:
                connection.abort("it does not read its last answers")
        elif 0 <= idle_ms_max < idle_ms and not connection.is_waiting:
            # As Kafka's, a limit below 0 is none.
            connection.close("idle")
