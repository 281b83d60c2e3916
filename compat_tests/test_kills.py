"""A few rounds of `compat_tests.kills`, in each mode."""

import pytest

from compat_tests.kills import MODES, run

ROUNDS = 4


@pytest.mark.parametrize("mode", MODES)
def test_kill_9_loses_nothing_that_was_acknowledged(mode: str) -> None:
    found = run(rounds=ROUNDS, seed=7, settings=MODES[mode])
    assert found.faults == []
    assert found.acknowledged > 1000
