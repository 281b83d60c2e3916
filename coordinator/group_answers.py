"""What clients of classic groups are told, apart from what a round has brought."""

from __future__ import annotations

from ottla.coordinator.classic_group import ClassicGroup
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.groups import (
    JoinGroupResponse,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupResponse,
)


def join_error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=int(code),
        generation_id=-1,
        protocol_name=None,
        leader="",
        member_id=member_id,
        members=[],
    )


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=int(code), assignment=b"")


def assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=0,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=assignment,
    )


def left(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=int(code),
    )


def left_error(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=int(code), members=[])
