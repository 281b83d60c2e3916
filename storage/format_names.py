"""What the files of a log directory are called, and what the names say.

Part of the specification that format.py begins. A broker's log directory holds one directory for
each partition (TOPIC-PARTITION, the metadata log `__cluster_metadata-0` among them) and some files
of its own. A log is a row of segments; a segment's files share the offset of its first record.
"""

import re
from enum import StrEnum

from ottla.storage.format import Fields


class FileKind(StrEnum):
    """What a file holds."""

    SEGMENT = "segment"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TRANSACTION_INDEX = "transaction index"
    PRODUCER_SNAPSHOT = "producer snapshot"
    METADATA_SNAPSHOT = "metadata snapshot"
    LEADER_EPOCH_CHECKPOINT = "leader epoch checkpoint"
    OFFSET_CHECKPOINT = "offset checkpoint"
    PARTITION_METADATA = "partition metadata"
    META_PROPERTIES = "meta properties"
    CLEAN_SHUTDOWN = "clean shutdown"
    QUORUM_STATE = "quorum state"
    LOCK = "lock"


# 00000000000000000969.log: the offset of the first record, in twenty digits so that `ls` sorts.
# (A producer snapshot's number is the offset that comes after all that it knows.)
OFFSET_NAMED = {
    ".log": FileKind.SEGMENT,
    ".index": FileKind.OFFSET_INDEX,
    ".timeindex": FileKind.TIME_INDEX,
    ".txnindex": FileKind.TRANSACTION_INDEX,
    ".snapshot": FileKind.PRODUCER_SNAPSHOT,
}

# A segment that is on its way in or out has one of these behind its name:
STATES = {
    "": "in use",
    ".deleted": "will be removed after file.delete.delay.ms",
    ".cleaned": "compaction writes it; worthless after a crash",
    ".swap": "compaction has finished it and puts it in place; a start completes that",
}

# 00000000000000000305-0000000002.checkpoint, a snapshot of the metadata log: it stands for all
# before that offset, the epoch is that of the last record. While it is written, the name is
# 00000000000000000305-0000000002-RANDOM.checkpoint.part.
METADATA_SNAPSHOT_NAME = re.compile(
    r"(?P<offset>[0-9]{20})-(?P<epoch>[0-9]{10})(-[0-9]+)?\.checkpoint(?P<state>\.deleted|\.part)?"
)

FIXED_NAMES = {
    # of a partition
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
    "partition.metadata": FileKind.PARTITION_METADATA,
    # of the metadata log
    "quorum-state": FileKind.QUORUM_STATE,
    # of a log directory
    "meta.properties": FileKind.META_PROPERTIES,
    "recovery-point-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "replication-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "bootstrap.checkpoint": FileKind.METADATA_SNAPSHOT,  # the first records of a new cluster
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    ".lock": FileKind.LOCK,
}

OFFSET_NAME = re.compile(
    r"(?P<offset>[0-9]{20})(?P<suffix>\.[a-z]+)(?P<state>|\.deleted|\.cleaned|\.swap)"
)
OFFSET_MAX = (1 << 63) - 1


def parse_file_name(name: str) -> Fields | None:
    """{"kind", "state"} and, if the name tells, "offset" and "epoch". None if Kafka has no such.

    "state" is one of STATES, ".part" for a metadata snapshot, or ".tmp".
    """
    fixed, tmp = (name[:-4], ".tmp") if name.endswith(".tmp") else (name, "")
    if fixed in FIXED_NAMES:
        return {"kind": FIXED_NAMES[fixed], "state": tmp}
    if found := METADATA_SNAPSHOT_NAME.fullmatch(name):
        fields: Fields = {"kind": FileKind.METADATA_SNAPSHOT, "epoch": int(found["epoch"])}
    elif (found := OFFSET_NAME.fullmatch(name)) and found["suffix"] in OFFSET_NAMED:
        fields = {"kind": OFFSET_NAMED[found["suffix"]]}
    else:
        return None
    offset = int(found["offset"])
    if offset > OFFSET_MAX:
        return None
    return {**fields, "state": found["state"] or "", "offset": offset}


def segment_file_name(offset: int, suffix: str, state: str = "") -> str:
    """The name of a file of OFFSET_NAMED, such as `segment_file_name(969, ".log", ".deleted")`."""
    return f"{offset:020}{suffix}{state}"


def metadata_snapshot_name(offset: int, epoch: int) -> str:
    return f"{offset:020}-{epoch:010}.checkpoint"


# A partition's directory that is on its way in or out has a unique id and one of these behind it:
DIRECTORY_STATES = {
    "": "in use",
    "-delete": "the topic was deleted; the directory will be removed",
    "-future": "a replica that moves here from another log directory of the broker",
    "-stray": "nobody claims this replica; set aside",
}

# A directory that is to go keeps no more of a long topic's name than fits into 255 characters.
DIRECTORY_NAME = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})"
    r"(\.(?P<unique_id>[0-9a-f]{32})(?P<state>-delete|-future|-stray))?"
)


def parse_directory_name(name: str) -> Fields | None:
    """{"topic", "partition", "unique_id", "state"}, or None for another directory."""
    found = DIRECTORY_NAME.fullmatch(name)
    if found is None:
        return None
    return {
        "topic": found["topic"],
        "partition": int(found["partition"]),
        "unique_id": found["unique_id"],
        "state": found["state"] or "",
    }


def directory_name(
    topic: str, partition: int, unique_id: str | None = None, state: str = ""
) -> str:
    end = f"-{partition}" if unique_id is None else f"-{partition}.{unique_id}{state}"
    return topic[: 255 - len(end)] + end
