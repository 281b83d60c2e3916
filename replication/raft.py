"""KRaft: who leads the quorum, and how far its log is committed.

Pure: an input gives an Outcome, and the shell carries it out in order: `election` is on disk before
anything else of it is done, then the messages and the answer leave. The log itself is the shell's;
here it is only its end. Followers pull: what they ask for tells the leader what they have.
"""

from __future__ import annotations

from enum import Enum

from ottla.protocol.errors import ErrorCode
from ottla.replication.quorum_state import NOBODY, Election
from ottla.replication.raft_messages import (
    Answer,
    AskVote,
    BeginEpoch,
    EndEpoch,
    Outcome,
    Position,
    RaftSettings,
)
from ottla.replication.raft_progress import Progress
from ottla.replication.voters import ReplicaKey, Voters
from ottla.storage.clock import Now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random


class Role(Enum):
    UNATTACHED = "unattached"
    """Knows an epoch and no leader of it."""
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    """Asks whether it would be elected, before it disturbs anybody with a new epoch."""
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"
    """Was the leader of this epoch, and will not be again."""


LEGAL = {
    Role.UNATTACHED: {Role.UNATTACHED, Role.FOLLOWER, Role.PROSPECTIVE},
    Role.FOLLOWER: {Role.UNATTACHED, Role.FOLLOWER, Role.PROSPECTIVE},
    Role.PROSPECTIVE: {Role.UNATTACHED, Role.FOLLOWER, Role.CANDIDATE},
    Role.CANDIDATE: {Role.UNATTACHED, Role.FOLLOWER, Role.PROSPECTIVE, Role.LEADER},
    Role.LEADER: {Role.UNATTACHED, Role.FOLLOWER, Role.RESIGNED},
    Role.RESIGNED: {Role.UNATTACHED, Role.FOLLOWER},
}


class Raft:
    """One replica. `log_end` is kept right by `appended` and `truncated`."""

    __slots__ = (
        "_deadline_ms",
        "_random",
        "_settings",
        "_votes",
        "election",
        "high_watermark",
        "log_end",
        "me",
        "progress",
        "role",
        "voters",
    )

    def __init__(
        self,
        me: ReplicaKey,
        voters: Voters,
        election: Election,
        log_end: Position,
        *,
        random: Random,
        settings: RaftSettings | None = None,
    ) -> None:
        self.me = me
        self.voters = voters
        self.log_end = log_end
        self.role = Role.UNATTACHED
        # A log that was written by a later leader knows better than the file.
        self.election = election if election.epoch >= log_end.epoch else Election(log_end.epoch)
        self.high_watermark: int | None = None
        self.progress: Progress | None = None
        self._random = random
        self._settings = settings or RaftSettings()
        self._votes: dict[int, bool] = {}
        self._deadline_ms: int | None = None

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        return self.election.leader_id

    @property
    def is_voter(self) -> bool:
        return self.voters.find(self.me) is not None

    # time

    def start(self, now: Now) -> Outcome:
        """In the role that it had, but never as the leader: what it had appended may be lost, and
        an epoch and an offset name one record only."""
        outcome = Outcome()
        if self.is_voter and self.voters.majority == 1:
            self._become_prospective(outcome, now)
            return outcome
        if self.leader_id == self.me.id:
            self.role = Role.RESIGNED
        elif self.election.voted is not None and self.election.voted.id == self.me.id:
            self.role = Role.CANDIDATE
            self._ask_votes(outcome, now)
            return outcome
        elif self.leader_id != NOBODY:
            self.role = Role.FOLLOWER
        self._wait(now)
        return outcome

    def deadline_ms(self) -> int | None:
        """When `expire` has something to do, by the monotonic clock."""
        return self._deadline_ms

    def expire(self, now: Now) -> Outcome:
        outcome = Outcome()
        if self._deadline_ms is None or now.monotonic_ms < self._deadline_ms:
            return outcome
        if self.role is Role.LEADER:
            self._look_after_voters(outcome, now)
        elif self.role is Role.RESIGNED:
            self._become_unattached(outcome, self.epoch + 1, now)
        elif self.role is Role.PROSPECTIVE:
            self._give_up(outcome, now)
        elif self.is_voter:
            self._become_prospective(outcome, now)
        return outcome

    def resign(self, now: Now) -> Outcome:
        """Before a clean stop: others need not wait until they miss this leader."""
        outcome = Outcome()
        if self.role is Role.LEADER:
            self._become_resigned(outcome, now)
        return outcome

    def _look_after_voters(self, outcome: Outcome, now: Now) -> None:
        progress = self._leading()
        lost_ms = progress.lost_touch_ms(self._settings.check_quorum_timeout_ms)
        if lost_ms is not None and lost_ms <= now.monotonic_ms:
            self._become_resigned(outcome, now)
            return
        since_ms = now.monotonic_ms - self._settings.fetch_timeout_ms // 2
        outcome.messages += [BeginEpoch(key, self.epoch) for key in progress.silent(since_ms)]
        self._wait(now)

    def _wait(self, now: Now) -> None:
        """Until when this role stays as it is, if nothing happens."""
        settings = self._settings
        if not self.is_voter:
            self._deadline_ms = None
        elif self.role is Role.LEADER:
            lost_ms = self._leading().lost_touch_ms(settings.check_quorum_timeout_ms)
            again_ms = now.monotonic_ms + settings.fetch_timeout_ms // 2
            self._deadline_ms = None if lost_ms is None else min(lost_ms, again_ms)
        elif self.role is Role.FOLLOWER:
            self._deadline_ms = now.monotonic_ms + settings.fetch_timeout_ms
        else:
            # Not all at once, or they take each other's votes for ever.
            wait_ms = settings.election_timeout_ms
            self._deadline_ms = now.monotonic_ms + wait_ms + self._random.randrange(wait_ms)

    # roles

    def _become(self, role: Role) -> None:
        if role not in LEGAL[self.role]:
            raise ValueError(f"a {self.role.value} replica cannot become {role.value}")
        self.role = role
        self._votes = {}
        if role is not Role.LEADER:
            self.progress = None

    def _elect(self, outcome: Outcome, election: Election) -> None:
        if election != self.election:
            self.election = outcome.election = election

    def _become_unattached(self, outcome: Outcome, epoch: int, now: Now) -> None:
        self._become(Role.UNATTACHED)
        if epoch > self.epoch:
            self._elect(outcome, Election(epoch))
        self._wait(now)

    def _become_follower(self, outcome: Outcome, epoch: int, leader_id: int, now: Now) -> None:
        self._become(Role.FOLLOWER)
        voted = self.election.voted if epoch == self.epoch else None
        self._elect(outcome, Election(epoch, leader_id, voted))
        self._wait(now)

    def _become_prospective(self, outcome: Outcome, now: Now) -> None:
        self._become(Role.PROSPECTIVE)
        self._ask_votes(outcome, now)

    def _become_candidate(self, outcome: Outcome, now: Now) -> None:
        self._become(Role.CANDIDATE)
        self._elect(outcome, Election(self.epoch + 1, NOBODY, self.me))
        self._ask_votes(outcome, now)

    def _become_leader(self, outcome: Outcome, now: Now) -> None:
        self._become(Role.LEADER)
        self._elect(outcome, Election(self.epoch, self.me.id))
        self.progress = Progress(
            self.me, self.voters, epoch_start_offset=self.log_end.offset, now=now
        )
        outcome.begins_epoch = True
        outcome.messages += [
            BeginEpoch(voter.key, self.epoch) for voter in self.voters.others(self.me)
        ]
        self._wait(now)

    def _become_resigned(self, outcome: Outcome, now: Now) -> None:
        preferred = tuple(self._leading().by_progress())
        self._become(Role.RESIGNED)
        outcome.messages += [EndEpoch(key, self.epoch, preferred) for key in preferred]
        self._wait(now)

    def _leading(self) -> Progress:
        if self.progress is None:
            raise ValueError(f"a {self.role.value} replica does not lead")
        return self.progress

    # votes

    def _ask_votes(self, outcome: Outcome, now: Now) -> None:
        self._votes = {self.me.id: True}
        if not self._count_votes(outcome, now):
            is_pre_vote = self.role is Role.PROSPECTIVE
            outcome.messages += [
                AskVote(voter.key, self.epoch, self.log_end, is_pre_vote)
                for voter in self.voters.others(self.me)
            ]
            self._wait(now)

    def _count_votes(self, outcome: Outcome, now: Now) -> bool:
        """Whether the election is decided."""
        granted = sum(self._votes.values())
        if granted >= self.voters.majority:
            if self.role is Role.PROSPECTIVE:
                self._become_candidate(outcome, now)
            else:
                self._become_leader(outcome, now)
            return True
        refused = len(self._votes) - granted
        if refused > len(self.voters.voters) - self.voters.majority:
            if self.role is Role.PROSPECTIVE:
                self._give_up(outcome, now)
            return True
        return False

    def _give_up(self, outcome: Outcome, now: Now) -> None:
        """Nobody was disturbed: back to the leader that was known, if one was."""
        if self.leader_id == NOBODY:
            self._become_unattached(outcome, self.epoch, now)
        else:
            self._become_follower(outcome, self.epoch, self.leader_id, now)

    def vote_asked(
        self,
        candidate: ReplicaKey,
        epoch: int,
        last: Position,
        now: Now,
        *,
        is_pre_vote: bool,
        to: ReplicaKey | None = None,
    ) -> Outcome:
        """Another replica wants this one's vote. `to` is whom it means, where it says so."""
        outcome = Outcome()
        is_too_late = last.epoch > epoch if is_pre_vote else last.epoch >= epoch
        if min(last) < 0 or candidate.id < 0 or is_too_late:
            return self._answer(outcome, ErrorCode.INVALID_REQUEST)
        if epoch < self.epoch:
            return self._answer(outcome, ErrorCode.FENCED_LEADER_EPOCH)
        if epoch > self.epoch:
            self._become_unattached(outcome, epoch, now)
        if to is not None and not _means(to, self.me):
            return self._answer(outcome, ErrorCode.INVALID_VOTER_KEY)
        is_granted = self._would_vote(candidate, last, is_pre_vote=is_pre_vote)
        if is_granted and not is_pre_vote and self.election.voted is None:
            self._elect(outcome, self.election._replace(voted=candidate))
            self._wait(now)
        return self._answer(outcome, ErrorCode.NONE, is_vote_granted=is_granted)

    def _would_vote(self, candidate: ReplicaKey, last: Position, *, is_pre_vote: bool) -> bool:
        knows_enough = last >= self.log_end
        if self.role is Role.LEADER:
            return False
        if is_pre_vote:
            # One that hears of its leader needs no other.
            return knows_enough and self.role is not Role.FOLLOWER
        if self.election.voted is not None:
            return self.election.voted == candidate
        return knows_enough and self.leader_id == NOBODY and self.role is not Role.RESIGNED

    def vote_answered(
        self, by: int, answer: Answer, now: Now, *, asked_epoch: int, is_pre_vote: bool
    ) -> Outcome:
        outcome = Outcome()
        if self._learn(outcome, answer.epoch, answer.leader_id, now) or answer.error:
            return outcome
        asking = Role.PROSPECTIVE if is_pre_vote else Role.CANDIDATE
        if self.role is asking and asked_epoch == self.epoch and by in self.voters.ids:
            self._votes[by] = answer.is_vote_granted
            self._count_votes(outcome, now)
        return outcome

    def _answer(
        self, outcome: Outcome, error: ErrorCode, *, is_vote_granted: bool = False
    ) -> Outcome:
        outcome.answer = Answer(error, self.epoch, self.leader_id, is_vote_granted)
        return outcome

    # leaders

    def _learn(self, outcome: Outcome, epoch: int, leader_id: int, now: Now) -> bool:
        """What every message tells: an epoch, and its leader if the sender knows. Whether that
        was new."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id == NOBODY):
            return False
        if epoch == self.epoch and self.leader_id != NOBODY:
            if leader_id != self.leader_id:
                reason = f"epoch {epoch} has two leaders: {self.leader_id} and {leader_id}"
                raise ValueError(reason)
            if self.role is not Role.PROSPECTIVE:
                return False
        if leader_id == NOBODY:
            self._become_unattached(outcome, epoch, now)
        else:
            self._become_follower(outcome, epoch, leader_id, now)
        return True

    def epoch_began(self, leader_id: int, epoch: int, now: Now) -> Outcome:
        """A leader says that it is one."""
        outcome = Outcome()
        if epoch < self.epoch:
            return self._answer(outcome, ErrorCode.FENCED_LEADER_EPOCH)
        if leader_id < 0 or (epoch == self.epoch and self.leader_id not in (NOBODY, leader_id)):
            return self._answer(outcome, ErrorCode.INVALID_REQUEST)
        self._learn(outcome, epoch, leader_id, now)
        return self._answer(outcome, ErrorCode.NONE)

    def epoch_ended(
        self, leader_id: int, epoch: int, preferred: tuple[ReplicaKey, ...], now: Now
    ) -> Outcome:
        """The leader resigns; who has most of its log goes first."""
        outcome = Outcome()
        if epoch < self.epoch:
            return self._answer(outcome, ErrorCode.FENCED_LEADER_EPOCH)
        self._learn(outcome, epoch, leader_id, now)
        if self.role is Role.FOLLOWER and self.leader_id == leader_id and self.is_voter:
            self._deadline_ms = now.monotonic_ms + self._backoff_ms(preferred)
        return self._answer(outcome, ErrorCode.NONE)

    def _backoff_ms(self, preferred: tuple[ReplicaKey, ...]) -> int:
        ids = [key.id for key in preferred]
        longest_ms = self._settings.election_backoff_max_ms
        if self.me.id not in ids:
            return longest_ms
        place = ids.index(self.me.id)
        return 0 if place == 0 else longest_ms >> max(0, len(ids) - 1 - place)

    # the log

    def appended(self, end: Position) -> None:
        self.log_end = end

    def truncated(self, end: Position) -> None:
        if self.high_watermark is not None and end.offset < self.high_watermark:
            raise ValueError(f"offset {end.offset} is committed and cannot be truncated")
        self.log_end = end

    def flushed(self, end_offset: int) -> Outcome:
        """The leader's own log is on disk up to here."""
        outcome = Outcome()
        if self._leading().flushed(end_offset):
            self._show_high_watermark(outcome)
        return outcome

    def fetched(self, key: ReplicaKey, epoch: int, offset: int, now: Now) -> Outcome:
        """Another replica asks this leader for what comes next in its log."""
        outcome = Outcome()
        if epoch < self.epoch:
            return self._answer(outcome, ErrorCode.FENCED_LEADER_EPOCH)
        if epoch > self.epoch:
            return self._answer(outcome, ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.progress is None:
            return self._answer(outcome, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        end_offset = self.log_end.offset
        if self.progress.fetched(key, offset, leader_end_offset=end_offset, now=now):
            self._show_high_watermark(outcome)
        return self._answer(outcome, ErrorCode.NONE)

    def _show_high_watermark(self, outcome: Outcome) -> None:
        self.high_watermark = outcome.high_watermark = self._leading().high_watermark

    def fetch_answered(
        self, epoch: int, leader_id: int, high_watermark: int | None, now: Now
    ) -> Outcome:
        """The leader has sent what this follower asked for, and it is in the log."""
        outcome = Outcome()
        if self._learn(outcome, epoch, leader_id, now) or epoch < self.epoch:
            return outcome
        if self.role is Role.FOLLOWER:
            self._wait(now)
            reached = min(high_watermark or 0, self.log_end.offset)
            if reached > (self.high_watermark or 0):
                self.high_watermark = outcome.high_watermark = reached
        return outcome

    def voters_changed(self, voters: Voters, now: Now) -> Outcome:
        """The newest voters that the log names, committed or not."""
        outcome = Outcome()
        self.voters = voters
        if self.progress is not None and self.progress.voters_changed(voters, now):
            self._show_high_watermark(outcome)
        return outcome


def _means(key: ReplicaKey, me: ReplicaKey) -> bool:
    return key.id == me.id and (not any(key.directory_id) or key.directory_id == me.directory_id)
