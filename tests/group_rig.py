"""A machine of classic groups, and its clients: requests in, replies out, time moved by hand."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.coordinator.groups import Groups, GroupSettings
from ottla.coordinator.joining import Client
from ottla.coordinator.offsets import Offsets, OffsetSettings
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.records import decoded
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.group_records import GroupMetadataKey
from ottla.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ottla.storage.clock import Now

PROTOCOLS = (("range", b"r"), ("roundrobin", b"rr"))
START_MS = 1_000_000
WALL_MS = 1_800_000_000_000


@dataclass
class Asked:
    """A request, and its reply once there is one."""

    response: Any = None

    @property
    def is_answered(self) -> bool:
        return self.response is not None

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.response.error_code)


@dataclass
class Rig:
    settings: GroupSettings = field(default_factory=lambda: GroupSettings())
    offset_settings: OffsetSettings = field(default_factory=OffsetSettings)
    version: int = 9
    log: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    now: Now = field(default_factory=lambda: Now(START_MS, WALL_MS))

    def __post_init__(self) -> None:
        self.groups = Groups(lambda: self.settings, Random(1))
        self.offsets = Offsets(self.groups, lambda: self.offset_settings)

    # what the shell does

    def carry_out(self, outcome: Outcome) -> None:
        for record in outcome.records:
            self.log.append((record.key, record.value))
            self.replay(record.key, record.value)
        for reply in outcome.replies:
            assert reply.to.response is None, "answered twice"
            reply.to.response = reply.response

    def replay(self, key: bytes, value: bytes | None) -> None:
        record = decoded(key, value)
        assert record is not None
        if isinstance(record.key, GroupMetadataKey):
            self.groups.replay(record, self.now)
        else:
            self.offsets.replay(record)

    def after(self, ms: int) -> None:
        """Time goes on, and deadlines come one after the other."""
        end_ms = self.now.monotonic_ms + ms
        while (due_ms := self.groups.deadline()) is not None and due_ms <= end_ms:
            self.now = Now(due_ms, self.now.wall_ms + due_ms - self.now.monotonic_ms)
            for outcome in self.groups.expire(self.now):
                self.carry_out(outcome)
        self.now = Now(end_ms, self.now.wall_ms + end_ms - self.now.monotonic_ms)

    def reloaded(self) -> "Rig":
        """Another node reads the log."""
        other = Rig(self.settings, self.offset_settings, self.version, list(self.log), self.now)
        for key, value in self.log:
            other.replay(key, value)
        other.offsets.loaded(other.now)
        for outcome in other.groups.loaded(other.now):
            other.carry_out(outcome)
        return other

    # what clients do

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = PROTOCOLS,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int | None = None,
    ) -> Asked:
        asked = Asked()
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
        )
        client = Client("client", "/10.0.0.1", self.version if version is None else version)
        self.carry_out(self.groups.join(request, client, self.now, asked))
        return asked

    def member(self, **how: Any) -> tuple[str, Asked]:
        """A new dynamic member: it asks for an id, and joins with it."""
        member_id = self.join(**how).response.member_id
        return member_id, self.join(member_id, **how)

    def sync(
        self,
        joined: JoinGroupResponse,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        generation: int | None = None,
        instance: str | None = None,
    ) -> Asked:
        asked = Asked()
        request = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id if generation is None else generation,
            member_id=joined.member_id,
            group_instance_id=instance,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )
        self.carry_out(self.groups.sync(request, self.now, asked))
        return asked

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g") -> ErrorCode:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        return ErrorCode(self.groups.heartbeat(request, self.now).error_code)

    def leave(self, *members: MemberIdentity, group: str = "g") -> Asked:
        asked = Asked()
        request = LeaveGroupRequest(group_id=group, members=list(members))
        self.carry_out(self.groups.leave(request, 5, self.now, asked))
        return asked

    def stable(self, count: int, **how: Any) -> list[str]:
        """A group of so many members, each with its own number as assignment."""
        members = [self.member(**how) for _ in range(count)]
        self.after(self.settings.initial_rebalance_delay_ms * (count + 2))
        return self.synced(members, **how)

    def synced(self, members: list[tuple[str, Asked]], **how: Any) -> list[str]:
        assert all(asked.error is ErrorCode.NONE for _, asked in members)
        told = {member_id: b"%d" % number for number, (member_id, _) in enumerate(members)}
        answers: list[Asked] = []
        for member_id, asked in members:
            leads = asked.response.leader == member_id
            answers.append(self.sync(asked.response, told if leads else None))
        for number, answer in enumerate(answers):
            response: SyncGroupResponse = answer.response
            assert response.assignment == b"%d" % number
        return list(told)


def left(member_id: str, instance: str | None = None) -> MemberIdentity:
    return MemberIdentity(member_id=member_id, group_instance_id=instance)
