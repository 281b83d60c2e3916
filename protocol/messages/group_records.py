"""Records of `__consumer_offsets`: committed offsets and classic groups."""

from __future__ import annotations

from ottla.protocol.schema import ZERO, Bytes, Int32, Int64, String, Uuid, message, part, since


@message(key=0, versions=(0, 0))
class LegacyOffsetCommitKey:
    group: String
    topic: String
    partition: Int32


@message(key=0, versions=(0, 0))
class LegacyOffsetCommitValue:
    offset: Int64
    metadata: String
    commit_timestamp: Int64


@message(key=1, versions=(0, 0))
class OffsetCommitKey:
    group: String
    topic: String
    partition: Int32


@message(key=1, versions=(0, 4), flexible=4)
class OffsetCommitValue:
    offset: Int64
    leader_epoch: Int32 = since(3, ignorable=True, default=-1)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = since(1, until=1, ignorable=True, default=-1)
    topic_id: Uuid = since(4, tag=0, ignorable=True, default=ZERO)


@message(key=2, versions=(0, 0))
class GroupMetadataKey:
    group: String


@message(key=2, versions=(0, 4), flexible=4)
class GroupMetadataValue:
    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = since(2, ignorable=True, default=-1)
    members: list[MemberMetadata]


@part
class MemberMetadata:
    member_id: String
    group_instance_id: String | None = since(3, ignorable=True, default=None)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = since(1, ignorable=True, default=-1)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes
