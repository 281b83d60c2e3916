"""Many deadlines, of which most are put off before they come: sessions, above all.

Pure. Putting one off costs a dict entry; the heap learns of it when the old moment comes.
"""

from __future__ import annotations

import heapq

Key = tuple[str, ...]


class Deadlines:
    __slots__ = ("_due_ms", "_heap", "_serial")

    def __init__(self) -> None:
        self._due_ms: dict[Key, int] = {}
        # (when at the earliest, a number that makes entries different, the key)
        self._heap: list[tuple[int, int, Key]] = []
        self._serial = 0

    def set(self, key: Key, due_ms: int) -> None:
        """By the monotonic clock; the one that the key had does not count any more."""
        before = self._due_ms.get(key)
        self._due_ms[key] = due_ms
        if before is None or due_ms < before:
            self._push(key, due_ms)

    def drop(self, key: Key) -> None:
        self._due_ms.pop(key, None)

    def __contains__(self, key: Key) -> bool:
        return key in self._due_ms

    def due_ms(self, key: Key) -> int | None:
        return self._due_ms.get(key)

    def earliest(self) -> int | None:
        """A moment at which it is worth to look; None if nothing is set."""
        while self._heap:
            moment, _, key = self._heap[0]
            due_ms = self._due_ms.get(key)
            if due_ms == moment:
                return moment
            heapq.heappop(self._heap)
            if due_ms is not None and due_ms > moment:
                self._push(key, due_ms)
        return None

    def take(self, monotonic_ms: int) -> Key | None:
        """One whose moment has come; it is not set any more."""
        moment = self.earliest()
        if moment is None or moment > monotonic_ms:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._due_ms[key]
        return key

    def put_off_all(self, late_ms: int) -> None:
        """Nobody is to pay for a time in which this process stood still."""
        self._heap.clear()
        for key, due_ms in self._due_ms.items():
            self._due_ms[key] = due_ms + late_ms
            self._push(key, due_ms + late_ms)

    def _push(self, key: Key, due_ms: int) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (due_ms, self._serial, key))
