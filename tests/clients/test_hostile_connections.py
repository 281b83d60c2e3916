"""Bad peers: their connection pays for it, the others do not notice, memory stays bounded."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import pytest

from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.teller import Teller, batch, fetch, produce
from compat_tests.wire_story.wire import ConnectionClosed, Wire, api_of
from ottla.protocol.frames import encode_request, read_response
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.versions import ApiVersionsRequest

MIB = 1 << 20
SENT_AHEAD = 200
# The answer of a broker that is not held up; generous, for machines with much else to do.
PROMPT_S = 5.0
TIMEOUT_S = 20
METADATA = MetadataRequest(topics=None, allow_auto_topic_creation=False)
MANY = struct.pack(">i", 2**31 - 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Ottla]:
    with Ottla() as running:
        yield running


@pytest.fixture
def served(broker: Ottla) -> Iterator[Ottla]:
    """A broker that must serve promptly after the test, whatever was done to it."""
    yield broker
    assert prompt_answer_s(broker) < PROMPT_S


def prompt_answer_s(broker: Ottla) -> float:
    with closing(Wire("127.0.0.1", broker.port)) as wire:
        before = time.perf_counter()
        wire.ask(ApiVersionsRequest(), 0)
        wire.ask(METADATA, 9)
        return time.perf_counter() - before


def connected(broker: Ottla) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=TIMEOUT_S)


def framed(request: object, version: int, correlation_id: int = 1) -> bytes:
    return b"".join(encode_request(api_of(request), version, correlation_id, None, request))


def answers(connection: socket.socket) -> list[bytes]:
    """All frames until the broker closes."""
    found = []
    with connection.makefile("rb") as received:
        while size := received.read(4):
            found.append(received.read(struct.unpack(">i", size)[0]))
    return found


def is_closed_by_the_broker(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def resident_bytes(broker: Ottla) -> int:
    status = Path(f"/proc/{broker.pid}/status")
    if not status.exists():
        pytest.skip("only Linux tells how much memory a process has")
    line = next(each for each in status.read_text().splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def test_what_was_sent_before_half_a_close_is_answered(served: Ottla) -> None:
    with connected(served) as connection:
        for number in range(SENT_AHEAD):
            connection.sendall(framed(METADATA, 9, number))
        connection.shutdown(socket.SHUT_WR)
        found = answers(connection)
    api = api_of(METADATA)
    assert [read_response(api, 9, each)[0] for each in found] == list(range(SENT_AHEAD))


def test_a_fetch_that_waits_is_not_answered_to_half_a_connection_late(served: Ottla) -> None:
    """A peer that has closed its side is not kept waiting for what may never come."""
    with Teller(served.bootstrap) as teller:
        teller.topic("half-closed")
    waits = fetch("half-closed")
    waits.max_wait_ms, waits.min_bytes = 600_000, 1
    with connected(served) as connection:
        connection.sendall(framed(waits, 11))
        connection.shutdown(socket.SHUT_WR)
        assert len(answers(connection)) <= 1


def test_a_request_may_come_byte_by_byte(served: Ottla) -> None:
    with Teller(served.bootstrap) as teller:
        teller.topic("byte-by-byte")
    request = produce("byte-by-byte", batch(b"slowly"))
    with connected(served) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(request, 9):
            connection.sendall(bytes([byte]))
        connection.shutdown(socket.SHUT_WR)
        assert len(answers(connection)) == 1


def test_a_reset_in_mid_frame_is_no_news_to_others(served: Ottla) -> None:
    data = framed(METADATA, 9)
    for length in range(1, len(data)):
        connection = connected(served)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(data + data[:length])
        connection.close()


GARBAGE = {
    "a web browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a client that wants TLS": bytes.fromhex("160301020001 0001fc0303") + bytes(500),
    "zeros": bytes(64),
    "ones": b"\xff" * 64,
    "a size of 2^31-1": MANY + bytes(100),
    "a negative size": struct.pack(">i", -5) + bytes(100),
    "an API that is none": struct.pack(">ihhih", 10, 999, 0, 1, -1),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_costs_the_connection(served: Ottla, kind: str) -> None:
    with connected(served) as connection:
        connection.sendall(GARBAGE[kind])
        assert is_closed_by_the_broker(connection)


def test_random_bytes_in_a_frame_cost_the_connection_at_most(served: Ottla) -> None:
    dice = Random(5)
    for _ in range(300):
        body = dice.randbytes(dice.randrange(80))
        key, version = dice.choice([0, 1, 2, 3, 18, 19, 32, 44, 75]), dice.randrange(14)
        frame = struct.pack(">hhih", key, version, 1, -1) + body
        with connected(served) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            connection.shutdown(socket.SHUT_WR)
            assert len(answers(connection)) <= 1


# Each ends where the count of an array stands; the versions are the last without compact arrays.
COUNTED = {
    "Metadata": struct.pack(">hhih", 3, 1, 1, -1),
    "Produce": struct.pack(">hhihhhi", 0, 3, 1, -1, -1, 1, 1000),
    "Fetch": struct.pack(">hhihiiiib", 1, 4, 1, -1, -1, 0, 0, 1000, 0),
    "ListOffsets": struct.pack(">hhihi", 2, 1, 1, -1, -1),
    "CreateTopics": struct.pack(">hhih", 19, 2, 1, -1),
    "DeleteTopics": struct.pack(">hhih", 20, 1, 1, -1),
    "DescribeConfigs": struct.pack(">hhih", 32, 1, 1, -1),
    "OffsetForLeaderEpoch": struct.pack(">hhih", 23, 2, 1, -1),
    "DescribeLogDirs": struct.pack(">hhih", 35, 1, 1, -1),
}


@pytest.mark.parametrize("api", COUNTED)
def test_a_count_of_2_31_costs_the_connection_and_no_memory(served: Ottla, api: str) -> None:
    before = resident_bytes(served)
    for _ in range(20):
        frame = COUNTED[api] + MANY + bytes(200)
        with connected(served) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            assert is_closed_by_the_broker(connection)
    assert resident_bytes(served) - before < 30 * MIB


def test_frames_that_are_only_announced_take_no_memory(served: Ottla) -> None:
    before = resident_bytes(served)
    with ExitStack() as stack:
        for _ in range(200):
            connection = stack.enter_context(connected(served))
            connection.sendall(struct.pack(">ihhih", 90 * MIB, 0, 9, 1, -1))
        assert prompt_answer_s(served) < PROMPT_S
        assert resident_bytes(served) - before < 50 * MIB


def test_those_who_never_read_do_not_hold_up_others_nor_all_memory() -> None:
    budget = 64 * MIB
    with Ottla(settings={"ottla.bytes.in.flight.max": str(budget)}) as broker:
        with Teller(broker.bootstrap) as teller:
            teller.topic("never-read")
            for _ in range(20):
                teller.produced("never-read", batch(bytes(900_000)))
        before = resident_bytes(broker)
        asked = framed(fetch("never-read", max_bytes=20 * MIB, partition_max_bytes=20 * MIB), 11)
        with ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(connected(broker))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(asked * 20)
            assert prompt_answer_s(broker) < PROMPT_S
            assert resident_bytes(broker) - before < 2 * budget
        assert prompt_answer_s(broker) < PROMPT_S


def test_idle_connections_and_crowds_are_turned_away() -> None:
    settings = {"connections.max.idle.ms": "300", "max.connections.per.ip": "5"}
    with Ottla(settings=settings) as broker, ExitStack() as stack:
        connections = [stack.enter_context(connected(broker)) for _ in range(6)]
        connections[0].sendall(framed(METADATA, 9)[:-3])  # slow, and so idle
        assert all(map(is_closed_by_the_broker, connections))
        assert prompt_answer_s(broker) < PROMPT_S


def test_ipv6() -> None:
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with Ottla(host="[::1]") as broker, closing(Wire("::1", broker.port)) as wire:
        answer = wire.ask(METADATA, 9)
        assert [(each.host, each.port) for each in answer.brokers] == [("::1", broker.port)]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_connection_that_breaks_the_protocol_is_closed_with_one_line(served: Ottla) -> None:
    lines = len(served.log_tail(10_000).splitlines())
    with closing(Wire("127.0.0.1", served.port)) as wire:
        wire.send_bytes(struct.pack(">i", 3) + b"\0\x03\0")
        with pytest.raises(ConnectionClosed):
            wire.read_frame()
    said = served.log_tail(10_000).splitlines()[lines:]
    assert len(said) <= 1
    assert "Traceback" not in served.log_tail(10_000)


def test_a_stop_answers_what_is_under_way_and_leaves_a_clean_directory() -> None:
    with Ottla() as broker, Teller(broker.bootstrap) as teller:
        teller.topic("stopped")
        teller.produced("stopped", batch(b"kept"))
        broker.stop()
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
        with Teller(broker.bootstrap) as again:
            again.until_served("stopped", 1)
            assert again.produced("stopped", batch(b"more")) == 1
