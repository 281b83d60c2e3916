"""How a log changes but by appending, and what it does when the disk refuses."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.records import (
    ControlRecordType,
    read_header,
)
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from ottla.storage.steps import at_once
from tests.log_rig import (
    NOW,
    SMALL,
    Rig,
    append,
    batch,
    batches,
    records,
    refused,
    transaction,
)

ABORT = ControlRecordType.ABORT


# --- truncating ---------------------------------------------------------------------------


def test_truncation_drops_batches_from_the_offset_on() -> None:
    log = Rig(SMALL).create()
    append(log, *[3] * 20)
    before = batches(log)
    assert log.truncate_to(24, NOW)
    assert batches(log) == before[:8]
    assert not log.truncate_to(24, NOW)
    append(log, *[3] * 12)
    assert [record.offset for record in records(log)] == list(range(60))


def test_truncation_forgets_epochs_producers_and_transactions_behind_it() -> None:
    log = Rig().create()
    append(log, 2)
    log.append_as_leader(batch(2, producer=1), leader_epoch=0, now=NOW)
    transaction(log, 2, ABORT)
    append(log, 1, epoch=2)
    log.truncate_to(4, NOW)
    assert log.epochs.entries == [(0, 0)]
    assert set(log.producers.producers) == {1}
    assert at_once(log.aborted_transactions(0, 99)) == []
    log.append_as_leader(batch(2, producer=1, sequence=2), leader_epoch=0, now=NOW)
    assert log.log_end_offset == 6


def test_truncation_lowers_high_watermark_and_recovery_point() -> None:
    log = Rig().create()
    append(log, 3, 3)
    log.update_high_watermark(6)
    log.flush_now()
    log.truncate_to(3, NOW)
    assert (log.high_watermark, log.recovery_point, log.log_end_offset) == (3, 3, 3)


def test_truncation_in_front_of_the_log_starts_over() -> None:
    log = Rig().create()
    log.truncate_fully_and_start_at(10, NOW)
    append(log, 2)
    log.truncate_to(4, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


def test_a_log_starts_over_anywhere() -> None:
    rig = Rig(SMALL)
    log = rig.create()
    append(log, *[3] * 10)
    log.truncate_fully_and_start_at(100, NOW)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert log.epochs.entries == []
    append(log, 2, epoch=9)
    assert [record.offset for record in records(log)] == [100, 101]
    assert [n for n in rig.names() if n.endswith(".log")] == [f"{100:020}.log"]


def test_times_are_right_after_a_truncation() -> None:
    log = Rig(replace(SMALL, index_interval_bytes=0)).create()
    for stamp in (50, 10, 90, 20):
        log.append_as_leader(batch(1, timestamp=stamp), leader_epoch=0, now=NOW)
    log.truncate_to(2, NOW)
    assert log.segments.active.max_timestamp == 50
    assert at_once(log.offset_for_timestamp(60)) is None


# --- the beginning of the log -------------------------------------------------------------


def test_the_log_start_offset_rises_up_to_the_high_watermark() -> None:
    log = Rig().create()
    append(log, 3, 3)
    log.update_high_watermark(4)
    assert refused(lambda: log.maybe_increment_log_start_offset(5)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.maybe_increment_log_start_offset(4)
    assert not log.maybe_increment_log_start_offset(4)
    assert log.log_start_offset == 4
    found = at_once(log.offset_for_timestamp(0))
    assert found is not None and found.offset == 4


def test_deleted_segments_move_the_log_start_and_go_after_a_delay() -> None:
    rig = Rig(SMALL)
    log = rig.create()
    append(log, *[3] * 20)
    log.update_high_watermark(60)
    first, second = log.segments[0], log.segments[1]
    log.delete_segments([first], NOW)
    assert log.log_start_offset == second.base_offset
    assert f"{0:020}.log.deleted" in rig.names()
    rig.log_dir.chores.expire(NOW.monotonic_ms + SMALL.file_delete_delay_ms - 1)
    assert f"{0:020}.log.deleted" in rig.names()
    rig.log_dir.chores.expire(NOW.monotonic_ms + SMALL.file_delete_delay_ms)
    assert not [name for name in rig.names() if name.startswith(f"{0:020}")]


def test_when_all_segments_go_the_log_continues_at_its_end() -> None:
    log = Rig().create()
    append(log, 3)
    log.update_high_watermark(3)
    log.delete_segments(list(log.segments), NOW)
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (3, 3, 1)
    append(log, 2)
    assert [record.offset for record in records(log)] == [3, 4]


# --- a disk that refuses ------------------------------------------------------------------


def on(kind: str, suffix: str = ".log") -> Callable[[Operation], bool]:
    return lambda op: op.kind == kind and op.path.endswith(suffix)


def state(log: Log) -> object:
    producers = {
        producer_id: (producer.epoch, list(producer.batches))
        for producer_id, producer in log.producers.producers.items()
    }
    return log.log_end_offset, log.log_start_offset, producers, batches(log)


@pytest.mark.parametrize("fault", [Fault.ENOSPC, Fault.EDQUOT, Fault.SHORT_WRITE, Fault.EMFILE])
def test_a_full_disk_refuses_one_append_and_changes_nothing(fault: Fault) -> None:
    rig = Rig(SMALL)
    log = rig.create()
    log.append_as_leader(batch(producer=1), leader_epoch=0, now=NOW)
    before = state(log)
    rig.files.fail(on("write"), fault)
    sent = batch(producer=1, sequence=3)
    code = refused(lambda: log.append_as_leader(sent, leader_epoch=0, now=NOW))
    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert state(log) == before
    log.append_as_leader(batch(producer=1, sequence=3), leader_epoch=0, now=NOW)
    assert [record.offset for record in records(log)] == list(range(6))
    assert rig.log_dir.failure is None


@pytest.mark.parametrize("kind", ["create", "write", "resize"])
def test_a_roll_that_finds_no_room_changes_nothing(kind: str) -> None:
    rig = Rig(SMALL)
    log = rig.create()
    while len(log.segments) == 1 and log.segments.active.size < 1500:
        append(log, 3)
    before = state(log)
    rig.files.fail(lambda op: op.kind == kind, Fault.ENOSPC)
    sent = batch(3, size=120)
    code = refused(lambda: log.append_as_leader(sent, leader_epoch=0, now=NOW))
    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert state(log) == before
    append(log, *[3] * 10)
    rig.files.copy()
    assert [record.offset for record in records(log)] == list(range(log.log_end_offset))
    reopened = rig.killed().open()
    assert batches(reopened) == batches(log)


def test_a_failed_disk_takes_the_directory_offline_for_good() -> None:
    rig = Rig()
    log = rig.create()
    append(log, 3)
    rig.files.fail(on("write"), Fault.EIO)
    for _ in range(2):
        code = refused(lambda: log.append_as_leader(batch(), leader_epoch=0, now=NOW))
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.log_dir.failure is not None
    assert refused(lambda: log.read(0, 100)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 3


def test_an_index_that_finds_no_room_waits_in_memory() -> None:
    rig = Rig(LogConfig(index_interval_bytes=0))
    log = rig.create()
    rig.files.fail(on("write", "index"), Fault.ENOSPC, times=None)
    append(log, *[1] * 600)
    assert log.log_end_offset == 600
    found = log.read(300, 10)
    assert found is not None and read_header(found.data).base_offset == 300


def test_an_aborted_transaction_that_finds_no_room_waits_in_memory() -> None:
    rig = Rig()
    log = rig.create()
    rig.files.fail(on("create", ".txnindex"), Fault.ENOSPC)
    transaction(log, 1, ABORT)
    transaction(log, 2, ABORT)
    aborted = at_once(log.aborted_transactions(0, 99))
    assert [each.producer_id for each in aborted] == [1, 2]
    log.close()
    reopened = rig.killed().open(clean=True)
    assert at_once(reopened.aborted_transactions(0, 99)) == aborted


def test_a_failed_sync_takes_the_directory_offline() -> None:
    rig = Rig(LogConfig(flush_messages=1))
    log = rig.create()
    append(log, 1)
    rig.files.fail(on("sync"), Fault.EIO)
    code = refused(lambda: append(log, 1))
    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.log_dir.failure is not None


# --- flushing -----------------------------------------------------------------------------


def test_flush_messages_flushes_after_so_many() -> None:
    log = Rig(LogConfig(flush_messages=4)).create()
    append(log, 3)
    assert log.recovery_point == 0
    append(log, 1)
    assert log.recovery_point == 4


def test_writers_share_an_fsync() -> None:
    import asyncio

    rig = Rig()
    log = rig.create()
    log.settle()
    syncs: list[str] = []

    def noted(op: Operation) -> bool:
        if op.kind == "sync" and op.path.endswith(".log"):
            syncs.append(op.path)
        return False

    rig.files.fail(noted, Fault.EIO)

    async def write() -> None:
        append(log, 1)
        offset = log.log_end_offset
        await log.flush(offset)
        assert log.recovery_point >= offset

    async def main() -> None:
        await asyncio.gather(*[write() for _ in range(20)])

    asyncio.run(main())
    assert log.recovery_point == 20
    assert len(syncs) <= 2


def test_a_flush_that_was_overtaken_by_a_truncation_promises_nothing() -> None:
    import asyncio

    rig = Rig(files=MemoryFiles(delay_s=lambda kind, path: 0.001))
    log = rig.create()
    append(log, 4)

    async def main() -> None:
        flushing = asyncio.ensure_future(log.flush())
        await asyncio.sleep(0)
        log.truncate_to(0, NOW)
        append(log, 4)
        await flushing

    asyncio.run(main())
    assert log.recovery_point == 0


# --- the end ------------------------------------------------------------------------------


def test_a_closed_log_has_trimmed_indexes_and_a_snapshot_at_its_end() -> None:
    rig = Rig(LogConfig(index_interval_bytes=0))
    log = rig.create()
    append(log, 1, 1, 1)
    log.close()
    sizes = {name: rig.files.size(rig.path(name)) for name in rig.names()}
    assert sizes[f"{0:020}.index"] == 2 * 8
    assert sizes[f"{0:020}.timeindex"] == 2 * 12
    assert sizes[f"{3:020}.snapshot"] == 10
    assert log.recovery_point == 3


def test_a_log_moves_with_what_is_open() -> None:
    rig = Rig()
    log = rig.create()
    append(log, 3)
    log.rename("t-0.0123456789abcdef0123456789abcdef-delete")
    append(log, 3)
    assert len(records(log)) == 6
    log.delete()
    assert rig.files.list("logs") == []
