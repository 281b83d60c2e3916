"""This node's partitions: opened, led and given up, whatever their disks do."""

from asyncio import gather, sleep
from collections.abc import Callable

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.protocol.schema import ZERO
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from tests.controller_rig import creatable
from tests.node_rig import Node, disk_with, tell

PARTITIONS = 3


async def create(node: Node, name: str = "t") -> list[int]:
    topics = [creatable(name, PARTITIONS, 1)]
    response = await node.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    return [topic.error_code for topic in response.topics]


async def delete(node: Node, name: str = "t") -> list[int]:
    states = [DeleteTopicState(name=name, topic_id=ZERO)]
    response = await node.ask(DeleteTopicsRequest(topics=states, timeout_ms=30_000), 6)
    return [topic.error_code for topic in response.responses]


def topic_ids(node: Node) -> list[bytes | None]:
    return [node.broker.node.partition("t", index).log.topic_id for index in range(PARTITIONS)]


def refused(node: Node, name: str, index: int) -> str:
    with pytest.raises(KafkaError) as error:
        node.broker.node.partition(name, index)
    return error.value.code.name


def test_a_topic_that_is_made_anew_is_another_topic() -> None:
    async def story(node: Node) -> None:
        await create(node)
        before = topic_ids(node)
        await delete(node)
        assert refused(node, "t", 0) == "UNKNOWN_TOPIC_OR_PARTITION"
        await create(node)
        after = topic_ids(node)
        assert not set(before) & set(after)
        assert set(after) == {node.broker.image.topics.by_name["t"].id}

    tell(story)


def test_topics_that_come_and_go_at_once_leave_what_was_decided_last() -> None:
    async def story(node: Node) -> None:
        answers = await gather(
            *(work(node) for _ in range(5) for work in (create, delete)), create(node)
        )
        assert answers == [[0]] * 11
        assert set(topic_ids(node)) == {node.broker.image.topics.by_name["t"].id}
        assert len(node.broker.logs.current) == PARTITIONS

    tell(story)


def test_a_delete_that_comes_before_a_create_is_answered_finds_the_topic() -> None:
    async def story(node: Node) -> None:
        created, deleted = await gather(create(node), delete(node))
        assert (created, deleted) == ([0], [0])
        assert not node.broker.logs.current
        assert not node.broker.node.partitions

    tell(story)


def test_the_logs_of_a_topic_that_was_deleted_meanwhile_are_set_aside() -> None:
    """As after a crash between the decision and what it does to the disk."""
    files = disk_with(["data"])

    async def first(node: Node) -> MemoryFiles:
        await create(node)
        before = files.copy()
        await delete(node)
        await sleep(120)
        path = f"data/__cluster_metadata-0/{'0' * 20}.log"
        before.write_atomically_now(path, files.read_whole(path))
        return before

    left = tell(first, files=files)

    async def second(node: Node) -> None:
        assert not node.broker.logs.current
        strays = [name for name in left.list("data") if name.endswith("-stray")]
        assert len(strays) == PARTITIONS

    tell(second, files=left, seed=2)


# --- disks that refuse --------------------------------------------------------------------


def on(*kinds: str, path: str = "") -> Callable[[Operation], bool]:
    return lambda operation: operation.kind in kinds and operation.path.startswith(path)


@pytest.mark.parametrize("fault", [Fault.ENOSPC, Fault.EMFILE])
@pytest.mark.parametrize("what", ["rename", "write", "sync", "create"])
def test_a_disk_that_refuses_a_deletion_is_asked_again(fault: Fault, what: str) -> None:
    """The topic is gone all the same, and one of its name has nothing of it."""
    files = disk_with(["data"])

    async def story(node: Node) -> None:
        await create(node)
        arm(files, fault, what, times=3)
        assert await delete(node) == [0]
        assert refused(node, "t", 0) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert await create(node) == [0]
        await sleep(200)
        current = node.broker.logs.current
        assert {log.topic_id for log in current.values()} <= {
            node.broker.image.topics.by_name["t"].id
        }

    tell(story, files=files)


def arm(files: MemoryFiles, fault: Fault, what: str, *, times: int | None) -> None:
    """For what is no business of the metadata log."""
    metadata = "data/__cluster_metadata-0"
    files.fail(
        lambda each: each.kind == what and not each.path.startswith(metadata), fault, times=times
    )


def test_a_directory_that_fails_while_its_logs_are_deleted_takes_no_others_along() -> None:
    paths = ["a", "b"]
    files = disk_with(paths)

    async def story(node: Node) -> None:
        await create(node)
        await create(node, "other")
        files.fail(on("rename", "write", "create", path="b/"), Fault.EIO, times=None)
        assert await delete(node) == [0]
        await sleep(5)
        assert list(node.broker.logs.offline) == ["b"]
        led = [
            index
            for index, each in node.broker.image.topics.by_name["other"].partitions.items()
            if each.leader == 1
        ]
        assert 0 < len(led) < PARTITIONS
        for index in range(PARTITIONS):
            if index in led:
                assert node.broker.node.partition("other", index).is_leader
            else:
                assert refused(node, "other", index) == "KAFKA_STORAGE_ERROR"
        assert await create(node, "new") == [0]

    tell(story, files=files, paths=paths)


def test_a_log_that_cannot_be_made_is_offline_and_its_topic_there() -> None:
    files = disk_with(["data"])

    async def story(node: Node) -> None:
        files.fail(on("create", path="data/t-1"), Fault.ENOSPC, times=None)
        assert await create(node) == [0]
        assert refused(node, "t", 1) == ErrorCode.KAFKA_STORAGE_ERROR.name
        assert node.broker.node.partition("t", 2).is_leader
        assert refused(node, "t", 9) == "UNKNOWN_TOPIC_OR_PARTITION"

    tell(story, files=files)
