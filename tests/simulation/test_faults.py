"""Every storage operation fails once, in every way: nothing that was flushed is lost, and a failed
disk takes the log directory offline."""

from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.errors import StorageError
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault
from tests.simulation.workload import Refused, Workload
from tests.simulation.world import log_in, opened, stored_in

SEEDS = (2, 5, 9)
OPERATIONS = 60
# Of the operations of a seed, each fault meets one in so many.
EVERY = 11
KINDS = (Fault.EIO, Fault.EROFS, Fault.ENOSPC, Fault.SHORT_WRITE, Fault.EMFILE, Fault.ENOMEM)
# They take away what was flushed, and a fault may find them half-way.
TAKING = {"truncate", "start_over", "compact", "retain", "delete_records"}


def operations_of(seed: int) -> range:
    workload = Workload(seed)
    workload.run(OPERATIONS)
    return range(workload.first_operation, workload.files.operation_count)


def meet(seed: int, number: int, fault: Fault) -> str:
    """What became of a workload with this fault. Raises where something was lost."""
    files = MemoryFiles()
    workload = Workload(seed, files)
    files.fail(number, fault)
    outcome = "unseen"
    try:
        workload.run(OPERATIONS)
    except (KafkaError, StorageError, Refused) as error:
        if isinstance(error, KafkaError) and error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
            raise
        outcome = "refused"
    log = log_in(workload.logs)
    if log is not None and log.folder.log_dir.failure is not None:
        outcome = "offline"
        for call in (log.check, log.flush_now, lambda: log.roll(workload.now)):
            with pytest.raises(KafkaError):
                call()
        with pytest.raises(KafkaError):
            workload.append()
    if workload.history.marks:
        check_nothing_lost(workload, files.crash(Random(f"{seed} {number}"), Crash.SYNCED))
    return outcome


def check_nothing_lost(workload: Workload, files: MemoryFiles) -> None:
    logs = opened(files, workload.config, workload.now)
    assert not logs.refused
    mark = workload.history.marks[-1]
    log = log_in(logs)
    assert log is not None or not mark.is_there
    if log is None or workload.doing in TAKING:
        return
    found = {batch.data for batch in stored_in(log)}
    flushed = [batch for batch in mark.stored if mark.start <= batch.last < mark.safe]
    assert [batch.base for batch in flushed if batch.data not in found] == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", KINDS)
def test_no_failed_operation_loses_what_was_flushed(seed: int, fault: Fault) -> None:
    outcomes = {meet(seed, number, fault) for number in list(operations_of(seed))[::EVERY]}
    if fault in (Fault.EIO, Fault.EROFS):
        assert "offline" in outcomes
    elif fault is not Fault.SHORT_WRITE:
        assert "refused" in outcomes
