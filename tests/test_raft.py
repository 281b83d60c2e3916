"""KRaft as a pure machine: one voter, three voters, and networks that lose and mix."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.replication.quorum_state import NOBODY, Election
from ottla.replication.raft import LEGAL, Raft, Role
from ottla.replication.raft_messages import (
    AskVote,
    BeginEpoch,
    EndEpoch,
    Message,
    Outcome,
    Position,
    RaftSettings,
)
from ottla.replication.voters import ReplicaKey, Voter, Voters
from ottla.storage.clock import Now

KEYS = [ReplicaKey(id, bytes([id] * 16)) for id in range(4)]
THREE = Voters(tuple(Voter(key) for key in KEYS[1:]))
SETTINGS = RaftSettings()
EMPTY, EARLIER, UP_TO_DATE = Position(0, 0), Position(4, 10), Position(5, 10)


def at(ms: int) -> Now:
    return Now(ms, 1_000_000 + ms)


def raft(
    id: int = 1,
    voters: Voters = THREE,
    election: Election | None = None,
    end: Position = EMPTY,
) -> Raft:
    return Raft(KEYS[id], voters, election or Election(), end, random=Random(id))


def expired(machine: Raft) -> Outcome:
    deadline_ms = machine.deadline_ms()
    assert deadline_ms is not None
    return machine.expire(at(deadline_ms))


def following(leader: int = 2, epoch: int = 5, end: Position = UP_TO_DATE) -> Raft:
    machine = raft(end=end, election=Election(epoch, leader))
    machine.start(at(0))
    return machine


def leading(end: Position = EARLIER) -> Raft:
    machine = raft(end=end, election=Election(4))
    machine.start(at(0))
    expired(machine)
    for is_pre_vote in (True, False):
        answer = raft(2, end=end).vote_asked(
            KEYS[1],
            5,
            end,
            at(0),
            is_pre_vote=is_pre_vote,
        )
        assert answer.answer is not None
        reply = answer.answer._replace(epoch=machine.epoch)
        asked = machine.epoch
        machine.vote_answered(2, reply, at(0), asked_epoch=asked, is_pre_vote=is_pre_vote)
    assert machine.role is Role.LEADER
    return machine


# --- one voter ----------------------------------------------------------------------------


def test_a_single_voter_leads_a_new_epoch_at_every_start() -> None:
    alone = Voters((Voter(KEYS[1]),))
    for election, end, epoch in [
        (Election(), Position(0, 0), 1),
        (Election(3, 1), Position(3, 9), 4),
        (Election(3, NOBODY, KEYS[1]), Position(2, 9), 4),
        (Election(1), Position(6, 9), 7),
    ]:
        machine = raft(voters=alone, election=election, end=end)
        outcome = machine.start(at(0))
        assert outcome.election == machine.election == Election(epoch, 1)
        assert outcome.begins_epoch and not outcome.messages
        assert machine.deadline_ms() is None, "there is nobody to lose touch with"


def test_a_single_voter_commits_what_it_has_on_disk() -> None:
    machine = raft(voters=Voters((Voter(KEYS[1]),)), end=Position(2, 9))
    machine.start(at(0))
    machine.appended(Position(3, 12))
    assert machine.flushed(9).high_watermark is None, "nothing of its own epoch yet"
    assert machine.flushed(12).high_watermark == 12
    assert machine.flushed(12).high_watermark is None


# --- roles --------------------------------------------------------------------------------


def test_no_role_is_left_out() -> None:
    assert set(LEGAL) == set(Role)
    assert set.union(*LEGAL.values()) == set(Role)


def test_an_impossible_change_of_role_raises() -> None:
    machine = leading()
    machine.resign(at(1))
    with pytest.raises(ValueError, match="a resigned replica cannot become leader"):
        machine._become(Role.LEADER)


@pytest.mark.parametrize(
    ("election", "role"),
    [
        (Election(), Role.UNATTACHED),
        (Election(4), Role.UNATTACHED),
        (Election(4, 2), Role.FOLLOWER),
        (Election(4, 1), Role.RESIGNED),
        (Election(4, NOBODY, KEYS[1]), Role.CANDIDATE),
        (Election(4, NOBODY, KEYS[2]), Role.UNATTACHED),
    ],
)
def test_a_replica_goes_on_as_what_it_was_but_never_as_the_leader(
    election: Election, role: Role
) -> None:
    machine = raft(election=election)
    machine.start(at(0))
    assert machine.role is role


def test_a_leader_that_was_restarted_begins_with_a_later_epoch() -> None:
    machine = raft(election=Election(4, 1))
    machine.start(at(0))
    assert expired(machine).election == Election(5)
    assert machine.role is Role.UNATTACHED


def test_a_follower_that_hears_nothing_asks_before_it_disturbs() -> None:
    machine = following()
    assert machine.deadline_ms() == SETTINGS.fetch_timeout_ms
    outcome = expired(machine)
    assert machine.role is Role.PROSPECTIVE
    assert outcome.election is None, "nobody hears of a new epoch yet"
    asked = [AskVote(KEYS[id], 5, Position(5, 10), True) for id in (2, 3)]
    assert outcome.messages == asked


def test_one_that_is_not_wanted_goes_back_to_its_leader() -> None:
    machine = following()
    expired(machine)
    assert expired(machine).messages == []
    assert machine.role is Role.FOLLOWER and machine.leader_id == 2


def test_an_observer_waits_for_ever() -> None:
    machine = raft(0, election=Election(5, 2))
    machine.start(at(0))
    assert machine.role is Role.FOLLOWER
    assert machine.deadline_ms() is None


def test_expiring_too_early_does_nothing() -> None:
    machine = following()
    assert machine.expire(at(SETTINGS.fetch_timeout_ms - 1)) == Outcome()
    assert machine.role is Role.FOLLOWER


# --- votes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "epoch", "last", "is_pre_vote", "is_granted"),
    [
        (raft(end=UP_TO_DATE), 6, UP_TO_DATE, False, True),
        (raft(end=UP_TO_DATE), 6, Position(5, 9), False, False),
        (raft(end=UP_TO_DATE), 7, Position(6, 1), False, True),
        (raft(end=UP_TO_DATE), 5, UP_TO_DATE, True, True),
        (raft(end=UP_TO_DATE), 5, Position(4, 99), True, False),
        (following(end=UP_TO_DATE), 5, UP_TO_DATE, True, False),
        (following(end=Position(4, 9)), 5, Position(4, 9), False, False),
        (following(end=UP_TO_DATE), 6, UP_TO_DATE, True, True),
        (leading(), 5, Position(4, 99), True, False),
        (leading(), 6, Position(5, 11), False, True),
    ],
)
def test_who_gets_a_vote(
    machine: Raft, epoch: int, last: Position, is_pre_vote: bool, is_granted: bool
) -> None:
    outcome = machine.vote_asked(KEYS[3], epoch, last, at(9), is_pre_vote=is_pre_vote)
    assert outcome.answer is not None
    assert outcome.answer.error is ErrorCode.NONE
    assert outcome.answer.is_vote_granted is is_granted
    if is_granted and not is_pre_vote:
        assert outcome.election == Election(epoch, NOBODY, KEYS[3]), "on disk before it is said"


def test_there_is_one_vote_in_an_epoch() -> None:
    machine = raft(end=UP_TO_DATE)

    def vote(key: ReplicaKey) -> bool:
        answer = machine.vote_asked(key, 6, UP_TO_DATE, at(0), is_pre_vote=False).answer
        assert answer is not None
        return answer.is_vote_granted

    assert [vote(KEYS[3]), vote(KEYS[2]), vote(KEYS[3])] == [True, False, True]


@pytest.mark.parametrize(
    ("epoch", "last", "to", "error"),
    [
        (4, Position(3, 1), None, ErrorCode.FENCED_LEADER_EPOCH),
        (6, Position(6, 1), None, ErrorCode.INVALID_REQUEST),
        (6, Position(5, -1), None, ErrorCode.INVALID_REQUEST),
        (6, UP_TO_DATE, ReplicaKey(1, bytes([9] * 16)), ErrorCode.INVALID_VOTER_KEY),
        (6, UP_TO_DATE, KEYS[2], ErrorCode.INVALID_VOTER_KEY),
        (6, UP_TO_DATE, KEYS[1], ErrorCode.NONE),
        (6, UP_TO_DATE, ReplicaKey(1), ErrorCode.NONE),
    ],
)
def test_a_request_for_a_vote_may_be_wrong(
    epoch: int, last: Position, to: ReplicaKey | None, error: ErrorCode
) -> None:
    outcome = following().vote_asked(KEYS[3], epoch, last, at(0), is_pre_vote=False, to=to)
    assert outcome.answer is not None
    assert outcome.answer.error is error


def test_a_candidate_with_a_majority_leads_and_says_so() -> None:
    machine = leading()
    assert machine.election == Election(5, 1)
    machine = raft(end=Position(4, 10), election=Election(4, NOBODY, KEYS[1]))
    machine.start(at(0))
    granted = raft(2).vote_asked(KEYS[1], 4, Position(3, 1), at(0), is_pre_vote=False).answer
    assert granted is not None
    outcome = machine.vote_answered(2, granted, at(0), asked_epoch=4, is_pre_vote=False)
    assert outcome.begins_epoch and outcome.election == Election(4, 1)
    assert outcome.messages == [BeginEpoch(KEYS[2], 4), BeginEpoch(KEYS[3], 4)]


def test_an_answer_to_another_question_counts_for_nothing() -> None:
    machine = raft(end=Position(4, 10), election=Election(4, NOBODY, KEYS[1]))
    machine.start(at(0))
    granted = raft(2).vote_asked(KEYS[1], 4, Position(3, 1), at(0), is_pre_vote=False).answer
    assert granted is not None
    machine.vote_answered(2, granted, at(0), asked_epoch=4, is_pre_vote=True)
    machine.vote_answered(2, granted, at(0), asked_epoch=3, is_pre_vote=False)
    machine.vote_answered(0, granted, at(0), asked_epoch=4, is_pre_vote=False)
    assert machine.role is Role.CANDIDATE


# --- leaders ------------------------------------------------------------------------------


def test_a_later_epoch_ends_every_role() -> None:
    for machine in (following(), leading(), raft()):
        outcome = machine.epoch_began(3, 9, at(0))
        assert outcome.election == Election(9, 3)
        assert (machine.role, machine.leader_id, machine.progress) == (Role.FOLLOWER, 3, None)


def test_an_earlier_leader_is_told_that_it_is_none() -> None:
    outcome = following().epoch_began(3, 4, at(0))
    assert outcome.answer is not None
    assert outcome.answer[:3] == (ErrorCode.FENCED_LEADER_EPOCH, 5, 2)


def test_two_leaders_of_one_epoch_are_not_believed() -> None:
    outcome = following().epoch_began(3, 5, at(0))
    assert outcome.answer is not None
    assert outcome.answer.error is ErrorCode.INVALID_REQUEST
    with pytest.raises(ValueError, match="two leaders"):
        following().fetch_answered(5, 3, 1, at(0))


def test_a_leader_that_nobody_comes_to_resigns() -> None:
    machine = leading()
    begun = [each for each in expired(machine).messages if isinstance(each, BeginEpoch)]
    assert [each.to for each in begun] == [KEYS[2], KEYS[3]], "maybe they have not heard of it"
    expired(machine)
    outcome = expired(machine)
    assert machine.deadline_ms() is not None and machine.role is Role.RESIGNED
    assert [type(each) for each in outcome.messages] == [EndEpoch, EndEpoch]


def test_a_leader_to_whom_a_majority_comes_stays() -> None:
    machine = leading()
    for ms in range(0, 20_000, 500):
        machine.fetched(KEYS[2], 5, 10, at(ms))
        machine.expire(at(ms))
    assert machine.role is Role.LEADER


def test_when_a_leader_resigns_who_has_most_goes_first() -> None:
    machine = leading()
    machine.fetched(KEYS[3], 5, 10, at(1))
    machine.fetched(KEYS[2], 5, 8, at(1))
    (first, second) = machine.resign(at(2)).messages
    assert isinstance(first, EndEpoch) and isinstance(second, EndEpoch)
    assert first.preferred == (KEYS[3], KEYS[2])
    for id, least_ms in ((3, 0), (2, 1)):
        follower = raft(id, election=Election(5, 1))
        follower.start(at(0))
        follower.epoch_ended(1, 5, first.preferred, at(2))
        deadline_ms = follower.deadline_ms()
        assert deadline_ms is not None
        assert 2 + least_ms <= deadline_ms <= 2 + SETTINGS.election_backoff_max_ms


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_fetch_has_to_be_of_the_leaders_epoch(epoch: int, error: ErrorCode) -> None:
    outcome = leading().fetched(KEYS[2], epoch, 10, at(0))
    assert outcome.answer is not None
    assert outcome.answer.error is error


def test_only_a_leader_is_fetched_from() -> None:
    outcome = following().fetched(KEYS[3], 5, 10, at(0))
    assert outcome.answer is not None
    assert outcome.answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ValueError, match="does not lead"):
        following().flushed(10)


def test_a_follower_knows_no_more_as_committed_than_it_has() -> None:
    machine = following()
    assert machine.fetch_answered(5, 2, 8, at(1)).high_watermark == 8
    assert machine.fetch_answered(5, 2, 20, at(2)).high_watermark == 10
    assert machine.fetch_answered(5, 2, 9, at(3)).high_watermark is None
    with pytest.raises(ValueError, match="is committed"):
        machine.truncated(Position(5, 9))
    assert machine.deadline_ms() == 3 + SETTINGS.fetch_timeout_ms


def test_voters_that_leave_may_make_a_majority() -> None:
    machine = leading()
    machine.appended(Position(5, 12))
    machine.flushed(12)
    assert machine.high_watermark is None
    assert machine.voters_changed(Voters(THREE.voters[:1]), at(1)).high_watermark == 12


# --- three of them ------------------------------------------------------------------------


@dataclass
class Cluster:
    """Three replicas, whose disks hold elections, and a network that a seed decides over."""

    random: Random
    now: int = 0
    rafts: dict[int, Raft] = field(default_factory=dict)
    disks: dict[int, Election] = field(default_factory=dict)
    logs: dict[int, list[int]] = field(default_factory=dict)
    """The epoch of each record."""
    committed: list[int] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    trace: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        for id in (1, 2, 3):
            self.disks[id], self.logs[id] = Election(), []
            self.restart(id)

    def restart(self, id: int) -> None:
        machine = Raft(KEYS[id], THREE, self.disks[id], self.end(id), random=self.random)
        self.rafts[id] = machine
        self.carry_out(id, machine.start(at(self.now)))

    def end(self, id: int) -> Position:
        log = self.logs[id]
        return Position(log[-1] if log else 0, len(log))

    def carry_out(self, id: int, outcome: Outcome) -> None:
        machine = self.rafts[id]
        self.trace.append((self.now, id, machine.role, machine.epoch, outcome.high_watermark))
        if outcome.election is not None:
            assert outcome.election.epoch >= self.disks[id].epoch, "an epoch was taken back"
            self.disks[id] = outcome.election
        if outcome.begins_epoch:
            assert self.leaders.setdefault(machine.epoch, id) == id, "an epoch has two leaders"
            self.append(id)
        if outcome.high_watermark is not None:
            self.commit(id, outcome.high_watermark)
        for message in outcome.messages:
            if self.random.random() < 0.8:
                self.deliver(id, message)

    def append(self, id: int) -> None:
        machine = self.rafts[id]
        self.logs[id].append(machine.epoch)
        machine.appended(self.end(id))
        self.carry_out(id, machine.flushed(len(self.logs[id])))

    def commit(self, id: int, high_watermark: int) -> None:
        known = self.logs[id][:high_watermark]
        shorter = min(len(known), len(self.committed))
        assert known[:shorter] == self.committed[:shorter], "what was committed has changed"
        self.committed = max(known, self.committed, key=len)

    def deliver(self, sender: int, message: Message) -> None:
        id, now = message.to.id, at(self.now)
        receiver, asking = self.rafts[id], self.rafts[sender]
        if isinstance(message, BeginEpoch):
            self.carry_out(id, receiver.epoch_began(sender, message.epoch, now))
        elif isinstance(message, EndEpoch):
            outcome = receiver.epoch_ended(sender, message.epoch, message.preferred, now)
            self.carry_out(id, outcome)
        else:
            _, epoch, last, is_pre_vote = message
            outcome = receiver.vote_asked(KEYS[sender], epoch, last, now, is_pre_vote=is_pre_vote)
            self.carry_out(id, outcome)
            if outcome.answer is not None and self.random.random() < 0.8:
                answered = asking.vote_answered(
                    id, outcome.answer, now, asked_epoch=epoch, is_pre_vote=is_pre_vote
                )
                self.carry_out(sender, answered)

    def fetch(self, id: int) -> None:
        """As a follower does: truncates where its log is another one, and takes what it lacks."""
        follower, now = self.rafts[id], at(self.now)
        leader = self.rafts.get(follower.leader_id)
        if leader is None or leader is follower or follower.role is not Role.FOLLOWER:
            return
        theirs, mine = self.logs[leader.me.id], self.logs[id]
        if leader.progress is None or leader.epoch != follower.epoch:
            return
        end = 0
        while end < min(len(mine), len(theirs)) and mine[end] == theirs[end]:
            end += 1
        if end < len(mine):
            del mine[end:]
            follower.truncated(self.end(id))
        self.carry_out(leader.me.id, leader.fetched(KEYS[id], follower.epoch, len(mine), now))
        mine += theirs[len(mine) :]
        follower.appended(self.end(id))
        high_watermark = leader.high_watermark
        outcome = follower.fetch_answered(leader.epoch, leader.me.id, high_watermark, now)
        self.carry_out(id, outcome)

    def step(self) -> None:
        self.now += self.random.randrange(150)
        id = self.random.choice((1, 2, 3))
        event = self.random.random()
        if event < 0.01:
            self.restart(id)
        elif event < 0.015:
            self.carry_out(id, self.rafts[id].resign(at(self.now)))
        elif event < 0.5 and self.rafts[id].role is Role.LEADER:
            self.append(id)
        for each in self.rafts:
            if self.random.random() < 0.4:
                self.fetch(each)
            self.carry_out(each, self.rafts[each].expire(at(self.now)))


def lives(seeds: int, steps: int) -> Iterator[Cluster]:
    for seed in range(seeds):
        cluster = Cluster(Random(seed))
        for _ in range(steps):
            cluster.step()
        yield cluster


def test_three_replicas_agree_whatever_the_network_loses() -> None:
    """What is checked stands in `carry_out` and `commit`."""
    committed = [len(cluster.committed) for cluster in lives(seeds=40, steps=400)]
    assert sum(count > 20 for count in committed) > 30, "they get somewhere"


def test_equal_seeds_are_equal_lives() -> None:
    first, again = ([each.trace for each in lives(seeds=3, steps=200)] for _ in range(2))
    assert first == again
    assert first[0] != first[1]
