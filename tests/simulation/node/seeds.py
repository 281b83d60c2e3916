"""Runs seeds, prints what came of them, and compares the traces of two processes."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from time import perf_counter
from typing import NamedTuple

from tests.simulation.node.ledger import Broken
from tests.simulation.node.loop import STARTS_AT_S, Stuck
from tests.simulation.node.plan import plan_of
from tests.simulation.node.scenario import Scenario
from tests.simulation.states import SURPRISES

HOUR_S = 3600.0
FAILURE_SHOWN = 500
PROCESSES = 2
SEEDS_PER_PROCESS = 20


class Played(NamedTuple):
    seed: int
    digest: str
    events: int
    virtual_s: float
    real_s: float
    counts: dict[str, int]
    failure: str | None


def played(
    seed: int, *, trace: bool = False, lifetime_s: float | None = None, pace: float = 1.0
) -> Played:
    """One seed in this process."""
    started = perf_counter()
    plan = (
        plan_of(seed, pace=pace)
        if lifetime_s is None
        else plan_of(seed, lifetime_s=lifetime_s, pace=pace)
    )
    # What a killed process leaves behind is not closed.
    warnings.simplefilter("ignore", ResourceWarning)
    if not trace:
        logging.disable(logging.CRITICAL)
    scenario = Scenario(plan, show=print if trace else None)
    failure = None
    try:
        scenario.play()
    except (Broken, Stuck, *SURPRISES) as error:
        if trace:
            raise
        failure = f"{type(error).__name__}: {error}".replace("\n", " ")[:FAILURE_SHOWN]
    return Played(
        seed,
        scenario.trace.digest,
        scenario.trace.count,
        scenario.loop.time() - STARTS_AT_S,
        perf_counter() - started,
        _counts(scenario),
        failure,
    )


def _counts(scenario: Scenario) -> dict[str, int]:
    ledger = scenario.ledger
    return {
        "acknowledged": ledger.acknowledged_count,
        "consumed": ledger.seen_count,
        "lost by power cuts": ledger.lost_count,
        "starts": len(scenario.machine.processes),
        "disk faults": scenario.machine.disk.hits,
        "diverged": scenario.counts.get("diverges", 0),
        **{f"event {event.name}": 1 for _, event in scenario.plan.events},
    }


def one(seed: int, *, trace: bool) -> int:
    result = played(seed, trace=trace)
    print(told(result))
    print(result.counts)
    return 1 if result.failure else 0


def told(result: Played) -> str:
    line = (
        f"seed {result.seed}: {result.digest} {result.events} events,"
        f" {result.virtual_s:.0f} s in {result.real_s:.1f} s"
    )
    if result.failure is None:
        return line
    return f"{line}\n    python -m tests.simulation.node --seed {result.seed}  # {result.failure}"


def many(seeds: Iterable[int], *, twice: bool) -> int:
    """Each seed in two processes; the traces must be equal."""
    digests: dict[int, str] = {}
    total: Counter[str] = Counter()
    failed: list[int] = []
    differing: list[int] = []
    started = perf_counter()
    order = list(seeds)
    for number, result in enumerate(_all([*order, *reversed(order)] if twice else order), 1):
        if number % SEEDS_PER_PROCESS == 0:
            print(f"{number} played, {len(failed)} failed", flush=True)
        if result.seed in digests:
            if digests[result.seed] != result.digest:
                differing.append(result.seed)
                print(f"seed {result.seed}: another trace in another process", flush=True)
            continue
        digests[result.seed] = result.digest
        total.update(result.counts)
        total["virtual s"] += int(result.virtual_s)
        if result.failure is not None:
            failed.append(result.seed)
            print(told(result), flush=True)
    print(f"{len(digests)} seeds in {perf_counter() - started:.0f} s: {dict(total)}")
    same = len(digests) - len(set(digests.values()))
    print(f"failed {failed}, differing {differing}, {same} with the trace of another")
    return 1 if failed or differing or same else 0


def _all(seeds: list[int]) -> Iterator[Played]:
    # The second time they come in another order: what a seed leaves behind is nothing to the next.
    with get_context("spawn").Pool(PROCESSES, maxtasksperchild=SEEDS_PER_PROCESS) as pool:
        yield from pool.imap(played, seeds)


def hour(seed: int) -> int:
    result = played(seed, lifetime_s=HOUR_S, pace=10.0)
    print(told(result))
    print(result.counts)
    return 1 if result.failure else 0
