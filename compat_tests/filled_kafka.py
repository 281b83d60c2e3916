"""A real Kafka that was given something of everything, and what it says of each partition.

The records are what a client reads; the producers what DescribeProducers tells while it runs.
"""

# mypy: disable-error-code="import-untyped,import-not-found"

import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ConsumerPartition
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition

from compat_tests.apache_kafka import Kafka
from ottla.protocol.apis import APIS
from ottla.protocol.frames import encode_request, read_response
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import Headers
from ottla.protocol.schema import decode

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_BYTES = 5_000
TOPICS = ("codecs", "idempotent", "transactions", "deleted", "stamped", "compacted")
_PRODUCE_VERSION = 9
NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)

Row = tuple[int, int, bytes | None, bytes | None, Headers]


@dataclass(slots=True)
class Told:
    """What Kafka says of one partition."""

    records: list[Row]
    committed: list[Row]
    log_start: int
    high_watermark: int
    producers: dict[int, tuple[int, ...]] = field(default_factory=dict)


def fill(kafka: Kafka) -> None:
    """All codecs, idempotent producers, transactions that were committed, aborted and are open,
    a log that begins in the midst of a segment, LogAppendTime, a log that was cleaned."""
    segment_bytes = "segment.bytes" if kafka.version < "4" else "internal.segment.bytes"
    with Admin(kafka) as admin:
        small = {segment_bytes: str(SEGMENT_BYTES), "index.interval.bytes": "500"}
        others = {
            "stamped": {"message.timestamp.type": "LogAppendTime"},
            "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
        }
        admin.create_topics(
            {
                topic: {
                    "num_partitions": 1,
                    "replication_factor": 1,
                    "configs": small | others.get(topic, {}),
                }
                for topic in TOPICS
            }
        )
        for codec in CODECS:
            produce(kafka, "codecs", 120, compression=codec)
            produce(kafka, "stamped", 60, compression=codec)
            produce(kafka, "compacted", 130, compression=codec, all_keyed=True)
        for number in range(3):
            produce(kafka, "idempotent", 90 + number, idempotent=True)
        produce(kafka, "deleted", 400)
        admin.delete_records({TopicPartition("deleted", 0): 205})
        transact(kafka)
    wait_for_cleaning(kafka)


def wait_for_cleaning(kafka: Kafka) -> None:
    """The cleaner says how far it came once it has done something."""
    checkpoint = kafka.data_dir / "cleaner-offset-checkpoint"
    pause = threading.Event()
    for _ in range(300):
        if "compacted 0 " in checkpoint.read_text():
            return
        pause.wait(0.1)
    raise RuntimeError("Kafka has cleaned nothing")


def produce(
    kafka: Kafka,
    topic: str,
    count: int,
    *,
    compression: str = "none",
    idempotent: bool = False,
    all_keyed: bool = False,
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "batch.num.messages": 25,
            "linger.ms": 5,
        }
    )
    send(producer, topic, count, all_keyed=all_keyed)
    assert producer.flush(30) == 0


def send(producer: Any, topic: str, count: int, *, all_keyed: bool = False) -> None:
    for number in range(count):
        producer.produce(
            topic,
            key=None if number % 17 == 0 and not all_keyed else f"key-{number % 20}".encode(),
            value=None if number % 13 == 0 else f"value {number} ".encode() * (number % 9),
            headers=[("trace", b"\x01"), ("empty", None)] if number % 5 == 0 else None,
            partition=0,
        )
        producer.poll(0)


def transact(kafka: Kafka) -> None:
    """The last one stays open as long as the broker lets it."""
    for name, ends in (("one", "cac"), ("two", "aacc"), ("three", "co")):
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": 600_000,
                "batch.num.messages": 10,
            }
        )
        producer.init_transactions(60)
        for end in ends:
            producer.begin_transaction()
            send(producer, "transactions", 35)
            assert producer.flush(30) == 0
            if end == "c":
                producer.commit_transaction(60)
            elif end == "a":
                producer.abort_transaction(60)


class Admin:
    """kafka-python's admin client, closed at the end."""

    def __init__(self, kafka: Kafka) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)

    def __enter__(self) -> Any:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


def told(kafka: Kafka, topic: str) -> Told:
    partition = TopicPartition(topic, 0)
    records, log_start, high_watermark = consumed(kafka, topic, "read_uncommitted")
    committed, _, _ = consumed(kafka, topic, "read_committed")
    with Admin(kafka) as admin:
        state = admin.describe_producers([partition])[partition]
    producers: dict[int, tuple[int, ...]] = {
        each.producer_id: (
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_transaction_start_offset,
        )
        for each in state.active_producers
    }
    return Told(records, committed, log_start, high_watermark, producers)


def consumed(kafka: Kafka, topic: str, isolation: str) -> tuple[list[Row], int, int]:
    """All that a reader gets, and the first and last offset that it is told."""
    partition = ConsumerPartition(topic, 0, 0)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "not used",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    try:
        start, end = watermarks(consumer, partition)
        consumer.assign([ConsumerPartition(topic, 0, start)])
        rows: list[Row] = []
        while (message := consumer.poll(30)) is not None:
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            _, timestamp = message.timestamp()
            headers = tuple(message.headers() or ())
            rows.append((message.offset(), timestamp, message.key(), message.value(), headers))
    finally:
        consumer.close()
    return rows, start, end


def watermarks(consumer: Any, partition: Any) -> tuple[int, int]:
    """A broker that has just begun to serve may not lead yet what it is asked for."""
    pause = threading.Event()
    for _ in range(100):
        try:
            start, end = consumer.get_watermark_offsets(partition, timeout=30)
            return start, end
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET:
                raise
        pause.wait(0.1)
    raise RuntimeError(f"{partition} has no leader")


def send_batch(kafka: Kafka, topic: str, batch: bytes) -> tuple[int, int]:
    """Error code and base offset of the answer to a batch, sent as it is."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=batch)]
            )
        ],
    )
    api = APIS[0]
    with socket.create_connection(("127.0.0.1", kafka.port), timeout=30) as connection:
        connection.sendall(b"".join(encode_request(api, _PRODUCE_VERSION, 1, "t", request)))
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            _, body = read_response(api, _PRODUCE_VERSION, stream.read(size))
    response = decode(ProduceResponse, _PRODUCE_VERSION, body)
    answer = response.responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset
