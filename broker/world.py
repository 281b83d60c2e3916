"""The four doors to the world: clock, randomness, files, event loop.

All are handed in, so that a whole cluster can run in one process under virtual time. Nothing else
in the product reads a clock or draws a random number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns, time_ns

from ottla.storage.clock import Now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from random import Random

    from ottla.storage.files import Files


@dataclass(slots=True, frozen=True)
class World:
    now: Callable[[], Now]
    random: Random
    files: Files
    loop: AbstractEventLoop


def real_now() -> Now:
    return Now(monotonic_ns() // 1_000_000, time_ns() // 1_000_000)


def real_world(loop: AbstractEventLoop) -> World:
    """The clock, the randomness and the disks of this machine."""
    from random import SystemRandom

    from ottla.storage.disk_files import DiskFiles

    return World(real_now, SystemRandom(), DiskFiles(), loop)
