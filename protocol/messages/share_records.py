"""Records of `__share_group_state`."""

from __future__ import annotations

from ottla.protocol.schema import Int8, Int16, Int32, Int64, String, Uuid, message, part, since


@message(key=0, versions=(0, 0))
class ShareSnapshotKey:
    group_id: String
    topic_id: Uuid
    partition: Int32


@message(key=0, versions=(0, 0), flexible=0)
class ShareSnapshotValue:
    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(tag=0, default=-1)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: list[ShareSnapshotValueStateBatch]


@part
class ShareSnapshotValueStateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@message(key=1, versions=(0, 0))
class ShareUpdateKey:
    group_id: String
    topic_id: Uuid
    partition: Int32


@message(key=1, versions=(0, 0), flexible=0)
class ShareUpdateValue:
    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(tag=0, default=-1)
    state_batches: list[ShareUpdateValueStateBatch]


@part
class ShareUpdateValueStateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16
