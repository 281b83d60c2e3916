"""Random lives of a cluster: whatever happens, no data is given up that was promised."""

from dataclasses import replace
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata_records import FeatureLevelRecord
from ottla.replication.controller_elections import PREFERRED, UNCLEAN
from ottla.replication.metadata import Image, image_of
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import NO_LEADER, RECOVERED, PartitionRegistration
from ottla.replication.metadata_versions import ELR_FEATURE
from tests.controller_rig import Cluster, directory
from tests.test_controller_elections import elect
from tests.test_controller_reassignments import reassign
from tests.test_controller_replicas import alter

BROKERS = range(1, 6)
SESSION_MS = 9_000
# What a broker or a tool may be told when it is behind.
EXPECTED = {
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
}


class Life:
    def __init__(self, seed: int, *, with_elr: bool, unclean: bool) -> None:
        self.dice = Random(seed)
        self.unclean = unclean
        self.cluster = Cluster(len(BROKERS), seed=seed)
        if with_elr:
            level = FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)
            self.cluster.replay(Versioned(level))
        configs = {"min.insync.replicas": "2"}
        if unclean:
            configs["unclean.leader.election.enable"] = "true"
        for name in ("a", "b"):
            self.cluster.create(name, [1, 2, 3], [2, 3, 4], [5, 1, 2], configs=configs)
        self.incarnation = 1
        self.steps = [
            getattr(self, name) for name in sorted(vars(Life)) if name.startswith("step_")
        ]

    @property
    def image(self) -> Image:
        return self.cluster.controller.image

    def step(self) -> None:
        before, offset = self.image, self.cluster.offset
        self.proposed: list[int] = []
        step = self.dice.choice(self.steps)
        try:
            step()
        except KafkaError as error:
            if error.code not in EXPECTED:
                raise
        is_asked_for = self.unclean or step == self.step_elect
        self.check(before, offset, may_be_unclean=is_asked_for)

    # what happens

    def step_heartbeat(self) -> None:
        self.cluster.heartbeat(self.dice.choice(BROKERS))

    def step_unfence_all(self) -> None:
        for broker_id in BROKERS:
            self.cluster.heartbeat(broker_id)

    def step_fence(self) -> None:
        self.cluster.heartbeat(self.dice.choice(BROKERS), wants_fence=True)

    def step_shut_down(self) -> None:
        self.cluster.heartbeat(self.dice.choice(BROKERS), wants_shutdown=True)

    def step_silence(self) -> None:
        alive = self.dice.sample(BROKERS, 3)
        self.cluster.wait(SESSION_MS // 2 + 1)
        for broker_id in alive:
            self.cluster.heartbeat(broker_id)
        self.cluster.do(self.cluster.controller.expire(self.cluster.now))

    def step_restart(self) -> None:
        self.incarnation += 1
        broker_id = self.dice.choice(BROKERS)
        epoch = self.dice.choice((-1, self.cluster.broker(broker_id).epoch))
        self.cluster.restart(broker_id, self.incarnation % 200, previous_epoch=epoch)

    def step_lose_directory(self) -> None:
        if self.dice.random() < 0.3:
            broker_id = self.dice.choice(BROKERS)
            self.cluster.heartbeat(broker_id, offline=[directory(broker_id)])

    def step_alter(self) -> None:
        """Some leader of `a` changes its ISR."""
        index = self.dice.randrange(3)
        partition = self.cluster.partition("a", index)
        if partition.leader == NO_LEADER:
            return
        others = [replica for replica in partition.replicas if replica != partition.leader]
        isr = [partition.leader, *self.dice.sample(others, self.dice.randint(0, len(others)))]
        self.proposed = isr
        alter(
            self.cluster,
            isr,
            sender=partition.leader,
            index=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch - self.dice.choice((0, 0, 0, 1)),
        )

    def step_reassign(self) -> None:
        wanted = self.dice.sample(BROKERS, self.dice.randint(1, 3))
        cancels = self.dice.random() < 0.3
        reassign(self.cluster, None if cancels else wanted, index=self.dice.randrange(3))

    def step_elect(self) -> None:
        elect(self.cluster, self.dice.choice((PREFERRED, UNCLEAN)), everywhere=True)

    def step_balance(self) -> None:
        self.cluster.do(self.cluster.controller.expire(self.cluster.now))

    # what always holds

    def check(self, before: Image, offset: int, *, may_be_unclean: bool) -> None:
        image = self.image
        assert image.offset == self.cluster.offset >= offset
        for topic in image.topics.by_id.values():
            old = before.topics.by_id[topic.id].partitions
            for index, partition in topic.partitions.items():
                self.check_partition(partition)
                has_all = {*old[index].isr, *old[index].elr, *self.proposed}
                check_change(old[index], partition, has_all, may_be_unclean=may_be_unclean)

    def check_partition(self, partition: PartitionRegistration) -> None:
        assert len(partition.directories) == len(partition.replicas)
        for group in (
            partition.isr,
            partition.elr,
            partition.adding_replicas,
            partition.removing_replicas,
        ):
            assert len(set(group)) == len(group)
            assert set(group) <= set(partition.replicas)
        assert not set(partition.isr) & set(partition.elr)
        if partition.leader != NO_LEADER:
            assert partition.leader in partition.isr
            assert not self.cluster.broker(partition.leader).fenced


def check_change(
    old: PartitionRegistration,
    new: PartitionRegistration,
    has_all: set[int],
    *,
    may_be_unclean: bool,
) -> None:
    """`has_all` are those that have everything that was promised."""
    assert new.leader_epoch >= old.leader_epoch
    assert (new.partition_epoch > old.partition_epoch) is (new != old)
    if new.leader != old.leader:
        assert new.leader_epoch > old.leader_epoch
    if new.leader != NO_LEADER and new.leader not in has_all and not may_be_unclean:
        # Only the last leader, which is known to have come back from a breakdown.
        assert old.last_known_elr == (new.leader,)
        assert new.leader_recovery_state != RECOVERED


@pytest.mark.parametrize("unclean", [False, True], ids=["clean", "unclean"])
@pytest.mark.parametrize("with_elr", [False, True], ids=["", "elr"])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens(seed: int, with_elr: bool, unclean: bool) -> None:
    life = Life(seed, with_elr=with_elr, unclean=unclean)
    for _ in range(150):
        life.step()
    image = replace(life.image, offset=-1, epoch=-1)
    assert image_of(life.image.records()) == image


def test_the_same_life_is_lived_twice() -> None:
    lives = [Life(3, with_elr=True, unclean=False) for _ in range(2)]
    for life in lives:
        for _ in range(100):
            life.step()
    assert lives[0].image == lives[1].image
