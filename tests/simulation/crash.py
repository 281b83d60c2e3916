"""The long run: crash states of many seeds, in a process for each core.

python -m tests.simulation.crash --states 500000
python -m tests.simulation.crash --seeds 20 --first 100
"""

import gc
import logging
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from multiprocessing import get_context
from time import perf_counter
from typing import NamedTuple

from tests.simulation.states import SURPRISES, Failure, Run, State

FAILURES_SHOWN = 20
# No seed has fewer.
STATES_MIN = 1_000


class Seen(NamedTuple):
    seed: int
    states: int
    failures: list[Failure]


def seen_of(seed: int) -> Seen:
    """All states of one seed."""
    logging.disable(logging.CRITICAL)
    try:
        run = Run(seed)
    except SURPRISES as error:
        return Seen(seed, 0, [Failure(State(seed, 0, 0), f"no crash is needed: {error!r}"[:400])])
    # What lives as long as the run is not looked at again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    outcomes = list(run.failures())
    gc.unfreeze()
    return Seen(seed, len(outcomes), [each for each in outcomes if each is not None])


def main() -> int:
    parser = ArgumentParser(
        prog="python -m tests.simulation.crash",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--states", type=int, default=500_000, help="stop behind so many")
    parser.add_argument("--seeds", type=int, default=1 << 30, help="stop behind so many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    seeds = seeds[: options.states // STATES_MIN + options.processes]
    started = perf_counter()
    states = count = 0
    failures: list[Failure] = []
    with get_context("spawn").Pool(options.processes) as pool:
        for seen in pool.imap_unordered(seen_of, seeds):
            count, states = count + 1, states + seen.states
            failures += seen.failures
            for failure in seen.failures[:FAILURES_SHOWN]:
                print(failure, flush=True)
            rate = states / (perf_counter() - started)
            print(
                f"seed {seen.seed}: {seen.states} states, {len(seen.failures)} failures;"
                f" in all {count} seeds, {states} states, {rate:.0f} states/s,"
                f" {len(failures)} failures",
                flush=True,
            )
            if states >= options.states:
                pool.terminate()
                break
    print(
        f"crashes: {states - len(failures)} states passed, {len(failures)} failed,"
        f" of {count} seeds in {perf_counter() - started:.1f}s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
