"""A few whole nodes, from seeds; `make simulate SEEDS=200` plays more.

Each is played in a process of its own, twice, whose hash seed is pinned whatever ours is.
"""

import os
import subprocess
import sys

SEEDS = 4


def test_what_nodes_promise_they_keep_and_equal_seeds_give_equal_traces() -> None:
    command = [sys.executable, "-m", "tests.simulation.node", f"--seeds={SEEDS}"]
    environment = os.environ | {"PYTHONHASHSEED": "random"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
