"""Work for a broker: what clients do, and how long it takes them.

Knows an address, and not whose it is. Throughput is measured through librdkafka; single requests
through a bare socket with requests that were made beforehand, so that the client costs next to
nothing.
"""

import os
import socket
import time
from collections.abc import Callable
from random import Random
from statistics import median, quantiles

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.protocol.apis import APIS
from ottla.protocol.frames import encode_request
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record

# Deep queues: a consumer with librdkafka's default ones pauses a second when they are full.
DEEP = {
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 2_000_000,
    "fetch.message.max.bytes": 10_000_000,
}
_PATIENCE_S = 60


def make_topic(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(partitions):
        producer.produce(topic, b"first", partition=partition)
    producer.flush(_PATIENCE_S)


def produce(bootstrap: str, topic: str, *, count: int, size: int, codec: str = "none") -> float:
    """Seconds until all are acknowledged by the leader."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": 1,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "compression.type": codec,
        }
    )
    value = (
        Random(1).randbytes(size) if codec == "none" else (b"what compresses a bit " * size)[:size]
    )
    producer.list_topics(topic)
    started = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(_PATIENCE_S):
        raise RuntimeError("not everything was acknowledged")
    return time.perf_counter() - started


def consume(bootstrap: str, topic: str, *, count: int, partitions: int = 1) -> float:
    """Seconds until so many records were read from the beginning."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({**settings, **DEEP})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    started = time.perf_counter()
    read = 0
    while read < count:
        read += len(consumer.consume(10_000, 1.0))
        if time.perf_counter() - started > _PATIENCE_S:
            raise RuntimeError(f"only {read} of {count} records came")
    seconds = time.perf_counter() - started
    consumer.close()
    return seconds


# --- single requests ----------------------------------------------------------------------


class Line:
    """A bare connection."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=_PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def send(self, frame: bytes) -> None:
        self.socket.sendall(frame)

    def receive(self) -> bytes:
        while len(self._received) < 4 or len(self._received) < self._size():
            data = self.socket.recv(1 << 20)
            if not data:
                raise RuntimeError("the broker has closed the connection")
            self._received += data
        size = self._size()
        frame = bytes(self._received[4:size])
        del self._received[:size]
        return frame

    def _size(self) -> int:
        return 4 + int.from_bytes(self._received[:4], "big")

    def close(self) -> None:
        self.socket.close()


def produce_frame(topic: str, *, size: int = 100) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch([Record(0, now_ms, None, bytes(size))])
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=bytes(batch))]
            )
        ],
    )
    return b"".join(encode_request(APIS[0], 9, 1, "bench", request))


def requests(bootstrap: str, topic: str, *, count: int, in_flight: int, lines: int = 1) -> float:
    """Seconds for so many small requests, each of one record."""
    frame = produce_frame(topic)
    open_lines = [Line(bootstrap) for _ in range(lines)]
    started = time.perf_counter()
    for _ in range(count // (in_flight * lines)):
        for line in open_lines:
            line.send(frame * in_flight)
        for line in open_lines:
            for _ in range(in_flight):
                line.receive()
    seconds = time.perf_counter() - started
    for line in open_lines:
        line.close()
    return seconds


def ack_latencies(bootstrap: str, topic: str, *, count: int) -> list[float]:
    """Seconds from a record to its acknowledgement, one at a time, through librdkafka."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 0})
    producer.list_topics(topic)
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        producer.produce(topic, b"x" * 100)
        producer.flush(_PATIENCE_S)
        taken.append(time.perf_counter() - started)
    return taken


def end_to_end_latencies(bootstrap: str, topic: str, *, count: int) -> list[float]:
    """Seconds from sending a record until a fetch that waits for it has brought it."""
    writer, reader = Line(bootstrap), Line(bootstrap)
    frame = produce_frame(topic)
    writer.send(frame)
    offset = _base_offset(writer.receive()) + 1
    taken = []
    for number in range(count):
        reader.send(fetch_frame(topic, offset + number))
        # The fetch must be waiting before its record comes.
        time.sleep(0.001)
        started = time.perf_counter()
        writer.send(frame)
        reader.receive()
        taken.append(time.perf_counter() - started)
        writer.receive()
    writer.close()
    reader.close()
    return taken


def _base_offset(frame: bytes) -> int:
    from ottla.protocol.frames import read_response
    from ottla.protocol.messages.produce import ProduceResponse
    from ottla.protocol.schema import decode

    _, body = read_response(APIS[0], 9, frame)
    response: ProduceResponse = decode(ProduceResponse, 9, body)
    return response.responses[0].partition_responses[0].base_offset


def fetch_frame(topic: str, offset: int) -> bytes:
    request = FetchRequest(
        max_wait_ms=5_000,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
                ],
            )
        ],
        forgotten_topics_data=[],
    )
    return b"".join(encode_request(APIS[1], 12, 1, "bench", request))


def p50(seconds: list[float]) -> float:
    return median(seconds)


def p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    if not pages:
        raise ProcessLookupError(f"process {pid} has ended")
    return pages * os.sysconf("SC_PAGE_SIZE")


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
