"""Long work gets what it asks for, blocking or awaited; what the disk refuses reaches the work."""

import asyncio

import pytest

from ottla.storage.errors import DiskFull
from ottla.storage.long_work import Wait, Work, work_now, work_on
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault
from ottla.storage.steps import Read


async def no_pause(moved_bytes: int) -> None:
    await asyncio.sleep(0)


def reading(files: MemoryFiles) -> Work[bytes]:
    file = files.create("f")
    file.append(b"0123456789")
    assert (yield 5) == b""
    first = bytes((yield Read(file, 2, 3)))
    yield Wait(file.sync_now, file.sync)
    return first + bytes((yield Read(file, 8, 99)))


@pytest.mark.parametrize("fault", [None, Fault.COLD])
def test_work_is_given_what_it_reads(fault: Fault | None) -> None:
    for drive in (work_now, lambda work: asyncio.run(work_on(work, no_pause))):
        files = MemoryFiles()
        if fault is not None:
            files.fail(lambda each: each.kind == "read_cached", fault, times=None)
        assert drive(reading(files)) == b"23489"


def failing(seen: list[str]) -> Work[str]:
    def refuse() -> None:
        raise DiskFull("f", "no space")

    async def refuse_later() -> None:
        refuse()

    try:
        yield Wait(refuse, refuse_later)
    except DiskFull as error:
        seen.append(error.reason)
    yield 1
    return "went on"


def test_the_work_sees_what_the_disk_refused_and_may_go_on() -> None:
    seen: list[str] = []
    assert work_now(failing(seen)) == "went on"
    assert asyncio.run(work_on(failing(seen), no_pause)) == "went on"
    assert seen == ["no space", "no space"]


def test_a_pause_says_how_much_was_moved() -> None:
    told = []

    async def pause(moved_bytes: int) -> None:
        told.append(moved_bytes)

    asyncio.run(work_on(reading(MemoryFiles()), pause))
    assert told == [5]


def test_closed_work_ends_with_nothing() -> None:
    work = reading(MemoryFiles())

    async def pause(moved_bytes: int) -> None:
        work.close()

    assert asyncio.run(work_on(work, pause)) is None


def test_work_that_is_cancelled_is_closed() -> None:
    ended = []

    def work() -> Work[None]:
        try:
            while True:
                yield 0
        finally:
            ended.append(True)

    async def pause(moved_bytes: int) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work_on(work(), pause))
    assert ended == [True]
