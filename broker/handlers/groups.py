"""Classic groups: who coordinates them, their members, and what there is.

Every group has a partition of `__consumer_offsets`; who leads that decides, in
`coordinator/groups.py`. Here requests are taken apart and answers put together.
"""

from __future__ import annotations

from functools import partial

from ottla.coordinator.classic_group import ClassicGroup, State
from ottla.coordinator.joining import Client
from ottla.coordinator.outcome import Outcome
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ottla.protocol.schema import INT32_MIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.group_shard import GroupShard

GROUP, TRANSACTION, SHARE = 0, 1, 2
_BATCHED_VERSION = 4
_ERROR_VERSION = 6
# From this version on a join without a protocol has none, and not an empty one.
_NO_PROTOCOL_VERSION = 7
CLASSIC_TYPE = "classic"
# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: what may be done without an authorizer.
GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))


# --- who coordinates ----------------------------------------------------------------------


async def find_coordinator(
    broker: Broker, context: Context, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if context.version >= _BATCHED_VERSION:
        keys = request.coordinator_keys
        found = [await _coordinator(broker, context, request.key_type, key) for key in keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _coordinator(broker, context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _coordinator(broker: Broker, context: Context, kind: int, key: str) -> Coordinator:
    try:
        if kind == TRANSACTION:
            # Clients take this error for final, and there are no transactions yet.
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if kind != GROUP:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        node_id = await broker.coordinators.coordinator_of(key)
        node = broker.node_address(node_id, context)
        if node is None or node.is_fenced:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except KafkaError as error:
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=int(error.code),
            error_message=error.message,
        )
    return Coordinator(
        key=key,
        node_id=node.node_id,
        host=node.host,
        port=node.port,
        error_code=0,
        error_message="" if context.version >= _BATCHED_VERSION else "NONE",
    )


# --- members ------------------------------------------------------------------------------


async def join_group(
    broker: Broker, context: Context, request: JoinGroupRequest
) -> JoinGroupResponse:
    host = f"/{context.connection.peer_host}"
    client = Client(context.client_id or "", host, context.version)
    shard = broker.coordinators.shard(request.group_id)
    now = broker.world.now()
    response: JoinGroupResponse = await shard.run(
        lambda token: shard.groups.join(request, client, now, token)
    )
    if response.protocol_name is None and context.version < _NO_PROTOCOL_VERSION:
        response.protocol_name = ""
    return response


def sync_group(
    broker: Broker, context: Context, request: SyncGroupRequest
) -> Awaitable[SyncGroupResponse]:
    shard = broker.coordinators.shard(request.group_id)
    now = broker.world.now()
    found: Awaitable[SyncGroupResponse] = shard.run(
        lambda token: shard.groups.sync(request, now, token)
    )
    return found


def heartbeat(
    broker: Broker, context: Context, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    try:
        shard = broker.coordinators.shard(request.group_id)
    except KafkaError as error:
        if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        # It is remembered once all is loaded, and need not be told that now.
        return HeartbeatResponse(error_code=0)
    now = broker.world.now()
    answer: HeartbeatResponse = shard.read(lambda: shard.groups.heartbeat(request, now))
    return answer


def leave_group(
    broker: Broker, context: Context, request: LeaveGroupRequest
) -> Awaitable[LeaveGroupResponse]:
    shard = broker.coordinators.shard(request.group_id)
    now, version = broker.world.now(), context.version
    found: Awaitable[LeaveGroupResponse] = shard.run(
        lambda token: shard.groups.leave(request, version, now, token)
    )
    return found


# --- what there is ------------------------------------------------------------------------


async def describe_groups(
    broker: Broker, context: Context, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    groups = []
    for group_id in request.groups:
        try:
            shard = broker.coordinators.shard(group_id)
            found = _described(shard, group_id, context.version)
            await shard.settle()
        except KafkaError as error:
            found = _undescribed(group_id, error.code, None)
        if request.include_authorized_operations and not found.error_code:
            found.authorized_operations = GROUP_OPERATIONS
        groups.append(found)
    return DescribeGroupsResponse(groups=groups)


def _described(shard: GroupShard, group_id: str, version: int) -> DescribedGroup:
    group = shard.groups.by_id.get(group_id)
    if group is None:
        missing = ErrorCode.GROUP_ID_NOT_FOUND if version >= _ERROR_VERSION else ErrorCode.NONE
        described = _undescribed(group_id, missing, f"Group {group_id} not found.")
        described.group_state = State.DEAD.value
        return described
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        error_code=0,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _undescribed(group_id: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=int(code),
        error_message=message if code else None,
        group_id=group_id,
        group_state="",
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=INT32_MIN,
    )


async def list_groups(
    broker: Broker, context: Context, request: ListGroupsRequest
) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    if types and CLASSIC_TYPE not in types:
        return ListGroupsResponse(error_code=0, groups=[])
    groups = []
    for shard in broker.coordinators.all():
        groups += [
            _listed(group)
            for group in shard.groups.by_id.values()
            if not states or group.state.value.lower() in states
        ]
        await shard.settle()
    return ListGroupsResponse(error_code=0, groups=groups)


def _listed(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC_TYPE,
    )


async def delete_groups(
    broker: Broker, context: Context, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        code = ErrorCode.NONE
        try:
            shard = broker.coordinators.shard(group_id)
            await shard.run(partial(_deleted, shard, group_id))
        except KafkaError as error:
            code = error.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=int(code)))
    return DeleteGroupsResponse(throttle_time_ms=0, results=results)


def _deleted(shard: GroupShard, group_id: str, token: object) -> Outcome:
    return Outcome(shard.offsets.delete_group(group_id)).reply(token, None)
