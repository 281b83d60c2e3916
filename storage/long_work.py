"""Work that is long and waits for the disk, written once for those who block and those who do not.

A generator yields what it needs: a `Read`, a `Wait`, or the count of bytes that it has moved since
it last said so, where it may be paused. `work_now` and `work_on` are the drivers. What the disk
refuses is raised in the work itself; whoever closes the work has aborted it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import NamedTuple, TypeVar

from ottla.protocol.wire import Buffer
from ottla.storage.errors import StorageError
from ottla.storage.files import Files
from ottla.storage.steps import Read

T = TypeVar("T")


class Wait(NamedTuple):
    """Something that takes its time, in both its forms."""

    now: Callable[[], None]
    awaited: Callable[[], Awaitable[None]]


def settled(files: Files, directory: str) -> Wait:
    """Lets the disk write what others have written, aside. Some file systems make the first sync
    wait for all of that, and a short one that has to block would hold up everybody for seconds."""
    return Wait(lambda: None, lambda: files.sync_directory(directory))


Step = Read | Wait | int
Work = Generator[Step, Buffer, T]


def work_now(work: Work[T]) -> T:
    """To the end without a pause: for tests and tools."""
    try:
        step = next(work)
        while True:
            answer: Buffer = b""
            try:
                if isinstance(step, Read):
                    answer = step.file.read(step.position, step.size)
                elif isinstance(step, Wait):
                    step.now()
            except StorageError as error:
                step = work.throw(error)
            else:
                step = work.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        work.close()


async def work_on(work: Work[T], pause: Callable[[int], Awaitable[None]]) -> T | None:
    """The same beside others, with a `pause` after each slice. None if somebody closed it."""
    try:
        step = next(work)
        while True:
            answer: Buffer = b""
            try:
                if isinstance(step, Read):
                    answer = await _read(step)
                elif isinstance(step, Wait):
                    await step.awaited()
                else:
                    await pause(step)
            except StorageError as error:
                step = work.throw(error)
            else:
                step = work.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        work.close()


async def _read(step: Read) -> Buffer:
    file, position, size, _ = step
    data = file.read_cached(position, size)
    if data is None or len(data) < min(size, file.size - position):
        return await file.read_cold(position, size)
    return data
