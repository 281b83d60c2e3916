"""One JoinGroup on its way: somebody new, somebody who comes again, or a static member's heir.

Pure. Decides what becomes of the one who asks; the rounds of the group are for `groups.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.classic_group import UNKNOWN_MEMBER, ClassicGroup, Member, Protocols, State
from ottla.coordinator.group_answers import join_error, sync_error
from ottla.coordinator.outcome import Now, Outcome, Token
from ottla.coordinator.records import group_record
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.groups import JoinGroupRequest, JoinGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from ottla.coordinator.groups import Groups

# From these versions on a client is told its id before it joins, and may be told to skip the
# assignment.
_MEMBER_ID_VERSION = 4
_SKIP_VERSION = 9


class Client(NamedTuple):
    """Who asks."""

    id: str
    host: str
    version: int
    """Of the request."""


class Joining:
    __slots__ = ("client", "group", "groups", "now", "outcome", "protocols", "request", "token")

    def __init__(
        self,
        groups: Groups,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        now: Now,
        token: Token,
        outcome: Outcome,
    ) -> None:
        self.groups = groups
        self.group = group
        self.request = request
        self.client = client
        self.now = now
        self.token = token
        self.outcome = outcome
        self.protocols: Protocols = [
            (each.name, bytes(each.metadata)) for each in request.protocols
        ]

    def run(self) -> None:
        group, request = self.group, self.request
        member_id = request.member_id
        if group.state is State.DEAD:
            self._refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not group.supports(request.protocol_type, self.protocols):
            self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif member_id == UNKNOWN_MEMBER:
            self._come_new()
        elif member_id in group.pending:
            self._add(member_id)
        else:
            self._come_again()

    def _refuse(self, code: ErrorCode) -> None:
        self.outcome.reply(self.token, join_error(code, self.request.member_id))

    def _come_new(self) -> None:
        group, instance_id = self.group, self.request.group_instance_id
        prefix = self.client.id if instance_id is None else instance_id
        member_id = f"{prefix}-{_new_uuid(self.groups.random)}"
        if instance_id is not None:
            if instance_id in group.static_members:
                self._replace_static(instance_id, member_id)
            else:
                self._add(member_id)
        elif self.client.version >= _MEMBER_ID_VERSION:
            # It comes again with this id, so that a client that retries does not join twice.
            group.pending[member_id] = None
            timeout_ms = self.request.session_timeout_ms
            self.groups.pending_session(group, member_id, self.now, timeout_ms)
            error = join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id)
            self.outcome.reply(self.token, error)
        else:
            self._add(member_id)

    def _add(self, member_id: str) -> None:
        group, request, now = self.group, self.request, self.now
        member = Member(
            member_id,
            group_instance_id=request.group_instance_id,
            client_id=self.client.id,
            client_host=self.client.host,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=self.protocols,
        )
        member.is_new = True
        member.join = self.token
        is_first_round = group.previous_state is State.EMPTY
        if group.state is State.PREPARING_REBALANCE and is_first_round:
            group.has_new_member = True
        group.add(member, request.protocol_type)
        timeout_ms = self.groups.settings().new_member_join_timeout_ms
        self.groups.session(group, member, now, timeout_ms)
        self.groups.rebalance(group, now, self.outcome)

    @property
    def _rebalance_timeout_ms(self) -> int:
        """Version 0 has none of its own."""
        request = self.request
        if self.client.version == 0 or request.rebalance_timeout_ms < 0:
            return request.session_timeout_ms
        return request.rebalance_timeout_ms

    def _update(self, member: Member) -> None:
        if member.join is not None and member.join is not self.token:
            # The client asks a second time; what it asked first has no reader any more.
            error = join_error(ErrorCode.UNKNOWN_MEMBER_ID, member.id)
            self.outcome.reply(member.join, error)
        self.group.change_protocols(member, self.protocols)
        member.rebalance_timeout_ms = self._rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        member.join = self.token

    def _come_again(self) -> None:
        group, request = self.group, self.request
        try:
            group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            self._refuse(error.code)
            return
        member = group.members[request.member_id]
        state, is_same = group.state, member.matches(self.protocols)
        if state is State.EMPTY:
            self._refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        elif (state is State.COMPLETING_REBALANCE and is_same) or (
            state is State.STABLE and is_same and group.leader != member.id
        ):
            # It may have lost the answer: the generation goes on.
            self.outcome.reply(self.token, self.groups.joined(group, member))
        else:
            self._update(member)
            self.groups.rebalance(group, self.now, self.outcome)

    def _replace_static(self, instance_id: str, member_id: str) -> None:
        """The process behind a static member has started anew. In a stable group that is no news,
        unless another protocol would be chosen."""
        groups, group, now, outcome = self.groups, self.group, self.now, self.outcome
        leader_before = group.leader
        old, member = group.replace_static(instance_id, member_id)
        groups.forget_session(group, old.id)
        if old.join is not None:
            outcome.reply(old.join, join_error(ErrorCode.FENCED_INSTANCE_ID, old.id))
        if old.sync is not None:
            outcome.reply(old.sync, sync_error(ErrorCode.FENCED_INSTANCE_ID))
        groups.session(group, member, now)
        self._update(member)
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may know the old id only, and would assign nothing to the new one.
            groups.rebalance(group, now, outcome)
        elif group.state is State.STABLE and group.selected_protocol() == group.protocol:
            member.join = None
            outcome.records.append(group_record(group.id, groups.stored(group)))
            outcome.reply(self.token, self._goes_on(member, leader_before))
        else:
            groups.rebalance(group, now, outcome)

    def _goes_on(self, member: Member, leader_before: str | None) -> JoinGroupResponse:
        group = self.group
        if self.client.version >= _SKIP_VERSION:
            return self.groups.joined(group, member, skips_assignment=group.leader == member.id)
        # Old clients would assign if they took themselves for the leader.
        response = self.groups.joined(group, member)
        response.leader, response.members = leader_before or "", []
        return response


def _new_uuid(random: Random) -> str:
    """Of version 4, as Java writes it."""
    bits = random.getrandbits(128) & ~(0xF << 76) & ~(0b11 << 62) | 4 << 76 | 0b10 << 62
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
