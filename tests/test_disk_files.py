"""A real disk: descriptors under a bound, threads, locks, and what a system call's error means."""

import asyncio
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.storage import disk_files
from ottla.storage.disk_files import DiskFiles
from ottla.storage.errors import DiskFailed, DiskFull, LockTaken, OutOfResources, StorageError
from ottla.storage.read_buffers import SIZE_MAX


@pytest.fixture
def files() -> Iterator[DiskFiles]:
    files = DiskFiles()
    yield files
    files.close()


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


# --- what an error means ------------------------------------------------------------------

ERRORS = [  # number, class
    (errno.EIO, DiskFailed),
    (errno.EROFS, DiskFailed),
    (errno.EACCES, DiskFailed),
    (errno.ENXIO, DiskFailed),
    (errno.ENOSPC, DiskFull),
    (errno.EDQUOT, DiskFull),
    (errno.EFBIG, DiskFull),
    (errno.ENOMEM, OutOfResources),
]


@pytest.mark.parametrize(("number", "kind"), ERRORS)
def test_a_failed_append_says_what_to_do(
    files: DiskFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[StorageError],
) -> None:
    file = files.create(f"{tmp_path}/a")
    file.append(b"abc")
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing(number))
        with pytest.raises(kind) as caught:
            file.append(b"def")
    assert str(caught.value) == f"{tmp_path}/a: cannot write: {os.strerror(number)}"
    if kind is DiskFailed:
        with pytest.raises(DiskFailed, match="cannot write"):
            file.append(b"g")
        with pytest.raises(DiskFailed, match="cannot write"):
            file.read(0, 1)
    else:
        assert file.append(b"g") == 3
        assert file.read(0, 9) == b"abcg"


def test_a_short_append_is_cut_back(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.create(f"{tmp_path}/a")
    file.append(b"abc")
    pwrite = os.pwrite
    with monkeypatch.context() as short:
        short.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:2], at))
        with pytest.raises(DiskFull, match="only 2 of 4 bytes were taken"):
            file.append(b"defg")
    assert (file.size, files.size(file.path)) == (3, 3)
    assert file.append(b"hij") == 3


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_an_append_that_cannot_be_cut_back_is_a_failed_disk(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = files.create(f"{tmp_path}/a")
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing(errno.ENOSPC))
        broken.setattr(os, "ftruncate", failing(number))
        with pytest.raises(DiskFailed, match="cannot cut back to 0 bytes"):
            file.append(b"abc")
    with pytest.raises(DiskFailed):
        file.append(b"abc")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINVAL])
def test_a_failed_fsync_is_never_tried_again(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    now, later = files.create(f"{tmp_path}/a"), files.create(f"{tmp_path}/b")
    now.append(b"abc")
    later.append(b"abc")

    async def wait_twice() -> list[BaseException | None]:
        return list(await asyncio.gather(later.sync(), later.sync(), return_exceptions=True))

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing(number))
        with pytest.raises(DiskFailed, match="cannot sync"):
            now.sync_now()
        assert [type(error) for error in asyncio.run(wait_twice())] == [DiskFailed, DiskFailed]
    for file in (now, later):
        with pytest.raises(DiskFailed, match="cannot sync"):
            file.sync_now()
        with pytest.raises(DiskFailed, match="cannot sync"):
            asyncio.run(file.sync())
        with pytest.raises(DiskFailed, match="cannot sync"):
            file.append(b"x")


def test_a_failed_fsync_under_way_fails_the_one_that_blocks(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def both() -> None:
        waiting = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        monkeypatch.undo()
        # The error was reported to the fsync in the thread; this one would see none.
        with pytest.raises(DiskFailed, match="cannot sync"):
            file.sync_now()
        with pytest.raises(DiskFailed, match="cannot sync"):
            await waiting

    file = files.create(f"{tmp_path}/a")
    file.append(b"abc")
    monkeypatch.setattr(disk_files, "_fsync", failing(errno.EIO))
    asyncio.run(both())


def test_a_failed_directory_sync_is_never_tried_again(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(DiskFailed):
            files.sync_directory_now(str(tmp_path))
    with pytest.raises(DiskFailed):
        files.sync_directory_now(str(tmp_path))
    with pytest.raises(DiskFailed):
        asyncio.run(files.sync_directory(str(tmp_path)))


def test_a_directory_that_cannot_be_opened_for_want_of_descriptors_has_not_failed(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "open", failing(errno.EMFILE))
        with pytest.raises(OutOfResources):
            files.sync_directory_now(str(tmp_path))
    files.sync_directory_now(str(tmp_path))


def test_a_replacement_that_fails_leaves_the_old_bytes(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{tmp_path}/checkpoint"
    files.write_atomically_now(path, b"old")
    for call, number, kind in [
        ("write", errno.ENOSPC, DiskFull),
        ("fsync", errno.ENOSPC, DiskFailed),
        ("rename", errno.EIO, DiskFailed),
        ("open", errno.EMFILE, OutOfResources),
    ]:
        with monkeypatch.context() as broken:
            broken.setattr(os, call, failing(number))
            with pytest.raises(kind):
                files.write_atomically_now(path, b"new")
        assert files.read_whole(path) == b"old"
    files.write_atomically_now(path, b"new")
    assert files.read_whole(path) == b"new"


# --- reads --------------------------------------------------------------------------------


def test_a_read_of_what_is_not_in_memory_says_so(files: DiskFiles, tmp_path: Path) -> None:
    file = files.create(f"{tmp_path}/a")
    file.append(bytes(8 << 20))
    if file.read_cached(0, 1) is None:  # pragma: no cover
        pytest.skip("this file system keeps nothing in memory")
    file.sync_now()
    descriptor = file.duplicate_descriptor()
    assert descriptor is not None
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except AttributeError:
        pytest.skip("the page cache cannot be told to forget")
    finally:
        os.close(descriptor)
    if not disk_files._NOWAIT or file._nowait == 0:  # type: ignore[attr-defined]
        pytest.skip("this file system cannot tell what is in memory")
    assert file.read_cached(4 << 20, 4096) is None
    assert bytes(asyncio.run(file.read_cold(4 << 20, 4096))) == bytes(4096)
    assert file.read_cached(4 << 20, 4096) is not None


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL])
def test_where_the_kernel_cannot_tell_a_cached_read_is_bounded(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "preadv", failing(number))
    monkeypatch.setattr(disk_files, "_NOWAIT", 8)
    file = files.create(f"{tmp_path}/a")
    file.append(b"abc", bytes(3 << 20))
    assert bytes(file.read_cached(0, 5) or b"") == b"abc\0\0"
    assert len(file.read_cached(0, 2 << 20) or b"") == SIZE_MAX
    assert len(file.read(0, 2 << 20)) == 2 << 20


def test_a_read_that_comes_in_pieces_is_put_together(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.create(f"{tmp_path}/a")
    file.append(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    assert file.read(1, 9) == b"123456789"
    assert file.read(8, 99) == b"89"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENXIO])
def test_a_failed_read_is_a_failed_disk(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = files.create(f"{tmp_path}/a")
    file.append(b"abc")
    monkeypatch.setattr(os, "pread", failing(number))
    monkeypatch.setattr(os, "preadv", failing(number), raising=False)
    with pytest.raises(DiskFailed, match="cannot read"):
        file.read(0, 3)
    with pytest.raises(DiskFailed, match="cannot read"):
        file.read_cached(0, 3)
    with pytest.raises(DiskFailed, match="cannot read"):
        asyncio.run(file.read_cold(0, 3))


# --- syncs --------------------------------------------------------------------------------


def test_writers_who_wait_at_the_same_time_share_an_fsync(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    async def write(number: int) -> None:
        file.append(b"%04d" % number)
        end = file.size
        await file.sync()
        assert max(synced) >= end

    async def write_all() -> None:
        await asyncio.gather(*(write(number) for number in range(50)))

    monkeypatch.setattr(disk_files, "_FULL_FSYNC", None)
    monkeypatch.setattr(os, "fsync", counted)
    file = files.create(f"{tmp_path}/a")
    asyncio.run(write_all())
    # One is under way when the others come, and those share the next.
    assert len(synced) == 2
    asyncio.run(file.sync())
    assert len(synced) == 2


def test_no_thread_starts_before_something_is_awaited(files: DiskFiles, tmp_path: Path) -> None:
    program = (
        "import sys, threading\n"
        "from ottla.storage.disk_files import DiskFiles\n"
        f"files = DiskFiles(); file = files.create({str(tmp_path)!r} + '/a')\n"
        "file.append(b'abc'); file.sync_now(); file.read_cached(0, 3)\n"
        f"files.write_atomically_now({str(tmp_path)!r} + '/b', b'x')\n"
        "assert threading.active_count() == 1\n"
        "loaded = {'asyncio', 'concurrent.futures', 'typing'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run([sys.executable, "-S", "-c", program], check=True, env=environment | _paths())


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


# --- descriptors --------------------------------------------------------------------------


def test_many_files_share_few_descriptors(tmp_path: Path) -> None:
    files = DiskFiles(descriptors_max=8)
    before = open_descriptors()
    opened = [files.create(f"{tmp_path}/{number}") for number in range(100)]
    for turn in range(3):
        for number, file in enumerate(opened):
            file.append(b"%d:%d " % (turn, number))
            assert open_descriptors() - before <= 8
    for number, file in enumerate(opened):
        expected = b"0:%d 1:%d 2:%d " % (number, number, number)
        assert file.read(0, 99) == expected
        file.sync_now()
    for file in opened:
        file.close()
    assert open_descriptors() == before
    files.close()


def test_a_file_renamed_while_its_descriptor_is_taken_is_found_again(tmp_path: Path) -> None:
    files = DiskFiles(descriptors_max=1)
    os.mkdir(f"{tmp_path}/t-0")
    first, second = files.create(f"{tmp_path}/t-0/a"), files.create(f"{tmp_path}/b")
    first.append(b"a1")
    second.append(b"b1")
    files.rename(f"{tmp_path}/t-0", f"{tmp_path}/t-0.delete")
    files.rename(f"{tmp_path}/t-0.delete/a", f"{tmp_path}/t-0.delete/c")
    second.append(b"b2")
    first.append(b"a2")
    assert files.read_whole(f"{tmp_path}/t-0.delete/c") == b"a1a2"
    files.close()


def test_a_file_that_is_opened_takes_no_descriptor_until_it_is_used(tmp_path: Path) -> None:
    files = DiskFiles()
    files.create(f"{tmp_path}/a").close()
    before = open_descriptors()
    file = files.open(f"{tmp_path}/a")
    assert open_descriptors() == before
    file.read(0, 1)
    assert open_descriptors() == before + 1
    files.close()
    assert open_descriptors() == before


def test_files_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    files = DiskFiles()
    for number in range(1000):
        files.create(f"{tmp_path}/{number}").close()
    assert len(files._clock) < 50
    assert files._open == {}
    files.close()


def test_a_descriptor_in_the_hands_of_a_thread_is_not_taken(tmp_path: Path) -> None:
    async def sync_while_others_open() -> None:
        syncing = asyncio.ensure_future(file.sync())
        reading = asyncio.ensure_future(file.read_cold(0, 3))
        await asyncio.sleep(0)
        descriptor = file._fd  # type: ignore[attr-defined]
        for number in range(5):
            files.create(f"{tmp_path}/{number}")
        assert os.fstat(descriptor).st_ino == os.stat(file.path).st_ino
        file.close()
        assert os.fstat(descriptor).st_nlink == 1
        await syncing
        assert bytes(await reading) == b"abc"
        with pytest.raises(OSError):
            os.fstat(descriptor)

    files = DiskFiles(descriptors_max=1)
    file = files.create(f"{tmp_path}/a")
    file.append(b"abc")
    asyncio.run(sync_while_others_open())
    files.close()


def test_without_descriptors_idle_files_give_theirs(tmp_path: Path) -> None:
    files = DiskFiles()
    opened = [files.create(f"{tmp_path}/{number}") for number in range(30)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() - 1, hard))
    try:
        opened += [files.create(f"{tmp_path}/{number}") for number in range(30, 60)]
        for file in opened:
            file.append(b"x")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(file.size == 1 for file in opened)
    files.close()


def test_no_descriptor_at_all_is_not_a_bad_disk(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.create(f"{tmp_path}/a").close()
    file = files.open(f"{tmp_path}/a")

    async def sync() -> None:
        await file.sync()

    with monkeypatch.context() as broken:
        broken.setattr(os, "open", failing(errno.EMFILE))
        for call in (lambda: file.append(b"x"), lambda: file.read(0, 1), file.sync_now):
            with pytest.raises(OutOfResources, match="cannot open: Too many open files"):
                call()
        with pytest.raises(OutOfResources):
            asyncio.run(sync())
    asyncio.run(sync())
    assert file.append(b"x") == 0
    file.sync_now()


def test_closing_the_disk_waits_for_its_threads(tmp_path: Path) -> None:
    async def close_meanwhile() -> None:
        syncing = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        files.close()
        await syncing

    before = open_descriptors()
    files = DiskFiles()
    file = files.create(f"{tmp_path}/a")
    file.append(b"abc")
    asyncio.run(close_meanwhile())
    assert open_descriptors() == before


# --- the lock -----------------------------------------------------------------------------

TRY_TO_LOCK = """
import sys
from ottla.storage.disk_files import DiskFiles
from ottla.storage.errors import LockTaken
try:
    DiskFiles().lock(sys.argv[1])
except LockTaken as error:
    print(error.reason)
else:
    print("taken")
"""


def lock_elsewhere(path: str) -> str:
    command = [sys.executable, "-c", TRY_TO_LOCK, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_lock_keeps_other_processes_out_until_it_is_given_back(
    files: DiskFiles, tmp_path: Path
) -> None:
    path = f"{tmp_path}/.lock"
    lock = files.lock(path)
    with pytest.raises(LockTaken, match="is locked by this process"):
        DiskFiles().lock(path)
    os.symlink(tmp_path, f"{tmp_path}/same")
    with pytest.raises(LockTaken, match="is locked by this process"):
        DiskFiles().lock(f"{tmp_path}/same/.lock")
    assert lock_elsewhere(path) == "is locked by another process"
    lock.release()
    assert lock_elsewhere(path) == "taken"


def test_a_lock_that_another_process_holds_is_refused(files: DiskFiles, tmp_path: Path) -> None:
    path = f"{tmp_path}/.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", TRY_TO_LOCK + "sys.stdout.flush(); sys.stdin.read()", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"taken\n"
        with pytest.raises(LockTaken, match="is locked by another process"):
            files.lock(path)
    finally:
        holder.communicate()
    files.lock(path).release()
