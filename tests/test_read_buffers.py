"""Memory for reads: used again, but never under somebody's eyes."""

import mmap
import sys

import pytest

from ottla.storage.read_buffers import SIZE_MAX, SIZE_MIN, ReadBuffers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing else can ask the cache")


def test_memory_that_somebody_looks_at_is_not_given_out_again() -> None:
    buffers = ReadBuffers()
    views = []
    for number in range(10):
        view = buffers.take(SIZE_MAX)
        view[:] = bytes([number]) * SIZE_MAX
        views.append(view[: number + 1])
        del view
    assert [bytes(view) for view in views] == [bytes([n]) * (n + 1) for n in range(10)]


def test_memory_that_nobody_looks_at_is_given_out_again() -> None:
    buffers = ReadBuffers()
    kept = buffers.take(SIZE_MAX)
    for _ in range(20):
        view = buffers.take(SIZE_MIN)
        assert isinstance(view.obj, mmap.mmap)
        assert view.obj is not kept.obj
        del view
    assert len(buffers._buffers) == 2


@pytest.mark.parametrize("size", [0, 1, SIZE_MIN - 1, SIZE_MIN, SIZE_MAX, SIZE_MAX + 1])
def test_memory_has_the_size_that_was_asked_for(size: int) -> None:
    view = ReadBuffers().take(size)
    assert len(view) == size
    assert not view.readonly
