"""Crash points: whatever a crash leaves is recovered, and recovered again after another crash.

A fixed small part of what `make simulate` does; `pytest tests/simulation --seed 1234` does all of
one seed. A failing state names the command that runs it again.
"""

import pytest

from tests.simulation.states import STATES_PER_CUT, Run
from tests.simulation.workload import OPERATIONS

SEEDS = range(1, 15)
# Of each seed's cuts, one in so many: another part for each seed.
EVERY = 60


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        # Unknown where the option's own conftest.py was not among those that pytest began with.
        seed = metafunc.config.getoption("--seed", default=None)
        metafunc.parametrize("seed", SEEDS if seed is None else [seed])


def test_no_crash_loses_what_was_flushed(seed: int, request: pytest.FixtureRequest) -> None:
    run = Run(seed)
    is_whole = request.config.getoption("--seed", default=None) is not None
    every = 1 if is_whole else EVERY
    outcomes = list(run.failures(every=every, first=seed % every))
    assert len(outcomes) >= len(run.cuts()) // every * STATES_PER_CUT
    assert [str(failure) for failure in outcomes if failure is not None] == []


def test_a_life_has_all_that_a_log_can_do(seed: int) -> None:
    workload = Run(seed).workload
    assert workload.done == {"roll", "truncate", "compact", "checkpoint"}
    assert len(workload.history.marks) > OPERATIONS >= 200


def test_lives_together_have_the_rest() -> None:
    names = {mark.name for seed in (1, 2, 3) for mark in Run(seed).workload.history.marks}
    assert names >= {"delete_records", "retain", "start_over", "flush", "flush_aside", "restart"}
    assert names >= {"end_transaction", "append_idempotent", "append_as_follower", "new_epoch"}
