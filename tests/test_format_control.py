"""The specification of control records, beside the messages of the protocol."""

from typing import Any

import pytest

from ottla.protocol.messages import control_records, raft_records
from ottla.protocol.schema import encode
from ottla.storage.format import Fields, FormatError
from ottla.storage.format_control import build_control_record, parse_control_record


def voters(directory: str | None) -> Fields:
    voter: Fields = {"voter_id": 1, "voter_directory_id": directory, "tagged_fields": []}
    return {"voters": [voter], "granting_voters": []}


DIRECTORY = "AQIDBAUGBwgJCgsMDQ4PEA"
UUID = bytes(range(1, 17))
Voter = raft_records.LeaderChangeMessageVoter
CONTROLS = [  # type, value here, the message of the protocol and its version
    (
        "COMMIT",
        {"version": 0, "coordinator_epoch": 8},
        control_records.EndTxnMarker(coordinator_epoch=8),
        0,
    ),
    (
        "LEADER_CHANGE",
        {"version": 0, "leader_id": 1, "tagged_fields": [], **voters(None)},
        raft_records.LeaderChangeMessage(
            version=0, leader_id=1, voters=[Voter(voter_id=1)], granting_voters=[]
        ),
        0,
    ),
    (
        "LEADER_CHANGE",
        {"version": 1, "leader_id": 1, "tagged_fields": [], **voters(DIRECTORY)},
        raft_records.LeaderChangeMessage(
            version=1,
            leader_id=1,
            voters=[Voter(voter_id=1, voter_directory_id=UUID)],
            granting_voters=[],
        ),
        1,
    ),
    (
        "SNAPSHOT_HEADER",
        {"version": 0, "last_contained_log_timestamp": 5, "tagged_fields": []},
        raft_records.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=5),
        0,
    ),
    (
        "SNAPSHOT_FOOTER",
        {"version": 0, "tagged_fields": []},
        raft_records.SnapshotFooterRecord(version=0),
        0,
    ),
    (
        "KRAFT_VERSION",
        {"version": 0, "kraft_version": 1, "tagged_fields": []},
        raft_records.KRaftVersionRecord(version=0, k_raft_version=1),
        0,
    ),
]


@pytest.mark.parametrize(("type", "value", "message", "version"), CONTROLS)
def test_control_records_are_what_the_protocol_encodes(
    type: str, value: Fields, message: Any, version: int
) -> None:
    record = build_control_record(type, value)
    # Of a marker the version stands before the message, of the others it is their first field.
    prefix = b"\0\0" if type == "COMMIT" else b""
    assert record["value"] == prefix + bytes(encode(message, version))
    assert parse_control_record(record) == {"type": type, "value": value}


def test_a_control_record_of_an_unknown_type_is_kept_as_it_is() -> None:
    record = {"key": b"\0\0\0\x63", "value": b"later"}
    parsed = parse_control_record(record)
    assert parsed == {"type": 99, "value": b"later"}
    assert build_control_record(**parsed) == record


BROKEN_CONTROLS: list[tuple[bytes | None, bytes | None]] = [
    (None, None),
    (b"\0\0", b""),
    (b"\0\1\0\0", b"\0\0\0\0\0\0"),
    (b"\0\0\0\0", b"\0\0\0\0\0"),
    (b"\0\0\0\0", b"\0\0\0\0\0\0\0"),
    (b"\0\0\0\2", b"\0\2\0\0\0\1\1\1\0"),
    (b"\0\0\0\2", b"\0\0\0\0\0\1\0\1\0"),
    (b"\0\0\0\6", b"\0\0\2" + bytes(20) + b"\2\3\xff\xff"),
    (b"\0\0\0\x63", bytes(1 << 17)),
]


@pytest.mark.parametrize(("key", "value"), BROKEN_CONTROLS)
def test_a_broken_control_record_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(FormatError, match="control record"):
        parse_control_record({"key": key, "value": value})
