"""Every storage operation of random lives of a log fails once, in every way:

python -m tests.simulation.faults --seeds 3
python -m tests.simulation.faults --seed 5 --number 87 --fault ENOSPC

Nothing that was acknowledged is lost, nothing that failed is there, a failed disk ends its
directory, and where the disk only refused, the next append succeeds.
"""

import asyncio
import logging
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from random import Random

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record
from ottla.storage.errors import StorageError
from ottla.storage.log import Log
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault
from ottla.storage.steps import to_the_end
from tests.simulation.states import SURPRISES
from tests.simulation.workload import Refused, Workload
from tests.simulation.world import PARTITION, TOPIC, log_in, opened, stored_in

SEEDS = (2, 5, 9)
OPERATIONS = 60
KINDS = tuple(fault for fault in Fault if fault is not Fault.COLD)
# They take away what was there, and a fault may find them half-way.
_TAKING = {"truncate", "start_over", "compact", "retain", "delete_records"}


def operations_of(seed: int) -> range:
    workload = Workload(seed)
    workload.run(OPERATIONS)
    return range(workload.first_operation, workload.files.operation_count)


def meet(seed: int, number: int, fault: Fault) -> str:
    """What became of a log with this fault: "offline", "refused", or "unseen" where nobody had to
    be told. Raises where a promise was broken."""
    workload = Workload(seed)
    workload.files.fail(number, fault)
    outcome = "unseen"
    try:
        workload.run(OPERATIONS)
    except (KafkaError, StorageError, Refused) as error:
        if isinstance(error, KafkaError) and error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
            raise
        outcome = "refused"
    except AssertionError:
        # After a stop that failed the log knows less of what the disk has than the model.
        if workload.doing != "restart":
            raise
        outcome = "refused"
    failure = next((each.failure for each in workload.logs.online if each.failure), None)
    log = log_in(workload.logs)
    if failure is not None:
        outcome = "offline"
        _check_that_it_ended(workload, log)
    elif outcome == "refused" and log is not None and workload.doing != "restart":
        _check_that_it_goes_on(workload, log)
    if failure is None or "sync" not in failure:
        _check_what_was_acknowledged(workload)
    _check_what_was_flushed(workload, seed + number)
    return outcome


def _check_that_it_ended(workload: Workload, log: Log | None) -> None:
    if log is None or workload.doing == "restart":
        return
    calls: list[Callable[[], object]] = [
        log.flush_now,
        partial(log.roll, workload.now),
        partial(log.read, log.log_end_offset, 1),
        partial(_append, workload, log),
    ]
    for call in calls:
        try:
            call()
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                continue
        raise AssertionError(f"{call} goes on with a failed disk")


def _append(workload: Workload, log: Log) -> bytes:
    data = build_batch([Record(0, workload.now.wall_ms, b"key", b"afterwards")])
    log.append_as_leader(data, leader_epoch=workload.epoch, now=workload.now)
    return bytes(data)


def _check_that_it_goes_on(workload: Workload, log: Log) -> None:
    if log.failure is not None:
        reopened = to_the_end(workload.logs.reopening(workload.now))
        if reopened != [(TOPIC, PARTITION)]:
            raise AssertionError(f"{log} cannot be opened again")
    _check_against_the_model(workload, log)
    data = _append(workload, log)
    workload.stored = list(stored_in(log))
    if workload.stored[-1].data != data:
        raise AssertionError("the next append is not there")
    log = _reopened(workload, workload.files.copy())
    if stored_in(log)[-1].data != data:
        raise AssertionError("the next append is lost")


def _check_what_was_acknowledged(workload: Workload) -> None:
    """The process is killed; the machine goes on."""
    if workload.history.marks[-1].name != "nothing":
        _check_against_the_model(workload, _reopened(workload, workload.files.copy()))


def _check_against_the_model(workload: Workload, log: Log) -> None:
    """All that was acknowledged is there, and nothing else but the batch that is in doubt: it was
    written, and what came afterwards failed."""
    # Where the log starts is on disk at the next checkpoint.
    start = max(workload.start, log.log_start_offset)
    found = [batch.data for batch in stored_in(log) if batch.last >= start]
    if workload.doing in _TAKING:
        known = set.union(set(), *workload.history.versions.values())
        known |= {batch.data for batch in workload.stored}
        if workload.doing != "compact" and not known.issuperset(found):
            raise AssertionError(f"{log} holds what nobody has written")
        return
    acknowledged = [batch.data for batch in workload.stored if batch.last >= start]
    if found[: len(acknowledged)] != acknowledged or len(found) > len(acknowledged) + 1:
        raise AssertionError(f"{len(found)} batches in {log}, {len(acknowledged)} acknowledged")


def _reopened(workload: Workload, files: MemoryFiles) -> Log:
    logs = opened(files, workload.config, workload.now)
    log = log_in(logs)
    if log is None:
        raise AssertionError(f"the log is gone: {logs.refused}")
    return log


def _check_what_was_flushed(workload: Workload, seed: int) -> None:
    """The machine stops, too."""
    mark = workload.history.marks[-1]
    if not mark.is_there or workload.doing in _TAKING:
        return
    log = _reopened(workload, workload.files.crash(Random(seed), Crash.SYNCED))
    found = {batch.data for batch in stored_in(log)}
    flushed = [batch for batch in mark.stored if mark.start <= batch.last < mark.safe]
    lost = [batch.base for batch in flushed if batch.data not in found]
    if lost:
        raise AssertionError(f"flushed, and lost: {lost}")


def be_slow(seed: int, count: int) -> None:
    """A flush takes its time, and the log goes on meanwhile: it counts for what was there when it
    began, and for that alone."""
    delays_s = [0.0]
    workload = Workload(seed, MemoryFiles(delay_s=lambda kind, path: delays_s[-1]))
    workload.run(count)
    delays_s.append(0.001)
    log, end = workload.log, workload.end
    if not end:
        return
    asyncio.run(_flush_slowly(workload, log))
    if log.recovery_point < end:
        raise AssertionError(f"flushed up to {end}, and {log} says {log.recovery_point}")
    files = workload.files.crash(Random(seed + count), Crash.SYNCED)
    found = {batch.data for batch in stored_in(_reopened(workload, files))}
    for batch in workload.stored:
        if workload.start <= batch.last < log.recovery_point and batch.data not in found:
            raise AssertionError(f"{batch.base} counts as flushed by {log}, and is lost")


async def _flush_slowly(workload: Workload, log: Log) -> None:
    flushing = asyncio.create_task(log.flush())
    for call in (workload.append, workload.roll, workload.append, workload.append_idempotent):
        await asyncio.sleep(0)
        call()
    await flushing


# --- the long run -------------------------------------------------------------------------


def outcome_of(case: tuple[int, int, Fault]) -> str:
    logging.disable(logging.CRITICAL)
    try:
        return meet(*case)
    except SURPRISES as error:
        seed, number, fault = case
        return f"FAILED --seed {seed} --number {number} --fault {fault.name}: {error!r}"[:600]


def main() -> int:
    parser = ArgumentParser(
        prog="python -m tests.simulation.faults",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="of so many lives")
    parser.add_argument("--seed", type=int, help="of one life")
    parser.add_argument("--number", type=int, help="only this operation")
    parser.add_argument("--fault", choices=[fault.name for fault in KINDS])
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    kinds = [Fault[options.fault]] if options.fault else list(KINDS)
    if options.seed is not None and options.number is not None:
        for fault in kinds:
            print(fault.name, meet(options.seed, options.number, fault))
        return 0
    seeds = [*SEEDS, *range(100, 1000)][: options.seeds] if options.seed is None else [options.seed]
    cases = [
        (seed, number, fault) for seed in seeds for number in operations_of(seed) for fault in kinds
    ]
    counts: Counter[str] = Counter()
    with get_context("spawn").Pool(options.processes) as pool:
        for outcome in pool.imap_unordered(outcome_of, cases, chunksize=64):
            if outcome.startswith("FAILED"):
                print(outcome, flush=True)
            counts[outcome.split()[0]] += 1
    print(f"{len(cases)} faults in {len(seeds)} lives: {dict(counts)}")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
