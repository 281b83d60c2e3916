"""The voters of a quorum: a voter is an id and a directory."""

import pytest

from ottla.protocol.schema import decode, encode
from ottla.replication.voters import Listener, ReplicaKey, Voter, Voters, static_voters, voters_of

A, B = bytes([1] * 16), bytes([2] * 16)
LISTENER = Listener("CONTROLLER", "here", 9093)
THREE = Voters(tuple(Voter(ReplicaKey(id, A), (LISTENER,)) for id in (1, 2, 3)))


def test_voters_come_back_from_their_record_as_they_were() -> None:
    record = THREE.record()
    assert voters_of(decode(type(record), 0, encode(record, 0))) == THREE


def test_a_voter_is_an_id_with_its_directory() -> None:
    assert THREE.find(ReplicaKey(2, A)) == THREE.voters[1]
    assert THREE.find(ReplicaKey(2, B)) is None
    assert THREE.find(ReplicaKey(4, A)) is None


def test_any_directory_will_do_for_a_voter_that_is_configured() -> None:
    assert static_voters([1]).find(ReplicaKey(1, B)) == Voter(ReplicaKey(1))


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(count: int, majority: int) -> None:
    assert static_voters(range(count)).majority == majority


def test_what_is_new_of_a_voter_takes_the_place_of_what_was_known() -> None:
    moved = Voter(ReplicaKey(2, A), (LISTENER._replace(host="there"),))
    changed = THREE.replacing(moved)
    assert changed.voters == (THREE.voters[0], moved, THREE.voters[2])
    assert changed.ids == [1, 2, 3]
    assert [voter.key.id for voter in changed.others(ReplicaKey(1, A))] == [2, 3]
