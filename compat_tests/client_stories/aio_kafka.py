"""aiokafka: its producer, its consumer without a group, and its admin client."""

# mypy: disable-error-code="import-untyped,import-not-found"

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
)

from compat_tests.client_stories.sent import CODECS, KEPT, TIME_MS, Sent, big, records, tries

WAIT_S = 30


@asynccontextmanager
async def admin_of(bootstrap: str) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    async with admin_of(bootstrap) as admin:
        await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=KEPT)])


async def produce(bootstrap: str, topic: str, sent: list[Sent], **options: Any) -> list[Any]:
    """Sends all to partition 0 and waits for all acknowledgements."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **options)
    await producer.start()
    try:
        waiting = [
            await producer.send(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
            for record in sent
        ]
        return list(await asyncio.gather(*waiting))
    finally:
        await producer.stop()


@asynccontextmanager
async def consumer_of(bootstrap: str, topic: str, **options: Any) -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **options)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer
    finally:
        await consumer.stop()


async def read(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        polled = await consumer.getmany(timeout_ms=WAIT_S * 1000)
        assert polled, f"{len(found)} of {count} records came"
        found += [record for each in polled.values() for record in each]
    assert len(found) == count
    return found


def as_sent(found: list[Any]) -> list[Sent]:
    return [Sent(r.value, r.key, tuple(map(tuple, r.headers)), r.timestamp) for r in found]


async def every_codec(bootstrap: str, topic: str) -> None:
    await create(bootstrap, topic)
    expected = []
    for codec in CODECS:
        name = None if codec == "none" else codec
        await produce(bootstrap, topic, records(), compression_type=name)
        expected += records()
    async with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        found = await read(consumer, len(expected))
    assert as_sent(found) == expected
    assert [record.offset for record in found] == list(range(len(expected)))


async def every_acks(bootstrap: str, topic: str) -> None:
    await create(bootstrap, topic)
    for acks in (0, 1, "all"):
        await produce(bootstrap, topic, records(), acks=acks)
    async with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert as_sent(await read(consumer, 60)) == records() * 3


async def idempotent(bootstrap: str, topic: str) -> None:
    await create(bootstrap, topic)
    options = {"enable_idempotence": True, "max_batch_size": 2000}
    done = await produce(bootstrap, topic, records(500), **options)
    assert [each.offset for each in done] == list(range(500))
    async with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert as_sent(await read(consumer, 500)) == records(500)


async def big_records(bootstrap: str, topic: str) -> None:
    await create(bootstrap, topic)
    await produce(bootstrap, topic, big(), max_request_size=2_000_000)
    async with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert as_sent(await read(consumer, 3)) == big()


async def by_time_and_reset(bootstrap: str, topic: str) -> None:
    await create(bootstrap, topic)
    await produce(bootstrap, topic, records())
    at = TopicPartition(topic, 0)
    async with consumer_of(bootstrap, topic, auto_offset_reset="earliest") as consumer:
        assert await consumer.beginning_offsets([at]) == {at: 0}
        assert await consumer.end_offsets([at]) == {at: 20}
        found = (await consumer.offsets_for_times({at: TIME_MS + 4500}))[at]
        assert (found.offset, found.timestamp) == (5, TIME_MS + 5000)
        assert (await consumer.offsets_for_times({at: TIME_MS + 99_000}))[at] is None
        consumer.seek(at, found.offset)
        assert as_sent(await read(consumer, 15)) == records()[5:]
        consumer.seek(at, 1000)  # out of range: the reset of earliest takes it back to 0
        assert as_sent(await read(consumer, 20)) == records()
    async with consumer_of(bootstrap, topic, auto_offset_reset="latest") as consumer:
        assert await consumer.position(at) == 20
        await produce(bootstrap, topic, records(1))
        assert [record.offset for record in await read(consumer, 1)] == [20]
    async with consumer_of(bootstrap, topic, auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffsetForPartitionError):
            await consumer.getmany(timeout_ms=WAIT_S * 1000)
        consumer.seek(at, 1000)
        with pytest.raises(OffsetOutOfRangeError):
            await consumer.getmany(timeout_ms=WAIT_S * 1000)


async def administration(bootstrap: str, topic: str) -> None:
    await create(bootstrap, topic, partitions=2)
    await produce(bootstrap, topic, records())
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    configs = {"max.message.bytes": "123456", **KEPT}
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)
    async with admin_of(bootstrap) as admin:
        assert topic in await admin.list_topics()
        with pytest.raises(TopicAlreadyExistsError):
            answer = await admin.create_topics([NewTopic(topic, 1, 1)])
            raise_for(answer.topic_errors)
        described = (await admin.describe_topics([topic]))[0]
        assert sorted(each["partition"] for each in described["partitions"]) == [0, 1]
        await admin.create_partitions({topic: NewPartitions(4)})
        await admin.alter_configs([changed])
        for _ in tries():
            answers = await admin.describe_configs([resource])
            found = {entry[0]: entry[1] for entry in answers[0].resources[0][4]}
            if found["max.message.bytes"] == "123456":
                break
        assert found["max.message.bytes"] == "123456"
        at = TopicPartition(topic, 0)
        low = await admin.delete_records({at: RecordsToDelete(before_offset=7)})
        assert low[at] == 7
        assert len((await admin.describe_cluster())["brokers"]) == 1
        await admin.delete_topics([topic])


def raise_for(topic_errors: list[Any]) -> None:
    if topic_errors[0][1] == TopicAlreadyExistsError.errno:
        raise TopicAlreadyExistsError


def told(
    story: Callable[[str, str], Coroutine[Any, Any, None]],
) -> Callable[[str, str], None]:
    return lambda bootstrap, topic: asyncio.run(story(bootstrap, topic))


STORIES: dict[str, Callable[[str, str], None]] = {
    "every codec": told(every_codec),
    "every acks": told(every_acks),
    "idempotent": told(idempotent),
    "big records": told(big_records),
    "by time and reset": told(by_time_and_reset),
    "administration": told(administration),
}
