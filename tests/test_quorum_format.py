"""Formatting: an empty directory becomes one of a new cluster, whole or not at all."""

from random import Random

import pytest

from ottla.protocol.messages.raft_records import KRaftVersionRecord, VotersRecord
from ottla.replication.quorum_format import (
    BOOTSTRAP_CHECKPOINT,
    Identity,
    bootstrap_records,
    format_directories,
)
from ottla.replication.quorum_snapshots import Snapshot
from ottla.replication.voters import Listener, ReplicaKey, Voter, Voters, voters_of
from ottla.storage.checkpoints import parse_uuid
from ottla.storage.clock import Now
from ottla.storage.log_dirs import ForeignDirectory, open_log_directories
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from tests.quorum_rig import BOOTSTRAP, FOLDER, Rig, nothing

LISTENER = Listener("CONTROLLER", "localhost", 9093)
FIRST = f"{FOLDER}/{0:020d}-{0:010d}.checkpoint"
META = "data/meta.properties"


def formatted(files: MemoryFiles, *, paths: tuple[str, ...] = ("data",), seed: int = 1) -> Identity:
    directories = open_log_directories(files, paths)
    try:
        return format_directories(
            files,
            directories,
            metadata_path="data",
            node_id=1,
            random=Random(seed),
            now=Now(1, 1_800_000_000_000),
            bootstrap=BOOTSTRAP,
            listeners=[LISTENER],
        )
    finally:
        directories.release()


def test_a_new_directory_holds_what_kafkas_tool_writes() -> None:
    files = MemoryFiles()
    identity = formatted(files)
    assert files.list("data") == [
        ".lock",
        "__cluster_metadata-0",
        BOOTSTRAP_CHECKPOINT,
        "meta.properties",
    ]
    assert files.list(FOLDER) == [FIRST.rpartition("/")[2]]
    assert identity.is_new
    assert parse_uuid(identity.cluster_id) is not None
    assert b"\nversion=1\n" in files.read_whole(META)


def test_the_node_is_the_only_voter() -> None:
    files = MemoryFiles()
    identity = formatted(files)
    version, voters = Snapshot(files, FIRST).controls
    assert isinstance(version, KRaftVersionRecord) and version.k_raft_version == 1
    assert isinstance(voters, VotersRecord)
    key = ReplicaKey(1, identity.metadata_directory_id)
    assert voters_of(voters) == Voters((Voter(key, (LISTENER,)),))


def test_the_bootstrap_records_can_be_read_back() -> None:
    files = MemoryFiles()
    assert bootstrap_records(files, "data") == []
    formatted(files)
    assert bootstrap_records(files, "data") == BOOTSTRAP
    assert Snapshot(files, f"data/{BOOTSTRAP_CHECKPOINT}").last_contained_log_timestamp == 0


def test_what_is_formatted_stays_as_it_is() -> None:
    files = MemoryFiles()
    first = formatted(files)
    before = {path: files.read_whole(path) for path in (META, FIRST)}
    again = formatted(files, seed=2)
    assert again == first._replace(is_new=False)
    assert before == {path: files.read_whole(path) for path in (META, FIRST)}


def test_every_directory_has_an_id_of_its_own_and_one_cluster() -> None:
    files = MemoryFiles()
    one = formatted(files)
    both = formatted(files, paths=("more", "data"), seed=2)
    assert both.cluster_id == one.cluster_id
    assert not both.is_new, "the metadata log was there"
    assert set(both.directory_ids.values()) == {"data", "more"}
    assert one.metadata_directory_id in both.directory_ids
    assert files.list("more") == [".lock", "meta.properties"]


def test_a_directory_of_before_directory_ids_gets_one() -> None:
    files = MemoryFiles()
    files.make_directory("data")
    text = b"version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAABQ\nnode.id=1\n"
    files.write_atomically_now(META, text)
    identity = formatted(files)
    assert identity.cluster_id == "AAAAAAAAAAAAAAAAAAAABQ"
    assert b"directory.id=" in files.read_whole(META)
    assert files.list("data") == [".lock", "meta.properties"], "it was formatted long ago"


def test_a_node_that_is_not_new_is_not_given_a_new_metadata_log() -> None:
    files = MemoryFiles()
    formatted(files)
    files.rename("data", "more")
    with pytest.raises(ForeignDirectory, match=r"data: has no .* its metadata log is missing"):
        formatted(files, paths=("data", "more"))
    assert files.list("data") == [".lock"]


@pytest.mark.parametrize("folder", ["topic-0", "__cluster_metadata-0"])
def test_logs_that_nobody_claims_are_not_taken_over(folder: str) -> None:
    files = MemoryFiles()
    files.make_directory("data")
    files.make_directory(f"data/{folder}")
    files.create(f"data/{folder}/{0:020d}.log").close()
    with pytest.raises(ForeignDirectory, match=r"no meta\.properties says whose it is"):
        formatted(files)
    assert not files.exists(META)


def test_a_formatting_that_is_cut_short_is_done_again() -> None:
    files = MemoryFiles()
    journal = files.record()
    formatted(files)
    random = Random(3)
    for count in journal.cuts():
        crash = random.choice(list(Crash))
        rig = Rig(journal.disk_at(count).crash(random, crash))
        formatted(rig.files, seed=2)
        assert rig.life(nothing).commits == [(0, 2, 1, [])]
        assert bootstrap_records(rig.files, "data") == BOOTSTRAP
