"""JoinGroup (version 9) and Heartbeat (version 4) requests by hand."""

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from ottla.protocol.wire import ProtocolError

from .rare import (
    ONE_BYTE,
    long_size,
    new,
    read_size,
    read_string,
    read_string_or_null,
    skip_tags,
    string_size,
)

_GENERATION_SIZE = Struct(">iB")
_GENERATION = Struct(">i")
_TIMEOUTS_SIZE = Struct(">iiB")
_TIMEOUTS = Struct(">ii")

_read_generation_size = _GENERATION_SIZE.unpack_from
_read_timeouts_size = _TIMEOUTS_SIZE.unpack_from
_write_generation = _GENERATION.pack
_write_timeouts = _TIMEOUTS.pack


def read_heartbeat_v4(data: bytes) -> HeartbeatRequest:
    try:
        message = new(HeartbeatRequest)
        end = data[0]
        if 0 < end < 128:
            message.group_id = data[1:end].decode("utf-8", "replace")
        else:
            message.group_id, end = read_string(data, 0)
        message.generation_id, size = _read_generation_size(data, end)
        at = end + 4
        if 0 < size < 128:
            end = at + size
            message.member_id = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.member_id, end = read_string(data, at)
        size = data[end]
        if size == 0:
            message.group_instance_id = None
            end += 1
        elif size < 128:
            at = end
            end += size
            message.group_instance_id = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.group_instance_id, end = read_string_or_null(data, end)
        if data[end]:
            skip_tags(data, end)
        return message
    except (IndexError, StructError):
        raise ProtocolError("HeartbeatRequest is cut short") from None


def write_heartbeat_v4(message: HeartbeatRequest) -> bytes:
    group_id = message.group_id.encode("utf-8", "replace")
    group_size = len(group_id) + 1
    member_id = message.member_id.encode("utf-8", "replace")
    member_size = len(member_id) + 1
    pieces = (
        ONE_BYTE[group_size] if group_size < 128 else string_size(group_size),
        group_id,
        _write_generation(message.generation_id),
        ONE_BYTE[member_size] if member_size < 128 else string_size(member_size),
        member_id,
    )
    if message.group_instance_id is None:
        return b"".join((*pieces, b"\0\0"))
    instance_id = message.group_instance_id.encode("utf-8", "replace")
    size = len(instance_id) + 1
    return b"".join(
        (*pieces, ONE_BYTE[size] if size < 128 else string_size(size), instance_id, b"\0")
    )


def read_join_v9(data: bytes) -> JoinGroupRequest:
    try:
        message = new(JoinGroupRequest)
        end = data[0]
        if 0 < end < 128:
            message.group_id = data[1:end].decode("utf-8", "replace")
        else:
            message.group_id, end = read_string(data, 0)
        message.session_timeout_ms, message.rebalance_timeout_ms, size = _read_timeouts_size(
            data, end
        )
        at = end + 8
        if 0 < size < 128:
            end = at + size
            message.member_id = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.member_id, end = read_string(data, at)
        size = data[end]
        if size == 0:
            message.group_instance_id = None
            at = end + 1
        elif size < 128:
            at = end + size
            message.group_instance_id = data[end + 1 : at].decode("utf-8", "replace")
        else:
            message.group_instance_id, at = read_string_or_null(data, end)
        size = data[at]
        if 0 < size < 128:
            end = at + size
            message.protocol_type = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.protocol_type, end = read_string(data, at)
        message.protocols, at = _read_protocols(data, end)
        size = data[at]
        if size == 0:
            message.reason = None
            end = at + 1
        elif size < 128:
            end = at + size
            message.reason = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.reason, end = read_string_or_null(data, at)
        if data[end]:
            skip_tags(data, end)
        return message
    except (IndexError, StructError):
        raise ProtocolError("JoinGroupRequest is cut short") from None


def _read_protocols(data: bytes, at: int) -> tuple[list[JoinGroupRequestProtocol], int]:
    count = data[at]
    at += 1
    if not 0 < count < 128:
        count, at = read_size(data, at - 1)
    protocols = []
    for _ in range(count - 1):
        protocol = new(JoinGroupRequestProtocol)
        size = data[at]
        if 0 < size < 128:
            end = at + size
            protocol.name = data[at + 1 : end].decode("utf-8", "replace")
        else:
            protocol.name, end = read_string(data, at)
        size = data[end]
        at = end + 1
        if not 0 < size < 128:
            size, at = read_size(data, end)
        end = at + size - 1
        protocol.metadata = data[at:end]
        at = skip_tags(data, end) if data[end] else end + 1
        protocols.append(protocol)
    return protocols, at


def write_join_v9(message: JoinGroupRequest) -> bytes:
    group_id = message.group_id.encode("utf-8", "replace")
    group_size = len(group_id) + 1
    member_id = message.member_id.encode("utf-8", "replace")
    member_size = len(member_id) + 1
    protocol_type = message.protocol_type.encode("utf-8", "replace")
    type_size = len(protocol_type) + 1
    instance_id = b""
    instance_length = b"\0"
    if message.group_instance_id is not None:
        instance_id = message.group_instance_id.encode("utf-8", "replace")
        size = len(instance_id) + 1
        instance_length = ONE_BYTE[size] if size < 128 else string_size(size)
    count = len(message.protocols) + 1
    pieces = [
        ONE_BYTE[group_size] if group_size < 128 else string_size(group_size),
        group_id,
        _write_timeouts(message.session_timeout_ms, message.rebalance_timeout_ms),
        ONE_BYTE[member_size] if member_size < 128 else string_size(member_size),
        member_id,
        instance_length,
        instance_id,
        ONE_BYTE[type_size] if type_size < 128 else string_size(type_size),
        protocol_type,
        ONE_BYTE[count] if count < 128 else long_size(count),
    ]
    for protocol in message.protocols:
        name = protocol.name.encode("utf-8", "replace")
        size = len(name) + 1
        metadata_size = len(protocol.metadata) + 1
        pieces += (
            ONE_BYTE[size] if size < 128 else string_size(size),
            name,
            ONE_BYTE[metadata_size] if metadata_size < 128 else long_size(metadata_size),
            protocol.metadata,
            b"\0",
        )
    if message.reason is None:
        pieces.append(b"\0\0")
    else:
        reason = message.reason.encode("utf-8", "replace")
        size = len(reason) + 1
        pieces += (ONE_BYTE[size] if size < 128 else string_size(size), reason, b"\0")
    return b"".join(pieces)
