"""Log directories: locked before they are read, refused where they are another's."""

from collections.abc import Callable
from random import Random

import pytest

from ottla.storage.errors import CorruptFile, LockTaken, OutOfResources
from ottla.storage.log_dirs import (
    ForeignDirectory,
    MetaProperties,
    meta_properties_text,
    new_directory_id,
    open_log_directories,
    parse_meta_properties,
)
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from tests.kafka_directories import files as kafkas_files

ID_A, ID_B = bytes.fromhex("86c4a4e9feec42409fc7e7cf91c9cf3a"), bytes(range(16))


def write_meta(
    files: MemoryFiles, path: str, *, cluster: str = "C", node: int = 1, id_: bytes = ID_A
) -> None:
    if not files.exists(path):
        files.make_directory(path)
    text = meta_properties_text(cluster_id=cluster, node_id=node, directory_id=id_, wall_ms=0)
    files.write_atomically_now(f"{path}/meta.properties", text)


# --- meta.properties ----------------------------------------------------------------------


def test_meta_properties_are_written_as_kafka_does() -> None:
    text = meta_properties_text(
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        node_id=1,
        directory_id=ID_A,
        wall_ms=1_795_006_619_123,
    )
    assert text == (
        b"#\n#Wed Nov 18 12:56:59 UTC 2026\nnode.id=1\ndirectory.id=hsSk6f7sQkCfx-fPkcnPOg\n"
        b"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n"
    )
    assert parse_meta_properties("m", text) == MetaProperties("MkU3OEVBNTcwNTJENDM2Qk", 1, ID_A)


def test_meta_properties_of_a_real_kafka_are_written_alike() -> None:
    written = {p: data for p, data in kafkas_files().items() if p.endswith("meta.properties")}
    assert written
    for path, data in written.items():
        meta = parse_meta_properties(path, data)
        assert meta.cluster_id is not None
        assert meta.node_id is not None
        assert meta.directory_id is not None
        again = meta_properties_text(
            cluster_id=meta.cluster_id,
            node_id=meta.node_id,
            directory_id=meta.directory_id,
            wall_ms=0,
        )
        assert again.splitlines()[2:] == data.splitlines()[2:]


def test_meta_properties_from_before_kraft_may_lack_everything() -> None:
    assert parse_meta_properties("m", b"") == MetaProperties(None, None, None)
    old = b"version=0\nbroker.id=7\ncluster.id=C\n"
    assert parse_meta_properties("m", old) == MetaProperties("C", 7, None)


CORRUPT = [  # data, the complaint
    (b"version=2\n", "version: '2' is unknown"),
    (b"version=1\nnode.id=1\n", "cluster.id: is missing"),
    (b"version=1\ncluster.id=C\n", "node.id: is missing"),
    (b"version=1\ncluster.id=C\nbroker.id=1\n", "node.id: is missing"),
    (b"version=1\ncluster.id=C\nnode.id=x\n", "node.id: 'x' is no id of a node"),
    (b"version=1\ncluster.id=C\nnode.id=-1\n", "node.id: '-1' is no id of a node"),
    (
        b"version=1\ncluster.id=C\nnode.id=2147483648\n",
        "node.id: '2147483648' is no id of a node",
    ),
    (b"directory.id=x\n", "directory.id: 'x' is no id of a directory"),
    (
        b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
        "directory.id: 'AAAAAAAAAAAAAAAAAAAAAQ' is no id of a directory",
    ),
    (b"a=\\u1\n", "line 1: \\\\u without four hexadecimal digits"),
]


@pytest.mark.parametrize(("data", "complaint"), CORRUPT)
def test_corrupt_meta_properties_are_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile, match=f"^/d/meta.properties: {complaint}$"):
        parse_meta_properties("/d/meta.properties", data)


def test_a_new_directory_id_is_none_of_kafkas_own_and_begins_with_no_dash() -> None:
    class Drawn(Random):
        def __init__(self, *numbers: int) -> None:
            super().__init__()
            self.numbers = list(numbers)

        def getrandbits(self, k: int, /) -> int:
            return self.numbers.pop(0)

    dash = 0b111110 << 122
    assert new_directory_id(Drawn(0, 99, dash, 100)) == (100).to_bytes(16, "big")
    assert new_directory_id(Random(1)) == new_directory_id(Random(1))


# --- the directories of a node ------------------------------------------------------------


def test_a_directory_that_is_missing_is_made_with_its_parents() -> None:
    files = MemoryFiles()
    found = open_log_directories(files, ["/var/lib/ottla"])
    assert found.online["/var/lib/ottla"].meta is None
    assert found.offline == {}
    # Its name lives through a crash: all above it were synced.
    assert files.crash(Random(1), Crash.SYNCED).is_directory("/var/lib/ottla")


@pytest.mark.parametrize("path", ["ottla-data", "a/b", "/c"])
def test_any_spelling_of_a_path_will_do(path: str) -> None:
    assert list(open_log_directories(MemoryFiles(), [path]).online) == [path]


def test_directories_of_one_node_are_opened_and_locked() -> None:
    files = MemoryFiles()
    write_meta(files, "/a", id_=ID_A)
    write_meta(files, "/b", id_=ID_B)
    found = open_log_directories(files, ["/a", "/b", "/new"])
    assert {path: one.meta for path, one in found.online.items()} == {
        "/a": MetaProperties("C", 1, ID_A),
        "/b": MetaProperties("C", 1, ID_B),
        "/new": None,
    }
    for path in found.online:
        with pytest.raises(LockTaken):
            files.lock(f"{path}/.lock")
    found.release()
    files.lock("/a/.lock")


def test_a_directory_in_use_is_refused_with_nothing_touched() -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    write_meta(files, "/b", id_=ID_B)
    lock = files.lock("/b/.lock")
    with pytest.raises(LockTaken, match=r"^/b/\.lock: is locked by this process$"):
        open_log_directories(files, ["/new", "/a", "/b"])
    assert not files.exists("/new")
    lock.release()
    # The lock that was taken meanwhile was given back.
    open_log_directories(files, ["/a", "/b"])


def test_the_lock_is_taken_before_anything_is_read() -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    journal = files.record()
    lock = files.lock("/a/.lock")
    journal.operations.clear()
    with pytest.raises(LockTaken):
        open_log_directories(files, ["/a"])
    assert journal.operations == []
    lock.release()


FOREIGN: list[tuple[Callable[[MemoryFiles], None], str]] = [
    (
        lambda f: write_meta(f, "/b", cluster="D", id_=ID_B),
        "is of cluster D, and this is cluster C",
    ),
    (lambda f: write_meta(f, "/b", node=2, id_=ID_B), "is of node 2, and this is node 1"),
    (lambda f: write_meta(f, "/b"), "has the directory.id of /a/meta.properties"),
]


@pytest.mark.parametrize(("write", "complaint"), FOREIGN)
def test_a_directory_that_does_not_belong_is_refused(
    write: Callable[[MemoryFiles], None], complaint: str
) -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    write(files)
    with pytest.raises(ForeignDirectory, match=f"^/b/meta.properties: {complaint}$"):
        open_log_directories(files, ["/a", "/b"])
    files.lock("/a/.lock")
    files.lock("/b/.lock")


def test_a_directory_is_compared_with_what_the_node_expects() -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    with pytest.raises(ForeignDirectory, match="is of cluster C, and this is cluster D"):
        open_log_directories(files, ["/a"], cluster_id="D")
    with pytest.raises(ForeignDirectory, match="is of node 1, and this is node 0"):
        open_log_directories(files, ["/a"], node_id=0)
    open_log_directories(files, ["/a"], cluster_id="C", node_id=1)


def test_what_an_old_kafka_left_out_is_no_difference() -> None:
    files = MemoryFiles()
    files.make_directory("/a")
    files.write_atomically_now("/a/meta.properties", b"version=0\n")
    write_meta(files, "/b")
    open_log_directories(files, ["/a", "/b"], cluster_id="C", node_id=1)


# --- a directory that fails ---------------------------------------------------------------

FAILURES: list[tuple[Callable[[Operation], bool], Fault]] = [
    (lambda o: o.kind == "read" and o.path == "/b/meta.properties", Fault.EIO),
    (lambda o: o.kind == "create" and o.path == "/b/.lock", Fault.EROFS),
    (lambda o: o.kind == "create" and o.path == "/b/.lock", Fault.ENOSPC),
]


@pytest.mark.parametrize(("when", "fault"), FAILURES)
def test_a_directory_that_fails_is_offline_alone(
    when: Callable[[Operation], bool], fault: Fault
) -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    write_meta(files, "/b", id_=ID_B)
    files.fail(when, fault)
    found = open_log_directories(files, ["/a", "/b"])
    assert list(found.online) == ["/a"]
    assert list(found.offline) == ["/b"]
    assert found.offline["/b"].startswith("/b/")
    # Nothing of it is kept locked.
    files.lock("/b/.lock")


def test_a_directory_with_corrupt_meta_properties_is_offline_alone() -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    files.make_directory("/b")
    files.write_atomically_now("/b/meta.properties", b"version=9\n")
    found = open_log_directories(files, ["/a", "/b"])
    assert found.offline == {"/b": "/b/meta.properties: version: '9' is unknown"}


def test_a_path_that_is_a_file_is_offline() -> None:
    files = MemoryFiles()
    files.create("/b").close()
    assert open_log_directories(files, ["/b"]).offline == {"/b": "/b: is not a directory"}


def test_want_of_descriptors_takes_no_directory_offline() -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    files.fail(lambda o: o.kind == "create", Fault.EMFILE)
    with pytest.raises(OutOfResources):
        open_log_directories(files, ["/a"])


def test_a_directory_taken_offline_later_gives_its_lock_back() -> None:
    files = MemoryFiles()
    write_meta(files, "/a")
    found = open_log_directories(files, ["/a"])
    found.take_offline("/a", "cannot sync")
    assert (found.online, found.offline) == ({}, {"/a": "cannot sync"})
    files.lock("/a/.lock")
