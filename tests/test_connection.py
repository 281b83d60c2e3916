"""A connection: order, waiting, slow readers, peers that go. No socket is needed for that."""

import os
from asyncio import AbstractEventLoop, Future, new_event_loop
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from ottla.broker.connection import Connection
from ottla.protocol.frames import FrameBuffers
from ottla.protocol.wire import Buffer

Pieces = list[Buffer]


class FakeTransport:
    def __init__(self) -> None:
        self.sent = bytearray()
        self.is_reading = True
        self.closed = self.aborted = False
        self.unsent_bytes = 0

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("10.0.0.9", 4000), "sockname": ("10.0.0.1", 9092)}.get(name)

    def write(self, data: Buffer) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class FakeServer:
    """Answers a frame with itself in brackets; one that begins with `?` waits for `release`."""

    request_size_max = 1000

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.receive_buffer = memoryview(bytearray(4096))
        self.frame_buffers = FrameBuffers()
        self.now_ms = 0
        self.served: list[bytes] = []
        self.waiting: list[tuple[bytes, Future[Pieces | None]]] = []
        self.held: list[int] = []
        self.owed: list[int] = []

    def serve(
        self, connection: Connection, frame: Buffer
    ) -> Pieces | Awaitable[Pieces | None] | None:
        content = bytes(frame)
        self.served.append(content)
        if content.startswith(b"?"):
            future: Future[Pieces | None] = self.loop.create_future()
            self.waiting.append((content, future))
            return future
        return None if content.startswith(b"-") else [b"[" + content + b"]"]

    def wait_for(self, answer: Any, answered: Any) -> None:
        answer.add_done_callback(lambda done: answered(done.result()))

    def opened(self, connection: Connection, socket: object) -> None:
        pass

    def closed(self, connection: Connection) -> None:
        pass

    def holds(self, connection: Connection, count: int) -> None:
        self.held.append(count)

    def owes(self, connection: Connection, count: int) -> None:
        self.owed.append(count)

    def drained(self, connection: Connection) -> None:
        self.owed.append(0)


class Rig:
    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.server = FakeServer(loop)
        self.connection = Connection(self.server, "PLAINTEXT")  # type: ignore[arg-type]
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def receive(self, data: bytes) -> None:
        while data:
            buffer = self.connection.get_buffer(-1)
            part, data = data[: len(buffer)], data[len(buffer) :]
            buffer[: len(part)] = part
            self.connection.buffer_updated(len(part))

    def release(self, answer: Pieces | None) -> None:
        self.server.waiting.pop(0)[1].set_result(answer)
        self.turn()

    def turn(self) -> None:
        for _ in range(3):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


@pytest.fixture
def rig() -> Iterator[Rig]:
    loop = new_event_loop()
    yield Rig(loop)
    loop.close()


def test_requests_are_answered_in_order_in_one_write_or_many(rig: Rig) -> None:
    rig.receive(frame(b"a") + frame(b"b") + frame(b"c"))
    rig.receive(frame(b"d"))
    assert rig.transport.sent == b"[a][b][c][d]"


def test_a_request_may_come_byte_by_byte(rig: Rig) -> None:
    for byte in frame(b"slowly") + frame(b"x"):
        rig.receive(bytes([byte]))
    assert rig.transport.sent == b"[slowly][x]"
    assert rig.server.held[-1] == 0


def test_a_request_without_an_answer_sends_nothing(rig: Rig) -> None:
    rig.receive(frame(b"-") + frame(b"a"))
    assert rig.transport.sent == b"[a]"


def test_what_comes_behind_a_request_that_waits_is_served_after_it(rig: Rig) -> None:
    rig.receive(frame(b"?") + frame(b"a"))
    rig.receive(frame(b"b"))
    assert rig.server.served == [b"?"]
    # The shared buffer is another connection's by now.
    rig.server.receive_buffer[:] = b"!" * len(rig.server.receive_buffer)
    rig.release([b"waited"])
    assert rig.transport.sent == b"waited[a][b]"


def test_a_peer_that_sends_far_ahead_of_its_answers_is_not_read(rig: Rig) -> None:
    rig.receive(frame(b"?"))
    for _ in range(100):
        rig.receive(frame(b"x" * 900))
    assert not rig.transport.is_reading
    rig.release([b""])
    rig.turn()
    assert rig.transport.is_reading
    assert len(rig.server.served) == 101


def test_a_peer_that_does_not_read_is_not_served(rig: Rig) -> None:
    rig.connection.pause_writing()
    assert not rig.transport.is_reading
    rig.receive(frame(b"a"))
    assert rig.server.served == []
    rig.connection.resume_writing()
    rig.turn()
    assert rig.transport.sent == b"[a]"
    assert rig.transport.is_reading


def test_requests_that_came_before_the_peer_closed_its_side_are_answered(rig: Rig) -> None:
    rig.receive(frame(b"?") + frame(b"a"))
    assert rig.connection.eof_received()
    rig.release([b"waited"])
    assert rig.transport.sent == b"waited[a]"
    rig.turn()
    assert rig.transport.closed


def test_a_peer_that_closes_its_side_and_waits_for_nothing_is_closed(rig: Rig) -> None:
    rig.receive(frame(b"a"))
    assert not rig.connection.eof_received()


@pytest.mark.parametrize("how", ["half closed", "lost"])
def test_who_waits_for_a_peer_learns_that_it_has_gone(rig: Rig, how: str) -> None:
    gone: list[str] = []
    rig.receive(frame(b"?"))
    rig.connection.on_close(lambda: gone.append("first"))
    forgotten = lambda: gone.append("forgotten")  # noqa: E731
    rig.connection.on_close(forgotten)
    rig.connection.forget(forgotten)
    if how == "lost":
        rig.connection.connection_lost(None)
    else:
        rig.connection.eof_received()
    assert gone == ["first"]
    rig.connection.on_close(lambda: gone.append("late"))
    rig.turn()
    assert gone == ["first", "late"]


def test_an_answer_to_a_peer_that_has_gone_is_dropped(rig: Rig) -> None:
    rig.receive(frame(b"?"))
    rig.connection.connection_lost(None)
    rig.release([b"late"])
    assert rig.transport.sent == b""


def test_others_get_their_turn_between_many_requests(rig: Rig) -> None:
    rig.receive(b"".join(frame(b"%d" % number) for number in range(200)))
    assert len(rig.server.served) == 64
    for _ in range(3):
        rig.turn()
    assert rig.server.served == [b"%d" % number for number in range(200)]
    assert rig.transport.is_reading


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1])
def test_a_frame_that_is_too_large_closes(rig: Rig, size: int) -> None:
    rig.receive(frame(b"a") + size.to_bytes(4, "big", signed=True))
    rig.turn()
    assert rig.transport.closed


def test_draining_answers_what_is_under_way_and_closes(rig: Rig) -> None:
    rig.receive(frame(b"?") + frame(b"never"))
    rig.connection.drain()
    assert not rig.transport.closed
    rig.release([b"last"])
    assert rig.transport.sent == b"last"
    rig.turn()
    assert rig.transport.closed


def test_who_begins_to_wait_while_we_drain_is_not_waited_for(rig: Rig) -> None:
    rig.receive(frame(b"?"))
    rig.connection.drain()
    gone: list[int] = []
    rig.connection.on_close(lambda: gone.append(1))
    rig.turn()
    assert gone == [1]


def test_draining_closes_at_once_where_nothing_waits(rig: Rig) -> None:
    rig.receive(frame(b"a"))
    rig.connection.drain()
    rig.turn()
    assert rig.transport.closed


def test_an_unfinished_frame_is_accounted_for_until_it_is_whole(rig: Rig) -> None:
    rig.receive(frame(b"x" * 900)[:300])
    assert rig.server.held[-1] > 0
    rig.receive(frame(b"x" * 900)[300:])
    assert rig.server.held[-1] == 0


def test_what_a_slow_peer_owes_is_accounted_for(rig: Rig) -> None:
    rig.receive(frame(b"?"))
    rig.connection.pause_writing()
    rig.transport.unsent_bytes = 500
    rig.release([b"x"])
    assert rig.server.owed[-1] == 500
    rig.connection.resume_writing()
    rig.turn()
    assert rig.server.owed[-1] == 0


# --- large answers, which go to the kernel in pieces ---------------------------------------


class SocketTransport(FakeTransport):
    """One with a descriptor, as real ones have: what the kernel did not take is kept."""

    def __init__(self, descriptor: int, connection: Connection) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._connection = connection

    def get_extra_info(self, name: str) -> Any:
        return self if name == "socket" else super().get_extra_info(name)

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Buffer) -> None:
        self.sent += data
        if len(self.sent) > 32 << 10:
            self._connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return len(self.sent)


@pytest.fixture
def pipe_rig() -> Iterator[tuple[Connection, SocketTransport, int]]:
    loop = new_event_loop()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    connection = Connection(FakeServer(loop), "PLAINTEXT")  # type: ignore[arg-type]
    transport = SocketTransport(writing, connection)
    connection.connection_made(transport)  # type: ignore[arg-type]
    yield connection, transport, reading
    os.close(reading)
    os.close(writing)
    loop.close()


def turn(connection: Connection) -> None:
    loop = connection._server.loop
    loop.call_soon(loop.stop)
    loop.run_forever()


def read_all(connection: Connection, transport: SocketTransport, reading: int) -> bytes:
    """As a peer that reads, slowly, with a kernel in between."""
    received = bytearray()
    while True:
        try:
            received += os.read(reading, 50_000)
        except BlockingIOError:
            if not transport.sent:
                return bytes(received)
            received += transport.sent
            transport.sent.clear()
            connection.resume_writing()
            turn(connection)


def test_a_large_answer_arrives_whole_and_in_order(
    pipe_rig: tuple[Connection, SocketTransport, int],
) -> None:
    connection, transport, reading = pipe_rig
    answer = [b"%07d" % number * 10_000 for number in range(20)]
    connection._send([memoryview(piece) for piece in answer])
    assert read_all(connection, transport, reading) == b"".join(answer)


def test_a_connection_that_closes_sends_a_large_answer_first(
    pipe_rig: tuple[Connection, SocketTransport, int],
) -> None:
    connection, transport, reading = pipe_rig
    connection._send([b"x" * 500_000])
    connection.close()
    assert not transport.closed
    assert len(read_all(connection, transport, reading)) == 500_000
    assert transport.closed


def test_a_peer_that_closes_its_side_still_gets_all_of_a_large_answer(
    pipe_rig: tuple[Connection, SocketTransport, int],
) -> None:
    connection, transport, reading = pipe_rig
    connection._send([b"x" * 500_000])
    assert connection.eof_received()
    assert len(read_all(connection, transport, reading)) == 500_000
    assert transport.closed


@pytest.mark.parametrize("what", ["write", "close", "abort"])
def test_a_transport_is_left_alone_while_it_tells_that_there_is_room(
    pipe_rig: tuple[Connection, SocketTransport, int], what: str
) -> None:
    """It would lose its connection twice, which ends the process."""
    connection, transport, reading = pipe_rig
    connection._send([b"x" * 500_000])
    connection.close()
    touched: list[str] = []
    setattr(transport, what, lambda *_: touched.append(what))
    os.read(reading, 400_000)
    transport.sent.clear()
    connection.resume_writing()
    assert touched == []


def test_what_comes_behind_a_large_answer_waits_for_it(
    pipe_rig: tuple[Connection, SocketTransport, int],
) -> None:
    connection, transport, reading = pipe_rig
    connection._send([b"x" * 300_000, b"y" * 300_000])
    connection._send([b"z"])
    received = read_all(connection, transport, reading)
    assert received == b"x" * 300_000 + b"y" * 300_000 + b"z"


def test_a_large_answer_that_ends_with_an_empty_piece_comes_to_an_end(
    pipe_rig: tuple[Connection, SocketTransport, int],
) -> None:
    connection, transport, reading = pipe_rig
    connection._send([b"", b"x" * 20_000, b"", b""])
    assert read_all(connection, transport, reading) == b"x" * 20_000


def test_requests_are_left_alone_while_their_answers_are_not_read(rig: Rig) -> None:
    answers = {b"%d" % number: [b"x" * 50_000] for number in range(20)}

    def serve(connection: Connection, frame: Buffer) -> list[Buffer]:
        rig.server.served.append(bytes(frame))
        return list(answers[bytes(frame)])

    rig.server.serve = serve  # type: ignore[method-assign]
    send = rig.transport.write

    def write(data: Buffer) -> None:
        send(data)
        rig.connection.pause_writing()

    rig.transport.write = write  # type: ignore[method-assign]
    rig.receive(b"".join(frame(b"%d" % number) for number in range(20)))
    assert len(rig.server.served) == 2
    rig.connection.resume_writing()
    rig.turn()
    rig.turn()
    assert len(rig.server.served) == 3
