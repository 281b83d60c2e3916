"""`make fuzz`: mutated input in several processes, and then what is large.

python -m tests.fuzz --inputs 1000000 --processes 2 --seed 1
python -m tests.fuzz --seed 1 --round 37     one round again
"""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial
from multiprocessing import get_context
from time import perf_counter

from tests.fuzz.large import costs_of_shapes, costs_of_what_must_pass, times_of_what_is_hostile
from tests.fuzz.rounds import INPUTS_PER_ROUND, Result, run_round

REPORT_EVERY_ROUNDS = 50


def main() -> int:
    parser = ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="run this round alone")
    options = parser.parse_args()
    if options.round is not None:
        print(run_round(options.seed, options.round))
        return 0
    run(options.seed, -(-options.inputs // INPUTS_PER_ROUND), options.processes)
    faults = [
        *times_of_what_is_hostile(),
        *costs_of_what_must_pass(),
        *costs_of_shapes(options.seed),
    ]
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


def run(seed: int, rounds: int, processes: int) -> None:
    """All rounds; what must not happen in one of them ends all with that exception."""
    total = Result()
    started = perf_counter()
    with get_context("spawn").Pool(processes) as pool:
        numbers = range(rounds)
        for done, result in enumerate(pool.imap_unordered(partial(run_round, seed), numbers), 1):
            total.add(result)
            if done % REPORT_EVERY_ROUNDS == 0 or done == rounds:
                rate = sum(total.inputs.values()) / (perf_counter() - started)
                print(f"{done} of {rounds} rounds, {rate:.0f} inputs per second", flush=True)
    report(total, perf_counter() - started)


def report(total: Result, seconds: float) -> None:
    count = sum(total.inputs.values())
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(total.inputs.items()))
    print(f"{count} inputs in {seconds:.0f} s ({kinds})")
    print(f"  {total.accepted} were taken, all others refused with a ProtocolError")
    print(
        f"  memory looked at {total.looked_at} times: at most {total.share_of_law:.0%} "
        "of what is allowed"
    )
    print("  the slowest to read, the best of three attempts:")
    for each, what, size, data in total.slowest:
        print(f"    {each * 1e3:6.1f} ms {what}, {size} bytes: {data[:24].hex()}...")


if __name__ == "__main__":
    sys.exit(main())
