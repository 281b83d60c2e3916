"""What goes in and out of the quorum's machine: positions, messages to others, outcomes.

Pure. Messages are named by what they say; the shell makes requests of the wire of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.replication.quorum_state import Election
from ottla.replication.voters import ReplicaKey


class Position(NamedTuple):
    """Where a log ends. Of two logs the one with the later epoch knows more."""

    epoch: int
    offset: int


class AskVote(NamedTuple):
    to: ReplicaKey
    epoch: int
    last: Position
    is_pre_vote: bool


class BeginEpoch(NamedTuple):
    to: ReplicaKey
    epoch: int


class EndEpoch(NamedTuple):
    to: ReplicaKey
    epoch: int
    preferred: tuple[ReplicaKey, ...]


Message = AskVote | BeginEpoch | EndEpoch


class Answer(NamedTuple):
    error: ErrorCode
    epoch: int
    leader_id: int
    is_vote_granted: bool = False


@dataclass(slots=True)
class Outcome:
    election: Election | None = None
    """To be on disk first."""
    begins_epoch: bool = False
    """This replica leads now: the log gets a leader change, and it is flushed."""
    high_watermark: int | None = None
    """It rose to here."""
    messages: list[Message] = field(default_factory=list)
    answer: Answer | None = None


class RaftSettings(NamedTuple):
    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000

    @property
    def check_quorum_timeout_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2
