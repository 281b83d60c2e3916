"""One classic group: its members, its generation, and what state it is in.

Pure: knows no request and no record. What members wait for is a token of the shell; `groups.py`
decides, and tells this what has become of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ottla.coordinator.outcome import Token
from ottla.protocol.errors import ErrorCode, KafkaError

CONSUMER = "consumer"
"""The protocol type of consumers, whose metadata the coordinator can read."""
UNKNOWN_MEMBER = ""

Protocols = Sequence[tuple[str, bytes]]


class State(Enum):
    """The values are Kafka's names, which people see in its tools."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


LEGAL = {
    State.EMPTY: {State.PREPARING_REBALANCE, State.DEAD},
    State.PREPARING_REBALANCE: {State.COMPLETING_REBALANCE, State.EMPTY, State.DEAD},
    State.COMPLETING_REBALANCE: {State.STABLE, State.PREPARING_REBALANCE, State.DEAD},
    State.STABLE: {State.PREPARING_REBALANCE, State.DEAD},
    State.DEAD: {State.DEAD},
}
_MAY_REBALANCE = frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE})


class Member:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "id",
        "is_new",
        "join",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = list(protocols)
        self.assignment = assignment
        self.join: Token | None = None
        """Its JoinGroup that waits."""
        self.sync: Token | None = None
        """Its SyncGroup that waits."""
        self.is_new = False
        """It does not know its id yet, and cannot send heartbeats."""

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise ValueError(f"member {self.id} has no protocol {protocol}")

    def vote(self, candidates: set[str]) -> str:
        """The first of its protocols that all members have."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise ValueError(f"member {self.id} supports none of the candidates")

    def matches(self, protocols: Protocols) -> bool:
        return self.protocols == list(protocols)


class ClassicGroup:
    __slots__ = (
        "changed_wall_ms",
        "generation",
        "has_new_member",
        "id",
        "leader",
        "members",
        "pending",
        "pending_sync",
        "previous_state",
        "protocol",
        "protocol_type",
        "state",
        "static_members",
        "subscribed_topics",
        "supported",
    )

    def __init__(self, group_id: str, *, wall_ms: int, state: State = State.EMPTY) -> None:
        self.id = group_id
        self.state = state
        self.previous_state = State.DEAD
        self.changed_wall_ms = wall_ms
        """When it came into this state; -1 if that is not known."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending: dict[str, None] = {}
        """Ids that were given away, and have not joined yet."""
        self.pending_sync: dict[str, None] = {}
        """Members of this generation that have not asked for their assignment yet."""
        self.has_new_member = False
        """Somebody came while the first rebalance was waiting for more."""
        self.supported: dict[str, int] = {}
        """How many members have each protocol."""
        self.subscribed_topics: frozenset[str] | None = None
        """Of consumers, if what they say can be read."""

    # states

    def become(self, state: State, *, wall_ms: int) -> None:
        if state not in LEGAL[self.state]:
            raise ValueError(f"group {self.id} cannot go from {self.state} to {state}")
        self.previous_state = self.state
        self.state = state
        self.changed_wall_ms = wall_ms

    @property
    def may_rebalance(self) -> bool:
        return self.state in _MAY_REBALANCE

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(each.join is not None for each in self.members.values())

    @property
    def waiting_count(self) -> int:
        """Members whose JoinGroup waits."""
        return sum(each.join is not None for each in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    # members

    def add(self, member: Member, protocol_type: str) -> None:
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count(member, 1)
        self.pending.pop(member.id, None)

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member, -1)
        member.protocols = list(protocols)
        self._count(member, 1)

    def _count(self, member: Member, change: int) -> None:
        for name in dict.fromkeys(name for name, _ in member.protocols):
            count = self.supported.get(name, 0) + change
            if count:
                self.supported[name] = count
            else:
                self.supported.pop(name, None)

    def remove(self, member_id: str) -> Member | None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        return member

    def replace_static(self, group_instance_id: str, new_member_id: str) -> tuple[Member, Member]:
        """A static member comes back under a new id: the old member, and the new one."""
        old = self.members.pop(self.static_members[group_instance_id])
        new = Member(
            new_member_id,
            group_instance_id=group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_member_id] = new
        self.static_members[group_instance_id] = new_member_id
        if self.leader == old.id:
            self.leader = new_member_id
        if self.pending_sync.pop(old.id, False) is None:
            self.pending_sync[new_member_id] = None
        return old, new

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it has joined, else takes the first that has; False if none has."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is not None:
            return True
        for member in self.members.values():
            if member.join is not None:
                self.leader = member.id
                return True
        return False

    # protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        return any(self.supported.get(name) == len(self.members) for name, _ in protocols)

    def selected_protocol(self) -> str:
        """Each member votes for the first of its protocols that all have."""
        count = len(self.members)
        candidates = {name for name, members in self.supported.items() if members == count}
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = member.vote(candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])
