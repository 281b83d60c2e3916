"""What storage may rely on, whichever disk is behind the door: one contract, two disks."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.storage.disk_files import DiskFiles
from ottla.storage.errors import LockTaken
from ottla.storage.files import Files
from ottla.storage.memory_files import MemoryFiles


class Disk:
    def __init__(self, files: Files, folder: str) -> None:
        self.files = files
        self.folder = folder

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"


@pytest.fixture(params=["disk", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "disk":
        files: Files = DiskFiles()
        folder = str(tmp_path)
    else:
        files = MemoryFiles()
        files.make_directory("/d")
        folder = "/d"
    yield Disk(files, folder)
    files.close()


# --- one file -----------------------------------------------------------------------------


def test_an_append_returns_where_it_begins(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    assert file.append(b"abc") == 0
    assert file.append(bytearray(b"de"), memoryview(b"xfgx")[1:3]) == 3
    assert file.size == 7
    assert file.read(0, 100) == b"abcdefg"


def test_an_append_takes_more_buffers_than_one_system_call_does(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(*[b"%04d" % n for n in range(1500)])
    assert file.size == 6000
    assert file.read(5996, 4) == b"1499"


def test_an_append_of_nothing_changes_nothing(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    assert file.append() == 3
    assert file.append(b"") == 3
    assert file.size == 3


def test_a_write_replaces_and_extends(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abcdef")
    file.write(1, b"XY")
    assert file.read(0, 6) == b"aXYdef"
    file.write(5, b"12", b"34")
    assert file.size == 9
    assert file.read(0, 9) == b"aXYde1234"
    file.write(11, b"!")
    assert file.read(8, 10) == b"4\0\0!"


READS = [  # position, size, bytes of b"0123456789"
    (0, 10, b"0123456789"),
    (3, 4, b"3456"),
    (8, 100, b"89"),
    (10, 5, b""),
    (50, 5, b""),
    (4, 0, b""),
]


@pytest.mark.parametrize(("position", "size", "expected"), READS)
def test_a_read_ends_with_the_file(disk: Disk, position: int, size: int, expected: bytes) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"0123456789")
    assert file.read(position, size) == expected
    assert bytes(file.read_cached(position, size) or b"") == expected
    assert asyncio.run(_read_cold(disk, position, size)) == expected
    buffer = bytearray(size)
    assert file.read_cached_into(position, buffer) == len(expected)
    assert buffer[: len(expected)] == expected


async def _read_cold(disk: Disk, position: int, size: int) -> bytes:
    name = disk.path("a")
    file = disk.files._open_file(name)
    assert file is not None
    return bytes(await file.read_cold(position, size))


def test_what_a_cached_read_gave_does_not_change_later(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    seen = file.read_cached(0, 3)
    file.write(0, b"XYZ")
    file.truncate(0)
    assert seen is not None
    assert bytes(seen) == b"abc"


def test_truncate_cuts_and_preallocate_adds_zeros(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abcdef")
    file.truncate(2)
    assert (file.size, disk.files.size(file.path)) == (2, 2)
    file.preallocate(5)
    assert (file.size, file.read(0, 9)) == (5, b"ab\0\0\0")
    file.append(b"x")
    assert file.read(0, 9) == b"ab\0\0\0x"


def test_a_position_before_the_file_is_refused(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    calls: list[Callable[[], object]] = [
        lambda: file.read(-1, 2),
        lambda: file.read_cached(-1, 2),
        lambda: file.write(-1, b"x"),
    ]
    for call in calls:
        with pytest.raises(OSError, match="Invalid argument"):
            call()
    assert file.read(0, 9) == b"abc"


@pytest.mark.parametrize(("call", "size"), [("truncate", 4), ("truncate", -1), ("preallocate", 2)])
def test_a_size_in_the_wrong_direction_is_refused(disk: Disk, call: str, size: int) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    with pytest.raises(ValueError, match=f"cannot {call} .* from 3 to {size} bytes"):
        getattr(file, call)(size)
    assert file.read(0, 9) == b"abc"


def test_a_file_opened_again_continues(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    file.close()
    file = disk.files.open(disk.path("a"))
    assert file.append(b"d") == 3
    assert file.read(0, 9) == b"abcd"


def test_a_file_has_one_owner(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    with pytest.raises(ValueError, match="is open already"):
        disk.files.open(disk.path("a"))
    file.close()
    disk.files.open(disk.path("a"), read_only=True)
    with pytest.raises(ValueError, match="is open already"):
        disk.files.create(disk.path("a"))


def test_a_file_opened_to_read_refuses_a_write(disk: Disk) -> None:
    disk.files.create(disk.path("a")).close()
    file = disk.files.open(disk.path("a"), read_only=True)
    with pytest.raises(OSError):
        file.append(b"abc")
    assert disk.files.size(disk.path("a")) == 0


def test_a_closed_file_refuses_everything(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.close()
    file.close()
    calls: list[Callable[[], object]] = [
        lambda: file.append(b"x"),
        lambda: file.write(0, b"x"),
        lambda: file.read(0, 1),
        lambda: file.read_cached(0, 1),
        lambda: file.truncate(0),
        lambda: file.preallocate(9),
        file.sync_now,
        file.duplicate_descriptor,
        lambda: asyncio.run(file.sync()),
        lambda: asyncio.run(_cold(file)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="is closed"):
            call()


async def _cold(file: object) -> None:
    await file.read_cold(0, 1)  # type: ignore[attr-defined]


def test_sync_returns_now_and_awaited(disk: Disk) -> None:
    async def write_and_sync() -> None:
        await asyncio.gather(*(file.sync() for _ in range(5)))
        file.append(b"b")
        first = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        file.append(b"c")
        file.sync_now()
        await asyncio.gather(first, file.sync())

    file = disk.files.create(disk.path("a"))
    file.append(b"a")
    asyncio.run(write_and_sync())
    file.sync_now()
    assert file.read(0, 9) == b"abc"


def test_a_sync_that_nobody_waits_for_any_more_harms_nobody(disk: Disk) -> None:
    async def cancel_one() -> None:
        impatient = asyncio.ensure_future(file.sync())
        patient = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        impatient.cancel()
        await patient
        assert impatient.cancelled()

    file = disk.files.create(disk.path("a"))
    file.append(b"a")
    asyncio.run(cancel_one())


def test_a_file_removed_during_its_sync_and_its_cold_read_harms_nobody(disk: Disk) -> None:
    async def remove_meanwhile() -> bytes:
        syncing = asyncio.ensure_future(file.sync())
        reading = asyncio.ensure_future(file.read_cold(0, 3))
        await asyncio.sleep(0)
        disk.files.remove(disk.path("a"))
        await syncing
        return bytes(await reading)

    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    assert asyncio.run(remove_meanwhile()) == b"abc"
    assert disk.files.list(disk.folder) == []


# --- names --------------------------------------------------------------------------------


def test_a_directory_lists_its_names_in_order(disk: Disk) -> None:
    for name in ("b", "a", "c"):
        disk.files.create(disk.path(name))
    disk.files.make_directory(disk.path("aa"))
    assert disk.files.list(disk.folder) == ["a", "aa", "b", "c"]
    assert disk.files.is_directory(disk.path("aa"))
    assert not disk.files.is_directory(disk.path("a"))
    assert not disk.files.is_directory(disk.path("nothing"))


REFUSALS: list[tuple[str, type[OSError], Callable[[Disk], object]]] = [
    ("open missing", FileNotFoundError, lambda d: d.files.open(d.path("missing"))),
    ("open in missing", FileNotFoundError, lambda d: d.files.create(d.path("missing/a"))),
    ("open directory", IsADirectoryError, lambda d: d.files.open(d.path("directory"))),
    ("open below a file", NotADirectoryError, lambda d: d.files.open(d.path("file/a"))),
    ("create taken", FileExistsError, lambda d: d.files.create(d.path("file"))),
    ("create on directory", FileExistsError, lambda d: d.files.create(d.path("directory"))),
    ("read missing", FileNotFoundError, lambda d: d.files.read_whole(d.path("missing"))),
    ("size of missing", FileNotFoundError, lambda d: d.files.size(d.path("missing"))),
    ("time of missing", FileNotFoundError, lambda d: d.files.mtime_ms(d.path("missing"))),
    ("list missing", FileNotFoundError, lambda d: d.files.list(d.path("missing"))),
    ("list a file", NotADirectoryError, lambda d: d.files.list(d.path("file"))),
    ("make taken", FileExistsError, lambda d: d.files.make_directory(d.path("file"))),
    ("make in missing", FileNotFoundError, lambda d: d.files.make_directory(d.path("no/a"))),
    ("remove missing", FileNotFoundError, lambda d: d.files.remove(d.path("missing"))),
    ("rename missing", FileNotFoundError, lambda d: d.files.rename(d.path("no"), d.path("b"))),
    ("remove full", OSError, lambda d: d.files.remove_directory(d.path("directory"))),
    (
        "rename directory to file",
        NotADirectoryError,
        lambda d: d.files.rename(d.path("directory"), d.path("file")),
    ),
    (
        "rename file to directory",
        IsADirectoryError,
        lambda d: d.files.rename(d.path("file"), d.path("directory")),
    ),
    ("sync missing", FileNotFoundError, lambda d: d.files.sync_directory_now(d.path("missing"))),
]


@pytest.mark.parametrize(("error", "call"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_a_name_that_does_not_fit_is_refused(
    disk: Disk, error: type[OSError], call: Callable[[Disk], object]
) -> None:
    disk.files.create(disk.path("file")).close()
    disk.files.make_directory(disk.path("directory"))
    disk.files.create(disk.path("directory/inside")).close()
    with pytest.raises(error):
        call(disk)
    assert disk.files.list(disk.folder) == ["directory", "file"]
    assert disk.files.list(disk.path("directory")) == ["inside"]


def test_a_file_renamed_while_open_is_written_on(disk: Disk) -> None:
    file = disk.files.create(disk.path("00.log"))
    file.append(b"abc")
    disk.files.rename(disk.path("00.log"), disk.path("00.log.deleted"))
    file.append(b"d")
    assert file.path == disk.path("00.log.deleted")
    assert disk.files.list(disk.folder) == ["00.log.deleted"]
    assert disk.files.read_whole(disk.path("00.log.deleted")) == b"abcd"
    disk.files.create(disk.path("00.log"))


def test_a_rename_takes_the_place_of_another_file(disk: Disk) -> None:
    new, old = disk.files.create(disk.path("a.swap")), disk.files.create(disk.path("a"))
    new.append(b"new")
    disk.files.rename(disk.path("a.swap"), disk.path("a"))
    assert disk.files.list(disk.folder) == ["a"]
    assert new.read(0, 9) == b"new"
    with pytest.raises(ValueError, match="is closed"):
        old.read(0, 9)


def test_files_follow_when_their_folder_is_renamed(disk: Disk) -> None:
    disk.files.make_directory(disk.path("topic-0"))
    disk.files.make_directory(disk.path("topic-0/below"))
    file = disk.files.create(disk.path("topic-0/a"))
    deep = disk.files.create(disk.path("topic-0/below/b"))
    disk.files.make_directory(disk.path("topic-01"))
    other = disk.files.create(disk.path("topic-01/a"))
    disk.files.rename(disk.path("topic-0"), disk.path("topic-0.0-delete"))
    file.append(b"x")
    assert file.path == disk.path("topic-0.0-delete/a")
    assert deep.path == disk.path("topic-0.0-delete/below/b")
    assert other.path == disk.path("topic-01/a")
    disk.files.make_directory(disk.path("topic-0"))
    disk.files.create(disk.path("topic-0/a"))
    assert disk.files.read_whole(disk.path("topic-0.0-delete/a")) == b"x"


def test_a_tree_is_removed_with_what_is_open_in_it(disk: Disk) -> None:
    disk.files.make_directory(disk.path("t"))
    disk.files.make_directory(disk.path("t/u"))
    file = disk.files.create(disk.path("t/u/a"))
    disk.files.create(disk.path("t/b")).close()
    disk.files.remove_tree(disk.path("t"))
    assert disk.files.list(disk.folder) == []
    with pytest.raises(ValueError, match="is closed"):
        file.append(b"x")


def test_a_file_bears_the_time_that_is_set(disk: Disk) -> None:
    disk.files.create(disk.path("a")).close()
    disk.files.set_mtime_ms(disk.path("a"), 1_700_000_000_123)
    assert disk.files.mtime_ms(disk.path("a")) == 1_700_000_000_123


def test_a_directory_is_synced_now_and_awaited(disk: Disk) -> None:
    disk.files.create(disk.path("a"))
    disk.files.sync_directory_now(disk.folder)
    asyncio.run(disk.files.sync_directory(disk.folder))
    assert disk.files.exists(disk.path("a"))


# --- small files --------------------------------------------------------------------------


def test_a_small_file_is_replaced_whole(disk: Disk) -> None:
    disk.files.create(disk.path("checkpoint.tmp")).close()
    disk.files.write_atomically_now(disk.path("checkpoint"), b"first, and longer")
    assert disk.files.read_whole(disk.path("checkpoint")) == b"first, and longer"
    asyncio.run(disk.files.write_atomically(disk.path("checkpoint"), b"second"))
    assert disk.files.read_whole(disk.path("checkpoint")) == b"second"
    disk.files.write_atomically_now(disk.path("checkpoint"), b"third")
    assert disk.files.read_whole(disk.path("checkpoint")) == b"third"
    assert disk.files.list(disk.folder) == ["checkpoint"]


def test_replacements_of_a_file_keep_their_order(disk: Disk) -> None:
    async def replace_often() -> None:
        await asyncio.gather(
            *(disk.files.write_atomically(disk.path("c"), b"%d" % n) for n in range(30))
        )

    asyncio.run(replace_often())
    assert disk.files.read_whole(disk.path("c")) == b"29"


# --- the lock -----------------------------------------------------------------------------


def test_a_lock_is_held_once_and_given_back(disk: Disk) -> None:
    lock = disk.files.lock(disk.path(".lock"))
    for call in (disk.files.lock, disk.files.open, disk.files.read_whole):
        # Opening and closing the file would silently drop a POSIX lock.
        with pytest.raises(LockTaken, match=r"\.lock: is locked by this process$"):
            call(disk.path(".lock"))
    lock.release()
    lock.release()
    disk.files.lock(disk.path(".lock")).release()
    assert disk.files.read_whole(disk.path(".lock")) == b""


# --- descriptors --------------------------------------------------------------------------


def test_a_descriptor_given_away_outlives_the_file(disk: Disk) -> None:
    file = disk.files.create(disk.path("a"))
    file.append(b"abc")
    descriptor = file.duplicate_descriptor()
    disk.files.remove(disk.path("a"))
    if isinstance(disk.files, MemoryFiles):
        assert descriptor is None
    else:
        assert descriptor is not None
        assert os.pread(descriptor, 9, 0) == b"abc"
        os.close(descriptor)
