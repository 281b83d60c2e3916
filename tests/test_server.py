"""All connections together: who may come, who must go, and who pays where memory is short."""

import errno
import socket as sockets
from asyncio import StreamReader, StreamWriter, open_connection, sleep
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from ottla.broker.connection import Connection
from ottla.broker.server import Limits, Server
from ottla.broker.world import World
from ottla.protocol.wire import Buffer
from ottla.storage.clock import Now
from ottla.storage.memory_files import MemoryFiles
from tests.simulation.node.rig import Rig

HOST, PORT = "127.0.0.1", 9092
Peer = tuple[StreamReader, StreamWriter]
Story = Callable[["Bench"], Awaitable[None]]


class Bench:
    """A server in a network in memory. It answers `N` with N bytes, and `?` once it is told to."""

    def __init__(self, limits: Limits) -> None:
        self.rig = Rig()
        self.loop = self.rig.loop
        world = World(self.now, Random(1), MemoryFiles(), self.loop)
        self.served: list[bytes] = []
        self.gone: list[bool] = []
        self.waiting: list[Any] = []
        self.server = Server(world, limits, self.serve)
        self.peers: list[Peer] = []

    async def peer(self, limit: int = 1 << 16) -> Peer:
        peer = await open_connection(HOST, PORT, limit=limit)
        self.peers.append(peer)
        return peer

    def now(self) -> Now:
        return Now(int(self.loop.time() * 1000), 0)

    def serve(self, connection: Connection, frame: Buffer) -> Any:
        content = bytes(frame)
        self.served.append(content)
        if content == b"bad":
            connection.close("it is bad")
            return None
        if content == b"?":
            waiting = self.loop.create_future()
            self.waiting.append(waiting)
            connection.on_close(lambda: self.gone.append(True))
            return waiting
        return [framed(b"x" * int(content.lstrip(b"0")))]

    async def start(self) -> None:
        await self.server.bind("PLAINTEXT", HOST, PORT)
        await self.server.start()


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def tell(story: Story, **limits: Any) -> None:
    bench = Bench(Limits(**limits))

    async def all_of_it() -> None:
        await bench.start()
        try:
            await story(bench)
        finally:
            for _, writer in bench.peers:
                writer.close()

    bench.rig.run(all_of_it())


async def ask(peer: Peer, *contents: bytes) -> None:
    peer[1].write(b"".join(map(framed, contents)))
    await sleep(0.01)


async def answer(peer: Peer) -> int:
    """How long it is."""
    size = int.from_bytes(await peer[0].readexactly(4), "big")
    return len(await peer[0].readexactly(size))


async def is_cut(peer: Peer) -> bool:
    try:
        return await peer[0].read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "limits",
    [
        {"connections_max": 2},
        {"connections_max_per_ip": 2},
        {"connections_max_per_ip": 9, "connections_per_ip_overrides": {HOST: 2}},
    ],
)
def test_who_comes_when_all_places_are_taken_is_closed(limits: dict[str, Any]) -> None:
    async def story(bench: Bench) -> None:
        peers = [await bench.peer() for _ in range(3)]
        assert await is_cut(peers[2])
        peers[0][1].close()
        await sleep(0.01)
        late = await bench.peer()
        for peer in (peers[1], late):
            await ask(peer, b"5")
            assert await answer(peer) == 5

    tell(story, **limits)


def test_an_idle_peer_is_closed_and_one_whose_request_waits_is_not() -> None:
    async def story(bench: Bench) -> None:
        idle, waiting = [await bench.peer() for _ in range(2)]
        await ask(waiting, b"?")
        await sleep(9)
        assert bench.server.connection_count == 2
        await sleep(3)
        assert await is_cut(idle)
        bench.waiting[0].set_result([framed(b"at last")])
        assert await answer(waiting) == 7

    tell(story, idle_ms_max=10_000)


def test_without_a_limit_nobody_is_idle() -> None:
    async def story(bench: Bench) -> None:
        peer = await bench.peer()
        await sleep(3600)
        await ask(peer, b"5")
        assert await answer(peer) == 5

    tell(story, idle_ms_max=-1)


@pytest.mark.parametrize("behind", [(), (b"5", b"5")])
def test_a_peer_that_never_reads_is_not_kept_for_ever(behind: tuple[bytes, ...]) -> None:
    async def story(bench: Bench) -> None:
        await unread(bench, b"3000000", *behind)
        await sleep(9)
        assert bench.server.connection_count == 1
        await sleep(30)
        assert bench.server.connection_count == 0
        assert bench.server.answer_bytes_left == bench.server.limits.bytes_in_flight_max

    tell(story, idle_ms_max=10_000)


def test_a_peer_that_reads_slowly_is_not_idle() -> None:
    async def story(bench: Bench) -> None:
        reader, _ = peer = await unread(bench, b"3000000")
        count = 0
        while count < 3_000_004:
            count += len(await reader.read(250_000))
            await sleep(3)
        await ask(peer, b"5")
        assert await answer(peer) == 5

    tell(story, idle_ms_max=60_000)


async def unread(bench: Bench, *contents: bytes) -> Peer:
    """A peer that asks, and reads nothing: not even what arrives, beyond a little."""
    peer = await bench.peer(limit=1000)
    await ask(peer, *contents)
    return peer


def test_where_memory_is_short_who_does_not_read_pays_before_who_still_sends() -> None:
    async def story(bench: Bench) -> None:
        await unread(bench, b"3000000")
        await sleep(12)
        sender = await bench.peer()
        large = b"0" * 900_000 + b"5"
        sender[1].write(framed(large)[:-1])
        await sleep(1)
        assert bench.server.connection_count == 1
        sender[1].write(large[-1:])
        assert await answer(sender) == 5

    tell(story, bytes_in_flight_max=3_000_000)


def test_where_memory_is_short_the_slowest_request_goes_first() -> None:
    async def story(bench: Bench) -> None:
        peers = [await bench.peer() for _ in range(3)]
        large = framed(b"0" * 900_000 + b"5")
        for peer in peers:
            peer[1].write(large[:-1])
            await sleep(1)
        assert await is_cut(peers[0])
        for peer in peers[1:]:
            peer[1].write(large[-1:])
            assert await answer(peer) == 5
        assert bench.server.answer_bytes_left == 2_000_000

    tell(story, bytes_in_flight_max=2_000_000)


def test_what_came_before_a_bad_request_is_answered_and_nothing_after_it_is_served() -> None:
    async def story(bench: Bench) -> None:
        peer = await bench.peer()
        await ask(peer, b"1", b"2", b"bad", b"3")
        assert [await answer(peer), await answer(peer)] == [1, 2]
        assert await is_cut(peer)
        assert bench.served == [b"1", b"2", b"bad"]

    tell(story)


def test_a_peer_that_closes_its_side_gets_a_large_answer_whole() -> None:
    async def story(bench: Bench) -> None:
        peer = await unread(bench, b"3000000")
        peer[1].write_eof()
        await sleep(1)
        assert await answer(peer) == 3_000_000
        assert await is_cut(peer)

    tell(story)


def test_a_stop_answers_what_is_under_way_and_takes_nothing_more() -> None:
    async def story(bench: Bench) -> None:
        idle, waiting = [await bench.peer() for _ in range(2)]
        await ask(waiting, b"?", b"5")
        stopped = bench.loop.create_task(bench.server.stop(patience_s=5))
        await sleep(1)
        assert await is_cut(idle)
        assert bench.gone == [True]
        with pytest.raises(ConnectionRefusedError):
            await bench.peer()
        bench.waiting[0].set_result([framed(b"at last")])
        assert await answer(waiting) == 7
        await stopped
        assert bench.served == [b"?"]

    tell(story)


def test_a_stop_does_not_wait_for_ever() -> None:
    async def story(bench: Bench) -> None:
        await ask(await bench.peer(), b"?")
        await unread(bench, b"3000000")
        before_s = bench.loop.time()
        await bench.server.stop(patience_s=5)
        assert 5 <= bench.loop.time() - before_s < 6
        assert bench.server.connection_count == 0

    tell(story)


def test_an_address_that_is_taken_is_not_taken_again() -> None:
    async def story(bench: Bench) -> None:
        with pytest.raises(OSError) as refused:
            await bench.server.bind("OTHER", HOST, PORT)
        assert refused.value.errno == errno.EADDRINUSE
        port = await bench.server.bind("OTHER", "", 0)
        assert port not in (0, PORT)

    tell(story)


# --- descriptors --------------------------------------------------------------------------


class FakeSocket:
    family = sockets.AF_INET

    def __init__(self, descriptor: int, *, is_gone: bool = False) -> None:
        self.descriptor = descriptor
        self.is_gone = is_gone

    def fileno(self) -> int:
        return self.descriptor

    def setsockopt(self, *_: int) -> None:
        if self.is_gone:
            raise OSError(errno.EINVAL, "Invalid argument")


class FakeConnection:
    peer_host = HOST
    last_active_ms = 0
    reason: str | None = None

    def close(self, reason: str) -> None:
        self.reason = reason


def opened(socket: FakeSocket, descriptors_max: int | None) -> str | None:
    """Why a new connection is closed."""
    bench = Bench(Limits())
    try:
        world = World(bench.now, Random(1), MemoryFiles(), bench.loop)
        server = Server(world, Limits(), bench.serve, descriptors_max=descriptors_max)
        connection: Any = FakeConnection()
        server.opened(connection, socket)  # type: ignore[arg-type]
        reason: str | None = connection.reason
        return reason
    finally:
        bench.loop.end(bench.rig.processes)


@pytest.mark.parametrize(
    ("descriptor", "descriptors_max", "is_closed"),
    [
        (191, 256, False),
        (192, 256, True),
        (64_510, 65_535, False),
        (64_511, 65_535, True),
        (1_000_000, None, False),
    ],
)
def test_the_last_descriptors_are_kept_for_files(
    descriptor: int, descriptors_max: int | None, is_closed: bool
) -> None:
    reason = opened(FakeSocket(descriptor), descriptors_max)
    assert reason == ("descriptors are short" if is_closed else None)


def test_a_peer_that_is_gone_before_it_is_met_harms_nobody() -> None:
    assert opened(FakeSocket(9, is_gone=True), None) is None
