"""Metadata and DescribeTopicPartitions of a whole node: names, ids, pages and pauses."""

from inspect import isawaitable
from typing import Any

import pytest

from ottla.broker.context import Context
from ottla.broker.handlers.metadata import metadata
from ottla.protocol.apis import APIS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from ottla.protocol.messages.topics import CreateTopicsRequest
from ottla.protocol.schema import ZERO
from tests.controller_rig import creatable
from tests.data_rig import FakeConnection
from tests.node_rig import Node, tell

Rows = list[tuple[str | None, str, int]]
UNKNOWN = b"\7" * 16


async def create(node: Node, **partitions: int) -> None:
    topics = [creatable(name, count, 1) for name, count in partitions.items()]
    await node.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)


def rows(response: Any) -> Rows:
    """Name, error and the number of partitions."""
    return [
        (topic.name, ErrorCode(topic.error_code).name, len(topic.partitions))
        for topic in response.topics
    ]


def asked(*topics: MetadataRequestTopic) -> MetadataRequest:
    return MetadataRequest(topics=list(topics), allow_auto_topic_creation=False)


def named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


def test_every_topic_is_told_where_none_is_named_and_none_where_none_is_wanted() -> None:
    async def story(node: Node) -> None:
        await create(node, a=1, b=2)
        every = [("a", "NONE", 1), ("b", "NONE", 2)]
        assert rows(await node.ask(MetadataRequest(topics=None), 9)) == every
        assert rows(await node.ask(asked(), 9)) == []
        assert rows(await node.ask(asked(), 0)) == every

    tell(story)


def test_a_topic_is_told_once_however_often_it_is_named() -> None:
    async def story(node: Node) -> None:
        await create(node, a=1)
        answer = await node.ask(asked(named("a"), named("no"), named("a"), named("no")), 9)
        assert rows(answer) == [("a", "NONE", 1), ("no", "UNKNOWN_TOPIC_OR_PARTITION", 0)]

    tell(story)


@pytest.mark.parametrize("version", [12, 13])
def test_where_a_topic_is_named_by_its_id_names_are_not_looked_at(version: int) -> None:
    async def story(node: Node) -> None:
        await create(node, a=1, b=2)
        topic_id = node.broker.image.topics.by_name["a"].id
        by_id = [MetadataRequestTopic(topic_id=each, name=None) for each in (topic_id, UNKNOWN)]
        answer = await node.ask(asked(*by_id, named("b"), *by_id), version)
        assert rows(answer) == [("a", "NONE", 1), (None, "UNKNOWN_TOPIC_ID", 0)]

    tell(story)


@pytest.mark.parametrize(
    "topic",
    [
        MetadataRequestTopic(topic_id=ZERO, name=None),
        MetadataRequestTopic(topic_id=UNKNOWN, name="a"),
    ],
)
def test_before_version_12_a_topic_has_a_name_and_no_id(topic: MetadataRequestTopic) -> None:
    async def story(node: Node) -> None:
        with pytest.raises(KafkaError, match="INVALID_REQUEST"):
            await node.ask(asked(topic), 11)

    tell(story)


@pytest.mark.parametrize("is_named", [False, True])
def test_an_answer_over_many_partitions_lets_others_in(
    is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.handlers.metadata._PARTITIONS_PER_SLICE", 5)

    async def story(node: Node) -> None:
        await create(node, a=1, b=3, c=3)
        request = MetadataRequest(topics=None)
        if is_named:
            request = asked(named("a"), named("b"), named("c"))
        connection: Any = FakeConnection()
        context = Context(APIS[3], 9, 1, "a client", connection)
        answer = metadata(node.broker, context, request)
        assert isawaitable(answer)
        assert rows(await answer) == [("a", "NONE", 1), ("b", "NONE", 3), ("c", "NONE", 3)]

    tell(story)


def test_pages_of_partitions_follow_each_other() -> None:
    async def story(node: Node) -> None:
        await create(node, a=3, b=2)
        found: list[tuple[str, int]] = []
        cursor = None
        for _ in range(10):
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in ("b", "a", "b")],
                response_partition_limit=2,
                cursor=cursor,
            )
            page = await node.ask(request, 0)
            found += [
                (topic.name, each.partition_index)
                for topic in page.topics
                for each in topic.partitions
            ]
            if page.next_cursor is None:
                break
            cursor = DescribeTopicPartitionsRequestCursor(
                topic_name=page.next_cursor.topic_name,
                partition_index=page.next_cursor.partition_index,
            )
        assert found == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]

    tell(story)
