"""How much memory loaded indexes may take: the one that was not used for longest is unloaded.

Knows no format. What is not yet written to an index's file is not counted, and never unloaded.
"""

from __future__ import annotations

from typing import Protocol

BYTES_MAX = 64 << 20


class Index(Protocol):
    def unload(self) -> None:
        """Forgets what the file holds as well."""


class IndexMemory:
    """Loaded indexes in the order of their last use."""

    __slots__ = ("_loaded", "bytes_held", "bytes_max")

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.bytes_held = 0
        self._loaded: dict[Index, int] = {}

    def hold(self, index: Index, size: int) -> None:
        """The index was used, and takes `size` bytes."""
        self.bytes_held += size - self._loaded.pop(index, 0)
        self._loaded[index] = size
        while self.bytes_held > self.bytes_max and len(self._loaded) > 1:
            oldest = next(iter(self._loaded))
            self.release(oldest)
            oldest.unload()

    def release(self, index: Index) -> None:
        self.bytes_held -= self._loaded.pop(index, 0)
