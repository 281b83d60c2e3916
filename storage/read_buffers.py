"""Memory for large reads, used again when nobody looks at it any more.

Knows no file. A new bytearray of a mebibyte is filled with zeros first, which costs a read from the
page cache a fifth of its speed; and the kernel copies faster to where a page begins.
"""

from __future__ import annotations

import mmap

SIZE_MIN = 128 << 10
SIZE_MAX = (1 << 20) + (64 << 10)  # a fetch of 1 MiB reads a little more to find its beginning
# As many as an answer of 8 MiB holds while the one before it is still being sent.
_COUNT = 20
# A busy one costs a look.
_TRIED = 3


class ReadBuffers:
    __slots__ = ("_buffers", "_next")

    def __init__(self) -> None:
        self._buffers: list[mmap.mmap] = []
        # Answers are sent in their order: the buffer that was taken longest ago comes free first.
        self._next = 0

    def take(self, size: int) -> memoryview:
        """Writable memory of this size, no other's as long as a view of it lives."""
        if SIZE_MIN <= size <= SIZE_MAX:
            count = len(self._buffers)
            for number in range(self._next, self._next + min(count, _TRIED)):
                buffer = self._buffers[number % count]
                if _is_idle(buffer):
                    self._next = (number + 1) % count
                    return memoryview(buffer)[:size]
            if count < _COUNT:
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
