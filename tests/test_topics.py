"""CreateTopics, DeleteTopics and CreatePartitions of a whole node; what is decided has tests of its
own (test_controller_topics.py)."""

from asyncio import sleep
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.protocol.schema import ZERO
from tests.controller_rig import creatable
from tests.node_rig import Node, tell

Answers = list[tuple[str | None, str, str | None]]


async def create(
    node: Node, name: str = "a", *, partitions: int = 1, timeout_ms: int = 30_000
) -> Answers:
    topics = [creatable(name, partitions, 1)]
    response = await node.ask(CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms), 7)
    return answers(response.topics)


async def delete(node: Node, name: str, version: int, *, timeout_ms: int = 30_000) -> Answers:
    states = [DeleteTopicState(name=name, topic_id=ZERO)]
    if version < 6:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=timeout_ms)
    else:
        request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
    return answers((await node.ask(request, version)).responses)


async def grow(node: Node, name: str, count: int, *, timeout_ms: int = 30_000) -> Answers:
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=False)
    return answers((await node.ask(request, 3)).results)


def answers(results: list[Any]) -> Answers:
    return [(each.name, ErrorCode(each.error_code).name, each.error_message) for each in results]


def test_a_topic_is_served_when_it_is_answered() -> None:
    async def story(node: Node) -> None:
        assert await create(node, partitions=2) == [("a", "NONE", None)]
        assert node.broker.node.partition("a", 1).is_leader
        assert await grow(node, "a", 3) == [("a", "NONE", None)]
        assert node.broker.node.partition("a", 2).is_leader

    tell(story)


@pytest.mark.parametrize("version", [1, 5, 6])
def test_a_topic_is_gone_when_it_is_answered(version: int) -> None:
    async def story(node: Node) -> None:
        await create(node)
        assert await delete(node, "a", version) == [("a", "NONE", None)]
        assert not node.broker.logs.current
        assert not node.broker.image.topics.by_id

    tell(story)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_everything_goes_on_behind_the_answer(timeout_ms: int) -> None:
    async def story(node: Node) -> None:
        timed_out = [("a", "REQUEST_TIMED_OUT", None)]
        assert await create(node, timeout_ms=timeout_ms) == timed_out
        await sleep(1)
        assert await grow(node, "a", 4, timeout_ms=timeout_ms) == timed_out
        await sleep(1)
        assert len(node.broker.image.topics.by_name["a"].partitions) == 4
        assert await delete(node, "a", 6, timeout_ms=timeout_ms) == timed_out
        await sleep(1)
        assert not node.broker.image.topics.by_name

    tell(story)


def test_a_refusal_of_the_whole_request_is_told_of_each_topic() -> None:
    async def story(node: Node) -> None:
        reason = "Excessively large number of partitions per request."
        assert await create(node, partitions=10_001) == [("a", "POLICY_VIOLATION", reason)]

    tell(story)


DISABLED = {
    2: ("INVALID_REQUEST", "This version does not support topic deletion."),
    3: ("TOPIC_DELETION_DISABLED", None),
    6: ("TOPIC_DELETION_DISABLED", None),
}


@pytest.mark.parametrize(("version", "expected"), DISABLED.items())
def test_where_nothing_may_be_deleted_nothing_is(
    version: int, expected: tuple[str, str | None]
) -> None:
    async def story(node: Node) -> None:
        await create(node)
        assert await delete(node, "a", version) == [("a", *expected)]
        assert node.broker.logs.current

    tell(story, settings=["delete.topic.enable=false"])
