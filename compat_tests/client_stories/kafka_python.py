"""kafka-python: its producer, its consumer without a group, and its admin client."""

# mypy: disable-error-code="import-untyped,import-not-found"

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError, TopicAlreadyExistsError
from kafka.structs import TopicPartition

from compat_tests.client_stories.sent import CODECS, KEPT, TIME_MS, Sent, big, records, tries

WAIT_S = 30


@contextmanager
def admin_of(bootstrap: str) -> Iterator[Any]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        yield admin
    finally:
        admin.close()


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    with admin_of(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=KEPT)])
        admin.wait_for_topics([topic])


def produce(bootstrap: str, topic: str, sent: list[Sent], **options: Any) -> list[Any]:
    """Sends all to partition 0 and waits for all acknowledgements."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **options)
    try:
        waiting = [
            producer.send(
                topic,
                record.value,
                record.key,
                headers=list(record.headers),
                timestamp_ms=record.timestamp_ms,
                partition=0,
            )
            for record in sent
        ]
        return [each.get(timeout=WAIT_S) for each in waiting]
    finally:
        producer.close()


@contextmanager
def consumer_of(bootstrap: str, topic: str, **options: Any) -> Iterator[Any]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, **options)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer
    finally:
        consumer.close()


def read(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        polled = consumer.poll(timeout_ms=WAIT_S * 1000)
        assert polled, f"{len(found)} of {count} records came"
        found += [record for each in polled.values() for record in each]
    assert len(found) == count
    return found


def as_sent(found: list[Any]) -> list[Sent]:
    return [Sent(r.value, r.key, tuple(map(tuple, r.headers)), r.timestamp) for r in found]


def every_codec(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    expected = []
    for codec in CODECS:
        name = None if codec == "none" else codec
        produce(bootstrap, topic, records(), compression_type=name)
        expected += records()
    with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        found = read(consumer, len(expected))
    assert as_sent(found) == expected
    assert [record.offset for record in found] == list(range(len(expected)))


def every_acks(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    for acks in (0, 1, "all"):
        produce(bootstrap, topic, records(), acks=acks, enable_idempotence=False)
    with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert as_sent(read(consumer, 60)) == records() * 3


def idempotent(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    done = produce(bootstrap, topic, records(500), enable_idempotence=True, batch_size=2000)
    assert [each.offset for each in done] == list(range(500))
    with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert as_sent(read(consumer, 500)) == records(500)


def big_records(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, big(), max_request_size=2_000_000)
    with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert as_sent(read(consumer, 3)) == big()


def by_time_and_reset(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, records())
    at = TopicPartition(topic, 0)
    with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert consumer.beginning_offsets([at]) == {at: 0}
        assert consumer.end_offsets([at]) == {at: 20}
        found = consumer.offsets_for_times({at: TIME_MS + 4500})[at]
        assert (found.offset, found.timestamp) == (5, TIME_MS + 5000)
        assert consumer.offsets_for_times({at: TIME_MS + 99_000})[at] is None
        consumer.seek(at, found.offset)
        assert as_sent(read(consumer, 15)) == records()[5:]
        consumer.seek(at, 1000)  # out of range: the reset of earliest takes it back to 0
        assert as_sent(read(consumer, 20)) == records()
    with consumer_of(bootstrap, topic, auto_offset_reset="latest") as consumer:
        assert consumer.position(at) == 20
        produce(bootstrap, topic, records(1))
        assert [record.offset for record in read(consumer, 1)] == [20]
    with consumer_of(bootstrap, topic, auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffsetForPartitionError):
            consumer.poll(timeout_ms=WAIT_S * 1000)
        consumer.seek(at, 1000)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(timeout_ms=WAIT_S * 1000)


def administration(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=2)
    produce(bootstrap, topic, records())
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    changed = ConfigResource(
        ConfigResourceType.TOPIC, topic, configs={"max.message.bytes": "123456", **KEPT}
    )
    with admin_of(bootstrap) as admin:
        assert topic in admin.list_topics()
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([NewTopic(topic, 1, 1)])
        described = admin.describe_topics([topic])[0]
        assert [each["partition_index"] for each in described["partitions"]] == [0, 1]
        admin.create_partitions({topic: 4})
        admin.alter_configs([changed])
        for _ in tries():
            configs = admin.describe_configs([resource])["topic"][topic]
            if configs["max.message.bytes"]["value"] == "123456":
                break
        assert configs["max.message.bytes"]["value"] == "123456"
        low = admin.delete_records({TopicPartition(topic, 0): 7})
        assert low[TopicPartition(topic, 0)]["low_watermark"] == 7
        assert len(admin.describe_cluster()["brokers"]) == 1
        assert admin.describe_log_dirs()
        admin.delete_topics([topic])


STORIES: dict[str, Callable[[str, str], None]] = {
    "every codec": every_codec,
    "every acks": every_acks,
    "idempotent": idempotent,
    "big records": big_records,
    "by time and reset": by_time_and_reset,
    "administration": administration,
}
