"""Storage operations fail, in every way: some of what `python -m tests.simulation.faults` tries."""

from collections.abc import Iterator
from itertools import cycle

import pytest

from ottla.storage.memory_operations import Fault
from tests.simulation.faults import KINDS, SEEDS, be_slow, meet, operations_of

# Of the operations of a life, each fault meets one in so many.
EVERY = 31


@pytest.mark.parametrize("seed", SEEDS)
def test_no_failed_operation_breaks_a_promise(seed: int) -> None:
    outcomes: dict[Fault, set[str]] = {fault: set() for fault in KINDS}
    kinds: Iterator[Fault] = cycle(KINDS)
    for number in list(operations_of(seed))[:: EVERY // len(KINDS)]:
        fault = next(kinds)
        outcomes[fault].add(meet(seed, number, fault))
    assert "offline" in outcomes[Fault.EIO] | outcomes[Fault.EROFS]
    assert "refused" in outcomes[Fault.ENOSPC] | outcomes[Fault.EMFILE]


def test_a_slow_flush_counts_for_what_was_there_when_it_began() -> None:
    for seed in SEEDS:
        for count in range(5, 60, 11):
            be_slow(seed, count)
