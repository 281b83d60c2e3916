"""aiokafka with its code unchanged: only the clock and the dice in its modules are the world's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any
from uuid import UUID

MODULES = (
    "client cluster conn partitioner consumer.fetcher consumer.subscription_state consumer.consumer"
    " consumer.group_coordinator producer.message_accumulator producer.producer producer.sender"
    " protocol.message record.default_records record.legacy_records admin.client"
)


class Clock:
    """Stands for the module `time`."""

    def __init__(self, monotonic_s: Callable[[], float], wall_s: Callable[[], float]) -> None:
        self.monotonic = self.perf_counter = monotonic_s
        self.time = wall_s


class Uuids:
    """Stands for the module `uuid`."""

    def __init__(self, random: Random) -> None:
        self.UUID = UUID
        self._random = random

    def uuid4(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)


@contextmanager
def simulated(clock: Clock, random: Random) -> Iterator[None]:
    """aiokafka's modules look at this clock and throw these dice, as long as it lasts."""
    from importlib import import_module

    for name in MODULES.split():
        import_module(f"aiokafka.{name}")
    stand_ins: dict[str, Any] = {"time": clock, "random": random, "uuid": Uuids(random)}
    replaced: list[tuple[ModuleType, str, Any]] = []
    for name, module in sorted(sys.modules.items()):
        # gzip writes the time into what it compresses.
        if name.split(".")[0] != "aiokafka" and name != "gzip":
            continue
        for attribute, stand_in in stand_ins.items():
            real = getattr(module, attribute, None)
            if isinstance(real, ModuleType) and real.__name__ == attribute:
                replaced.append((module, attribute, real))
                setattr(module, attribute, stand_in)
    try:
        yield
    finally:
        for module, attribute, real in replaced:
            setattr(module, attribute, real)
