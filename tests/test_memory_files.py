"""The disk of the crash tests: what survives, what fails, and how it is told again."""

import asyncio
import errno
from collections.abc import Callable
from random import Random

import pytest

from ottla.storage.errors import DiskFailed, DiskFull, OutOfResources, StorageError
from ottla.storage.files import File
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation

SEEDS = range(200)


def a_disk() -> tuple[MemoryFiles, File]:
    """A disk with one file, and all of it durable."""
    files = MemoryFiles()
    files.make_directory("/d")
    files.sync_directory_now("/")
    file = files.create("/d/a")
    files.sync_directory_now("/d")
    return files, file


def contents(files: MemoryFiles, path: str = "/d") -> dict[str, bytes]:
    return {name: files.read_whole(f"{path}/{name}") for name in files.list(path)}


def outcomes(files: MemoryFiles, crash: Crash, name: str = "a") -> set[bytes]:
    """Everything that a file may hold after a crash, by many seeds."""
    return {files.crash(Random(seed), crash).read_whole(f"/d/{name}") for seed in SEEDS}


def names(files: MemoryFiles, crash: Crash) -> set[tuple[str, ...]]:
    return {tuple(files.crash(Random(seed), crash).list("/d")) for seed in SEEDS}


# --- what survives of a file --------------------------------------------------------------


def test_what_was_synced_survives_every_crash() -> None:
    files, file = a_disk()
    file.append(b"abc")
    file.write(1, b"X")
    file.sync_now()
    for crash in Crash:
        assert outcomes(files, crash) == {b"aXc"}


def test_without_a_sync_only_the_durable_bytes_are_sure() -> None:
    files, file = a_disk()
    file.append(b"abc")
    file.sync_now()
    file.append(b"def")
    assert outcomes(files, Crash.SYNCED) == {b"abc"}
    assert outcomes(files, Crash.EVERYTHING) == {b"abcdef"}


def test_a_prefix_of_the_writes_survives() -> None:
    files, file = a_disk()
    for part in (b"a", b"b", b"c"):
        file.append(part)
    assert outcomes(files, Crash.PREFIX) == {b"", b"a", b"ab", b"abc"}


def test_any_of_the_writes_survive_and_leave_zeros_for_the_others() -> None:
    files, file = a_disk()
    for part in (b"a", b"b", b"c"):
        file.append(part)
    assert outcomes(files, Crash.SUBSET) == {
        b"", b"a", b"\0b", b"ab", b"\0\0c", b"a\0c", b"\0bc", b"abc",
    }  # fmt: skip


def test_a_write_is_torn_at_any_byte() -> None:
    files, file = a_disk()
    file.append(b"ab")
    file.append(b"cd")
    assert outcomes(files, Crash.TORN_BYTE) == {b"", b"a", b"ab", b"abc", b"abcd"}


def test_a_write_is_torn_at_sectors_of_the_file() -> None:
    files, file = a_disk()
    file.append(b"a" * 500)
    file.sync_now()
    file.append(b"b" * 600)
    pieces = (b"b" * 12, b"b" * 512, b"b" * 76)
    expected = set()
    for chosen in range(8):
        content = bytearray(b"a" * 500)
        for i, start in enumerate((500, 512, 1024)):
            if chosen >> i & 1:
                content += bytes(start - len(content)) + pieces[i]
        expected.add(bytes(content))
    assert outcomes(files, Crash.TORN_SECTORS) == expected


def test_a_size_arrives_without_its_data() -> None:
    files, file = a_disk()
    file.append(b"ab")
    file.sync_now()
    file.append(b"cd")
    file.write(0, b"X")
    assert outcomes(files, Crash.ZEROS) == {b"ab\0\0", b"abcd", b"Xb\0\0", b"Xbcd"}


def test_a_truncation_may_be_lost_but_not_before_a_later_write() -> None:
    files, file = a_disk()
    file.append(b"abcdef")
    file.sync_now()
    file.truncate(2)
    assert outcomes(files, Crash.PREFIX) == {b"abcdef", b"ab"}
    file.append(b"X")
    assert outcomes(files, Crash.PREFIX) == {b"abcdef", b"ab", b"abX"}
    assert outcomes(files, Crash.SUBSET) == {b"abcdef", b"ab", b"abX"}


def test_a_killed_process_leaves_all_that_it_wrote_and_no_more_of_it_durable() -> None:
    files, file = a_disk()
    file.append(b"abc")
    files.lock("/d/.lock")
    left = files.copy()
    assert left.read_whole("/d/a") == b"abc"
    left.lock("/d/.lock")
    assert outcomes(left, Crash.SYNCED) == {b""}
    # Whoever opens the file does not know what of it is durable, and so its sync is a real one.
    left.open("/d/a").sync_now()
    assert outcomes(left, Crash.SYNCED) == {b"abc"}


def test_a_crash_leaves_the_crashed_disk_alone() -> None:
    files, file = a_disk()
    file.append(b"abc")
    after = files.crash(Random(1), Crash.EVERYTHING)
    reopened = after.open("/d/a")
    reopened.append(b"new")
    file.append(b"def")
    assert files.read_whole("/d/a") == b"abcdef"
    assert after.read_whole("/d/a") == b"abcnew"


# --- what survives of names ---------------------------------------------------------------


def test_a_new_name_is_lost_until_its_directory_is_synced() -> None:
    files, _ = a_disk()
    created = files.create("/d/b")
    created.append(b"x")
    created.sync_now()
    assert names(files, Crash.SYNCED) == {("a",)}
    assert names(files, Crash.LOST_NAMES) == {("a",), ("a", "b")}
    files.sync_directory_now("/d")
    for crash in Crash:
        assert names(files, crash) == {("a", "b")}


def test_a_removal_comes_back_until_its_directory_is_synced() -> None:
    files, file = a_disk()
    file.append(b"x")
    file.sync_now()
    files.remove("/d/a")
    assert contents(files.crash(Random(1), Crash.SYNCED)) == {"a": b"x"}
    assert names(files, Crash.LOST_NAMES) == {(), ("a",)}


def test_a_rename_is_lost_or_leaves_both_names_until_its_directory_is_synced() -> None:
    files, file = a_disk()
    file.append(b"x")
    file.sync_now()
    files.rename("/d/a", "/d/b")
    assert names(files, Crash.SYNCED) == {("a",)}
    assert names(files, Crash.LOST_NAMES) == {("a",), ("b",)}
    assert names(files, Crash.BOTH_NAMES) == {("a", "b"), ("b",)}
    assert contents(files.crash(Random(2), Crash.EVERYTHING)) == {"b": b"x"}
    files.sync_directory_now("/d")
    assert names(files, Crash.MIXED) == {("b",)}


def test_a_folder_whose_name_is_lost_takes_its_files_with_it() -> None:
    files, _ = a_disk()
    files.make_directory("/d/t-0")
    file = files.create("/d/t-0/b")
    file.append(b"x")
    file.sync_now()
    files.sync_directory_now("/d/t-0")
    assert names(files, Crash.SYNCED) == {("a",)}
    files.sync_directory_now("/d")
    assert files.crash(Random(1), Crash.SYNCED).read_whole("/d/t-0/b") == b"x"


def test_a_folder_renamed_without_a_sync_has_its_old_name() -> None:
    files, _ = a_disk()
    files.make_directory("/d/t-0")
    files.create("/d/t-0/b")
    files.sync_directory_now("/d/t-0")
    files.sync_directory_now("/d")
    files.rename("/d/t-0", "/d/t-0.x-delete")
    after = files.crash(Random(1), Crash.SYNCED)
    assert after.list("/d") == ["a", "t-0"]
    assert after.list("/d/t-0") == ["b"]
    assert files.crash(Random(1), Crash.EVERYTHING).list("/d/t-0.x-delete") == ["b"]


def test_an_atomic_replacement_survives_whole_at_every_cut() -> None:
    files, _ = a_disk()
    files.write_atomically_now("/d/c", b"old")
    journal = files.record()
    files.write_atomically_now("/d/c", b"new")
    seen = set()
    for count in journal.cuts():
        for seed in SEEDS:
            seen.add(journal.disk_at(count).crash(Random(seed)).read_whole("/d/c"))
    assert seen == {b"old", b"new"}
    assert files.crash(Random(1), Crash.SYNCED).read_whole("/d/c") == b"new"


# --- faults -------------------------------------------------------------------------------

FAULTS: list[tuple[str, Fault, Callable[[MemoryFiles, File], object], type[StorageError]]] = [
    ("write", Fault.EIO, lambda d, f: f.append(b"xyz"), DiskFailed),
    ("write", Fault.EROFS, lambda d, f: f.append(b"xyz"), DiskFailed),
    ("write", Fault.ENOSPC, lambda d, f: f.append(b"xyz"), DiskFull),
    ("write", Fault.EDQUOT, lambda d, f: f.append(b"xyz"), DiskFull),
    ("write", Fault.SHORT_WRITE, lambda d, f: f.append(b"xyz"), DiskFull),
    ("write", Fault.ENOMEM, lambda d, f: f.append(b"xyz"), OutOfResources),
    ("resize", Fault.EIO, lambda d, f: f.truncate(1), DiskFailed),
    ("resize", Fault.ENOSPC, lambda d, f: f.preallocate(99), DiskFull),
    ("read", Fault.EIO, lambda d, f: f.read(0, 1), DiskFailed),
    ("read_cached", Fault.EIO, lambda d, f: f.read_cached(0, 1), DiskFailed),
    ("read", Fault.EIO, lambda d, f: asyncio.run(_read_cold(f)), DiskFailed),
    ("sync", Fault.EIO, lambda d, f: f.sync_now(), DiskFailed),
    ("sync", Fault.ENOSPC, lambda d, f: f.sync_now(), DiskFailed),
    ("sync", Fault.ENOSPC, lambda d, f: asyncio.run(f.sync()), DiskFailed),
    ("sync_directory", Fault.EIO, lambda d, f: d.sync_directory_now("/d"), DiskFailed),
    ("sync_directory", Fault.ENOSPC, lambda d, f: d.sync_directory_now("/d"), DiskFailed),
    ("sync_directory", Fault.EMFILE, lambda d, f: d.sync_directory_now("/d"), OutOfResources),
    ("create", Fault.ENOSPC, lambda d, f: d.create("/d/b"), DiskFull),
    ("create", Fault.EMFILE, lambda d, f: d.create("/d/b"), OutOfResources),
    ("open", Fault.ENFILE, lambda d, f: d.open("/d/x"), OutOfResources),
    ("make_directory", Fault.ENOSPC, lambda d, f: d.make_directory("/d/b"), DiskFull),
    ("rename", Fault.EIO, lambda d, f: d.rename("/d/x", "/d/b"), DiskFailed),
    ("remove", Fault.EIO, lambda d, f: d.remove("/d/x"), DiskFailed),
    ("remove_directory", Fault.EIO, lambda d, f: d.remove_directory("/d/e"), DiskFailed),
    ("list", Fault.EIO, lambda d, f: d.list("/d"), DiskFailed),
    ("read", Fault.EIO, lambda d, f: d.read_whole("/d/x"), DiskFailed),
]


async def _read_cold(file: File) -> memoryview:
    return await file.read_cold(0, 1)


@pytest.mark.parametrize(("kind", "fault", "call", "error"), FAULTS)
def test_a_fault_is_met_once_by_the_operation_that_it_was_armed_for(
    kind: str,
    fault: Fault,
    call: Callable[[MemoryFiles, File], object],
    error: type[StorageError],
) -> None:
    files, file = a_disk()
    file.append(b"abc")
    files.create("/d/x").close()
    files.make_directory("/d/e")
    before = contents_and_folders(files)
    met: list[Operation] = []

    def when(operation: Operation) -> bool:
        met.append(operation)
        return operation.kind == kind

    files.fail(when, fault)
    with pytest.raises(error):
        call(files, file)
    assert any(operation.kind == kind for operation in met)
    assert contents_and_folders(files) == before
    # It was one fault: the others find a disk that works.
    files.create("/d/other").append(b"fine")


def contents_and_folders(files: MemoryFiles) -> dict[str, bytes | None]:
    paths = {name: f"/d/{name}" for name in files.list("/d")}
    return {
        name: None if files.is_directory(path) else files.read_whole(path)
        for name, path in paths.items()
    }


def test_a_fault_is_armed_by_the_number_of_an_operation() -> None:
    files, file = a_disk()
    first = files.operation_count
    files.fail(first + 1, Fault.ENOSPC)
    file.append(b"a")
    with pytest.raises(DiskFull):
        file.append(b"b")
    # The write that failed, and the cut back after it.
    assert files.operation_count == first + 3
    file.append(b"c")
    assert file.read(0, 9) == b"ac"


def test_a_fault_may_come_as_often_as_it_is_armed_for() -> None:
    files, file = a_disk()
    files.fail(lambda operation: operation.kind == "write", Fault.ENOSPC, times=2)
    for _ in range(2):
        with pytest.raises(DiskFull):
            file.append(b"x")
    file.append(b"x")
    files.fail(lambda operation: operation.path.startswith("/d/"), Fault.EMFILE, times=None)
    for _ in range(9):
        with pytest.raises(OutOfResources):
            files.create("/d/b")


def test_a_cut_back_that_fails_too_is_a_failed_disk() -> None:
    files, file = a_disk()
    files.fail(lambda operation: operation.kind == "write", Fault.SHORT_WRITE)
    files.fail(lambda operation: operation.kind == "resize", Fault.ENOSPC)
    with pytest.raises(DiskFailed, match="cannot cut back"):
        file.append(b"xyz")
    with pytest.raises(DiskFailed, match="cannot cut back"):
        file.append(b"x")


def test_what_a_failed_fsync_dropped_no_later_fsync_writes() -> None:
    files, file = a_disk()
    file.append(b"abc")
    files.fail(lambda operation: operation.kind == "sync", Fault.EIO)
    with pytest.raises(DiskFailed):
        file.sync_now()
    file.close()
    again = files.open("/d/a")
    assert again.read(0, 9) == b"abc"
    again.sync_now()
    again.append(b"def")
    again.sync_now()
    assert outcomes(files, Crash.EVERYTHING) == {b"\0\0\0def"}


def test_names_that_a_failed_directory_sync_dropped_no_later_one_writes() -> None:
    files, _ = a_disk()
    files.create("/d/b")
    files.fail(lambda operation: operation.kind == "sync_directory", Fault.EIO)
    with pytest.raises(DiskFailed):
        files.sync_directory_now("/d")
    with pytest.raises(DiskFailed):
        files.sync_directory_now("/d")
    assert files.list("/d") == ["a", "b"]
    assert names(files, Crash.EVERYTHING) == {("a",)}


def test_a_cold_page_is_read_by_the_awaited_read_only() -> None:
    files, file = a_disk()
    file.append(b"abc")
    files.fail(lambda operation: operation.path == "/d/a", Fault.COLD, times=None)
    assert file.read_cached(0, 3) is None
    assert file.read_cached_into(0, bytearray(3)) is None
    assert file.read(0, 3) == b"abc"
    assert bytes(asyncio.run(file.read_cold(0, 3))) == b"abc"


def test_a_slow_disk_is_slow_only_to_those_who_await() -> None:
    async def story() -> list[str]:
        order: list[str] = []

        async def sync() -> None:
            await file.sync()
            order.append("synced")

        async def read() -> None:
            await file.read_cold(0, 1)
            order.append("read")

        tasks = [asyncio.ensure_future(sync()), asyncio.ensure_future(read())]
        await asyncio.sleep(0)
        file.append(b"d")
        assert outcomes(files, Crash.SYNCED) == {b""}
        await asyncio.gather(*tasks)
        return order

    asked: list[tuple[str, str]] = []

    def delay_s(kind: str, path: str) -> float:
        asked.append((kind, path))
        return 0.001 if kind == "sync" else 0.0

    files = MemoryFiles(delay_s=delay_s)
    files.make_directory("/d")
    files.sync_directory_now("/")
    file = files.create("/d/a")
    files.sync_directory_now("/d")
    file.append(b"abc")
    assert asyncio.run(story()) == ["read", "synced"]
    assert asked == [("sync", "/d/a"), ("read", "/d/a")]


def test_a_sync_that_blocks_takes_the_awaited_one_with_it() -> None:
    async def story() -> None:
        waiting = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        file.sync_now()
        assert outcomes(files, Crash.SYNCED) == {b"abc"}
        await waiting

    files, file = a_disk()
    file.append(b"abc")
    asyncio.run(story())


def test_writers_who_wait_at_the_same_time_share_a_sync() -> None:
    async def write(number: int) -> None:
        file.append(b"%04d" % number)
        end = file.size
        await file.sync()
        assert len(files.crash(Random(1), Crash.SYNCED).read_whole("/d/a")) >= end

    async def write_all() -> None:
        await asyncio.gather(*(write(number) for number in range(50)))

    files, file = a_disk()
    journal = files.record()
    asyncio.run(write_all())
    assert sum(operation.kind == "sync" for operation in journal.operations) == 2


def test_a_changed_file_bears_the_time_of_the_clock() -> None:
    now = [5000]
    files = MemoryFiles(now_ms=lambda: now[0])
    file = files.create("/a")
    assert files.mtime_ms("/a") == 5000
    now[0] = 6000
    file.append(b"x")
    assert files.mtime_ms("/a") == 6000
    assert files.crash(Random(1), Crash.EVERYTHING).mtime_ms("/a") == 6000


# --- the journal --------------------------------------------------------------------------


def change_a_file(files: MemoryFiles, file: File, random: Random) -> None:
    match random.randrange(8):
        case 0 | 1 | 2:
            file.append(random.randbytes(random.randrange(1500)))
        case 3:
            file.write(random.randrange(file.size + 9), random.randbytes(20))
        case 4:
            file.truncate(random.randrange(file.size + 1))
        case 5:
            file.sync_now()
        case 6:
            files.rename(file.path, f"/d/{random.randrange(20)}")
        case 7:
            files.remove(file.path)


def random_workload(files: MemoryFiles, random: Random) -> None:
    """All kinds of operations, some of which fail, by files that come, move and go."""
    opened: list[File] = []
    for number in range(120):
        choice = random.randrange(10)
        try:
            if choice == 0:
                files.sync_directory_now("/d")
                files.write_atomically_now("/d/checkpoint", b"%d" % number)
            elif choice < 3 or not opened:
                opened.append(files.create(f"/d/{random.randrange(9)}"))
            else:
                change_a_file(files, random.choice(opened), random)
        except (StorageError, OSError, ValueError):
            opened = [file for file in opened if not file._closed]


@pytest.mark.parametrize("seed", range(20))
def test_the_disk_after_any_operation_is_rebuilt_from_the_journal(seed: int) -> None:
    random = Random(seed)
    files, _ = a_disk()
    kinds = [Fault.SHORT_WRITE, Fault.ENOSPC, Fault.EIO, Fault.EMFILE]
    files.fail(lambda _: random.random() < 0.02, random.choice(kinds), times=None)
    snapshots: list[MemoryFiles] = []
    note = files._note

    def noting(*positional: str, **named: object) -> Fault | None:
        snapshots.append(files.copy())
        return note(*positional, **named)  # type: ignore[arg-type]

    files._note = noting  # type: ignore[method-assign]
    journal = files.record()
    random_workload(files, random)
    snapshots.append(files.copy())
    assert len(snapshots) == len(journal.operations) + 1
    for count in [*range(len(snapshots)), len(snapshots) // 2, 3]:
        rebuilt = journal.disk_at(count)
        for crash in (Crash.SYNCED, Crash.SUBSET, Crash.MIXED):
            expected = snapshots[count].crash(Random(count), crash)
            assert contents(rebuilt.crash(Random(count), crash)) == contents(expected)
        assert contents(rebuilt) == contents(snapshots[count])


def test_a_journal_begins_with_the_disk_as_it_was() -> None:
    files, file = a_disk()
    file.append(b"not synced")
    journal = files.record()
    file.append(b", nor this")
    assert contents(journal.disk_at(0)) == {"a": b"not synced"}
    assert contents(journal.disk_at(0).crash(Random(1), Crash.SYNCED)) == {"a": b""}
    assert contents(journal.disk_at(1)) == {"a": b"not synced, nor this"}


def test_a_journal_is_cut_only_where_something_changed() -> None:
    files, file = a_disk()
    journal = files.record()
    file.append(b"abc")
    file.read(0, 3)
    files.list("/d")
    file.sync_now()
    assert [operation.kind for operation in journal.operations] == ["write", "read", "list", "sync"]
    assert journal.cuts() == [0, 3, 4]
    assert journal.operations[0] == Operation(
        number=journal.operations[0].number, kind="write", path="/d/a", data=b"abc"
    )


def test_a_failed_operation_is_told_with_its_fault() -> None:
    files, file = a_disk()
    journal = files.record()
    files.fail(lambda operation: operation.kind == "write", Fault.SHORT_WRITE)
    with pytest.raises(DiskFull):
        file.append(b"abcd")
    write, cut = journal.operations
    assert (write.fault, write.taken, write.failed) == (Fault.SHORT_WRITE, b"ab", False)
    assert (cut.kind, cut.size) == ("resize", 0)
    assert Fault.EIO.value == errno.EIO


def test_a_directory_sync_that_never_began_loses_no_names_when_told_again() -> None:
    files, _ = a_disk()
    journal = files.record()
    files.create("/d/b").close()
    for fault in (Fault.EMFILE, Fault.EIO):
        files.fail(lambda operation: operation.kind == "sync_directory", fault)
        with pytest.raises(StorageError):
            files.sync_directory_now("/d")
    assert names(journal.disk_at(2), Crash.EVERYTHING) == {("a", "b")}
    assert names(journal.disk_at(3), Crash.EVERYTHING) == {("a",)}
