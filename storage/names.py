"""The names of partitions' folders, and of the files in them.

Names come from disks and from peers, so they are checked here, and paths are built from checked
ones only: no topic can be called `..` or hold a slash.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX = ".log", ".index", ".timeindex", ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

# What stands behind the name of a file on its way in or out.
CLEANED, SWAP, DELETED = ".cleaned", ".swap", ".deleted"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

# What stands behind the name of a folder that is no partition's own.
DELETE_FOLDER, FUTURE_FOLDER, STRAY_FOLDER = "-delete", "-future", "-stray"
FOLDER_NAME_LENGTH_MAX = 255

_OFFSET_NAME = re.compile(
    r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.cleaned|\.swap|\.deleted|)"
)
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FOLDER_NAME = re.compile(
    r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})(?:\.([0-9a-f]{32})(-delete|-future|-stray))?"
)
_INT32_MAX = 0x7FFF_FFFF
_INT64_MAX = 0x7FFF_FFFF_FFFF_FFFF


class OffsetName(NamedTuple):
    """The name of a file that begins with an offset."""

    offset: int
    suffix: str
    state: str


class FolderName(NamedTuple):
    topic: str
    partition: int
    unique_id: str = ""
    state: str = ""


def offset_name(offset: int, suffix: str, state: str = "") -> str:
    return f"{offset:020d}{suffix}{state}"


def parse_offset_name(name: str) -> OffsetName | None:
    """None for every other file."""
    found = _OFFSET_NAME.fullmatch(name)
    if found is None or (offset := int(found[1])) > _INT64_MAX:
        return None
    return OffsetName(offset, found[2], found[3])


def is_topic_name(topic: str) -> bool:
    return _TOPIC.fullmatch(topic) is not None and topic not in (".", "..")


def folder_name(topic: str, partition: int, unique_id: str = "", state: str = "") -> str:
    """A topic's name is cut short where the folder is on its way out and would be too long."""
    if not is_topic_name(topic):
        raise ValueError(f"{topic!r} is no name of a topic")
    if not 0 <= partition <= _INT32_MAX:
        raise ValueError(f"{partition} is no number of a partition")
    end = f"-{partition}.{unique_id}{state}" if state else f"-{partition}"
    room = FOLDER_NAME_LENGTH_MAX - len(end)
    if len(topic) > room and state not in (DELETE_FOLDER, STRAY_FOLDER):
        raise ValueError(f"the name of the folder of {topic}-{partition} would be too long")
    return topic[:room] + end


def parse_folder_name(name: str) -> FolderName | None:
    """None for a folder that is not a partition's."""
    found = _FOLDER_NAME.fullmatch(name)
    if found is None or not is_topic_name(found[1]):
        return None
    partition = int(found[2])
    if partition > _INT32_MAX or found[2] != str(partition):
        return None
    return FolderName(found[1], partition, found[3] or "", found[4] or "")
