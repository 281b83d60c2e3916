"""Times taken in turns, so that what else the machine does hits all that is compared alike.

Knows nothing of what is measured. A round lets each contender run once, beginning with another one
each time; a ratio is the median of the rounds' own ratios, not the ratio of two medians. Calls are
measured in CPU time: while another process has the core, nothing is counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from timeit import Timer
from typing import Any

ROUNDS = 61
TURN_SECONDS = 0.002


@dataclass(slots=True, frozen=True)
class Times:
    """Seconds of each contender, round by round."""

    rounds: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return median(self.rounds[name])

    def ratio(self, name: str, other: str) -> float:
        return median(mine / its for mine, its in self._pairs(name, other))

    def difference(self, name: str, other: str) -> float:
        return median(mine - its for mine, its in self._pairs(name, other))

    def _pairs(self, name: str, other: str) -> list[tuple[float, float]]:
        return list(zip(self.rounds[name], self.rounds[other], strict=True))


def in_turns(turns: Mapping[str, Callable[[], float]], *, rounds: int = ROUNDS) -> Times:
    """The times that each turn reports."""
    names = list(turns)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(turns[name]())
    return Times(times)


def calls(contenders: Mapping[str, tuple[Any, ...]], *, rounds: int = ROUNDS) -> Times:
    """Seconds that one call takes, of (function, its arguments); garbage is not collected."""
    turns = {name: _turn(*contender) for name, contender in contenders.items()}
    return in_turns(turns, rounds=rounds)


def _turn(function: Callable[..., object], *arguments: object) -> Callable[[], float]:
    names = {f"argument_{index}": argument for index, argument in enumerate(arguments)}
    statement = f"function({', '.join(names)})"
    timer = Timer(statement, timer=process_time, globals={"function": function, **names})
    # The first calls compile, fill caches and warm the interpreter's specialised instructions.
    timer.timeit(20)
    count = max(1, int(TURN_SECONDS / (min(timer.repeat(3, 20)) / 20)))
    return partial(_time_per_call, timer, count)


def _time_per_call(timer: Timer, count: int) -> float:
    return timer.timeit(count) / count
