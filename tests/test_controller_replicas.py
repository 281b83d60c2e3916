from collections.abc import Sequence
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.replicas import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    BrokerState,
)
from ottla.replication.metadata_topics import NO_LEADER
from tests.controller_rig import Cluster, directory

NOT_A_TOPIC = b"\x07" * 16


# ---- AlterPartition


def alter(
    cluster: Cluster,
    isr: Sequence[int],
    *,
    sender: int = 1,
    sender_epoch: int | None = None,
    topic_id: bytes | None = None,
    index: int = 0,
    old: bool = False,
    member_epoch: int | None = None,
    **more: int,
) -> AlterPartitionResponsePartitionData:
    """As the leader would ask that knows all; `more` are fields of the partition."""
    partition = cluster.partition("a")
    members = [
        BrokerState(
            broker_id=broker_id,
            broker_epoch=cluster.broker(broker_id).epoch
            if member_epoch is None and broker_id in cluster.controller.image.brokers
            else member_epoch or -1,
        )
        for broker_id in isr
    ]
    fields: dict[str, Any] = {
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        **more,
    }
    data = AlterPartitionRequestPartitionData(
        partition_index=index,
        new_isr=list(isr) if old else [],
        new_isr_with_epochs=[] if old else members,
        **fields,
    )
    request = AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=cluster.broker(sender).epoch if sender_epoch is None else sender_epoch,
        topics=[
            AlterPartitionRequestTopicData(
                topic_id=topic_id or cluster.topic("a").id, partitions=[data]
            )
        ],
    )
    response = cluster.do(cluster.controller.alter_partition(request, cluster.now))
    return response.topics[0].partitions[0]


@pytest.fixture
def three() -> Cluster:
    cluster = Cluster(4)
    cluster.create("a", [1, 2, 3])
    return cluster


@pytest.mark.parametrize("old", [False, True], ids=["v3", "v2"])
def test_a_leader_changes_its_isr_and_keeps_its_epoch(three: Cluster, old: bool) -> None:
    answer = alter(three, [1, 2], old=old)
    assert (answer.error_code, answer.isr, answer.leader_epoch) == (0, [1, 2], 0)
    assert answer.partition_epoch == 1
    assert three.partition("a").isr == (1, 2)
    assert alter(three, [1, 2, 3], old=old).isr == [1, 2, 3]


def test_what_is_so_already_is_answered_and_not_written(three: Cluster) -> None:
    answer = alter(three, [1, 2, 3])
    assert (answer.error_code, answer.partition_epoch) == (0, 0)
    assert not three.records


def test_before_3_6_a_smaller_isr_raised_the_leader_epoch() -> None:
    cluster = Cluster(2, level=11)
    cluster.create("a", [1, 2])
    assert alter(cluster, [1]).leader_epoch == 1


REFUSED: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "a later leader epoch": ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
    "a later partition epoch": ({"partition_epoch": 2}, ErrorCode.NOT_CONTROLLER),
    "an old partition epoch": ({"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
    "an old leader epoch": ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
    "not the leader": ({"sender": 2}, ErrorCode.INVALID_REQUEST),
    "an isr without the leader": ({"isr": [2, 3]}, ErrorCode.INVALID_REQUEST),
    "a stranger": ({"isr": [1, 4]}, ErrorCode.INVALID_REQUEST),
    "a replica twice": ({"isr": [1, 2, 2]}, ErrorCode.INVALID_REQUEST),
    "nobody": ({"isr": []}, ErrorCode.INVALID_REQUEST),
    "recovering again": ({"isr": [1], "leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    "an odd state": ({"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
    "an old incarnation": ({"member_epoch": 1}, ErrorCode.INELIGIBLE_REPLICA),
    "an unknown topic": ({"topic_id": NOT_A_TOPIC}, ErrorCode.UNKNOWN_TOPIC_ID),
    "an unknown partition": ({"index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
}


@pytest.mark.parametrize(("asked", "code"), REFUSED.values(), ids=REFUSED)
def test_an_isr_is_refused_and_nothing_written(
    three: Cluster, asked: dict[str, Any], code: ErrorCode
) -> None:
    alter(three, [1, 2])
    answer = alter(three, **{"isr": [1, 2, 3], **asked})
    assert ErrorCode(answer.error_code) is code
    assert not three.records


def test_a_fenced_replica_is_not_in_sync(three: Cluster) -> None:
    three.heartbeat(3, wants_fence=True)
    assert ErrorCode(alter(three, [1, 2, 3]).error_code) is ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_that_shuts_down_is_not_in_sync(three: Cluster) -> None:
    three.create("b", [3, 1])
    three.heartbeat(3, wants_shutdown=True)
    assert ErrorCode(alter(three, [1, 2, 3]).error_code) is ErrorCode.INELIGIBLE_REPLICA


def test_an_old_incarnation_of_a_leader_is_refused_altogether(three: Cluster) -> None:
    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        alter(three, [1, 2], sender_epoch=0)


# ---- AssignReplicasToDirs


def assign(
    cluster: Cluster,
    broker_id: int,
    to: bytes,
    name: str = "a",
    *,
    index: int = 0,
    topic_id: bytes | None = None,
) -> ErrorCode:
    topic = AssignReplicasToDirsRequestTopicData(
        topic_id=topic_id or cluster.topic(name).id,
        partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=index)],
    )
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=cluster.broker(broker_id).epoch,
        directories=[AssignReplicasToDirsRequestDirectoryData(id=to, topics=[topic])],
    )
    response = cluster.do(cluster.controller.assign_replicas_to_dirs(request, cluster.now))
    return ErrorCode(response.directories[0].topics[0].partitions[0].error_code)


@pytest.fixture
def two_directories() -> Cluster:
    cluster = Cluster(1)
    cluster.register(2, directories=[directory(2, 1), directory(2, 2)])
    cluster.heartbeat(2)
    cluster.create("a", [2, 1])
    return cluster


def test_a_broker_says_where_its_replica_is(two_directories: Cluster) -> None:
    cluster = two_directories
    assert assign(cluster, 2, directory(2, 2)) is ErrorCode.NONE
    assert cluster.partition("a").directories == (directory(2, 2), directory(1))
    assert assign(cluster, 2, directory(2, 2)) is ErrorCode.NONE
    assert not cluster.records


def test_a_replica_in_a_directory_that_is_lost_leads_no_more(two_directories: Cluster) -> None:
    assert assign(two_directories, 2, directory(2, 9)) is ErrorCode.NONE
    assert two_directories.partition("a").leader == 1
    assert two_directories.partition("a").isr == (1,)


ASSIGNMENTS: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "an unknown topic": ({"topic_id": NOT_A_TOPIC}, ErrorCode.UNKNOWN_TOPIC_ID),
    "an unknown partition": ({"index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "another's replica": ({"name": "b"}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
}


@pytest.mark.parametrize(("asked", "code"), ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_an_assignment_is_refused(
    two_directories: Cluster, asked: dict[str, Any], code: ErrorCode
) -> None:
    two_directories.create("b", [1])
    assert assign(two_directories, 2, directory(2, 1), **asked) is code


def test_before_3_7_directories_are_not_assigned() -> None:
    cluster = Cluster(1, level=16)
    cluster.create("a", [1])
    with pytest.raises(KafkaError, match="not supported yet"):
        assign(cluster, 1, directory(1))


def test_a_lone_replica_in_a_lost_directory_leaves_no_leader() -> None:
    cluster = Cluster(1)
    cluster.create("a", [1])
    cluster.heartbeat(1, offline=[directory(1)])
    assert cluster.partition("a").leader == NO_LEADER
    assert cluster.partition("a").isr == (1,)
