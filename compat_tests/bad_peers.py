"""What bad peers do to a port, one bad deed each; those who hold something let go in the end.

    .venv/bin/python -m compat_tests.bad_peers PORT SEED PER_SECOND

goes on until it is ended: a process of its own, so that it holds up nobody who measures.
"""

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Callable
from random import Random

from compat_tests.wire_story.wire import api_of
from ottla.protocol.frames import encode_request
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest

TIMEOUT_S = 2
MIB = 1 << 20
LOADED = "soak-loaded"


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)


def _framed(request: object, version: int) -> bytes:
    return b"".join(encode_request(api_of(request), version, 1, "bad", request))


def _all_topics() -> bytes:
    return _framed(MetadataRequest(topics=None, allow_auto_topic_creation=False), 9)


def garbage(port: int, dice: Random) -> None:
    with _connected(port) as connection:
        connection.sendall(dice.randbytes(dice.randrange(1, 5000)))
        _read_a_little(connection)


def huge_count(port: int, dice: Random) -> None:
    frame = struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1 - dice.randrange(10)) + bytes(100)
    with _connected(port) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        _read_a_little(connection)


def half_a_frame(port: int, dice: Random) -> None:
    with _connected(port) as connection:
        connection.sendall(struct.pack(">i", dice.randrange(1000, 90 * MIB)) + bytes(500))
        _read_a_little(connection, timeout_s=0.2)


def reset_in_mid_frame(port: int, dice: Random) -> None:
    data = _all_topics()
    with _connected(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(data * 3 + data[: dice.randrange(len(data))])


def never_reads(port: int, dice: Random) -> None:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=8 * MIB)
    topics = [FetchTopic(topic=LOADED, partitions=[asked])]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=8 * MIB, topics=topics)
    with _connected(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(_framed(request, 11) * dice.randrange(1, 20))
        _read_a_little(connection, timeout_s=0.3)


def byte_by_byte(port: int, dice: Random) -> None:
    with _connected(port) as connection:
        for byte in _all_topics()[: dice.randrange(5, 60)]:
            connection.sendall(bytes([byte]))


def a_crowd(port: int, dice: Random) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(dice.randrange(20, 60)):
            stack.enter_context(_connected(port))


def _read_a_little(connection: socket.socket, *, timeout_s: float = 0.5) -> None:
    connection.settimeout(timeout_s)
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        connection.recv(100)


def _suffered(deed: Callable[[int, Random], None]) -> Callable[[int, Random], None]:
    """A broker may well close on such a peer in the midst of it."""

    def done(port: int, dice: Random) -> None:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            deed(port, dice)

    return done


BAD_PEERS: dict[str, Callable[[int, Random], None]] = {
    deed.__name__: _suffered(deed)
    for deed in (
        garbage,
        huge_count,
        half_a_frame,
        reset_in_mid_frame,
        never_reads,
        byte_by_byte,
        a_crowd,
    )
}


def main() -> None:
    port, dice, pause_s = int(sys.argv[1]), Random(int(sys.argv[2])), 1 / float(sys.argv[3])
    while True:
        BAD_PEERS[dice.choice(list(BAD_PEERS))](port, dice)
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
