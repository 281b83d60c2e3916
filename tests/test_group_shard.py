"""The log of a coordinator's machines: loaded by replay, and never told too soon."""

from random import Random
from typing import Any

import pytest

from ottla.broker.coordinators import OFFSETS_TOPIC
from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.groups import FindCoordinatorRequest, JoinGroupRequest
from ottla.protocol.messages.groups import JoinGroupRequestProtocol as Offered
from ottla.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from ottla.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from ottla.protocol.messages.topics import DeleteTopicState as Named
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record
from ottla.protocol.schema import ZERO
from ottla.storage.producers import Origin
from tests.node_rig import Node, disk_with, tell

SETTINGS = ("offsets.topic.num.partitions=2",)


async def prepare(node: Node, group: str = "g") -> None:
    """A topic, and a coordinator for the group."""
    topic = CreatableTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    await node.ask(CreateTopicsRequest(topics=[topic]), 7)
    await find(node, group)


async def find(node: Node, group: str = "g", kind: int = 0) -> Any:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[group])
    found = (await node.ask(request, 6)).coordinators[0]
    for _ in range(10_000):
        if not any(each.is_loading for each in node.broker.coordinators._shards.values()):
            return found
        await node.broker.pause()
    raise AssertionError("it is never loaded")


async def commit(node: Node, offset: int, group: str = "g") -> ErrorCode:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
    ]
    topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
    request = OffsetCommitRequest(group_id=group, member_id="", topics=topics)
    answer = await node.ask(request, 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(node: Node, group: str = "g") -> list[int]:
    await find(node, group)
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    (found,) = (await node.ask(asked, 8)).groups
    assert not found.error_code
    return [each.committed_offset for topic in found.topics for each in topic.partitions]


def test_the_first_to_ask_makes_the_topic_and_finds_this_node() -> None:
    async def story(node: Node) -> None:
        found = await find(node)
        assert (found.error_code, found.node_id) == (0, 1)
        topic = node.broker.image.topics.by_name[OFFSETS_TOPIC]
        assert len(topic.partitions) == 2
        assert node.broker.image.topic_config(OFFSETS_TOPIC)["cleanup.policy"] == "compact"

    tell(story, settings=SETTINGS)


@pytest.mark.parametrize(
    ("kind", "code"),
    [(1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (2, ErrorCode.INVALID_REQUEST)],
)
def test_what_is_not_coordinated_here_is_refused_for_good(kind: int, code: ErrorCode) -> None:
    async def story(node: Node) -> None:
        found = await find(node, kind=kind)
        assert found.error_code == code
        assert not ErrorCode(found.error_code).retriable

    tell(story, settings=SETTINGS)


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("on_disk", ["false", "true"])
def test_offsets_come_back_after_a_start(stops: bool, on_disk: str) -> None:
    files = disk_with(["data"])
    settings = (*SETTINGS, f"ottla.ack.after.fsync={on_disk}")

    async def before(node: Node) -> None:
        await prepare(node)
        for offset in (5, 9):
            assert await commit(node, offset) is ErrorCode.NONE

    async def after(node: Node) -> None:
        assert await committed(node) == [9]

    tell(before, files=files, settings=settings, stops=True)
    tell(after, files=files, settings=settings, seed=2, stops=stops)


def test_an_acknowledged_commit_outlives_a_loss_of_power_where_data_counts_on_disk() -> None:
    files = disk_with(["data"])
    settings = (*SETTINGS, "ottla.ack.after.fsync=true")

    async def before(node: Node) -> None:
        await prepare(node)
        assert await commit(node, 7) is ErrorCode.NONE

    async def after(node: Node) -> None:
        assert await committed(node) == [7]

    tell(before, files=files, settings=settings, stops=False)
    tell(after, files=files.crash(Random(3)), settings=settings, seed=2)


def test_what_cannot_be_read_in_the_log_costs_no_group_its_offsets() -> None:
    files = disk_with(["data"])

    async def before(node: Node) -> None:
        await prepare(node)
        await commit(node, 5)
        index = node.broker.coordinators.partition_of("g")
        partition = node.broker.node.partition(OFFSETS_TOPIC, index)
        for batch in bad_batches():
            partition.append(batch, acks=-1, now=node.broker.world.now(), origin=Origin.COORDINATOR)
        await commit(node, 6)

    async def after(node: Node) -> None:
        assert await committed(node) == [6]

    tell(before, files=files, settings=SETTINGS)
    tell(after, files=files, settings=SETTINGS, seed=2)


def bad_batches() -> list[bytearray]:
    """A key of nothing, a kind that nobody knows, a value cut short, garbage for records."""
    made = [
        build_batch([Record(0, 1_800_000_000_000, key, value)])
        for key, value in ((None, b"x"), (b"", b"x"), (b"\0\x63", b"x"), (b"\0\1\0\1g", b"\0\4"))
    ]
    garbage = build_batch([Record(0, 1_800_000_000_000, b"k", b"v" * 500)], codec=Codec.GZIP)
    garbage[70:80] = bytes(10)
    return [*made, sealed(garbage)]


def sealed(batch: bytearray) -> bytearray:
    from ottla.protocol.records import crc_of

    batch[17:21] = crc_of(batch, 0, len(batch)).to_bytes(4, "big")
    return batch


def test_the_offsets_of_a_topic_go_with_it() -> None:
    async def story(node: Node) -> None:
        await prepare(node)
        await commit(node, 5)
        await node.ask(
            DeleteTopicsRequest(
                topics=[Named(name="t", topic_id=ZERO)], topic_names=[], timeout_ms=9000
            ),
            6,
        )
        assert await committed(node) == []

    tell(story, settings=SETTINGS)


def test_who_waits_for_a_round_is_told_when_the_node_stops() -> None:
    async def story(node: Node) -> None:
        await prepare(node)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=[Offered(name="range", metadata=b"")],
        )
        loop = node.broker.world.loop
        first = await node.ask(request, 3)
        assert not first.error_code
        waiting = loop.create_task(node.ask(request, 3))
        await node.broker.pause()
        node.broker.coordinators.stop()
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await waiting

    tell(story, settings=SETTINGS)
