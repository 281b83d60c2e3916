"""The simulated network, seen through asyncio's own transports."""

import asyncio
from random import Random
from typing import Any

import pytest

from tests.simulation.node.network import QUICK, Line, random_line
from tests.simulation.node.rig import Rig

NARROW = Line(0.001, 0, 1000, 0)
IN_BYTES = Line(0.001, 0.001, 64 << 10, 1)


class Recorder(asyncio.Protocol):
    """Notes everything that its transport calls."""

    def __init__(self, *, keeps_open: bool = False) -> None:
        self.seen: list[Any] = []
        self.data = b""
        self.keeps_open = keeps_open

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.seen.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.seen.append(len(data))

    def eof_received(self) -> bool:
        self.seen.append("eof")
        return self.keeps_open

    def connection_lost(self, error: Exception | None) -> None:
        self.seen.append("lost" if error is None else type(error).__name__)

    def pause_writing(self) -> None:
        self.seen.append("pause")

    def resume_writing(self) -> None:
        self.seen.append("resume")


class Buffered(asyncio.BufferedProtocol):
    def __init__(self) -> None:
        self.buffer = bytearray(8)
        self.data = b""

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, count: int) -> None:
        self.data += self.buffer[:count]

    def eof_received(self) -> bool:
        return False


async def pair(rig: Rig, server: Any = None, client: Any = None) -> tuple[Any, Any]:
    """Both ends of a new connection."""
    server, client = server or Recorder(), client or Recorder()

    async def serve() -> None:
        await rig.loop.create_server(lambda: server, "127.0.0.1", 9092)

    await rig.server.start(serve())
    await rig.loop.create_connection(lambda: client, "localhost", 9092)
    await asyncio.sleep(1)
    return server, client


def test_what_is_sent_arrives_in_order() -> None:
    rig = Rig(line=IN_BYTES)

    async def run() -> None:
        server, client = await pair(rig)
        client.transport.write(b"one, ")
        client.transport.writelines([b"two, ", memoryview(b"three")])
        await asyncio.sleep(1)
        assert server.data == b"one, two, three"
        assert server.seen[1:] == [1] * 15

    rig.run(run())


def test_a_buffered_protocol_receives_as_much_as_its_buffer_takes() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig, server=Buffered())
        client.transport.write(bytes(range(100)))
        await asyncio.sleep(1)
        assert server.data == bytes(range(100))

    rig.run(run())


def test_a_slow_reader_stops_the_writer() -> None:
    rig = Rig(line=NARROW)

    async def run() -> None:
        server, client = await pair(rig)
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=2000, low=500)
        client.transport.write(bytes(5000))
        await asyncio.sleep(10)
        assert client.seen == ["made", "pause"]
        assert client.transport.get_write_buffer_size() == 4000
        assert server.data == b""
        server.transport.resume_reading()
        await asyncio.sleep(10)
        assert client.seen == ["made", "pause", "resume"]
        assert len(server.data) == 5000

    rig.run(run())


def test_a_side_that_sends_no_more_is_still_answered() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig, server=Recorder(keeps_open=True))
        client.transport.write(b"question")
        client.transport.write_eof()
        await asyncio.sleep(1)
        assert server.seen == ["made", 8, "eof"]
        server.transport.write(b"answer")
        server.transport.close()
        await asyncio.sleep(1)
        assert client.data == b"answer"
        assert client.seen[-2:] == ["eof", "lost"]
        assert server.seen[-1] == "lost"

    rig.run(run())


def test_closing_sends_first_what_was_written() -> None:
    rig = Rig(line=NARROW)

    async def run() -> None:
        server, client = await pair(rig)
        client.transport.write(bytes(5000))
        client.transport.close()
        await asyncio.sleep(10)
        assert len(server.data) == 5000
        assert server.seen[-2:] == ["eof", "lost"]

    rig.run(run())


def test_a_close_with_something_unread_is_a_reset() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig)
        server.transport.pause_reading()
        client.transport.write(b"never read")
        await asyncio.sleep(1)
        server.transport.abort()
        await asyncio.sleep(1)
        assert client.seen[-1] == "ConnectionResetError"

    rig.run(run())


def test_a_cut_is_an_error_on_both_sides() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig)
        rig.network.cut(1, arrives=False)
        await asyncio.sleep(1)
        assert server.seen[-1] == client.seen[-1] == "ConnectionResetError"

    rig.run(run())


def test_a_stalled_line_delivers_later() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig)
        rig.network.stall(1, 30)
        client.transport.write(b"late")
        await asyncio.sleep(29)
        assert server.data == b""
        await asyncio.sleep(2)
        assert server.data == b"late"

    rig.run(run())


def test_nobody_listens_anywhere_else() -> None:
    rig = Rig()

    async def run() -> None:
        with pytest.raises(ConnectionRefusedError):
            await rig.loop.create_connection(Recorder, "127.0.0.1", 9092)

    rig.run(run())


def test_a_killed_process_falls_silent_and_its_peers_notice() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig)
        server.transport.write(b"the last word")
        rig.server.kill()
        await asyncio.sleep(1)
        assert client.data == b"the last word"
        assert client.seen[-2:] == ["eof", "lost"]
        assert server.seen == ["made"]
        with pytest.raises(ConnectionRefusedError):
            await rig.loop.create_connection(Recorder, "127.0.0.1", 9092)

    rig.run(run())


def test_a_protocol_sees_addresses_but_no_descriptor() -> None:
    rig = Rig()

    async def run() -> None:
        server, client = await pair(rig)
        assert server.transport.get_extra_info("sockname") == ("127.0.0.1", 9092)
        assert server.transport.get_extra_info("peername") == client.transport.get_extra_info(
            "sockname"
        )
        assert server.transport.get_extra_info("socket").fileno() == -1

    rig.run(run())


def digest(seed: int) -> str:
    rig = Rig(seed, line=None)

    async def run() -> None:
        server, client = await pair(rig)
        for size in (1, 100, 9_000):
            client.transport.write(bytes(size))
            server.transport.write(bytes(size))
        await asyncio.sleep(60)
        assert len(server.data) == len(client.data) == 9_101

    rig.run(run())
    return rig.trace.digest


def test_equal_seeds_give_equal_traces_and_others_do_not() -> None:
    digests = [digest(seed) for seed in range(8)]
    assert digests == [digest(seed) for seed in range(8)]
    assert len(set(digests)) == 8


def test_lines_are_of_all_kinds() -> None:
    lines = [random_line(Random(seed)) for seed in range(100)]
    assert {line.piece_bytes for line in lines} == {0, 3, 100, 1460}
    assert QUICK not in lines
