import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.cluster import UnregisterBrokerRequest
from ottla.replication.metadata_topics import NO_LEADER, RECOVERING
from ottla.replication.metadata_versions import METADATA_VERSION
from tests.controller_rig import Cluster, directory, only_metadata, without
from tests.test_controller_replicas import assign

SESSION_MS = 9_000


def leaders(cluster: Cluster, name: str = "a") -> tuple[int, int, tuple[int, ...]]:
    partition = cluster.partition(name)
    return partition.leader, partition.leader_epoch, partition.isr


def refused(code: ErrorCode) -> "pytest.RaisesExc[KafkaError]":
    return pytest.raises(KafkaError, match=code.name)


# ---- one broker alone, which is the controller too


def test_each_start_raises_leader_epochs_by_two() -> None:
    """After a kill as after a clean stop, and no session of the old process is waited for."""
    cluster = Cluster(1, node_id=1)
    cluster.create("a", [1])
    assert leaders(cluster) == (1, 0, (1,))
    cluster.restart(1, incarnation=2)
    assert leaders(cluster) == (1, 2, (1,))
    assert not cluster.heartbeat(1, wants_shutdown=True).should_shut_down
    assert leaders(cluster) == (NO_LEADER, 3, (1,))
    assert cluster.heartbeat(1, wants_shutdown=True).should_shut_down
    cluster.restart(1, incarnation=3, previous_epoch=cluster.broker(1).epoch)
    assert leaders(cluster) == (1, 4, (1,))


def test_a_broker_never_fences_itself() -> None:
    cluster = Cluster(1, node_id=1)
    assert cluster.controller.deadline() is None
    cluster.wait(10 * SESSION_MS)
    cluster.do(cluster.controller.expire(cluster.now))
    assert not cluster.broker(1).fenced


def test_a_broker_that_leads_nothing_may_go_at_once() -> None:
    cluster = Cluster(1, node_id=1)
    assert cluster.heartbeat(1, wants_shutdown=True).should_shut_down


# ---- registration


def test_a_broker_s_epoch_is_where_its_registration_begins() -> None:
    cluster = Cluster(0)
    offset = cluster.offset
    assert cluster.register(1) == offset + 1
    assert cluster.broker(1).fenced


def test_a_broker_that_registers_again_keeps_its_epoch_and_state() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    epoch = cluster.broker(1).epoch
    assert cluster.register(1, rack="new") == epoch
    assert (cluster.broker(1).fenced, cluster.broker(1).rack) == (False, "new")
    assert leaders(cluster) == (1, 0, (1, 2))


def test_a_second_broker_of_one_number_waits_for_the_first_one_s_session() -> None:
    cluster = Cluster(2)
    with refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION):
        cluster.register(1, incarnation=2)
    cluster.wait(SESSION_MS)
    cluster.register(1, incarnation=2)


def test_a_broker_that_has_taken_its_leave_is_back_at_once() -> None:
    cluster = Cluster(2)
    assert cluster.heartbeat(1, wants_shutdown=True).should_shut_down
    cluster.restart(1, incarnation=2)
    assert not cluster.broker(1).fenced


def test_an_old_incarnation_is_heard_no_more() -> None:
    cluster = Cluster(1)
    epoch = cluster.broker(1).epoch
    cluster.wait(SESSION_MS)
    cluster.register(1, incarnation=2)
    with refused(ErrorCode.STALE_BROKER_EPOCH):
        cluster.heartbeat(1, epoch=epoch)


def test_an_unknown_broker_is_not_heard() -> None:
    cluster = Cluster(1)
    with refused(ErrorCode.STALE_BROKER_EPOCH):
        cluster.heartbeat(1, epoch=77)


REGISTRATIONS = {
    "another cluster": ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    "a reserved directory": (
        {"directories": [bytes(15) + b"\x63"]},
        ErrorCode.INVALID_REGISTRATION,
    ),
    "a directory twice": ({"directories": [directory(2)] * 2}, ErrorCode.INVALID_REGISTRATION),
    "another's directory": ({"directories": [directory(1)]}, ErrorCode.INVALID_REGISTRATION),
    "no metadata.version": (
        {"features": without(METADATA_VERSION)},
        ErrorCode.INVALID_REGISTRATION,
    ),
    "an old metadata.version": ({"features": only_metadata(7, 29)}, ErrorCode.UNSUPPORTED_VERSION),
    "no kraft.version": ({"features": without("kraft.version")}, ErrorCode.UNSUPPORTED_VERSION),
}


@pytest.mark.parametrize(("asked", "code"), REGISTRATIONS.values(), ids=REGISTRATIONS)
def test_a_registration_is_refused(asked: dict[str, object], code: ErrorCode) -> None:
    cluster = Cluster(1)
    with refused(code):
        cluster.register(2, **asked)  # type: ignore[arg-type]
    assert 2 not in cluster.controller.image.brokers


# ---- fencing


def test_a_broker_is_fenced_until_it_has_read_its_registration() -> None:
    cluster = Cluster(0)
    cluster.register(1)
    before = cluster.heartbeat(1, offset=cluster.offset - 1)
    assert (before.is_caught_up, before.is_fenced) == (False, True)
    after = cluster.heartbeat(1, offset=cluster.offset)
    assert (after.is_caught_up, after.is_fenced) == (True, False)


def test_a_broker_without_heartbeats_is_fenced_and_loses_its_leaderships() -> None:
    cluster = Cluster(3)
    cluster.create("a", [1, 2, 3])
    cluster.wait(SESSION_MS - 1)
    for alive in (2, 3):
        cluster.heartbeat(alive)
    assert cluster.controller.deadline() == cluster.now.monotonic_ms + 1
    cluster.do(cluster.controller.expire(cluster.now))
    assert not cluster.records
    cluster.wait(1)
    cluster.do(cluster.controller.expire(cluster.now))
    assert cluster.broker(1).fenced
    assert leaders(cluster) == (2, 1, (2, 3))
    cluster.do(cluster.controller.expire(cluster.now))
    assert not cluster.records


def test_brokers_are_fenced_one_after_the_other() -> None:
    """The last one stays in the ISR: it has what was acknowledged."""
    cluster = Cluster(3)
    cluster.create("a", [1, 2, 3])
    cluster.wait(SESSION_MS)
    for _ in range(3):
        cluster.do(cluster.controller.expire(cluster.now))
    assert leaders(cluster) == (NO_LEADER, 3, (3,))
    cluster.heartbeat(1)
    assert leaders(cluster) == (NO_LEADER, 3, (3,))
    cluster.heartbeat(3)
    assert leaders(cluster) == (3, 4, (3,))


def test_a_silence_of_our_own_fences_nobody() -> None:
    cluster = Cluster(2)
    cluster.wait(3 * SESSION_MS)
    cluster.controller.forgive(3 * SESSION_MS)
    cluster.do(cluster.controller.expire(cluster.now))
    assert not cluster.records


def test_a_controller_that_takes_over_gives_brokers_a_new_session() -> None:
    cluster = Cluster(2)
    other = Cluster(0)
    other.replay(*list(cluster.controller.image.records()))
    other.now = cluster.now
    assert other.controller.deadline() is None
    other.do(other.controller.bootstrap(other.now))
    assert other.controller.deadline() == other.now.monotonic_ms + SESSION_MS


def test_an_unclean_leader_is_elected_where_that_is_allowed() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2], configs={"unclean.leader.election.enable": "true"})
    cluster.heartbeat(2, wants_fence=True)
    assert leaders(cluster) == (1, 0, (1,))
    cluster.heartbeat(1, wants_fence=True)
    assert leaders(cluster) == (NO_LEADER, 1, (1,))
    cluster.heartbeat(2)
    assert leaders(cluster) == (2, 2, (2,))
    assert cluster.partition("a").leader_recovery_state == RECOVERING


# ---- shutdown


def test_a_broker_shuts_down_when_others_lead_and_know_it() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    first = cluster.heartbeat(1, wants_shutdown=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert leaders(cluster) == (2, 1, (2,))
    assert cluster.broker(1).in_controlled_shutdown
    assert not cluster.heartbeat(1, wants_shutdown=True).should_shut_down
    cluster.heartbeat(2, offset=cluster.offset - 1)
    assert not cluster.heartbeat(1, wants_shutdown=True).should_shut_down
    cluster.heartbeat(2, offset=cluster.offset)
    last = cluster.heartbeat(1, wants_shutdown=True)
    assert (last.should_shut_down, last.is_fenced) == (True, True)


def test_a_fenced_broker_may_go_at_any_time() -> None:
    cluster = Cluster(0)
    cluster.register(1)
    assert cluster.heartbeat(1, wants_shutdown=True).should_shut_down


def test_a_broker_that_wants_both_is_let_go() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    assert cluster.heartbeat(1, wants_fence=True, wants_shutdown=True).should_shut_down
    assert leaders(cluster) == (2, 1, (2,))


# ---- directories


def test_a_lost_directory_gives_up_its_leaderships_only() -> None:
    cluster = Cluster(1)
    cluster.register(2, directories=[directory(2, 1), directory(2, 2)])
    cluster.heartbeat(2)
    for name, number in (("a", 1), ("b", 2)):
        cluster.create(name, [2, 1])
        assign(cluster, 2, directory(2, number), name)
    cluster.heartbeat(2, offline=[directory(2, 1), b"unknown" + bytes(9)])
    assert leaders(cluster, "a") == (1, 1, (1,))
    assert leaders(cluster, "b") == (2, 0, (2, 1))
    assert cluster.broker(2).directories == (directory(2, 2),)
    cluster.heartbeat(2, offline=[directory(2, 1)])
    assert not cluster.records


def test_a_replica_in_a_lost_directory_does_not_lead_again() -> None:
    cluster = Cluster(0)
    cluster.register(1, directories=[directory(1, 1), directory(1, 2)])
    cluster.heartbeat(1)
    cluster.create("a", [1])
    assign(cluster, 1, directory(1, 1), "a")
    cluster.heartbeat(1, offline=[directory(1, 1)])
    assert leaders(cluster)[0] == NO_LEADER
    cluster.heartbeat(1, wants_fence=True)
    cluster.heartbeat(1)
    assert leaders(cluster)[0] == NO_LEADER


def test_cordoned_directories_are_written_once() -> None:
    cluster = Cluster(1)
    cluster.heartbeat(1, cordoned=[])
    assert cluster.broker(1).cordoned_directories == ()
    assert len(cluster.records) == 1
    cluster.heartbeat(1, cordoned=[])
    assert not cluster.records


# ---- the end


def test_a_broker_that_is_unregistered_leaves_every_isr() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    request = UnregisterBrokerRequest(broker_id=1)
    cluster.do(cluster.controller.unregister_broker(request, cluster.now))
    assert leaders(cluster) == (2, 1, (2,))
    assert 1 not in cluster.controller.image.brokers
    with pytest.raises(KafkaError, match="Broker ID 1 is not currently registered"):
        cluster.do(cluster.controller.unregister_broker(request, cluster.now))
