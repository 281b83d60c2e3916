"""How long to wait so that a number of bytes a second is not exceeded on average.

Pure: bytes and the time in, milliseconds out. As in Kafka, nothing is judged before an interval is
over, and what was saved in one interval is not spent in the next.
"""

from __future__ import annotations

_INTERVAL_MS = 300


class Throttle:
    __slots__ = ("_bytes", "_started_ms", "bytes_per_second")

    def __init__(self, bytes_per_second: float, *, monotonic_ms: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._bytes = 0
        self._started_ms = monotonic_ms

    def delay_ms(self, moved_bytes: int, *, monotonic_ms: int) -> int:
        """How long to wait, now that so many bytes more were moved."""
        self._bytes += moved_bytes
        elapsed_ms = monotonic_ms - self._started_ms
        if elapsed_ms <= _INTERVAL_MS or not self._bytes:
            return 0
        delay_ms = max(0, round(self._bytes * 1000 / self.bytes_per_second) - elapsed_ms)
        self._bytes = 0
        self._started_ms = monotonic_ms + delay_ms
        return delay_ms
