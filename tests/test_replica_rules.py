"""Roles, epochs and watermarks of a replica, without a log."""

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.replication.metadata_topics import PartitionRegistration
from ottla.replication.replica_rules import ReplicaRules, Role
from ottla.storage.clock import Now
from tests.log_rig import refused

NOW = Now(5_000, 0)
ALONE = PartitionRegistration(replicas=(1,), directories=(), isr=(1,), leader=1)
THREE = PartitionRegistration(replicas=(1, 2, 3), directories=(), isr=(1, 2, 3), leader=1)


def leading(registration: PartitionRegistration, *, min_insync: int = 1) -> ReplicaRules:
    rules = ReplicaRules(min_insync_replicas=min_insync)
    assert rules.lead(registration, log_end_offset=10)
    return rules


def fetch(rules: ReplicaRules, replica: int, offset: int, *, start: int = 0) -> bool:
    return rules.fetched(
        replica, offset=offset, log_start_offset=start, leader_end_offset=20, now=NOW
    )


def test_a_leader_alone_has_what_it_has() -> None:
    assert leading(ALONE).high_watermark(17) == 17


def test_the_watermark_is_what_every_in_sync_replica_has() -> None:
    rules = leading(THREE)
    assert rules.high_watermark(20) is None, "nothing is known of the others yet"
    fetch(rules, 2, 15)
    assert rules.high_watermark(20) is None
    fetch(rules, 3, 12)
    assert rules.high_watermark(20) == 12
    assert rules.high_watermark(11) == 11


def test_who_is_not_in_sync_holds_nobody_up() -> None:
    rules = leading(THREE._replace(isr=(1, 3)))
    fetch(rules, 3, 14)
    assert rules.high_watermark(20) == 14


@pytest.mark.parametrize(
    ("replicas", "isr", "min_insync", "enough"),
    [
        ((1,), (1,), 2, True),  # no more than there are
        ((1, 2, 3), (1, 2), 2, True),
        ((1, 2, 3), (1,), 2, False),
        ((1, 2, 3), (1, 2), 5, False),
    ],
)
def test_min_insync_replicas_is_capped_by_the_replicas(
    replicas: tuple[int, ...], isr: tuple[int, ...], min_insync: int, enough: bool
) -> None:
    rules = leading(ALONE._replace(replicas=replicas, isr=isr), min_insync=min_insync)
    fetch(rules, 2, 10) if 2 in replicas else None
    assert rules.has_enough_in_sync is enough
    assert (rules.high_watermark(10) is not None) is enough


def test_a_stranger_is_no_follower() -> None:
    rules = leading(THREE)
    assert refused(lambda: fetch(rules, 4, 10)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused(lambda: fetch(rules, 1, 10)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_gets_on_by_what_it_asks_for() -> None:
    rules = leading(THREE)
    assert fetch(rules, 2, 12)
    assert not fetch(rules, 2, 12)
    assert rules.followers[2].caught_up_ms == 0
    assert fetch(rules, 2, 20)
    assert rules.followers[2].caught_up_ms == NOW.monotonic_ms


def test_what_followers_had_in_an_older_epoch_counts_no_more() -> None:
    rules = leading(THREE)
    for replica in (2, 3):
        fetch(rules, replica, 15)
    assert not rules.lead(THREE._replace(isr=(1, 2), partition_epoch=1), log_end_offset=20)
    assert rules.high_watermark(20) == 15
    assert rules.epoch_start_offset == 10
    assert rules.lead(THREE._replace(leader_epoch=1, partition_epoch=2), log_end_offset=20)
    assert rules.high_watermark(20) is None
    assert rules.epoch_start_offset == 20


def test_an_older_registration_changes_nothing() -> None:
    rules = leading(THREE._replace(leader_epoch=4, partition_epoch=9))
    assert not rules.follow(THREE._replace(leader_epoch=3, partition_epoch=10))
    assert not rules.follow(THREE._replace(leader_epoch=4, partition_epoch=8))
    assert rules.role is Role.LEADER
    assert rules.follow(THREE._replace(leader_epoch=5, partition_epoch=10, leader=2))
    assert (rules.role, rules.leader, rules.followers) == (Role.FOLLOWER, 2, {})


def test_a_reader_must_know_the_same_leader() -> None:
    rules = leading(ALONE._replace(leader_epoch=4))
    rules.check_epoch(4)
    rules.check_epoch(-1)
    assert refused(lambda: rules.check_epoch(3)) is ErrorCode.FENCED_LEADER_EPOCH
    assert refused(lambda: rules.check_epoch(5)) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_low_watermark_is_that_of_the_last_replica() -> None:
    rules = leading(THREE)
    fetch(rules, 2, 12, start=7)
    fetch(rules, 3, 12, start=4)
    assert rules.low_watermark(9) == 4
    assert leading(ALONE).low_watermark(9) == 9
