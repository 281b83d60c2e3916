"""Traces of the machines, as digests: python -m tests.simulation.machines --seeds 1000

Without --digests it runs itself, in as many processes as there are pairs of a process and a hash
seed, and compares what they print.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from hashlib import blake2b
from importlib import import_module

MACHINES = ("controller", "fetch_sessions", "raft", "replica_rules")
HASH_SEEDS = (0, 1, 31337)
PROCESSES = 2


def digest_of(machine: str, seed: int) -> str:
    digest = blake2b(digest_size=12)

    def add(*what: object) -> None:
        digest.update(repr(what).encode())

    import_module(f"tests.simulation.machines.{machine}").play(seed, add)
    return digest.hexdigest()


def print_digests(seeds: int) -> None:
    for machine in MACHINES:
        for seed in range(seeds):
            print(machine, seed, digest_of(machine, seed))


def compared(seeds: int) -> list[str]:
    """What is wrong: traces of a seed that differ, or seeds with the same trace."""
    command = [sys.executable, "-m", "tests.simulation.machines", "--digests", f"--seeds={seeds}"]
    outputs = {}
    for hash_seed in HASH_SEEDS:
        environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
        running = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES)
        ]
        for number, process in enumerate(running):
            outputs[hash_seed, number] = process.communicate()[0].splitlines()
            if process.returncode:
                return [f"hash seed {hash_seed}: exit code {process.returncode}"]
    first = outputs[HASH_SEEDS[0], 0]
    faults = [
        f"hash seed {key[0]}, process {key[1]}: {line}"
        for key, lines in outputs.items()
        for line, expected in zip(lines, first, strict=True)
        if line != expected
    ]
    for machine in MACHINES:
        digests = [line.split()[2] for line in first if line.startswith(f"{machine} ")]
        if len(set(digests)) != seeds:
            faults.append(f"{machine}: {len(set(digests))} traces of {seeds} seeds")
    return faults


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.simulation.machines", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--digests", action="store_true")
    options = parser.parse_args()
    if options.digests:
        print_digests(options.seeds)
        return 0
    faults = compared(options.seeds)
    for fault in faults[:20]:
        print(fault)
    print(
        f"{len(MACHINES)} machines, {options.seeds} seeds, {len(HASH_SEEDS)} hash seeds,"
        f" {PROCESSES} processes: {len(faults)} faults"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
