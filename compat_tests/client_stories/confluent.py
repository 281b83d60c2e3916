"""confluent-kafka (librdkafka): its producer, its consumer by assignment, its admin client."""

# mypy: disable-error-code="import-untyped,import-not-found"

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from compat_tests.client_stories.sent import CODECS, KEPT, TIME_MS, Sent, big, records, tries

WAIT_S = 30


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.create_topics([NewTopic(topic, partitions, 1, config=KEPT)])
    asked[topic].result(WAIT_S)


def produce(bootstrap: str, topic: str, sent: list[Sent], **options: Any) -> list[int]:
    """Sends all to partition 0 and waits for all acknowledgements; their offsets."""
    options = {name.replace("_", "."): value for name, value in options.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **options})
    offsets: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for record in sent:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=delivered,
        )
    assert producer.flush(WAIT_S) == 0
    return offsets


@contextmanager
def consumer_of(bootstrap: str, **options: Any) -> Iterator[Any]:
    options = {name.replace("_", "."): value for name, value in options.items()}
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "not-used",
        "enable.auto.commit": False,
        **options,
    }
    consumer = Consumer(settings)
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"{len(found)} of {count} records came"
        if message.error():
            raise KafkaException(message.error())
        found.append(message)
    return found


def as_sent(found: list[Any]) -> list[Sent]:
    return [
        Sent(r.value(), r.key(), tuple(map(tuple, r.headers() or ())), r.timestamp()[1])
        for r in found
    ]


def every_codec(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    expected = []
    for codec in CODECS:
        produce(bootstrap, topic, records(), compression_type=codec)
        expected += records()
    with consumer_of(bootstrap) as consumer:
        consumer.assign([At(topic, 0, 0)])
        found = read(consumer, len(expected))
        assert as_sent(found) == expected
        assert [record.offset() for record in found] == list(range(len(expected)))


def every_acks(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    for acks in (0, 1, "all"):
        produce(bootstrap, topic, records(), acks=acks)
    with consumer_of(bootstrap) as consumer:
        consumer.assign([At(topic, 0, 0)])
        assert as_sent(read(consumer, 60)) == records() * 3


def idempotent(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    options = {"enable_idempotence": True, "batch_num_messages": 20}
    assert produce(bootstrap, topic, records(500), **options) == list(range(500))
    with consumer_of(bootstrap) as consumer:
        consumer.assign([At(topic, 0, 0)])
        assert as_sent(read(consumer, 500)) == records(500)


def big_records(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, big(), message_max_bytes=2_000_000)
    with consumer_of(bootstrap) as consumer:
        consumer.assign([At(topic, 0, 0)])
        assert as_sent(read(consumer, 3)) == big()


def by_time_and_reset(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, records())
    with consumer_of(bootstrap, auto_offset_reset="earliest") as consumer:
        assert consumer.get_watermark_offsets(At(topic, 0), WAIT_S) == (0, 20)
        found = consumer.offsets_for_times([At(topic, 0, TIME_MS + 4500)], WAIT_S)
        assert found[0].offset == 5
        after = consumer.offsets_for_times([At(topic, 0, TIME_MS + 99_000)], WAIT_S)
        assert after[0].offset == -1
        consumer.assign(found)
        assert as_sent(read(consumer, 15)) == records()[5:]
        consumer.assign([At(topic, 0, 1000)])  # out of range: the reset takes it back to 0
        assert as_sent(read(consumer, 20)) == records()
    with consumer_of(bootstrap, enable_partition_eof=True) as consumer:
        consumer.assign([At(topic, 0, -1)])
        with pytest.raises(KafkaException) as end:
            read(consumer, 1)
        assert end.value.args[0].code() == KafkaError._PARTITION_EOF
        produce(bootstrap, topic, records(1))
        assert [record.offset() for record in read(consumer, 1)] == [20]
    with consumer_of(bootstrap, auto_offset_reset="error") as consumer:
        consumer.assign([At(topic, 0, 1000)])
        with pytest.raises(KafkaException) as outside:
            read(consumer, 1)
        assert outside.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def administration(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=2)
    produce(bootstrap, topic, records())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with pytest.raises(KafkaException) as exists:
        create(bootstrap, topic)
    assert exists.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert sorted(admin.list_topics(topic, WAIT_S).topics[topic].partitions) == [0, 1]
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT_S)
    entry = ConfigEntry("max.message.bytes", "123456", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([changed])[changed].result(WAIT_S)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    for _ in tries():
        configs = admin.describe_configs([asked])[asked].result(WAIT_S)
        if configs["max.message.bytes"].value == "123456":
            break
    assert configs["max.message.bytes"].value == "123456"
    deleted = admin.delete_records([At(topic, 0, 7)])
    assert [each.result(WAIT_S).low_watermark for each in deleted.values()] == [7]
    latest = admin.list_offsets({At(topic, 0): OffsetSpec.latest()})
    assert [each.result(WAIT_S).offset for each in latest.values()] == [20]
    assert len(admin.describe_cluster().result(WAIT_S).nodes) == 1
    admin.delete_topics([topic])[topic].result(WAIT_S)


STORIES: dict[str, Callable[[str, str], None]] = {
    "every codec": every_codec,
    "every acks": every_acks,
    "idempotent": idempotent,
    "big records": big_records,
    "by time and reset": by_time_and_reset,
    "administration": administration,
}
