"""What a leader knows of its replicas: the high watermark, and who has gone silent."""

import pytest

from ottla.replication.raft_progress import OBSERVER_SESSION_TIMEOUT_MS, Progress
from ottla.replication.voters import ReplicaKey, static_voters
from ottla.storage.clock import Now

ME = ReplicaKey(1)


def at(ms: int) -> Now:
    return Now(ms, 1_000_000 + ms)


def progress(count: int = 3, *, start: int = 0) -> Progress:
    voters = static_voters(range(1, count + 1))
    return Progress(ME, voters, epoch_start_offset=start, now=at(0))


def fetch(leader: Progress, id: int, offset: int, *, end: int = 10, ms: int = 0) -> bool:
    return leader.fetched(ReplicaKey(id), offset, leader_end_offset=end, now=at(ms))


@pytest.mark.parametrize(
    ("ends", "reached"),
    [
        ((5,), 5),
        ((5, 3), 3),
        ((5, 3, 0), 3),
        ((5, 0, 4), 4),
        ((5, 9, 7), 7),
        ((5, 4, 3, 2), 3),
        ((5, 4, 3, 2, 1), 3),
    ],
)
def test_what_a_majority_has_is_committed(ends: tuple[int, ...], reached: int) -> None:
    leader = progress(len(ends))
    leader.flushed(ends[0])
    for id, end in enumerate(ends[1:], 2):
        fetch(leader, id, end)
    assert leader.high_watermark == reached


def test_nothing_is_committed_before_a_record_of_the_leaders_own_epoch_is() -> None:
    leader = progress(start=7)
    assert not leader.flushed(9)
    assert not fetch(leader, 2, 7)
    assert leader.high_watermark is None
    assert fetch(leader, 2, 8)
    assert leader.high_watermark == 8


def test_the_high_watermark_never_falls() -> None:
    leader = progress()
    leader.flushed(9)
    fetch(leader, 2, 8)
    assert not fetch(leader, 2, 3)
    assert leader.high_watermark == 8


def test_a_leaders_own_log_does_not_shrink() -> None:
    leader = progress()
    leader.flushed(9)
    with pytest.raises(ValueError, match="has shrunk"):
        leader.flushed(8)


def test_observers_commit_nothing_and_are_forgotten() -> None:
    leader = progress()
    leader.flushed(9)
    assert not fetch(leader, 7, 9)
    assert list(leader.observers) == [ReplicaKey(7)]
    leader.forget_observers(at(OBSERVER_SESSION_TIMEOUT_MS - 1))
    assert leader.observers
    leader.forget_observers(at(OBSERVER_SESSION_TIMEOUT_MS))
    assert not leader.observers


def test_a_replica_has_caught_up_when_it_asks_for_the_end() -> None:
    leader = progress()
    leader.flushed(10)
    fetch(leader, 2, 5, end=10, ms=1)
    assert leader.replicas[2].last_caught_up_ms == -1
    fetch(leader, 2, 10, end=12, ms=2)
    assert leader.replicas[2].last_caught_up_ms == at(1).wall_ms, "it has what was there then"
    fetch(leader, 2, 12, end=12, ms=3)
    assert leader.replicas[2].last_caught_up_ms == at(3).wall_ms


def test_a_leader_notices_that_a_majority_is_out_of_touch() -> None:
    assert progress(1).lost_touch_ms(100) is None
    leader = progress(5)
    assert leader.lost_touch_ms(100) == 100
    fetch(leader, 2, 0, ms=30)
    assert leader.lost_touch_ms(100) == 100, "with one it is no majority"
    fetch(leader, 4, 0, ms=50)
    assert leader.lost_touch_ms(100) == 130
    assert leader.silent(40) == [ReplicaKey(2), ReplicaKey(3), ReplicaKey(5)]


def test_who_has_most_is_to_lead_next() -> None:
    leader = progress()
    fetch(leader, 2, 3)
    fetch(leader, 3, 5)
    assert leader.by_progress() == [ReplicaKey(3), ReplicaKey(2)]


def test_a_voter_that_joins_is_known_from_observing() -> None:
    leader = progress(1)
    leader.flushed(9)
    fetch(leader, 2, 8)
    assert not leader.voters_changed(static_voters([1, 2]), at(1))
    assert leader.replicas[2].end_offset == 8
    assert not leader.observers
    leader.flushed(12)
    assert leader.high_watermark == 9
    assert fetch(leader, 2, 11)
    assert leader.high_watermark == 11


def test_a_voter_that_leaves_becomes_an_observer_and_may_leave_a_majority() -> None:
    leader = progress(2)
    leader.flushed(9)
    fetch(leader, 2, 4)
    assert leader.voters_changed(static_voters([1]), at(1))
    assert leader.high_watermark == 9
    assert list(leader.observers) == [ReplicaKey(2)]
