"""A broker's place in the cluster, over its starts and stops: registration, epochs, lost disks."""

from asyncio import sleep
from typing import Any

import pytest

from ottla.broker.main import StartRefused
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.cluster import (
    DescribeClusterRequest,
    UnregisterBrokerRequest,
)
from ottla.protocol.messages.topics import CreateTopicsRequest
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import LOOKS, Fault, Operation
from tests.controller_rig import creatable
from tests.node_rig import Node, disk_with, tell

TWO = ["a", "b"]


async def create(node: Node, name: str, partitions: int) -> None:
    topics = [creatable(name, partitions, 1)]
    await node.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)


async def leader_epoch(node: Node) -> int:
    partition = node.broker.image.topics.by_name["t"].partitions[0]
    assert partition.leader == 1
    assert node.broker.node.partition("t", 0).leader_epoch == partition.leader_epoch
    return partition.leader_epoch


@pytest.mark.parametrize("stops", [True, False])
def test_every_start_raises_leader_epochs_by_two(stops: bool) -> None:
    """Whether the stop before it was clean or none, as Kafka's."""
    files = disk_with(["data"])

    async def first(node: Node) -> None:
        await create(node, "t", 1)

    tell(first, files=files, stops=stops)
    epochs = []
    for seed in (2, 3):
        files = files.copy()
        epochs.append(tell(leader_epoch, files=files, stops=stops, seed=seed))
    assert epochs == [2, 4]


def test_a_stop_says_with_which_epoch_it_was_clean() -> None:
    files = disk_with(["data"])

    async def epoch(node: Node) -> int:
        return node.broker.broker_epoch

    found = tell(epoch, files=files)
    text = files.read_whole("data/.kafka_cleanshutdown")
    assert text == b'{"version":0,"brokerEpoch":%d}' % found


@pytest.mark.parametrize(
    ("settings", "endpoint"),
    [
        ([], ("127.0.0.1", 9092)),
        (["advertised.listeners=PLAINTEXT://outside:1234"], ("outside", 1234)),
    ],
)
def test_the_cluster_is_told_the_address_that_is_advertised(
    settings: list[str], endpoint: tuple[str, int]
) -> None:
    async def story(node: Node) -> None:
        found = node.broker.image.brokers[1].endpoint("PLAINTEXT")
        assert found is not None
        assert (found.host, found.port) == endpoint
        answer = await node.ask(
            DescribeClusterRequest(include_cluster_authorized_operations=False), 1
        )
        assert [(each.host, each.port) for each in answer.brokers] == [endpoint]

    tell(story, settings=settings)


def test_a_broker_that_is_fenced_is_shown_to_those_who_ask_for_it() -> None:
    """One that was unregistered is there no more; no heartbeat of it does harm."""

    async def story(node: Node) -> None:
        await node.ask(UnregisterBrokerRequest(broker_id=1), 0)
        assert (
            await node.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 1)
        ).brokers == []
        await sleep(10)

    tell(story)


# --- disks --------------------------------------------------------------------------------


def broken(path: str) -> Any:
    def is_hit(operation: Operation) -> bool:
        return operation.path.startswith(f"{path}/") and operation.kind not in LOOKS

    return is_hit


async def of_both(node: Node) -> dict[str, int]:
    """How many partitions of `t` are led, by directory; under "" those without a leader."""
    counts: dict[str, int] = {}
    for index, partition in node.broker.image.topics.by_name["t"].partitions.items():
        where = ""
        if partition.leader == 1:
            where = node.broker.node.partition("t", index).log.folder.log_dir.path
        counts[where] = counts.get(where, 0) + 1
    return counts


def with_topic() -> MemoryFiles:
    files = disk_with(TWO)

    async def story(node: Node) -> None:
        await create(node, "t", 4)
        assert await of_both(node) == {"a": 2, "b": 2}

    tell(story, files=files, paths=TWO)
    return files


def test_a_directory_that_is_lost_before_a_start_takes_its_partitions_along() -> None:
    files = with_topic()
    files.fail(lambda operation: operation.path.startswith("b/"), Fault.EIO, times=None)
    assert tell(of_both, files=files, paths=TWO) == {"a": 2, "": 2}


@pytest.mark.parametrize("after", range(0, 40, 4))
def test_a_directory_that_is_lost_in_the_midst_of_a_start_takes_its_partitions_along(
    after: int,
) -> None:
    files = with_topic()
    first = files.operation_count + after
    hits = broken("b")
    files.fail(lambda each: each.number >= first and hits(each), Fault.EIO, times=None)

    async def story(node: Node) -> dict[str, int]:
        await sleep(5)
        return await of_both(node)

    found = tell(story, files=files, paths=TWO)
    # What is not written to while it starts is not known to be lost.
    assert found in ({"a": 2, "": 2}, {"a": 2, "b": 2})
    assert after > 8 or "" in found


def test_a_directory_that_is_lost_while_it_serves_takes_its_partitions_along() -> None:
    files = with_topic()

    async def story(node: Node) -> None:
        for log_dir in node.broker.logs.online:
            if log_dir.path == "b":
                log_dir.fail("unplugged")
        await sleep(1)
        assert await of_both(node) == {"a": 2, "": 2}
        for index in range(4):
            if node.broker.image.topics.by_name["t"].partitions[index].leader != 1:
                with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
                    node.broker.node.partition("t", index)

    tell(story, files=files, paths=TWO)


def test_without_any_directory_for_topics_nothing_starts() -> None:
    files = disk_with(["a", "m"])
    files.fail(lambda operation: operation.path.startswith("a/"), Fault.EIO, times=None)

    async def story(node: Node) -> None:
        raise AssertionError("it has started")

    with pytest.raises(StartRefused, match="a/"):
        tell(story, files=files, paths=["a"], settings=["metadata.log.dir=m"])


def test_a_directory_of_the_metadata_log_alone_holds_no_topics() -> None:
    files = disk_with(["a", "m"])

    async def story(node: Node) -> None:
        await create(node, "t", 4)
        assert await of_both(node) == {"a": 4}
        assert len(node.broker.image.brokers[1].directories) == 1

    tell(story, files=files, paths=["a"], settings=["metadata.log.dir=m"])
    assert files.exists("a/.kafka_cleanshutdown")
    assert not files.exists("m/.kafka_cleanshutdown")
    assert tell(of_both, files=files, paths=["a"], settings=["metadata.log.dir=m"]) == {"a": 4}
