"""Snapshots: a name stands for a whole one, and half ones go."""

import pytest

from ottla.protocol.messages.raft_records import KRaftVersionRecord
from ottla.replication.quorum_snapshots import (
    Snapshot,
    find_snapshots,
    snapshot_batches,
    snapshot_name,
    writing,
)
from ottla.replication.raft_messages import Position
from ottla.storage.errors import CorruptFile
from ottla.storage.long_work import work_now
from ottla.storage.memory_files import MemoryFiles
from tests.quorum_rig import topic

VERSION = KRaftVersionRecord(version=0, k_raft_version=1)
NAMES = [f"t{number}" for number in range(600)]


def batches(names: list[str] = NAMES) -> list[bytes]:
    parts = snapshot_batches(
        (topic(name) for name in names),
        [VERSION],
        epoch=3,
        wall_ms=20,
        last_contained_log_timestamp=10,
    )
    return [bytes(part) for part in parts]


def disk(data: bytes = b"") -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory("d")
    if data:
        files.write_atomically_now("d/snapshot", data)
    return files


def test_a_snapshot_is_read_as_it_was_written() -> None:
    files = disk()
    size = work_now(writing(files, "d", snapshot_name(Position(3, 99)), batches()))
    snapshot = Snapshot(files, f"d/{99:020d}-{3:010d}.checkpoint")
    assert snapshot.controls == [VERSION]
    assert snapshot.last_contained_log_timestamp == 10
    parts = list(snapshot.records())
    assert [record.message.name for part in parts for record in part] == NAMES
    assert max(map(len, parts)) <= 250
    assert files.list("d") == [f"{99:020d}-{3:010d}.checkpoint"]
    assert files.size(f"d/{99:020d}-{3:010d}.checkpoint") == size


def test_its_offsets_begin_anew() -> None:
    header, *_, footer = batches(["a", "b"])
    assert (header[:8], footer[:8]) == (bytes(8), (4).to_bytes(8, "big"))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"".join(batches()[:-1]), "footer is missing"),
        (b"".join(batches()[1:]), "header is missing"),
        (b"", "header is missing"),
        (b"".join(batches())[:-1], "cut short"),
        (b"".join(batches())[:-1] + b"?", "crc"),
        (b"rubbish" * 20, "magic|batch length|cut short"),
    ],
)
def test_what_is_no_whole_snapshot_is_refused(data: bytes, reason: str) -> None:
    files = disk()
    files.write_atomically_now("d/snapshot", data)
    with pytest.raises(CorruptFile, match=reason):
        list(Snapshot(files, "d/snapshot").records())


def test_the_newest_is_of_the_latest_epoch() -> None:
    files = disk()
    positions = [Position(2, 5), Position(1, 9), Position(2, 30)]
    for position in positions:
        files.create(f"d/{snapshot_name(position)}").close()
    assert find_snapshots(files, "d") == [Position(1, 9), Position(2, 5), Position(2, 30)]


def test_what_was_not_finished_or_on_its_way_out_is_removed() -> None:
    files = disk()
    whole = snapshot_name(Position(1, 5))
    unfinished = [
        f"{whole}.part",
        f"{whole}.deleted",
        f"{5:020d}-{1:010d}-1234567.checkpoint.part",
    ]
    for name in [whole, "other", *unfinished]:
        files.create(f"d/{name}").close()
    assert find_snapshots(files, "d") == [Position(1, 5)]
    assert files.list("d") == [whole, "other"]


def test_writing_that_is_broken_off_leaves_nothing() -> None:
    files = disk()
    work = writing(files, "d", "snapshot", batches())
    next(work)
    next(work)
    assert files.list("d") == ["snapshot.part"]
    work.close()
    assert files.list("d") == []
    assert work_now(writing(files, "d", "snapshot", batches())) > 0


def test_what_a_dead_process_has_begun_is_begun_anew() -> None:
    files = disk()
    files.create("d/snapshot.part").close()
    work_now(writing(files, "d", "snapshot", batches()))
    assert files.list("d") == ["snapshot"]


def test_a_snapshot_has_its_name_only_once_it_is_on_disk() -> None:
    files = disk()
    journal = files.record()
    work_now(writing(files, "d", "snapshot", batches()))
    kinds = [each.kind for each in journal.operations if each.kind != "write"]
    assert kinds == ["create", "sync", "rename", "sync_directory"]
