"""Reads that memory may not hold, written once for those who wait and those who do not.

A lookup is a generator: it yields a `Read` and is sent the bytes, maybe fewer than asked for. Its
driver decides how they are had: `at_once` blocks, `from_memory` gives up where it would block,
`when_read` awaits. Work that is only long, not cold, yields None between slices.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeVar

from ottla.protocol.wire import Buffer
from ottla.storage.files import File

T = TypeVar("T")


class Read(NamedTuple):
    file: File
    position: int
    size: int
    partial: bool = False
    """What memory holds of it will do, if it holds anything."""


Reading = Generator[Read, Buffer, T]
Slices = Generator[None, None, T]


def at_once(reading: Reading[T]) -> T:
    """Blocks for the disk where it must: for start-up, rolls and tests."""
    try:
        file, position, size, _ = next(reading)
        while True:
            file, position, size, _ = reading.send(file.read(position, size))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def from_memory(reading: Reading[T]) -> T | None:
    """None when something on the way is cold; a caller that matters then awaits `when_read`."""
    try:
        file, position, size, partial = next(reading)
        while True:
            data = file.read_cached(position, size)
            if data is None or (
                not partial and len(data) < size and len(data) < file.size - position
            ):
                reading.close()
                return None
            file, position, size, partial = reading.send(data)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def when_read(reading: Reading[T]) -> T:
    """Awaits what is cold; the event loop goes on meanwhile."""
    try:
        file, position, size, _ = next(reading)
        while True:
            data: Buffer | None = file.read_cached(position, size)
            if data is None or len(data) < min(size, file.size - position):
                data = await file.read_cold(position, size)
            file, position, size, _ = reading.send(data)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def to_the_end(slices: Slices[T]) -> T:
    """Long work without a pause: for start-up and tests."""
    try:
        while True:
            next(slices)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def exhaust(slices: Iterator[object]) -> None:
    for _ in slices:
        pass
