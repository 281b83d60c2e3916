"""A few seeds of every machine; `python -m tests.simulation.machines` takes more, in processes."""

import pytest

from tests.simulation.machines.__main__ import MACHINES, digest_of

SEEDS = 15


@pytest.mark.parametrize("machine", MACHINES)
def test_equal_seeds_give_equal_traces_and_others_do_not(machine: str) -> None:
    digests = [digest_of(machine, seed) for seed in range(SEEDS)]
    assert digests == [digest_of(machine, seed) for seed in range(SEEDS)]
    assert len(set(digests)) == SEEDS
