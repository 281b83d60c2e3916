"""Classic groups: members come and go, and agree on generations.

Pure: knows neither the log nor sockets. A request returns records and replies; `replay` alone
makes assignments count. Members that wait are answered when their round is complete: a round goes
from PREPARING (all join again) over COMPLETING (the leader assigns) to STABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.coordinator.classic_group import (
    CONSUMER,
    UNKNOWN_MEMBER,
    ClassicGroup,
    Member,
    State,
)
from ottla.coordinator.deadlines import Deadlines, Key
from ottla.coordinator.group_answers import assigned, join_error, left, left_error, sync_error
from ottla.coordinator.joining import Client, Joining
from ottla.coordinator.outcome import Now, Outcome, Token
from ottla.coordinator.records import Decoded, group_record
from ottla.coordinator.subscriptions import subscribed_topics
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from ottla.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

JOIN, SYNC, SESSION = "join", "sync", "session"
# From this version on a request names the members that leave.
_MEMBERS_VERSION = 3


@dataclass(slots=True, frozen=True)
class GroupSettings:
    """By Kafka's names: group.min.session.timeout.ms and so on."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 5 * 60 * 1000
    record_bytes_max: int = (1 << 20) - 4096
    """More does not fit into a batch of the offsets topic."""


class _InitialDelay(NamedTuple):
    delay_ms: int
    remaining_ms: int


class Groups:
    def __init__(self, settings: Callable[[], GroupSettings], random: Random) -> None:
        self.settings = settings
        self.random = random
        self.by_id: dict[str, ClassicGroup] = {}
        self.deadlines = Deadlines()
        self._initial: dict[str, _InitialDelay] = {}

    # ---- joining

    def join(self, request: JoinGroupRequest, client: Client, now: Now, token: Token) -> Outcome:
        outcome = Outcome()
        code = self._why_no_join(request)
        if code is not None:
            return outcome.reply(token, join_error(code, request.member_id))
        is_new = request.group_id not in self.by_id
        if is_new and request.member_id != UNKNOWN_MEMBER:
            error = join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return outcome.reply(token, error)
        group = self._group(request.group_id, now)
        if not self._accepts(group, request.member_id):
            member = group.remove(request.member_id)
            if member is not None:
                self.forget_session(group, member.id)
            return outcome.reply(token, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
        Joining(self, group, request, client, now, token, outcome).run()
        if is_new and not outcome.records and request.group_id in self.by_id:
            # The log must know of a group before anybody waits for it.
            outcome.records.append(group_record(group.id, _value_of_new(group)))
        return outcome

    def _why_no_join(self, request: JoinGroupRequest) -> ErrorCode | None:
        settings = self.settings()
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return None

    def _group(self, group_id: str, now: Now) -> ClassicGroup:
        group = self.by_id.get(group_id)
        if group is None:
            group = self.by_id[group_id] = ClassicGroup(group_id, wall_ms=now.wall_ms)
        return group

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        size_max = self.settings().max_size
        member = group.members.get(member_id)
        if group.state in (State.EMPTY, State.DEAD):
            return True
        if group.state is State.PREPARING_REBALANCE:
            # Who waits already stays; the last to come again are those who go.
            is_waiting = member is not None and member.join is not None
            return is_waiting or group.waiting_count < size_max
        return member is not None or len(group.members) < size_max

    # ---- a round

    def rebalance(self, group: ClassicGroup, now: Now, outcome: Outcome) -> None:
        """Something has changed: begin a round, or see whether one can be completed by now."""
        if group.may_rebalance:
            self._prepare(group, now, outcome)
        else:
            self._maybe_complete(group, now, outcome)

    def _prepare(self, group: ClassicGroup, now: Now, outcome: Outcome) -> None:
        if group.state is State.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = b""
            self._answer_syncs(group, now, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self.deadlines.drop((SYNC, group.id))
        is_first = group.state is State.EMPTY
        group.become(State.PREPARING_REBALANCE, wall_ms=now.wall_ms)
        if is_first:
            # A new group: others will come in a moment.
            delay_ms = self.settings().initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._initial[group.id] = _InitialDelay(delay_ms, remaining_ms)
            self.deadlines.set((JOIN, group.id), now.monotonic_ms + delay_ms)
            if not delay_ms:
                self._initial_delay_is_over(group, now, outcome)
        elif group.has_all_joined:
            self._complete(group, now, outcome)
        else:
            due_ms = now.monotonic_ms + group.rebalance_timeout_ms
            self.deadlines.set((JOIN, group.id), due_ms)

    def _maybe_complete(self, group: ClassicGroup, now: Now, outcome: Outcome) -> None:
        if (
            group.state is State.PREPARING_REBALANCE
            and group.previous_state is not State.EMPTY
            and group.has_all_joined
        ):
            self._complete(group, now, outcome)

    def _initial_delay_is_over(self, group: ClassicGroup, now: Now, outcome: Outcome) -> None:
        delay_ms, remaining_ms = self._initial.pop(group.id)
        if not group.has_new_member or not remaining_ms:
            self._complete(group, now, outcome)
            return
        # Somebody came meanwhile, so more may follow.
        group.has_new_member = False
        next_ms = min(self.settings().initial_rebalance_delay_ms, remaining_ms)
        self._initial[group.id] = _InitialDelay(next_ms, max(remaining_ms - delay_ms, 0))
        self.deadlines.set((JOIN, group.id), now.monotonic_ms + next_ms)

    def _complete(self, group: ClassicGroup, now: Now, outcome: Outcome) -> None:
        """All that come have come: a new generation."""
        self.deadlines.drop((JOIN, group.id))
        self._initial.pop(group.id, None)
        for member in list(group.members.values()):
            if member.join is None and member.group_instance_id is None:
                self.forget_session(group, member.id)
                group.remove(member.id)
        if group.members and not group.elect_joined_leader():
            # Static members only, and none of them has come: their sessions decide.
            due_ms = now.monotonic_ms + group.rebalance_timeout_ms
            self.deadlines.set((JOIN, group.id), due_ms)
            return
        group.generation += 1
        group.pending_sync.clear()
        if not group.members:
            group.protocol = None
            self._know_subscriptions(group)
            group.become(State.EMPTY, wall_ms=now.wall_ms)
            outcome.records.append(group_record(group.id, self._value(group, {})))
            return
        group.protocol = group.selected_protocol()
        self._know_subscriptions(group)
        group.become(State.COMPLETING_REBALANCE, wall_ms=now.wall_ms)
        for member in group.members.values():
            if member.join is not None:
                outcome.reply(member.join, self.joined(group, member))
                member.join = None
            self.session(group, member, now)
            member.is_new = False
            group.pending_sync[member.id] = None
        self.deadlines.set((SYNC, group.id), now.monotonic_ms + group.rebalance_timeout_ms)

    def _know_subscriptions(self, group: ClassicGroup) -> None:
        group.subscribed_topics = None
        if group.protocol_type != CONSUMER:
            return
        if not group.members:
            group.subscribed_topics = frozenset()
        elif group.protocol is not None:
            group.subscribed_topics = subscribed_topics(
                member.metadata(group.protocol) for member in group.members.values()
            )

    def joined(
        self, group: ClassicGroup, member: Member, *, skips_assignment: bool = False
    ) -> JoinGroupResponse:
        """What a member of this generation is told; its leader learns of all."""
        members = []
        if group.leader == member.id:
            members = [
                JoinGroupResponseMember(
                    member_id=each.id,
                    group_instance_id=each.group_instance_id,
                    metadata=each.metadata(group.protocol),
                )
                for each in group.members.values()
            ]
        return JoinGroupResponse(
            error_code=0,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            skip_assignment=skips_assignment,
            member_id=member.id,
            members=members,
        )

    # ---- sessions

    def session(
        self, group: ClassicGroup, member: Member, now: Now, timeout_ms: int | None = None
    ) -> None:
        """The member lives, and may be silent so long from now on."""
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.deadlines.set((SESSION, group.id, member.id), now.monotonic_ms + timeout_ms)

    def pending_session(
        self, group: ClassicGroup, member_id: str, now: Now, timeout_ms: int
    ) -> None:
        self.deadlines.set((SESSION, group.id, member_id), now.monotonic_ms + timeout_ms)

    def forget_session(self, group: ClassicGroup, member_id: str) -> None:
        self.deadlines.drop((SESSION, group.id, member_id))

    def _session_over(self, group: ClassicGroup, member_id: str, now: Now) -> Outcome:
        outcome = Outcome()
        if member_id in group.pending:
            group.remove(member_id)
            if group.state is State.PREPARING_REBALANCE and group.has_all_joined:
                self._complete(group, now, outcome)
            return outcome
        member = group.members.get(member_id)
        if member is None:
            return outcome
        is_busy = member.join is not None or member.sync is not None
        if is_busy and not member.is_new:
            # It waits for others, and cannot speak: its session goes on.
            self.session(group, member, now)
            return outcome
        self._remove(group, member, now, outcome)
        return outcome

    def _remove(self, group: ClassicGroup, member: Member, now: Now, outcome: Outcome) -> None:
        self._let_down(member, outcome)
        self.forget_session(group, member.id)
        group.remove(member.id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.rebalance(group, now, outcome)
        elif group.state is State.PREPARING_REBALANCE and group.has_all_joined:
            self._complete(group, now, outcome)

    def _let_down(self, member: Member, outcome: Outcome) -> None:
        """A member goes, and what it waits for it does not get."""
        if member.join is not None:
            error = join_error(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER)
            outcome.reply(member.join, error)
            member.join = None
        if member.sync is not None:
            outcome.reply(member.sync, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
            member.sync = None

    # ---- syncing

    def sync(self, request: SyncGroupRequest, now: Now, token: Token) -> Outcome:
        outcome = Outcome()
        if not request.group_id:
            return outcome.reply(token, sync_error(ErrorCode.INVALID_GROUP_ID))
        group = self.by_id.get(request.group_id)
        if group is None or group.state is State.EMPTY:
            return outcome.reply(token, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        try:
            self._check_sync(group, request)
        except KafkaError as error:
            return outcome.reply(token, sync_error(error.code))
        member = group.members[request.member_id]
        group.pending_sync.pop(member.id, None)
        if group.state is State.STABLE:
            return outcome.reply(token, assigned(group, member.assignment))
        if member.sync is not None:
            # The client asks a second time: the first has lost its answer.
            outcome.reply(member.sync, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync = token
        if group.leader == member.id:
            self._assign(group, request, now, outcome)
        return outcome

    def _check_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        if group.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        is_other_type = (
            request.protocol_type is not None and request.protocol_type != group.protocol_type
        )
        is_other_name = (
            request.protocol_name is not None and request.protocol_name != group.protocol
        )
        if is_other_type or is_other_name:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is State.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, now: Now, outcome: Outcome
    ) -> None:
        """What the leader has decided counts once the log has it; `replay` hands it out."""
        told = {each.member_id: bytes(each.assignment) for each in request.assignments}
        assignments = {member_id: told.get(member_id, b"") for member_id in group.members}
        record = group_record(group.id, self._value(group, assignments))
        if len(record.value or b"") > self.settings().record_bytes_max:
            for member in group.members.values():
                member.assignment = b""
            self._answer_syncs(group, now, outcome, ErrorCode.UNKNOWN_SERVER_ERROR)
            self.rebalance(group, now, outcome)
            return
        outcome.records.append(record)
        for member in group.members.values():
            if member.sync is not None:
                outcome.reply(member.sync, assigned(group, assignments[member.id]))
                member.sync = None
                self.session(group, member, now)

    def _answer_syncs(
        self, group: ClassicGroup, now: Now, outcome: Outcome, code: ErrorCode
    ) -> None:
        for member in group.members.values():
            if member.sync is not None:
                outcome.reply(member.sync, sync_error(code))
                member.sync = None
                self.session(group, member, now)

    # ---- heartbeats and leaving

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> HeartbeatResponse:
        """Changes no hard state, and needs no record."""
        if not request.group_id:
            return HeartbeatResponse(error_code=int(ErrorCode.INVALID_GROUP_ID))
        group = self.by_id.get(request.group_id)
        if group is None:
            return HeartbeatResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))
        try:
            group.check_member(request.member_id, request.group_instance_id)
            if request.generation_id != group.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        except KafkaError as error:
            return HeartbeatResponse(error_code=int(error.code))
        self.session(group, group.members[request.member_id], now)
        if group.state is State.PREPARING_REBALANCE:
            return HeartbeatResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS))
        return HeartbeatResponse(error_code=0)

    def leave(self, request: LeaveGroupRequest, version: int, now: Now, token: Token) -> Outcome:
        outcome = Outcome()
        if not request.group_id:
            return outcome.reply(token, left_error(ErrorCode.INVALID_GROUP_ID))
        group = self.by_id.get(request.group_id)
        leaving = request.members
        if version < _MEMBERS_VERSION:
            leaving = [MemberIdentity(member_id=request.member_id)]
        if group is None:
            results = [left(each, ErrorCode.UNKNOWN_MEMBER_ID) for each in leaving]
        else:
            results = [self._leave_one(group, each, now, outcome) for each in leaving]
            if any(not each.error_code for each in results):
                self._after_leaving(group, now, outcome)
        if version >= _MEMBERS_VERSION:
            return outcome.reply(token, LeaveGroupResponse(error_code=0, members=results))
        code = results[0].error_code
        return outcome.reply(token, LeaveGroupResponse(error_code=code, members=[]))

    def _leave_one(
        self, group: ClassicGroup, identity: MemberIdentity, now: Now, outcome: Outcome
    ) -> MemberResponse:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == UNKNOWN_MEMBER:
            # An administrator names static members only by their instance.
            found = group.static_members.get(instance_id or "")
            if instance_id is None or found is None:
                return left(identity, ErrorCode.UNKNOWN_MEMBER_ID)
            member_id = found
        elif member_id not in group.pending:
            try:
                group.check_member(member_id, instance_id)
            except KafkaError as error:
                return left(identity, error.code)
        member = group.members.get(member_id)
        if member is not None:
            self._let_down(member, outcome)
        self.forget_session(group, member_id)
        group.remove(member_id)
        return left(identity, ErrorCode.NONE)

    def _after_leaving(self, group: ClassicGroup, now: Now, outcome: Outcome) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.rebalance(group, now, outcome)
        elif group.state is State.PREPARING_REBALANCE:
            self._maybe_complete(group, now, outcome)

    # ---- time

    def deadline(self) -> int | None:
        return self.deadlines.earliest()

    def expire(self, now: Now) -> Iterator[Outcome]:
        """What time decides, one after the other: each is replayed before the next."""
        while (key := self.deadlines.take(now.monotonic_ms)) is not None:
            outcome = self._expire_one(key, now)
            if outcome is not None:
                yield outcome

    def _expire_one(self, key: Key, now: Now) -> Outcome | None:
        kind, group_id, *rest = key
        group = self.by_id.get(group_id)
        if group is None:
            return None
        if kind == SESSION:
            return self._session_over(group, rest[0], now)
        outcome = Outcome()
        if kind == JOIN:
            if group.state is not State.PREPARING_REBALANCE:
                return None
            if group.id in self._initial:
                self._initial_delay_is_over(group, now, outcome)
            else:
                self._complete(group, now, outcome)
        elif group.pending_sync and group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            # Who never asked for its assignment is gone.
            for member_id in list(group.pending_sync):
                self.forget_session(group, member_id)
                group.remove(member_id)
            self._prepare(group, now, outcome)
        return outcome

    # ---- the log

    def _value(self, group: ClassicGroup, assignments: dict[str, bytes]) -> GroupMetadataValue:
        return GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            current_state_timestamp=group.changed_wall_ms,
            members=[
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol),
                    assignment=assignments.get(member.id, b""),
                )
                for member in group.members.values()
            ],
        )

    def stored(self, group: ClassicGroup) -> GroupMetadataValue:
        """The group as it is."""
        return self._value(group, {each.id: each.assignment for each in group.members.values()})

    def replay(self, record: Decoded, now: Now) -> None:
        """A record of this kind of key is in the log: written just now, or read at a load."""
        key: GroupMetadataKey = record.key
        value: GroupMetadataValue | None = record.value
        group = self.by_id.get(key.group)
        if value is None:
            if group is not None:
                self._forget(group)
            return
        if group is None or group.generation < value.generation:
            # Not of this life: it is read from the log.
            self._load(key.group, value, now)
            return
        if group.generation != value.generation or group.state is State.PREPARING_REBALANCE:
            return
        for each in value.members:
            member = group.members.get(each.member_id)
            if member is not None:
                member.assignment = bytes(each.assignment)
        if group.state is State.COMPLETING_REBALANCE and value.members:
            group.become(State.STABLE, wall_ms=now.wall_ms)

    def _forget(self, group: ClassicGroup) -> None:
        group.become(State.DEAD, wall_ms=group.changed_wall_ms)
        for member_id in [*group.members, *group.pending]:
            self.forget_session(group, member_id)
        self.deadlines.drop((JOIN, group.id))
        self.deadlines.drop((SYNC, group.id))
        self._initial.pop(group.id, None)
        del self.by_id[group.id]

    def _load(self, group_id: str, value: GroupMetadataValue, now: Now) -> None:
        """Members that were there get a new session each, and go if they do not speak."""
        old = self.by_id.get(group_id)
        if old is not None:
            self._forget(old)
        state = State.STABLE if value.members else State.EMPTY
        group = ClassicGroup(group_id, wall_ms=value.current_state_timestamp, state=state)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        for each in value.members:
            member = Member(
                each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                rebalance_timeout_ms=(
                    each.session_timeout if each.rebalance_timeout < 0 else each.rebalance_timeout
                ),
                session_timeout_ms=each.session_timeout,
                protocols=[(value.protocol or "", bytes(each.subscription))],
                assignment=bytes(each.assignment),
            )
            group.add(member, value.protocol_type)
            self.session(group, member, now)
        group.leader = value.leader
        group.protocol_type = value.protocol_type or None
        self.by_id[group_id] = group
        self._know_subscriptions(group)

    def loaded(self, now: Now) -> Iterator[Outcome]:
        """The log is read to its end. Groups that are too large by now begin a new round."""
        size_max = self.settings().max_size
        for group in list(self.by_id.values()):
            if group.state is State.STABLE and len(group.members) > size_max:
                outcome = Outcome()
                self._prepare(group, now, outcome)
                yield outcome


def _value_of_new(group: ClassicGroup) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.changed_wall_ms,
        members=[],
    )
