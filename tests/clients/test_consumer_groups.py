"""Stock consumers in groups: nothing is missed, no partition has two owners, offsets last."""

# mypy: disable-error-code="import-untyped,import-not-found"

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from compat_tests.ottla_server import Ottla

PARTITIONS = 6
RECORDS = 300
MEMBER_COUNT = 3
PATIENCE_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Ottla]:
    with Ottla() as found:
        yield found


@pytest.fixture
def topic(broker: Ottla, request: pytest.FixtureRequest) -> str:
    """A topic with records of their own numbers in it."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(name, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return name


class Read:
    """What the members of a group have read, and who owns what."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.owned: dict[int, set[int]] = {}
        self.lock = threading.Lock()

    def took(self, member: int, values: list[bytes], owned: set[int]) -> None:
        with self.lock:
            self.values += values
            self.owned[member] = owned

    @property
    def is_shared(self) -> bool:
        """Everything was read, every partition has exactly one owner, and every member some."""
        if len(self.owned) < MEMBER_COUNT or not all(self.owned.values()):
            return False
        owners = sorted(partition for each in self.owned.values() for partition in each)
        return len(self.values) >= RECORDS and owners == list(range(PARTITIONS))

    def check(self) -> None:
        assert sorted(map(int, set(self.values))) == list(range(RECORDS))


def kafka_python_member(bootstrap: str, topic: str, read: Read, number: int, is_over: Any) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
        # A leader that assigns before it knows the topic's partitions assigns none of them, and
        # asks for another round when it next looks.
        metadata_max_age_ms=1000,
    )
    try:
        while not is_over.is_set():
            found = consumer.poll(timeout_ms=200)
            values = [record.value for records in found.values() for record in records]
            read.took(number, values, {each.partition for each in consumer.assignment()})
    finally:
        consumer.close()


def aiokafka_member(bootstrap: str, topic: str, read: Read, number: int, is_over: Any) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            while not is_over.is_set():
                found = await consumer.getmany(timeout_ms=200)
                values = [record.value for records in found.values() for record in records]
                read.took(number, values, {each.partition for each in consumer.assignment()})
        finally:
            await consumer.stop()

    asyncio.run(run())


def confluent_member(strategy: str) -> Callable[..., None]:
    def member(bootstrap: str, topic: str, read: Read, number: int, is_over: Any) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": strategy,
                "heartbeat.interval.ms": 300,
            }
        )
        consumer.subscribe([topic])
        try:
            while not is_over.is_set():
                values = [record.value() for record in consumer.consume(100, 0.2)]
                read.took(number, values, {each.partition for each in consumer.assignment()})
        finally:
            consumer.close()

    return member


MEMBERS = {
    "kafka-python": kafka_python_member,
    "aiokafka": aiokafka_member,
    "confluent range": confluent_member("range"),
    "confluent cooperative": confluent_member("cooperative-sticky"),
}


@pytest.mark.parametrize("client", MEMBERS)
def test_members_share_a_topic_and_what_they_committed_lasts(
    broker: Ottla, topic: str, client: str
) -> None:
    read, is_over = Read(), threading.Event()
    arguments = (broker.bootstrap, topic, read)
    threads = [
        threading.Thread(target=MEMBERS[client], args=(*arguments, number, is_over))
        for number in range(MEMBER_COUNT)
    ]
    for thread in threads:
        thread.start()
    try:
        _wait_for(lambda: read.is_shared)
    finally:
        # Whatever has happened: a client that is left behind would disturb other tests.
        is_over.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    read.check()
    assert _committed(broker, topic) == dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)


def test_offsets_and_groups_come_back_after_a_restart(topic: str) -> None:
    with Ottla() as other:
        admin = AdminClient({"bootstrap.servers": other.bootstrap})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(PATIENCE_S)
        places = [TopicPartition(topic, number, number + 1) for number in range(PARTITIONS)]
        asked = [ConsumerGroupTopicPartitions(topic, places)]
        for future in admin.alter_consumer_group_offsets(asked).values():
            future.result(PATIENCE_S)
        other.kill()
        other.start()
        assert _committed(other, topic) == {number: number + 1 for number in range(PARTITIONS)}


def _committed(broker: Ottla, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = futures[group].result(PATIENCE_S)
    return {each.partition: each.offset for each in found.topic_partitions}


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.perf_counter() + PATIENCE_S
    event = threading.Event()
    while not condition():
        assert time.perf_counter() < end, "the group did not settle"
        event.wait(0.05)
