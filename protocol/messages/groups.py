"""Classic groups: finding the coordinator, joining, syncing, leaving, describing."""

from __future__ import annotations

from ottla.protocol.schema import (
    INT32_MIN,
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    String,
    message,
    part,
    since,
)


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorRequest:
    key: String = since(until=3, default="")
    key_type: Int8 = since(1, default=0)
    coordinator_keys: list[String] = since(4, default=[])


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorResponse:
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    error_code: Int16 = since(until=3, default=0)
    error_message: String | None = since(1, until=3, ignorable=True, default="")
    node_id: Int32 = since(until=3, default=0)
    host: String = since(until=3, default="")
    port: Int32 = since(until=3, default=0)
    coordinators: list[Coordinator] = since(4, default=[])


@part
class Coordinator:
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: String | None


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupRequest:
    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = since(1, ignorable=True, default=-1)
    member_id: String
    group_instance_id: String | None = since(5, default=None)
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: String | None = since(8, ignorable=True, default=None)


@part
class JoinGroupRequestProtocol:
    name: String
    metadata: Bytes


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupResponse:
    throttle_time_ms: Int32 = since(2, ignorable=True, default=0)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: String | None = since(7, ignorable=True, default=None)
    protocol_name: String | None = since(null_since=7)
    leader: String
    skip_assignment: Bool = since(9, default=False)
    member_id: String
    members: list[JoinGroupResponseMember]


@part
class JoinGroupResponseMember:
    member_id: String
    group_instance_id: String | None = since(5, ignorable=True, default=None)
    metadata: Bytes


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupRequest:
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = since(3, default=None)
    protocol_type: String | None = since(5, ignorable=True, default=None)
    protocol_name: String | None = since(5, ignorable=True, default=None)
    assignments: list[SyncGroupRequestAssignment]


@part
class SyncGroupRequestAssignment:
    member_id: String
    assignment: Bytes


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupResponse:
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    error_code: Int16
    protocol_type: String | None = since(5, ignorable=True, default=None)
    protocol_name: String | None = since(5, ignorable=True, default=None)
    assignment: Bytes


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatRequest:
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = since(3, default=None)


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatResponse:
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    error_code: Int16


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupRequest:
    group_id: String
    member_id: String = since(until=2, default="")
    members: list[MemberIdentity] = since(3, default=[])


@part
class MemberIdentity:
    member_id: String
    group_instance_id: String | None = None
    reason: String | None = since(5, ignorable=True, default=None)


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupResponse:
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    error_code: Int16
    members: list[MemberResponse] = since(3, default=[])


@part
class MemberResponse:
    member_id: String
    group_instance_id: String | None
    error_code: Int16


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsRequest:
    groups: list[String]
    include_authorized_operations: Bool = since(3, default=False)


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsResponse:
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    groups: list[DescribedGroup]


@part
class DescribedGroup:
    error_code: Int16
    error_message: String | None = since(6, default=None)
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: list[DescribedGroupMember]
    authorized_operations: Int32 = since(3, default=INT32_MIN)


@part
class DescribedGroupMember:
    member_id: String
    group_instance_id: String | None = since(4, ignorable=True, default=None)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsRequest:
    states_filter: list[String] = since(4, default=[])
    types_filter: list[String] = since(5, default=[])


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsResponse:
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    error_code: Int16
    groups: list[ListedGroup]


@part
class ListedGroup:
    group_id: String
    protocol_type: String
    group_state: String = since(4, ignorable=True, default="")
    group_type: String = since(5, ignorable=True, default="")


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsRequest:
    groups_names: list[String]


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsResponse:
    throttle_time_ms: Int32
    results: list[DeletableGroupResult]


@part
class DeletableGroupResult:
    group_id: String
    error_code: Int16
