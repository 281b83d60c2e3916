"""Eligible leader replicas (KIP-966), and what else one partition's change has of its own."""

import pytest

from ottla.protocol.messages.metadata_records import FeatureLevelRecord
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import NO_LEADER, RECOVERED, RECOVERING
from ottla.replication.metadata_versions import ELR_FEATURE
from tests.controller_rig import Cluster
from tests.test_controller_replicas import alter


@pytest.fixture
def cluster() -> Cluster:
    """Three replicas, of which two must be in sync."""
    made = Cluster(3)
    made.replay(Versioned(FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)))
    made.create("a", [1, 2, 3], configs={"min.insync.replicas": "2"})
    return made


def state(cluster: Cluster) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Leader, ISR and eligible leader replicas."""
    partition = cluster.partition("a")
    return partition.leader, partition.isr, partition.elr


def fence(cluster: Cluster, *brokers: int) -> None:
    for broker_id in brokers:
        cluster.heartbeat(broker_id, wants_fence=True)


def test_while_enough_are_in_sync_nobody_else_is_eligible(cluster: Cluster) -> None:
    fence(cluster, 3)
    assert state(cluster) == (1, (1, 2), ())


def test_who_leaves_a_small_isr_is_eligible_still(cluster: Cluster) -> None:
    """The high watermark stands while too few are in sync: what they have is all there is."""
    fence(cluster, 3, 2)
    assert state(cluster) == (1, (1,), (2,))
    fence(cluster, 1)
    assert state(cluster) == (NO_LEADER, (), (2, 1))
    assert cluster.partition("a").last_known_elr == (1,)


def test_whoever_is_eligible_leads_when_it_is_back(cluster: Cluster) -> None:
    fence(cluster, 3, 2, 1)
    cluster.heartbeat(3)
    assert state(cluster)[0] == NO_LEADER
    cluster.heartbeat(2)
    assert state(cluster) == (2, (2,), (1,))
    assert cluster.partition("a").leader_recovery_state == RECOVERED
    assert cluster.partition("a").last_known_elr == ()


def test_an_isr_that_is_large_enough_again_needs_no_others(cluster: Cluster) -> None:
    fence(cluster, 3, 2)
    cluster.heartbeat(3)
    assert alter(cluster, [1, 3]).error_code == 0
    assert state(cluster) == (1, (1, 3), ())


def test_whoever_broke_down_is_not_eligible(cluster: Cluster) -> None:
    fence(cluster, 3, 2)
    cluster.wait(9_000)
    cluster.heartbeat(1)
    cluster.register(2, incarnation=2)
    assert state(cluster) == (1, (1,), ())


def test_whoever_stopped_cleanly_is_eligible_still(cluster: Cluster) -> None:
    fence(cluster, 3, 2)
    cluster.wait(9_000)
    cluster.heartbeat(1)
    cluster.register(2, incarnation=2, previous_epoch=cluster.broker(2).epoch)
    assert state(cluster) == (1, (1,), (2,))


def test_the_last_leader_leads_again_where_all_broke_down(cluster: Cluster) -> None:
    """It may have lost something; whoever else would lead may have lost more."""
    fence(cluster, 3, 2, 1)
    cluster.wait(9_000)
    for broker_id in (3, 2, 1):
        cluster.restart(broker_id, incarnation=2)
        if broker_id != 1:
            assert state(cluster)[0] == NO_LEADER
    assert state(cluster) == (1, (1,), ())
    assert cluster.partition("a").leader_recovery_state == RECOVERING


def test_a_leader_that_has_recovered_says_so(cluster: Cluster) -> None:
    test_the_last_leader_leads_again_where_all_broke_down(cluster)
    answer = alter(cluster, [1, 2], leader_recovery_state=RECOVERED)
    assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERED)
    assert state(cluster) == (1, (1, 2), ())


def test_no_more_can_be_demanded_than_there_are_replicas() -> None:
    cluster = Cluster(1)
    cluster.replay(Versioned(FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)))
    cluster.create("a", [1], configs={"min.insync.replicas": "3"})
    cluster.register(1, rack="new")
    assert state(cluster) == (1, (1,), ())
    fence(cluster, 1)
    assert state(cluster) == (NO_LEADER, (), (1,))


def test_without_the_feature_the_last_in_sync_is_remembered_by_the_isr() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2], configs={"min.insync.replicas": "2"})
    fence(cluster, 1, 2)
    assert state(cluster) == (NO_LEADER, (2,), ())
