import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.replicas import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from ottla.replication.controller import ControllerSettings
from ottla.replication.controller_elections import PREFERRED, UNCLEAN
from ottla.replication.metadata_topics import NO_LEADER, RECOVERING
from tests.controller_rig import Cluster
from tests.test_controller_configs import SET, change
from tests.test_controller_replicas import alter

INTERVAL_MS = 300_000


def elect(
    cluster: Cluster, kind: int, *topics: str, everywhere: bool = False
) -> ElectLeadersResponse:
    asked = [TopicPartitions(topic=name, partitions=[0]) for name in topics]
    request = ElectLeadersRequest(
        election_type=kind, topic_partitions=None if everywhere else asked
    )
    return cluster.do(cluster.controller.elect_leaders(request, cluster.now))


def answers(response: ElectLeadersResponse) -> dict[str, list[str]]:
    return {
        result.topic: [ErrorCode(each.error_code).name for each in result.partition_result]
        for result in response.replica_election_results
    }


def moved(cluster: Cluster) -> None:
    """`a` is led by its second replica, though the first is back and in sync."""
    cluster.create("a", [1, 2])
    cluster.create("b", [2, 1])
    cluster.heartbeat(1, wants_fence=True)
    cluster.heartbeat(1)
    assert alter(cluster, [2, 1], sender=2).error_code == 0
    assert cluster.partition("a").leader == 2


def test_a_preferred_leader_leads_again() -> None:
    cluster = Cluster(2)
    moved(cluster)
    epoch = cluster.partition("a").leader_epoch
    assert answers(elect(cluster, PREFERRED, "a", "b")) == {
        "a": ["NONE"],
        "b": ["ELECTION_NOT_NEEDED"],
    }
    assert (cluster.partition("a").leader, cluster.partition("a").leader_epoch) == (1, epoch + 1)


def test_for_all_partitions_only_what_was_done_is_told() -> None:
    cluster = Cluster(2)
    moved(cluster)
    assert answers(elect(cluster, PREFERRED, everywhere=True)) == {"a": ["NONE"], "b": []}


def test_a_preferred_leader_that_is_behind_does_not_lead() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    cluster.heartbeat(1, wants_fence=True)
    cluster.heartbeat(1)
    assert answers(elect(cluster, PREFERRED, "a")) == {"a": ["PREFERRED_LEADER_NOT_AVAILABLE"]}
    assert not cluster.records


def test_an_unclean_election_is_for_partitions_without_a_leader() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    assert answers(elect(cluster, UNCLEAN, "a")) == {"a": ["ELECTION_NOT_NEEDED"]}
    cluster.heartbeat(2, wants_fence=True)
    cluster.heartbeat(1, wants_fence=True)
    assert answers(elect(cluster, UNCLEAN, "a")) == {"a": ["ELIGIBLE_LEADERS_NOT_AVAILABLE"]}
    cluster.heartbeat(2)
    assert cluster.partition("a").leader == NO_LEADER
    assert answers(elect(cluster, UNCLEAN, "a")) == {"a": ["NONE"]}
    partition = cluster.partition("a")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_recovery_state == RECOVERING


def test_what_is_not_there_elects_nobody() -> None:
    cluster = Cluster(1)
    cluster.create("a", [1])
    response = elect(cluster, PREFERRED, "b")
    assert response.replica_election_results[0].partition_result[0].error_message == (
        "No such topic as b"
    )


def test_a_kind_of_election_that_is_none_is_refused() -> None:
    with pytest.raises(KafkaError, match="Unknown election type 7"):
        elect(Cluster(1), 7, "a")


# ---- by the clock


def due(cluster: Cluster) -> None:
    """Lets the time of one check pass, while all brokers live."""
    cluster.do(cluster.controller.expire(cluster.now))
    cluster.wait(INTERVAL_MS)
    cluster.controller.forgive(INTERVAL_MS)
    cluster.do(cluster.controller.expire(cluster.now))


def test_leaders_go_back_from_time_to_time() -> None:
    cluster = Cluster(2)
    moved(cluster)
    due(cluster)
    assert cluster.partition("a").leader == 1
    due(cluster)
    assert not cluster.records


def test_leaders_stay_where_rebalancing_is_off() -> None:
    cluster = Cluster(2, settings=ControllerSettings(auto_leader_rebalance_enable=False))
    moved(cluster)
    due(cluster)
    assert cluster.partition("a").leader == 2


def test_a_partition_that_may_lose_data_gets_a_leader_by_itself() -> None:
    cluster = Cluster(3)
    cluster.create("a", [1, 2])
    cluster.heartbeat(2, wants_fence=True)
    cluster.heartbeat(1, wants_fence=True)
    cluster.heartbeat(2)
    due(cluster)
    assert cluster.partition("a").leader == NO_LEADER
    change(cluster, 2, "a", ("unclean.leader.election.enable", SET, "true"))
    due(cluster)
    assert cluster.partition("a").leader == 2


def test_a_broker_alone_has_nothing_to_balance() -> None:
    cluster = Cluster(1, node_id=1)
    cluster.do(cluster.controller.expire(cluster.now))
    assert cluster.controller.deadline() is None
