"""Crash points: whatever a crash leaves is recovered, and recovered again after another crash.

A fixed small part of what `make simulate` does. A failing state names the command that runs it
again.
"""

import pytest

from tests.simulation.states import Run

SEEDS = (1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 17, 19, 20)
# Of each seed's cuts, one in so many: another part for each seed.
EVERY = 90


@pytest.mark.parametrize("seed", SEEDS)
def test_no_crash_loses_what_was_flushed(seed: int) -> None:
    run = Run(seed)
    outcomes = list(run.failures(every=EVERY, first=seed % EVERY))
    assert len(outcomes) > 10
    assert [str(failure) for failure in outcomes if failure is not None] == []


def test_a_workload_has_all_that_a_log_can_do() -> None:
    names = {mark.name for seed in (1, 2, 3) for mark in Run(seed).workload.history.marks}
    assert names >= {"roll", "truncate", "compact", "checkpoint", "delete_records", "retain"}
    assert names >= {"end_transaction", "append_idempotent", "new_epoch", "flush", "restart"}
