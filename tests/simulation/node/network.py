"""A network in memory: sockets for asyncio's own transports, with seeded delays, cuts and pieces.

A connection is two pipes. What one side sends arrives later, whole or in pieces; a pipe that is
full takes no more. What has arrived can be read, and reading it is what the trace records.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from dataclasses import dataclass
from random import Random
from selectors import EVENT_READ, EVENT_WRITE
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SOCK_STREAM
from typing import Any

from tests.simulation.node.loop import SOCKETS, TURN_S, SimulatedLoop
from tests.simulation.node.processes import PROCESS, Process
from tests.simulation.node.trace import Trace

FIRST_PORT = 40_000
PIECES = 8


@dataclass(slots=True, frozen=True)
class Line:
    """What kind of line a connection has."""

    latency_s: float
    jitter_s: float
    capacity_bytes: int
    piece_bytes: int  # 0: what is sent together arrives together


QUICK = Line(0.000_1, 0.000_05, 256 << 10, 0)


def random_line(random: Random) -> Line:
    """Most lines are quick and whole, some are slow, narrow or cut everything into pieces."""
    latency_s = random.choice((0.000_05, 0.000_2, 0.000_5, 0.002, 0.02))
    return Line(
        latency_s,
        latency_s * random.choice((0.1, 0.5, 2)),
        random.choice((4 << 10, 64 << 10, 256 << 10, 1 << 20)),
        random.choice((0, 0, 0, 0, 3, 100, 1460)),
    )


class Pipe:
    """One direction of a connection."""

    __slots__ = ("arrived", "capacity_bytes", "eof", "error", "flying", "last_s", "queued_bytes")

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.queued_bytes = 0  # sent and not yet read
        self.flying: deque[bytes | None] = deque()  # None: the end
        self.last_s = 0.0  # when the last of it arrives
        self.arrived = bytearray()
        self.eof = False
        self.error: int | None = None


class MemorySocket:
    """What asyncio's transports ask of a socket."""

    type = SOCK_STREAM
    proto = IPPROTO_TCP

    def __init__(self, network: Network, name: tuple[Any, ...]) -> None:
        self.network = network
        self.family = AF_INET6 if len(name) == 4 else AF_INET
        self.name = name
        self.process = PROCESS.get()
        self.peer: MemorySocket | None = None
        self.incoming = Pipe(0)
        self.line = QUICK
        self.label = ""
        self.is_open = True
        self.is_shut = False  # for writing
        self.pending: deque[MemorySocket] | None = None  # of a listener
        self.options: dict[tuple[int, int], Any] = {}
        self._fd = network.next_fd()
        SOCKETS[self._fd] = self

    # readiness

    def ready_for(self) -> int:
        if self.pending is not None:
            return EVENT_READ if self.pending else 0
        pipe = self.incoming
        mask = EVENT_READ if pipe.arrived or pipe.eof or pipe.error is not None else 0
        peer = self.peer
        # As in a kernel: not for a few bytes, or they would leave one by one.
        enough = peer.incoming.capacity_bytes // 3 if peer is not None else 0
        room = self._room()
        return mask | (EVENT_WRITE if room is None or room > enough else 0)

    def _room(self) -> int | None:
        """How much can be sent; None where an error is to be found, or a peer that is gone."""
        peer = self.peer
        if peer is None or self.incoming.error is not None or not peer.is_open:
            return None
        return peer.incoming.capacity_bytes - peer.incoming.queued_bytes

    # data

    def send(self, data: Any) -> int:
        self._require_open()
        if (error := self.incoming.error) is not None:
            raise _error(errno.EPIPE if error == 0 else error)
        if self.is_shut:
            raise _error(errno.EPIPE)
        room = self._room()
        if room is not None and room <= 0:
            raise BlockingIOError(errno.EAGAIN, "full")
        taken = bytes(memoryview(data).cast("B")[:room])
        self.network.send(self, taken)
        return len(taken)

    def sendmsg(self, buffers: Any) -> int:
        return self.send(b"".join(buffers))

    def recv(self, size: int) -> bytes:
        self._require_open()
        pipe = self.incoming
        if pipe.arrived:
            data = bytes(pipe.arrived[:size])
            del pipe.arrived[: len(data)]
            self.network.received(self, data)
            return data
        if pipe.error:
            raise _error(pipe.error)
        if pipe.eof or pipe.error == 0:
            return b""
        raise BlockingIOError(errno.EAGAIN, "empty")

    def recv_into(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self.recv(len(view))
        view[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        if not self.is_shut:
            self.is_shut = True
            self.network.send(self, None)

    def close(self) -> None:
        if self.is_open:
            self.network.close(self)

    # listening

    def listen(self, backlog: int) -> None:
        self.pending = deque() if self.pending is None else self.pending

    def accept(self) -> tuple[MemorySocket, tuple[Any, ...]]:
        self._require_open()
        if not self.pending:
            raise BlockingIOError(errno.EAGAIN, "nobody")
        accepted = self.pending.popleft()
        accepted.process = PROCESS.get()
        return accepted, accepted.getpeername()

    # the rest

    def fileno(self) -> int:
        return self._fd if self.is_open else -1

    def getsockname(self) -> tuple[Any, ...]:
        return self.name

    def getpeername(self) -> tuple[Any, ...]:
        if self.peer is None:
            raise _error(errno.ENOTCONN)
        return self.peer.name

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        self.options[level, option] = value

    def getsockopt(self, level: int, option: int) -> Any:
        return self.options.get((level, option), 0)

    def setblocking(self, flag: bool) -> None:
        pass

    def gettimeout(self) -> float:
        return 0.0

    def detach(self) -> int:
        raise NotImplementedError("a socket in memory has no descriptor")

    def _require_open(self) -> None:
        if not self.is_open:
            raise _error(errno.EBADF)


class Network:
    """All sockets, and what befalls them."""

    def __init__(self, loop: SimulatedLoop, random: Random, trace: Trace) -> None:
        self._loop = loop
        self._random = random
        self._trace = trace
        self._fds = 1_000
        self._ports = FIRST_PORT
        self._connections = 0
        self._listeners: list[MemorySocket] = []
        self.connected: dict[int, MemorySocket] = {}  # the clients' sides, by number
        self.line_of = random_line
        loop.network = self
        SOCKETS.clear()

    def next_fd(self) -> int:
        self._fds += 1
        return self._fds

    # coming

    def bound(self, host: str, port: int | None) -> MemorySocket:
        if not port:
            self._ports += 1
            port = self._ports
        if any(each.name[:2] == (host, port) for each in self._listeners):
            raise _error(errno.EADDRINUSE)
        listener = MemorySocket(self, (host, port, 0, 0) if ":" in host else (host, port))
        self._listeners.append(listener)
        return listener

    async def connect(self, host: str, port: int) -> MemorySocket:
        """The client's side of a new connection, when the other side has heard of it."""
        line = self.line_of(self._random)
        reached = self._loop.create_future()
        name = "127.0.0.1" if host == "localhost" else host

        def reach() -> None:
            if not reached.done():
                reached.set_result(self._listener(name, port))

        self._loop.for_nobody(self._loop.time() + line.latency_s, reach)
        listener: MemorySocket | None = await reached
        if listener is None or listener.pending is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}:{port}")
        return self._connected(name, port, listener, line)

    def _listener(self, host: str, port: int) -> MemorySocket | None:
        names = ((host, port), ("0.0.0.0", port), ("::", port))
        return next((each for each in self._listeners if each.name[:2] in names), None)

    def _connected(self, host: str, port: int, listener: MemorySocket, line: Line) -> MemorySocket:
        self._ports += 1
        self._connections += 1
        tail = (0, 0) if ":" in host else ()
        client = MemorySocket(self, (host, self._ports, *tail))
        server = MemorySocket(self, (host, port, *tail))
        server.process = listener.process
        for each, other in ((client, server), (server, client)):
            each.peer, each.line, each.incoming = other, line, Pipe(line.capacity_bytes)
        client.label, server.label = f"{self._connections}<", f"{self._connections}>"
        self.connected[self._connections] = client
        self._trace.add("connect", self._connections, port)
        if listener.pending is not None:
            listener.pending.append(server)
        self._loop.changed(listener.fileno())
        return client

    # going to and fro

    def send(self, sender: MemorySocket, data: bytes | None) -> None:
        peer = sender.peer
        if peer is None:
            raise _error(errno.ENOTCONN)
        line, pipe = sender.line, peer.incoming
        due_s = self._loop.time() + line.latency_s
        for piece in (None,) if data is None else self._pieces(data, line):
            pipe.flying.append(piece)
            pipe.queued_bytes += len(piece or b"")
            # Two turns apart, pieces are seen as pieces.
            due_s = max(due_s, pipe.last_s) + line.jitter_s * self._random.random() + 2 * TURN_S
            pipe.last_s = due_s
            self._loop.for_nobody(due_s, self._arrive, peer, pipe)

    def _pieces(self, data: bytes, line: Line) -> list[bytes]:
        if not line.piece_bytes:
            return [data]
        # A megabyte byte by byte teaches nobody more than a few pieces of it.
        size_max = max(line.piece_bytes, len(data) // PIECES)
        pieces, position = [], 0
        while position < len(data):
            end = position + self._random.randint(1, size_max)
            pieces.append(data[position:end])
            position = end
        return pieces

    def _arrive(self, receiver: MemorySocket, pipe: Pipe) -> None:
        if not pipe.flying:
            return  # a reset was quicker
        piece = pipe.flying.popleft()
        if not receiver.is_open:
            # Data for a socket that is gone is answered with a reset.
            if piece is not None and receiver.peer is not None:
                self._reset(receiver.peer, errno.ECONNRESET)
            return
        if piece is None:
            pipe.eof = True
        else:
            pipe.arrived += piece
        self._loop.changed(receiver.fileno())

    def received(self, receiver: MemorySocket, data: bytes) -> None:
        self._trace.add("bytes", receiver.label, data)
        receiver.incoming.queued_bytes -= len(data)
        if receiver.peer is not None:
            self._loop.changed(receiver.peer.fileno())

    # going

    def close(self, sock: MemorySocket) -> None:
        fd = sock.fileno()
        sock.is_open = False
        SOCKETS.pop(fd, None)
        if sock.pending is not None:
            self._listeners.remove(sock)
            for waiting in sock.pending:
                waiting.close()
            return
        peer = sock.peer
        if peer is None:
            return
        self._trace.add("close", sock.label)
        if not peer.is_open:
            self.connected.pop(int(sock.label[:-1]), None)
        elif sock.incoming.arrived:
            self._reset(peer, errno.ECONNRESET)
        elif not sock.is_shut:
            sock.is_shut = True
            self.send(sock, None)

    def _reset(self, sock: MemorySocket, error: int) -> None:
        """What is under way is lost; what has arrived can still be read."""
        sock.incoming.flying.clear()
        if sock.is_open and sock.incoming.error is None:
            sock.incoming.error = error
            self._loop.changed(sock.fileno())

    def unplug(self, process: Process) -> None:
        """What its peers have not read is lost, and they may wait long until they notice."""
        for sock in [each for each in SOCKETS.values() if each.process is process]:
            peer = sock.peer
            if peer is not None:
                peer.incoming.flying.clear()
                peer.incoming.arrived.clear()
                sock.incoming.arrived.clear()
                sock.is_shut = True  # it says no goodbye
                at_s = self._loop.time() + self._random.choice((0.0, 0.1, 3.0, 60.0))
                self._loop.for_nobody(at_s, self._reset, peer, errno.ECONNRESET)

    def disconnect(self, process: Process) -> None:
        """The sockets of a process that died: what it had sent still arrives."""
        for sock in [each for each in SOCKETS.values() if each.process is process]:
            fd = sock.fileno()
            if fd in self._loop._memory.get_map():
                self._loop._memory.unregister(fd)
            sock.close()

    def cut(self, number: int, *, arrives: bool) -> None:
        """Ends a connection on both sides; with or without what is under way."""
        client = self.connected.get(number)
        if client is None or client.peer is None:
            return
        self._trace.add("cut", number, arrives)
        for sock in (client, client.peer):
            if arrives:
                sock.incoming.arrived += b"".join(each or b"" for each in sock.incoming.flying)
            self._reset(sock, errno.ECONNRESET)

    def stall(self, number: int, seconds: float) -> None:
        """Nothing more arrives on a connection for a while."""
        client = self.connected.get(number)
        if client is None or client.peer is None:
            return
        self._trace.add("stall", number, seconds)
        for sock in (client, client.peer):
            sock.incoming.last_s = max(sock.incoming.last_s, self._loop.time() + seconds)


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
