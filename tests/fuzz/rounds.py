"""Rounds of a thousand inputs. A round is known by its seed and number, and can be run again."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from ottla.protocol.wire import ProtocolError
from tests.fuzz.targets import TARGETS, Input, Tally
from tests.memory_law import BYTES_PER_BYTE

INPUTS_PER_ROUND = 1000
# Of ten rounds: most are messages, of which there are so many.
KINDS = ("messages",) * 6 + ("connections", "batches", "messages", "batches")
LINES_EVERY = 40
# One in so many inputs has its memory looked at, and the slowest of each round.
LOOKED_AT_EVERY = 200


@dataclass(slots=True)
class Result:
    """Of one round, or of several together."""

    inputs: dict[str, int] = field(default_factory=dict)
    accepted: int = 0
    seconds: float = 0.0
    looked_at: int = 0
    share_of_law: float = 0.0
    slowest: list[tuple[float, str, int, bytes]] = field(default_factory=list)

    def add(self, other: "Result") -> None:
        for kind, count in other.inputs.items():
            self.inputs[kind] = self.inputs.get(kind, 0) + count
        self.accepted += other.accepted
        self.seconds += other.seconds
        self.looked_at += other.looked_at
        self.share_of_law = max(self.share_of_law, other.share_of_law)
        self.slowest = sorted([*self.slowest, *other.slowest], key=lambda s: -s[0])[:10]


class MemoryLawBroken(Exception):
    """An input cost more memory than its size allows."""


def kind_of(number: int) -> str:
    return "lines" if number % LINES_EVERY == LINES_EVERY - 1 else KINDS[number % len(KINDS)]


def run_round(seed: int, number: int, inputs: int = INPUTS_PER_ROUND) -> Result:
    """Feed one round; an exception names the input that caused it."""
    kind = kind_of(number)
    dice = Random(f"{seed} {number}")
    tally, result = Tally(), Result()
    started = perf_counter()
    for index, each in enumerate(TARGETS[kind](number, inputs, dice)):
        try:
            tally.feed(each)
            if index % LOOKED_AT_EVERY == 0:
                look_at(each, result)
        except BaseException:
            print(f"seed {seed}, round {number}, input {index}: {each.what}")
            print(each.data.hex() if each.size < 10_000 else f"{each.size} bytes")
            raise
    for _, each in tally.slowest:
        look_at(each, result)
    result.seconds = perf_counter() - started
    result.inputs = {kind: tally.inputs}
    result.accepted = tally.accepted
    result.slowest = list(timed_again(tally.slowest))
    return result


def look_at(each: Input, result: Result) -> None:
    """The law, for one input that was fed before: what is compiled for it is not its cost."""
    tracemalloc.start()
    try:
        with suppress(ProtocolError):
            each.read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    allowed = BYTES_PER_BYTE * each.size + each.free_bytes
    if peak > allowed:
        raise MemoryLawBroken(f"{each.what}: {each.size} bytes cost {peak}, {allowed} are allowed")
    result.looked_at += 1
    result.share_of_law = max(result.share_of_law, peak / allowed)


def timed_again(slowest: list[tuple[float, Input]]) -> Iterator[tuple[float, str, int, bytes]]:
    """Reading alone; the first time held what was compiled, and whatever the machine did."""
    for _, each in slowest:
        least = float("inf")
        for _ in range(3):
            start = perf_counter()
            with suppress(ProtocolError):
                each.read()
            least = min(least, perf_counter() - start)
        yield least, each.what, each.size, each.data
