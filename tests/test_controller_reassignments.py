from collections.abc import Sequence

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata_records import PartitionChangeRecord
from ottla.protocol.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.replication.metadata_records import Versioned
from tests.controller_rig import Cluster, directory
from tests.test_controller_replicas import alter

Answer = tuple[str, str | None]


def reassign(
    cluster: Cluster,
    replicas: Sequence[int] | None,
    *,
    name: str = "a",
    index: int = 0,
    may_change_factor: bool = True,
) -> Answer:
    wanted = None if replicas is None else list(replicas)
    partition = ReassignablePartition(partition_index=index, replicas=wanted)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[partition])],
        allow_replication_factor_change=may_change_factor,
    )
    response = cluster.do(cluster.controller.alter_partition_reassignments(request, cluster.now))
    answer = response.responses[0].partitions[0]
    return ErrorCode(answer.error_code).name, answer.error_message


def under_way(cluster: Cluster, name: str | None = None) -> dict[str, tuple[list[int], ...]]:
    topics = None
    if name is not None:
        topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 7])]
    request = ListPartitionReassignmentsRequest(topics=topics)
    response = cluster.do(cluster.controller.list_partition_reassignments(request, cluster.now))
    return {
        topic.name: (found.replicas, found.adding_replicas, found.removing_replicas)
        for topic in response.topics
        for found in topic.partitions
    }


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(5)
    made.create("a", [1, 2, 3])
    return made


def test_a_partition_moves_when_its_new_replicas_are_in_sync(cluster: Cluster) -> None:
    assert reassign(cluster, [4, 5, 3]) == ("NONE", None)
    partition = cluster.partition("a")
    assert partition.replicas == (4, 5, 3, 1, 2)
    assert partition.directories == tuple(map(directory, (4, 5, 3, 1, 2)))
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 0, (1, 2, 3))
    assert under_way(cluster) == {"a": ([4, 5, 3, 1, 2], [4, 5], [1, 2])}
    assert under_way(cluster, "a") == under_way(cluster)

    alter(cluster, [1, 2, 3, 4])
    assert under_way(cluster)
    answer = alter(cluster, [1, 2, 3, 4, 5])
    # The leader that asked was one of those that go.
    assert ErrorCode(answer.error_code) is ErrorCode.NEW_LEADER_ELECTED
    partition = cluster.partition("a")
    assert (partition.replicas, partition.isr) == ((4, 5, 3), (3, 4, 5))
    assert (partition.leader, partition.leader_epoch) == (4, 1)
    assert partition.directories == tuple(map(directory, (4, 5, 3)))
    assert not under_way(cluster)


def test_a_leader_that_stays_gets_a_new_epoch_when_others_have_gone(cluster: Cluster) -> None:
    reassign(cluster, [1, 4])
    answer = alter(cluster, [1, 2, 3, 4])
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (0, 1, 1)
    assert cluster.partition("a").replicas == (1, 4)


def test_another_order_is_taken_at_once(cluster: Cluster) -> None:
    reassign(cluster, [3, 2, 1])
    partition = cluster.partition("a")
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ((3, 2, 1), 1, 0)
    assert not under_way(cluster)


def test_replicas_that_only_go_are_gone_at_once(cluster: Cluster) -> None:
    reassign(cluster, [2, 3])
    partition = cluster.partition("a")
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 3), (2, 3), 2)


def test_where_it_is_already_nothing_is_written(cluster: Cluster) -> None:
    assert reassign(cluster, [1, 2, 3]) == ("NONE", None)
    assert not cluster.records


def test_a_move_is_called_off(cluster: Cluster) -> None:
    reassign(cluster, [4, 5])
    alter(cluster, [1, 2, 3, 4])
    assert reassign(cluster, None) == ("NONE", None)
    partition = cluster.partition("a")
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2, 3), (1, 2, 3), 1)
    assert not under_way(cluster)


def test_a_move_cannot_be_called_off_where_data_would_be_lost(cluster: Cluster) -> None:
    cluster.create("b", [1])
    reassign(cluster, [4, 5], name="b")
    topic = cluster.topic("b").id
    only_new = PartitionChangeRecord(partition_id=0, topic_id=topic, isr=[4], leader=4)
    cluster.replay(Versioned(only_new, 2))
    code, reason = reassign(cluster, None, name="b")
    assert (code, reason) == (
        "INVALID_REPLICA_ASSIGNMENT",
        "Unable to revert partition assignment for b:0 because it would require an unclean leader"
        " election.",
    )


REFUSED: dict[str, tuple[list[int] | None, dict[str, str | int | bool], str, str | None]] = {
    "an unknown topic": (
        [1],
        {"name": "b"},
        "UNKNOWN_TOPIC_OR_PARTITION",
        "Unable to find a topic named b.",
    ),
    "an unknown partition": (
        [1],
        {"index": 9},
        "UNKNOWN_TOPIC_OR_PARTITION",
        "Unable to find partition a:9.",
    ),
    "nothing under way": (None, {}, "NO_REASSIGNMENT_IN_PROGRESS", None),
    "an unknown broker": (
        [1, 9],
        {},
        "INVALID_REPLICA_ASSIGNMENT",
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    "another number of replicas": (
        [4],
        {"may_change_factor": False},
        "INVALID_REPLICATION_FACTOR",
        "The replication factor is changed from 3 to 1",
    ),
}


@pytest.mark.parametrize(("replicas", "asked", "code", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_move_is_refused_in_kafka_s_words(
    cluster: Cluster,
    replicas: list[int] | None,
    asked: dict[str, str | int | bool],
    code: str,
    reason: str | None,
) -> None:
    assert reassign(cluster, replicas, **asked) == (code, reason)  # type: ignore[arg-type]
    assert not cluster.records


def test_the_number_of_replicas_counts_without_those_that_go(cluster: Cluster) -> None:
    reassign(cluster, [4, 5])
    assert reassign(cluster, [3, 4], may_change_factor=False)[0] == "NONE"
