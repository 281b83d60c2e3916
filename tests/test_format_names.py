"""The names of files and directories: what they say, and which say nothing."""

import pytest

from ottla.storage.format_names import (
    FileKind,
    directory_name,
    metadata_snapshot_name,
    parse_directory_name,
    parse_file_name,
    segment_file_name,
)

FILE_NAMES: dict[str, tuple[FileKind, str, int | None, int | None]] = {
    "00000000000000000969.log": (FileKind.SEGMENT, "", 969, None),
    "00000000000000000969.index.deleted": (FileKind.OFFSET_INDEX, ".deleted", 969, None),
    "00000000000000000969.timeindex.swap": (FileKind.TIME_INDEX, ".swap", 969, None),
    "00000000000000000969.txnindex.cleaned": (FileKind.TRANSACTION_INDEX, ".cleaned", 969, None),
    "09223372036854775807.snapshot": (FileKind.PRODUCER_SNAPSHOT, "", 2**63 - 1, None),
    "00000000000000000012-0000000003.checkpoint": (FileKind.METADATA_SNAPSHOT, "", 12, 3),
    "00000000000000000012-0000000003.checkpoint.deleted": (
        FileKind.METADATA_SNAPSHOT,
        ".deleted",
        12,
        3,
    ),
    "00000000000000000012-0000000003-123.checkpoint.part": (
        FileKind.METADATA_SNAPSHOT,
        ".part",
        12,
        3,
    ),
    "bootstrap.checkpoint": (FileKind.METADATA_SNAPSHOT, "", None, None),
    "leader-epoch-checkpoint": (FileKind.LEADER_EPOCH_CHECKPOINT, "", None, None),
    "recovery-point-offset-checkpoint.tmp": (FileKind.OFFSET_CHECKPOINT, ".tmp", None, None),
    ".kafka_cleanshutdown": (FileKind.CLEAN_SHUTDOWN, "", None, None),
}


@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_name_says_what_the_file_is(name: str) -> None:
    kind, state, offset, epoch = FILE_NAMES[name]
    told = {"kind": kind, "state": state, "offset": offset, "epoch": epoch}
    assert parse_file_name(name) == {k: v for k, v in told.items() if v is not None}


STRANGE_NAMES = [
    "969.log",
    "00000000000000000969.log.bak",
    "00000000000000000969.LOG",
    "99999999999999999999.log",
    "\u0660" * 20 + ".log",
    "00000000000000000969.log\n",
    "log",
    "",
    "README.md",
]


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_a_strange_name_says_nothing(name: str) -> None:
    assert parse_file_name(name) is None


def test_names_are_built_as_they_are_read() -> None:
    assert segment_file_name(969, ".log", ".swap") == "00000000000000000969.log.swap"
    assert metadata_snapshot_name(12, 3) == "00000000000000000012-0000000003.checkpoint"


DIRECTORY_NAMES = {
    "__cluster_metadata-0": ("__cluster_metadata", 0, None, ""),
    "weird.Name_x-y-12": ("weird.Name_x-y", 12, None, ""),
    "gone-0.2953271f381141289e4eb7591a1e9ca4-delete": (
        "gone",
        0,
        "2953271f381141289e4eb7591a1e9ca4",
        "-delete",
    ),
    "a-1.2953271f381141289e4eb7591a1e9ca4-future": (
        "a",
        1,
        "2953271f381141289e4eb7591a1e9ca4",
        "-future",
    ),
}


@pytest.mark.parametrize("name", DIRECTORY_NAMES)
def test_a_directory_is_named_after_topic_and_partition(name: str) -> None:
    topic, partition, unique_id, state = DIRECTORY_NAMES[name]
    told = parse_directory_name(name)
    assert told == {
        "topic": topic,
        "partition": partition,
        "unique_id": unique_id,
        "state": state,
    }
    assert directory_name(**told) == name


@pytest.mark.parametrize("name", ["a", "-0", "a-", "a-x", "a/b-0", "a-0-delete", "a b-0"])
def test_another_directory_is_no_partition(name: str) -> None:
    assert parse_directory_name(name) is None


def test_the_name_of_a_deleted_directory_fits_into_255_characters() -> None:
    name = directory_name("t" * 249, 7, "2953271f381141289e4eb7591a1e9ca4", "-delete")
    assert len(name) == 255
    told = parse_directory_name(name)
    assert told is not None
    assert told["partition"] == 7
