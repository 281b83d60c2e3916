"""Whole nodes with stock clients, from seeds.

python -m tests.simulation.node --seed 17 --trace     one seed, with all that happens in it
python -m tests.simulation.node --seeds 200           each twice, in two processes
python -m tests.simulation.node --hour                one node for an hour of virtual time
"""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter

HASH_SEED = "0"


def main() -> int:
    parser = ArgumentParser(
        prog="python -m tests.simulation.node",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, help="so many, from --first on")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--once", action="store_true", help="do not compare with a second run")
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--log", action="store_true", help="what the node and the clients log")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        # The clients iterate over sets of strings.
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.node", *sys.argv[1:]])
    logging.basicConfig(level=logging.DEBUG if options.log else logging.CRITICAL + 1)
    return _run(options)


def _run(options: Namespace) -> int:
    from tests.simulation.node.seeds import hour, many, one

    if options.hour:
        return hour(options.seed or 1)
    if options.seed is not None:
        return one(options.seed, trace=options.trace)
    return many(range(options.first, options.first + (options.seeds or 20)), twice=not options.once)


if __name__ == "__main__":
    sys.exit(main())
