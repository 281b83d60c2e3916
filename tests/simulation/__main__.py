"""One crash state again, or all those of a cut or a seed:

python -m tests.simulation --seed 1234 --cut 87 --state 3
"""

import logging
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator

from tests.simulation.states import STATES_PER_CUT, Run, State


def main() -> int:
    parser = ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cut", type=int)
    parser.add_argument("--state", type=int)
    parser.add_argument("--trace", action="store_true", help="let the first failure be raised")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO if options.trace else logging.CRITICAL + 1)
    run = Run(options.seed)
    failures = 0
    for state in _states(run, options.cut, options.state):
        if options.trace:
            run.check(state, run.at(state.cut))
        failure = run.failure(state, run.at(state.cut))
        if failure is not None:
            failures += 1
            print(failure)
    print(f"{failures} failures")
    return 1 if failures else 0


def _states(run: Run, cut: int | None, number: int | None) -> Iterator[State]:
    for each in run.cuts() if cut is None else [cut]:
        for state in range(STATES_PER_CUT) if number is None else [number]:
            yield State(run.seed, each, state)


if __name__ == "__main__":
    sys.exit(main())
