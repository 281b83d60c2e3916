"""What a log leaves for later: flushes behind a roll, and files that go after a delay.

A log is called synchronously and must not wait for the disk, so it puts such work here; the shell
carries it out when it has time. What is lost with the process is done again by a recovery.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextlib import suppress

from ottla.protocol.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.log_upkeep import LogUpkeep as Log


class Chores:
    """The work that one log directory has put off."""

    __slots__ = ("_flushes", "_removals", "_serial", "on_flush")

    def __init__(self) -> None:
        self._flushes: dict[Log, int] = {}
        self._removals: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self.on_flush: Callable[[], None] | None = None
        """Called when there is something to flush and there was nothing before."""

    def flush(self, log: Log, *, offset: int) -> None:
        """The log is to be flushed up to this offset, soon."""
        idle = not self._flushes
        self._flushes[log] = max(offset, self._flushes.get(log, 0))
        if idle and self.on_flush is not None:
            self.on_flush()

    def remove(self, call: Callable[[], None], *, due_ms: int) -> None:
        """`call` removes files that nobody needs any more, when `due_ms` is there."""
        self._serial += 1
        heapq.heappush(self._removals, (due_ms, self._serial, call))

    def forget(self, log: Log) -> None:
        self._flushes.pop(log, None)

    @property
    def has_flushes(self) -> bool:
        return bool(self._flushes)

    def flush_now(self) -> None:
        """Blocks until all is flushed."""
        while self._flushes:
            log, offset = self._flushes.popitem()
            # What the disk refuses is known to the log directory, and other logs may fare better.
            with suppress(KafkaError):
                log.flush_now(offset)

    async def flush_all(self) -> None:
        """One log after the other, and returns when none is left."""
        while self._flushes:
            log = next(iter(self._flushes))
            with suppress(KafkaError):
                await log.flush(self._flushes.pop(log))

    def deadline_ms(self) -> int | None:
        """When the next file is due, by the monotonic clock."""
        return self._removals[0][0] if self._removals else None

    def expire(self, monotonic_ms: int, *, count_max: int = 16) -> None:
        """Removes what is due, a few at a time."""
        while self._removals and self._removals[0][0] <= monotonic_ms and count_max > 0:
            heapq.heappop(self._removals)[2]()
            count_max -= 1
