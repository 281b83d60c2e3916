"""Topics that come to be because a client has asked for their metadata."""

from asyncio import sleep
from typing import Any

import pytest

from ottla.broker.config_sources import load
from ottla.broker.topic_creation import creatable
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.storage.memory_operations import Fault
from tests.node_rig import Node, disk_with, tell

ONE_REPLICA = [
    f"{name}.replication.factor=1"
    for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
]


async def ask(node: Node, *names: str, version: int = 9, may_create: bool = True) -> list[str]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=may_create,
    )
    response = await node.ask(request, version)
    return [ErrorCode(topic.error_code).name for topic in response.topics]


def test_a_topic_is_there_when_it_is_asked_for_again() -> None:
    async def story(node: Node) -> None:
        assert await ask(node, "a", "a", "b c") == [
            "UNKNOWN_TOPIC_OR_PARTITION",
            "INVALID_TOPIC_EXCEPTION",
        ]
        await sleep(1)
        assert await ask(node, "a") == ["NONE"]
        assert list(node.broker.image.topics.by_name) == ["a"]
        assert len(node.broker.image.topics.by_name["a"].partitions) == 3

    tell(story, settings=["num.partitions=3"])


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (["auto.create.topics.enable=false"], {}),
        ([], {"may_create": False}),
        ([], {"may_create": False, "version": 4}),
    ],
)
def test_a_topic_is_not_made_where_nobody_wants_it(
    settings: list[str], asked: dict[str, Any]
) -> None:
    async def story(node: Node) -> None:
        assert await ask(node, "a", **asked) == ["UNKNOWN_TOPIC_OR_PARTITION"]
        await sleep(1)
        assert await ask(node, "a", **asked) == ["UNKNOWN_TOPIC_OR_PARTITION"]

    tell(story, settings=settings)


def test_before_version_4_a_client_cannot_say_that_it_does_not_want_it() -> None:
    async def story(node: Node) -> None:
        await ask(node, "a", version=3, may_create=False)
        await sleep(1)
        assert await ask(node, "a") == ["NONE"]

    tell(story)


@pytest.mark.parametrize(
    ("name", "policy", "partitions"),
    [
        ("__consumer_offsets", "compact", 50),
        ("__transaction_state", "compact", 7),
        ("__share_group_state", "delete", 50),
    ],
)
def test_a_coordinator_s_topic_is_made_as_the_coordinator_needs_it(
    name: str, policy: str, partitions: int
) -> None:
    """Whoever asks for it first."""

    async def story(node: Node) -> None:
        await ask(node, name)
        await sleep(1)
        image = node.broker.image
        assert len(image.topics.by_name[name].partitions) == partitions
        configs = image.topic_config(name)
        assert configs["cleanup.policy"] == policy
        assert configs["segment.bytes"] == "104857600"

    tell(story, settings=[*ONE_REPLICA, "transaction.state.log.num.partitions=7"])


def test_a_creation_that_failed_may_be_tried_again() -> None:
    files = disk_with(["data"])

    async def story(node: Node) -> None:
        files.fail(lambda each: each.kind == "write", Fault.ENOSPC, times=2)
        for _ in range(5):
            await ask(node, "a")
            await sleep(1)
        assert await ask(node, "a") == ["NONE"]

    tell(story, files=files)


def test_so_many_at_once_and_no_more_are_on_their_way() -> None:
    async def story(node: Node) -> None:
        creation = node.broker.topic_creation
        creation._in_flight = dict.fromkeys(map(str, range(10_000)))
        await ask(node, "a")
        await sleep(1)
        assert await ask(node, "a", may_create=False) == ["UNKNOWN_TOPIC_OR_PARTITION"]

    tell(story)


@pytest.mark.parametrize(
    ("settings", "replicas"), [((), 1), (("offsets.topic.replication.factor=3",), 3)]
)
def test_an_internal_topic_has_as_many_replicas_as_there_are_nodes_unless_it_is_said(
    settings: tuple[str, ...], replicas: int
) -> None:
    config = load(settings=settings).config
    assert creatable("__consumer_offsets", config, brokers=1).replication_factor == replicas
    assert creatable("__consumer_offsets", config, brokers=5).replication_factor == 3
