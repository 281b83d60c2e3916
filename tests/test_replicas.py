"""Elections, reassignments and log directories of a whole node."""

from asyncio import sleep
from collections.abc import Sequence
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from ottla.protocol.messages.topics import CreateTopicsRequest
from ottla.storage.memory_operations import Fault
from tests.controller_rig import creatable
from tests.log_rig import batch
from tests.node_rig import Node, disk_with, tell

TWO = ("one", "two")


async def create(node: Node, name: str = "a", partitions: int = 1) -> None:
    request = CreateTopicsRequest(topics=[creatable(name, partitions, 1)])
    response = await node.ask(request, 7)
    assert response.topics[0].error_code == 0


def append(node: Node, name: str = "a", index: int = 0, *, count: int = 3) -> None:
    partition = node.broker.node.partition(name, index)
    partition.append(batch(count), acks=1, now=node.broker.world.now())


async def directories(
    node: Node, asked: Sequence[tuple[str, list[int]]] | None = None, version: int = 4
) -> dict[str, Any]:
    topics = None
    if asked is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=at) for name, at in asked]
    response = await node.ask(DescribeLogDirsRequest(topics=topics), version)
    return {result.log_dir: result for result in response.results}


async def places(node: Node) -> dict[tuple[str, int, bool], str]:
    """The directory of each replica, and whether it is a future one."""
    return {
        (topic.name, each.partition_index, each.is_future_key): path
        for path, result in (await directories(node)).items()
        for topic in result.topics
        for each in topic.partitions
    }


async def move(node: Node, path: str, name: str = "a", *indexes: int) -> list[str]:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=list(indexes or (0,)))]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    response = await node.ask(request, 2)
    return [
        ErrorCode(each.error_code).name for result in response.results for each in result.partitions
    ]


# ---- asked of the controller


def test_an_election_that_is_none_is_refused_everywhere() -> None:
    async def story(node: Node) -> None:
        asked = [TopicPartitions(topic="a", partitions=[0, 1])]
        request = ElectLeadersRequest(election_type=7, topic_partitions=asked)
        response = await node.ask(request, 2)
        results = response.replica_election_results[0].partition_result
        codes = [response.error_code, *(each.error_code for each in results)]
        assert codes == [ErrorCode.INVALID_REQUEST] * 3
        assert results[0].error_message == "Unknown election type 7"

    tell(story)


def test_an_election_without_time_is_told_so_everywhere() -> None:
    async def story(node: Node) -> None:
        asked = [TopicPartitions(topic="a", partitions=[0])]
        response = await node.ask(ElectLeadersRequest(topic_partitions=asked, timeout_ms=0), 2)
        (result,) = response.replica_election_results[0].partition_result
        assert response.error_code == result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert result.error_message is None

    tell(story)


def test_a_lone_broker_has_nothing_to_reassign() -> None:
    async def story(node: Node) -> None:
        await create(node)
        wanted = [ReassignablePartition(partition_index=0, replicas=[1])]
        topics = [ReassignableTopic(name="a", partitions=wanted)]
        response = await node.ask(AlterPartitionReassignmentsRequest(topics=topics), 1)
        assert response.responses[0].partitions[0].error_code == 0
        listed = await node.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        assert (listed.error_code, listed.topics) == (0, [])
        late = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=0)
        response = await node.ask(late, 1)
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert response.responses[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    tell(story)


# ---- log directories


@pytest.mark.parametrize("version", [1, 5])
def test_log_directories_say_what_is_in_them(version: int) -> None:
    async def story(node: Node) -> None:
        await create(node, partitions=2)
        append(node, index=1)
        found = await directories(node, version=version)
        assert list(found) == ["one", "two"]
        sizes = {
            each.partition_index: (each.partition_size, each.offset_lag)
            for result in found.values()
            for topic in result.topics
            for each in topic.partitions
        }
        assert sizes == {0: (0, 0), 1: (len(batch(3)), 0)}
        # A disk in memory has no size.
        assert (found["one"].total_bytes, found["one"].usable_bytes) == (-1, -1)

    tell(story, paths=TWO)


ASKED: dict[str, tuple[list[tuple[str, list[int]]], list[tuple[str, int]]]] = {
    "some": ([("a", [1]), ("b", [0])], [("a", 1), ("b", 0)]),
    "unknown": ([("c", [0]), ("a", [7])], []),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("asked", "expected"), ASKED.values(), ids=ASKED)
def test_only_what_is_asked_for_is_told(
    asked: list[tuple[str, list[int]]], expected: list[tuple[str, int]]
) -> None:
    async def story(node: Node) -> None:
        await create(node, "a", 2)
        await create(node, "b")
        found = (await directories(node, asked))["data"]
        assert found.error_code == 0
        assert [
            (topic.name, each.partition_index)
            for topic in found.topics
            for each in topic.partitions
        ] == expected

    tell(story)


def test_a_directory_that_is_offline_says_so() -> None:
    files = disk_with(TWO)

    async def story(node: Node) -> None:
        await create(node, "a", 2)
        lost = next(key for key, path in (await places(node)).items() if path == "two")
        files.fail(lambda operation: operation.path.startswith("two/a"), Fault.EIO)
        with pytest.raises(Exception, match="two"):
            append(node, *lost[:2])
        await sleep(1)
        found = await directories(node)
        assert ErrorCode(found["two"].error_code) is ErrorCode.KAFKA_STORAGE_ERROR
        assert found["one"].error_code == 0
        assert await move(node, "two", "a", 1 - lost[1]) == ["KAFKA_STORAGE_ERROR"]
        assert await move(node, "one", "a", lost[1]) == ["KAFKA_STORAGE_ERROR"]
        # The controller has looked for another leader; none is made of nothing.
        partition = node.broker.image.topics.by_name["a"].partitions[lost[1]]
        assert partition.leader == -1
        assert lost[:2] not in node.broker.logs.current

    tell(story, files=files, paths=TWO)


def test_a_move_that_cannot_be_is_refused() -> None:
    async def story(node: Node) -> None:
        await create(node)
        await create(node, "n" * 249)
        here = (await places(node))["a", 0, False]
        assert await move(node, here) == ["NONE"]
        assert await move(node, "three") == ["LOG_DIR_NOT_FOUND"]
        assert await move(node, "one", "a", 9) == ["UNKNOWN_TOPIC_OR_PARTITION"]
        assert await move(node, "one", "b", 0, 1) == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2
        assert await move(node, "one", "n" * 249) == ["INVALID_TOPIC_EXCEPTION"]
        assert not node.broker.logs.future

    tell(story, paths=TWO)


def test_the_last_directory_that_is_named_for_a_replica_counts() -> None:
    async def story(node: Node) -> None:
        await create(node)
        topics = [AlterReplicaLogDirTopic(name="a", partitions=[0])]
        dirs = [AlterReplicaLogDir(path=path, topics=topics) for path in ("three", "one")]
        response = await node.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2)
        assert [each.error_code for each in response.results[0].partitions] == [0]

    tell(story, paths=TWO)
