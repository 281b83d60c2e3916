"""What control records say: the end of a transaction, and KRaft's own notes in the metadata log.

Part of the specification that format.py begins. Control records lie in batches with the flag
`is_control`; they have offsets, but consumers never see them. The key tells the type, and the value
depends on the type.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from construct import (  # type: ignore[import-untyped]
    Array,
    Bytes,
    Const,
    Construct,
    ConstructError,
    Enum,
    ExprAdapter,
    FocusedSeq,
    GreedyBytes,
    If,
    Int16sb,
    Int16ub,
    Int32sb,
    Int64sb,
    OneOf,
    Prefixed,
    PrefixedArray,
    Rebuild,
    StringEncoded,
    Struct,
    Terminated,
    this,
)

from ottla.storage.format import Fields, FormatError, UnsignedVarint, plain, reason_of

ControlRecordKey = Struct(
    "version" / Const(0, Int16sb),
    "type"
    / Enum(
        Int16sb,
        ABORT=0,
        COMMIT=1,
        LEADER_CHANGE=2,
        SNAPSHOT_HEADER=3,
        SNAPSHOT_FOOTER=4,
        KRAFT_VERSION=5,
        KRAFT_VOTERS=6,
    ),
)

# --- The markers that end a transaction -----------------------------------------------------------
# The coordinator has one written to each partition of the transaction, when its outcome is decided.

EndTxnMarker = Struct(
    "version" / Const(0, Int16sb),
    "coordinator_epoch" / Int32sb * "an older coordinator's marker is refused",
    Terminated,
)

# --- KRaft's records ------------------------------------------------------------------------------
# They are "flexible" messages: lengths are unsigned varints and one too large (0 is null), and each
# struct ends with tagged fields, which a reader that does not know them skips.

Uuid = ExprAdapter(
    Bytes(16),
    lambda content, _: urlsafe_b64encode(content).decode().rstrip("="),
    lambda text, _: urlsafe_b64decode(text + "=="),
)

CompactString = StringEncoded(
    FocusedSeq(
        "content",
        "size_plus_1" / Rebuild(UnsignedVarint, lambda this: len(this.content) + 1),
        "content" / Bytes(this.size_plus_1 - 1),
    ),
    "utf-8",
)

TaggedFields = PrefixedArray(
    UnsignedVarint,
    Struct("tag" / UnsignedVarint, "content" / Prefixed(UnsignedVarint, GreedyBytes)),
)


def compact_array(item: Construct) -> Construct:
    return FocusedSeq(
        "content",
        "count_plus_1" / Rebuild(UnsignedVarint, lambda this: len(this.content) + 1),
        "content" / Array(this.count_plus_1 - 1, item),
    )


Voter = Struct(
    "voter_id" / Int32sb,
    "voter_directory_id" / If(this._root.version >= 1, Uuid),
    "tagged_fields" / TaggedFields,
)

LeaderChange = Struct(
    "version" / OneOf(Int16sb, [0, 1]),
    "leader_id" / Int32sb,
    "voters" / compact_array(Voter),
    "granting_voters" / compact_array(Voter) * "those that voted for the leader",
    "tagged_fields" / TaggedFields,
    Terminated,
)

SnapshotHeader = Struct(
    "version" / Const(0, Int16sb),
    "last_contained_log_timestamp" / Int64sb * "the snapshot stands for the log up to this record",
    "tagged_fields" / TaggedFields,
    Terminated,
)

SnapshotFooter = Struct(
    "version" / Const(0, Int16sb),
    "tagged_fields" / TaggedFields,
    Terminated,
)

KRaftVersion = Struct(
    "version" / Const(0, Int16sb),
    "kraft_version" / Int16sb * "1: voters come and go by KRAFT_VOTERS; 0: they are configured",
    "tagged_fields" / TaggedFields,
    Terminated,
)

Endpoint = Struct(
    "name" / CompactString * "of the listener",
    "host" / CompactString,
    "port" / Int16ub,
    "tagged_fields" / TaggedFields,
)

KRaftVoters = Struct(
    "version" / Const(0, Int16sb),
    "voters"
    / compact_array(
        Struct(
            "voter_id" / Int32sb,
            "voter_directory_id" / Uuid,
            "endpoints" / compact_array(Endpoint),
            "kraft_version_feature"
            / Struct(
                "min_supported_version" / Int16sb,
                "max_supported_version" / Int16sb,
                "tagged_fields" / TaggedFields,
            ),
            "tagged_fields" / TaggedFields,
        )
    ),
    "tagged_fields" / TaggedFields,
    Terminated,
)

CONTROL_RECORD_SIZE_MAX = 1 << 16  # far more than the voters of any quorum take

CONTROL_VALUES: dict[str, Construct] = {
    "ABORT": EndTxnMarker,
    "COMMIT": EndTxnMarker,
    "LEADER_CHANGE": LeaderChange,
    "SNAPSHOT_HEADER": SnapshotHeader,
    "SNAPSHOT_FOOTER": SnapshotFooter,
    "KRAFT_VERSION": KRaftVersion,
    "KRAFT_VOTERS": KRaftVoters,
}


def parse_control_record(record: Mapping[str, Any]) -> Fields:
    """{"type", "value"} of a control record; the value of an unknown type stays bytes."""
    size = len(record["key"] or b"") + len(record["value"] or b"")
    if size > CONTROL_RECORD_SIZE_MAX:
        raise FormatError(0, f"control record: {size} bytes are too many")
    try:
        kind = ControlRecordKey.parse(record["key"] or b"")["type"]
        value = CONTROL_VALUES.get(kind, GreedyBytes).parse(record["value"] or b"")
    except ConstructError as error:
        raise FormatError(0, f"control record: {reason_of(error)}") from None
    return {"type": plain(kind), "value": plain(value)}


def build_control_record(type: str | int, value: Mapping[str, Any] | bytes) -> Fields:
    """{"key", "value"} for a record of a control batch; the inverse of `parse_control_record`."""
    return {
        "key": ControlRecordKey.build({"version": 0, "type": type}),
        "value": CONTROL_VALUES.get(str(type), GreedyBytes).build(value),
    }
