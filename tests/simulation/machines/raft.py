"""A quorum of raft machines over a network that delays, loses and doubles, with crashes.

A log is the list of the epochs of its records. What survives a crash is what was flushed, and the
election that was written. Checked: an epoch has one leader, and what was committed stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.replication.quorum_state import Election
from ottla.replication.raft import Raft, Role
from ottla.replication.raft_messages import AskVote, BeginEpoch, Outcome, Position
from ottla.replication.voters import ReplicaKey, static_voters
from ottla.storage.clock import Now

STEPS = 400
Add = Callable[..., None]


class Broken(AssertionError):
    """The quorum contradicts itself."""


class Replica:
    """What a node has: its log, what of it is flushed, and the machine while the node is up."""

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.log: list[int] = []
        self.flushed = 0
        self.election = Election()
        self.raft: Raft | None = None
        self.life = 0

    @property
    def end(self) -> Position:
        return Position(self.log[-1] if self.log else 0, len(self.log))


class Quorum:
    def __init__(self, seed: int, add: Add) -> None:
        self._random = Random(f"raft {seed}")
        self._add = add
        self.now_ms = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        count = self._random.choice((1, 3, 3, 5))
        self._replicas = [Replica(ReplicaKey(number)) for number in range(1, count + 1)]
        self._loss = self._random.choice((0.0, 0.05, 0.3))
        self._leaders: dict[int, int] = {}
        self._committed: list[int] = []

    def run(self) -> None:
        for replica in self._replicas:
            self._start(replica)
        for _ in range(STEPS):
            if not self._queue:
                break
            self.now_ms, _, call = heapq.heappop(self._queue)
            call()
            if self._random.random() < 0.02:
                self._crash(self._random.choice(self._replicas))

    # time

    def _later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._serial, call))

    def _now(self) -> Now:
        return Now(self.now_ms, self.now_ms)

    def _arm(self, replica: Replica) -> None:
        raft, life = replica.raft, replica.life
        deadline_ms = None if raft is None else raft.deadline_ms()
        if raft is None or deadline_ms is None:
            return

        def expire() -> None:
            if replica.life == life and raft.deadline_ms() == deadline_ms:
                self._done(replica, raft.expire(self._now()))

        self._later(max(0, deadline_ms - self.now_ms), expire)

    # lives

    def _start(self, replica: Replica) -> None:
        replica.life += 1
        voters = static_voters(each.key.id for each in self._replicas)
        raft = replica.raft = Raft(
            replica.key, voters, replica.election, replica.end, random=self._random
        )
        self._done(replica, raft.start(self._now()))
        self._poll(replica, replica.life)

    def _crash(self, replica: Replica) -> None:
        if replica.raft is None:
            return
        self._add("crash", replica.key.id)
        replica.raft = None
        replica.life += 1
        kept = self._random.randint(replica.flushed, len(replica.log))
        del replica.log[kept:]
        replica.flushed = min(replica.flushed, kept)
        self._later(self._random.randrange(3_000), lambda: self._start(replica))

    # outcomes

    def _done(self, replica: Replica, outcome: Outcome) -> None:
        raft = replica.raft
        if raft is None:
            raise Broken("a dead replica did something")
        self._add(self.now_ms, replica.key.id, raft.role.value, outcome)
        if outcome.election is not None:
            replica.election = outcome.election
        if outcome.begins_epoch:
            self._lead(replica, raft)
        if outcome.high_watermark is not None and raft.role is Role.LEADER:
            self._commit(replica, outcome.high_watermark)
        for message in outcome.messages:
            self._send(replica, message)
        self._arm(replica)

    def _lead(self, replica: Replica, raft: Raft) -> None:
        if self._leaders.setdefault(raft.epoch, replica.key.id) != replica.key.id:
            raise Broken(f"epoch {raft.epoch} has two leaders")
        if replica.log[: len(self._committed)] != self._committed:
            raise Broken(f"{replica.key.id} leads without what was committed")
        self._append(replica, raft)

    def _append(self, replica: Replica, raft: Raft) -> None:
        replica.log.append(raft.epoch)
        raft.appended(replica.end)
        life, end = replica.life, len(replica.log)

        def flushed() -> None:
            is_news = replica.life == life and replica.flushed < end <= len(replica.log)
            if is_news and raft.role is Role.LEADER:
                replica.flushed = end
                self._done(replica, raft.flushed(end))

        self._later(self._random.randrange(20), flushed)

    def _commit(self, replica: Replica, high_watermark: int) -> None:
        committed = replica.log[:high_watermark]
        shorter = min(len(committed), len(self._committed))
        if committed[:shorter] != self._committed[:shorter]:
            raise Broken("what was committed is another now")
        if len(committed) > shorter:
            self._committed = committed

    # messages

    def _carry(self, to: int, call: Callable[[Replica, Raft], None]) -> None:
        """It comes late, twice or not at all."""
        replica = self._replicas[to - 1]

        def arrive() -> None:
            if replica.raft is not None:
                call(replica, replica.raft)

        copies = 2 if self._random.random() < 0.02 else 1
        for _ in range(copies):
            if self._random.random() >= self._loss:
                self._later(self._random.randrange(1, 60), arrive)

    def _send(self, sender: Replica, message: Any) -> None:
        def asked(replica: Replica, raft: Raft) -> None:
            now = self._now()
            if isinstance(message, AskVote):
                outcome = raft.vote_asked(
                    sender.key, message.epoch, message.last, now, is_pre_vote=message.is_pre_vote
                )
            elif isinstance(message, BeginEpoch):
                outcome = raft.epoch_began(sender.key.id, message.epoch, now)
            else:
                outcome = raft.epoch_ended(sender.key.id, message.epoch, message.preferred, now)
            self._done(replica, outcome)
            if isinstance(message, AskVote):
                self._carry(sender.key.id, lambda _, asker: voted(asker, outcome))

        def voted(asker: Raft, outcome: Outcome) -> None:
            if outcome.answer is not None and isinstance(message, AskVote):
                told = asker.vote_answered(
                    message.to.id,
                    outcome.answer,
                    self._now(),
                    asked_epoch=message.epoch,
                    is_pre_vote=message.is_pre_vote,
                )
                self._done(sender, told)

        self._carry(message.to.id, asked)

    # the log

    def _poll(self, replica: Replica, life: int) -> None:
        """A leader appends now and then, a follower asks for what comes next."""

        def again() -> None:
            raft = replica.raft
            if replica.life != life or raft is None:
                return
            if raft.role is Role.LEADER:
                self._append(replica, raft)
            elif raft.role is Role.FOLLOWER:
                self._fetch(replica, raft)
            self._poll(replica, life)

        self._later(self._random.randrange(50, 400), again)

    def _fetch(self, replica: Replica, raft: Raft) -> None:
        fetch = Fetch(replica, replica.life, raft.epoch, replica.end)
        self._carry(raft.leader_id, lambda leader, leading: self._serve(fetch, leader, leading))

    def _serve(self, fetch: Fetch, leader: Replica, leading: Raft) -> None:
        to, offset = fetch.replica.key.id, fetch.end.offset
        leads = leading.role is Role.LEADER and leading.epoch == fetch.epoch
        if leads and not _agree(leader.log, fetch.end):
            self._carry(to, lambda _, follower: self._diverges(fetch, follower))
            return
        outcome = leading.fetched(fetch.replica.key, fetch.epoch, offset, self._now())
        self._done(leader, outcome)
        if outcome.answer is not None and outcome.answer.error is ErrorCode.NONE:
            records, high_watermark = leader.log[offset:], leading.high_watermark
            self._carry(to, lambda _, f: self._answered(fetch, f, records, high_watermark))

    def _diverges(self, fetch: Fetch, follower: Raft) -> None:
        replica = fetch.replica
        if fetch.is_current(follower):
            last = replica.log[-1]
            while replica.log and replica.log[-1] == last:
                replica.log.pop()
            replica.flushed = min(replica.flushed, len(replica.log))
            follower.truncated(replica.end)

    def _answered(
        self, fetch: Fetch, follower: Raft, records: list[int], high_watermark: int | None
    ) -> None:
        if fetch.is_current(follower) and follower.role is Role.FOLLOWER:
            replica = fetch.replica
            replica.log += records
            replica.flushed = len(replica.log)
            follower.appended(replica.end)
            leader_id, now = follower.leader_id, self._now()
            outcome = follower.fetch_answered(fetch.epoch, leader_id, high_watermark, now)
            self._done(replica, outcome)


class Fetch(NamedTuple):
    """What a follower has asked, and in which life."""

    replica: Replica
    life: int
    epoch: int
    end: Position

    def is_current(self, follower: Raft) -> bool:
        replica = self.replica
        return (replica.life, replica.end, follower.epoch) == (self.life, self.end, self.epoch)


def _agree(log: list[int], end: Position) -> bool:
    """Whether a log that ends there is a part of this one."""
    if end.offset > len(log):
        return False
    return end.offset == 0 or log[end.offset - 1] == end.epoch


def play(seed: int, add: Add) -> None:
    Quorum(seed, add).run()
