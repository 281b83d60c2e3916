"""Memory for large reads, used again when nobody looks at it any more.

Knows no file. A new bytearray of a mebibyte is filled with zeros first, which costs a read from the
page cache a fifth of its speed; and the kernel copies faster to where a page begins.
"""

from __future__ import annotations

import mmap

SIZE_MIN = 128 << 10
SIZE_MAX = (1 << 20) + (64 << 10)  # a fetch of 1 MiB reads a little more to find its beginning
_COUNT = 4


class ReadBuffers:
    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[mmap.mmap] = []

    def take(self, size: int) -> memoryview:
        """Writable memory of this size, no other's as long as a view of it lives."""
        if SIZE_MIN <= size <= SIZE_MAX:
            for buffer in self._buffers:
                if _is_idle(buffer):
                    return memoryview(buffer)[:size]
            if len(self._buffers) < _COUNT:
                buffer = mmap.mmap(-1, SIZE_MAX, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self._buffers.append(buffer)
                return memoryview(buffer)[:size]
        return memoryview(bytearray(size))


def _is_idle(buffer: mmap.mmap) -> bool:
    try:
        # Refused while a view is left; else it changes nothing.
        buffer.resize(SIZE_MAX)
    except BufferError:
        return False
    return True
