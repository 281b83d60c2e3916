"""The four doors to the world: clock, randomness, files, event loop.

All are handed in, so that a whole cluster can run in one process under virtual time. Nothing else
in the product reads a clock or draws a random number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from selectors import DefaultSelector
from time import monotonic_ns, perf_counter, time_ns

from ottla.storage.clock import Now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from random import Random
    from selectors import SelectorKey

    from ottla.storage.files import Files


@dataclass(slots=True, frozen=True)
class World:
    now: Callable[[], Now]
    random: Random
    files: Files
    loop: AbstractEventLoop


class WatchedSelector(DefaultSelector):
    """Knows how long callbacks have held the loop: from one wait for events to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_hold_s = 0.0
        self._woken_at: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if self._woken_at is not None:
            self.longest_hold_s = max(self.longest_hold_s, perf_counter() - self._woken_at)
        events = super().select(timeout)
        self._woken_at = perf_counter()
        return events

    def reset(self) -> float:
        """The longest hold since the last time, in seconds."""
        longest, self.longest_hold_s = self.longest_hold_s, 0.0
        return longest


def real_now() -> Now:
    return Now(monotonic_ns() // 1_000_000, time_ns() // 1_000_000)


def real_world(loop: AbstractEventLoop) -> World:
    """The clock, the randomness and the disks of this machine."""
    from random import SystemRandom

    from ottla.storage.disk_files import DiskFiles

    return World(real_now, SystemRandom(), DiskFiles(), loop)
