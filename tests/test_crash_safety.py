"""What a log relies on is on disk before: each change, cut at every operation, in every way."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from ottla.protocol.records import ControlRecordType
from ottla.storage.cleaner import Cleaner
from ottla.storage.config import COMPACT, LogConfig
from ottla.storage.log import Log
from ottla.storage.logs import Logs
from ottla.storage.long_work import work_now
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import Journal, MemoryFiles
from ottla.storage.producers import Origin
from ottla.storage.steps import at_once, to_the_end
from tests.log_rig import NOW, SMALL, TOPIC_ID, append, batch, marker
from tests.simulation.history import Batch
from tests.simulation.world import Recovered, log_in, opened, recovered_in, stored_in

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
COMPACTED = replace(SMALL, cleanup_policy=frozenset({COMPACT}), min_cleanable_dirty_ratio=0.0)
CONFIGS = {"delete": SMALL, "compact": COMPACTED}
EVERY = 4


def written(config: LogConfig) -> tuple[MemoryFiles, Logs, Log]:
    """Four segments of plain and transactional batches in three epochs, all of it flushed."""
    files = MemoryFiles()
    logs = opened(files, config, NOW)
    log = logs.create("t", 0, config, topic_id=TOPIC_ID, now=NOW)
    log.settle()
    for number in range(15):
        append(log, 3, epoch=number // 5)
        data = batch(2, producer=1, sequence=number * 2, transactional=True)
        log.append_as_leader(data, leader_epoch=number // 5, now=NOW)
        end = marker(1, COMMIT if number % 2 else ABORT)
        log.append_as_leader(end, leader_epoch=number // 5, now=NOW, origin=Origin.COORDINATOR)
    assert len(log.segments) > 3
    log.flush_now()
    log.update_high_watermark(log.log_end_offset)
    return files, logs, log


def found_after(files: MemoryFiles, config: LogConfig) -> Recovered:
    log = log_in(opened(files, config, NOW))
    assert log is not None
    return recovered_in(log)


def some(journal: Journal, crash: Crash) -> list[int]:
    """Of the operations one in so many: others for each crash."""
    return journal.cuts()[list(Crash).index(crash) % EVERY :: EVERY]


def bases(batches: tuple[Batch, ...]) -> list[int]:
    return [each.base for each in batches]


def check_producers(found: Recovered) -> None:
    """Those who have a batch are known by their last one; others may be known, too."""
    for producer_id, by_batches in found.replayed.known.items():
        if by_batches.last_offset >= 0:
            assert found.known[producer_id][:3] == by_batches[:3]


def check_whole(found: Recovered) -> None:
    """Epochs, producers and aborted transactions are those of the batches."""
    known = dict(found.epochs)
    for each in found.found:
        begun = max(epoch for epoch, start in known.items() if start <= max(each.base, found.start))
        assert begun == each.header.partition_leader_epoch
    check_producers(found)
    named = {(producer_id, last) for producer_id, _, last in found.aborted}
    assert named >= {(producer_id, last) for producer_id, _, last in found.replayed.aborted}
    for lookup in found.lookups:
        assert lookup.data == lookup.batch.data


# --- changes ------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Log], object]] = {
    "truncate": lambda log: log.truncate_to(stored_in(log)[14].base, NOW),
    "truncate below the log start": lambda log: (
        log.maybe_increment_log_start_offset(60),
        log.truncate_to(stored_in(log)[0].base - 30, NOW),
    ),
    "start over in front": lambda log: log.truncate_fully_and_start_at(7, NOW),
    "start over behind": lambda log: log.truncate_fully_and_start_at(5_000, NOW),
    "delete": lambda log: log.delete_segments(list(log.segments)[:3], NOW),
    "delete all": lambda log: log.delete_segments(list(log.segments), NOW),
}


@pytest.mark.parametrize("crash", list(Crash))
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_is_cut_leaves_the_beginning_of_what_was_there(
    change: Callable[[Log], object], config: LogConfig, crash: Crash
) -> None:
    files, _, log = written(config)
    before = stored_in(log)
    journal = files.record()
    change(log)
    after, start = stored_in(log), log.log_start_offset
    for cut in some(journal, crash):
        disk = journal.disk_at(cut).crash(Random(cut), crash)
        found = found_after(disk, config)
        check_whole(found)
        # A hole is neither in front of what is there nor in it.
        there = [each for each in before if each.last >= found.start]
        assert list(found.found) == there[: len(found.found)]
        # What is not taken away was flushed.
        assert set(bases(found.found)) >= {each.base for each in after if each.last >= start}
        assert found_after(disk.copy(), config).fingerprint == found.fingerprint


@pytest.mark.parametrize("crash", list(Crash))
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_comes_behind_a_change_is_not_mixed_with_what_was_there(
    change: Callable[[Log], object], config: LogConfig, crash: Crash
) -> None:
    files, _, log = written(config)
    change(log)
    for number in range(4):
        append(log, 2, epoch=3 + number)
        data = batch(2, producer=2, sequence=number * 2)
        log.append_as_leader(data, leader_epoch=3 + number, now=NOW)
        log.flush_now()
        found = found_after(files.crash(Random(number), crash), config)
        check_whole(found)
        behind = [each for each in found.found if each.last >= log.log_start_offset]
        assert behind == list(stored_in(log))


@pytest.mark.parametrize("crash", list(Crash))
def test_a_log_that_has_started_over_knows_nobody(crash: Crash) -> None:
    files, logs, log = written(SMALL)
    asyncio.run(logs.checkpoint())
    journal = files.record()
    log.truncate_fully_and_start_at(5_000, NOW)
    for cut in some(journal, crash):
        disk = journal.disk_at(cut).crash(Random(cut), crash)
        again = disk.record()
        found = found_after(disk, SMALL)
        assert (found.start == 5_000) == (found.known == {})
        # And where the recovery is cut, which starts over as well.
        cuts = again.cuts()
        disk = again.disk_at(cuts[cut % len(cuts)]).crash(Random(cut), crash)
        found = found_after(disk, SMALL)
        assert (found.start == 5_000) == (found.known == {})


@pytest.mark.parametrize("crash", list(Crash))
def test_a_swap_that_is_cut_forgets_no_abort(crash: Crash) -> None:
    files, _, log = written(COMPACTED)
    log.roll(NOW)
    log.update_high_watermark(log.log_end_offset)
    cleaner = Cleaner(lambda: NOW)
    found = to_the_end(cleaner.dirtiest([log], NOW))
    assert found is not None
    journal = files.record()
    assert work_now(cleaner.clean(found)) is not None
    assert recovered_in(log).replayed.aborted
    for cut in some(journal, crash):
        check_whole(found_after(journal.disk_at(cut).crash(Random(cut), crash), COMPACTED))


@pytest.mark.parametrize("crash", list(Crash))
def test_indexes_that_are_made_again_are_whole_wherever_that_is_cut(crash: Crash) -> None:
    files, logs, log = written(SMALL)
    asyncio.run(logs.checkpoint())
    disk = files.crash(Random(1), Crash.SYNCED)
    disk.remove(f"d/t-0/{0:020}.index")
    disk.remove(f"d/t-0/{0:020}.txnindex")
    disk.sync_directory_now("d/t-0")
    journal = disk.record()
    expected = found_after(disk, SMALL)
    assert expected.found == stored_in(log)
    for cut in some(journal, crash):
        found = found_after(journal.disk_at(cut).crash(Random(cut), crash), SMALL)
        assert found.fingerprint == expected.fingerprint


# --- what is flushed ----------------------------------------------------------------------


@pytest.mark.parametrize("crash", list(Crash))
def test_indexes_of_a_segment_that_was_flushed_before_it_was_rolled_are_on_disk(
    crash: Crash,
) -> None:
    config = replace(SMALL, preallocate=True)
    files, logs, log = written(config)
    asyncio.run(logs.checkpoint())
    times = [at_once(log.offset_for_timestamp(NOW.wall_ms + ms)) for ms in range(0, 160, 9)]
    journal = files.record()
    log.roll(NOW)
    for cut in journal.cuts():
        disk = journal.disk_at(cut).crash(Random(cut), crash)
        again = log_in(opened(disk, config, NOW))
        assert again is not None
        assert stored_in(again) == stored_in(log)
        found = [at_once(again.offset_for_timestamp(NOW.wall_ms + ms)) for ms in range(0, 160, 9)]
        assert found == times


def test_a_segment_that_is_rolled_during_its_flush_is_flushed_as_a_closed_one() -> None:
    files = MemoryFiles(delay_s=lambda kind, path: 0.001)
    log = opened(files, SMALL, NOW).create("t", 0, SMALL, topic_id=TOPIC_ID, now=NOW)
    append(log, 3, 3)

    async def main() -> None:
        flushing = asyncio.ensure_future(log.flush())
        await asyncio.sleep(0)
        log.roll(NOW)
        await flushing

    asyncio.run(main())
    assert log.recovery_point == 6
    assert not log.segments.first.is_dirty


def test_the_name_of_a_transaction_index_is_flushed_with_its_entries() -> None:
    files = MemoryFiles()
    log = opened(files, SMALL, NOW).create("t", 0, SMALL, topic_id=TOPIC_ID, now=NOW)
    append(log, 1)
    log.flush_now()
    data = batch(2, producer=1, transactional=True)
    log.append_as_leader(data, leader_epoch=0, now=NOW)
    end = marker(1, ABORT)
    log.append_as_leader(end, leader_epoch=0, now=NOW, origin=Origin.COORDINATOR)
    log.flush_now()
    assert files.crash(Random(1), Crash.SYNCED).exists(f"d/t-0/{0:020}.txnindex")


def test_the_snapshot_of_a_roll_is_flushed_with_the_segment_before_it() -> None:
    files = MemoryFiles()
    log = opened(files, SMALL, NOW).create("t", 0, SMALL, topic_id=TOPIC_ID, now=NOW)
    log.append_as_leader(batch(2, producer=1), leader_epoch=0, now=NOW)
    log.roll(NOW)
    log.folder.log_dir.chores.flush_now()
    log.update_high_watermark(2)
    log.delete_segments([log.segments.first], NOW)
    # The batch is gone; that it was there is known of the snapshot alone.
    found = found_after(files.crash(Random(1), Crash.SYNCED), SMALL)
    assert found.known[1].last_offset == 1


# --- the log's beginning ------------------------------------------------------------------


def test_epochs_are_known_again_when_a_crash_brings_the_log_start_back() -> None:
    files, logs, log = written(SMALL)
    asyncio.run(logs.checkpoint())
    expected = list(log.epochs.entries)
    log.maybe_increment_log_start_offset(log.log_end_offset - 3)
    log.assign_epoch(9)
    found = found_after(files.crash(Random(1), Crash.SYNCED), SMALL)
    assert found.start == 0
    assert found.epochs == expected


def test_epochs_of_what_is_not_vouched_for_are_those_of_the_batches() -> None:
    files, _, log = written(SMALL)
    files.write_atomically_now("d/t-0/leader-epoch-checkpoint", b"0\n3\n0 0\n1 9\n7 40\n")
    assert found_after(files.copy(), SMALL).epochs == log.epochs.entries


# --- snapshots ----------------------------------------------------------------------------


def test_a_snapshot_that_cannot_be_read_is_not_kept_for_the_next_start() -> None:
    files, logs, log = written(SMALL)
    asyncio.run(logs.checkpoint())
    path = f"d/t-0/{log.segments.active.base_offset:020}.snapshot"
    files.write_atomically_now(path, b"junk")
    disk = files.copy()
    found = found_after(disk, SMALL)
    assert disk.read_whole(path) != b"junk"
    assert found_after(disk.copy(), SMALL).fingerprint == found.fingerprint


def test_nobody_goes_on_from_a_snapshot_over_a_hole() -> None:
    files = MemoryFiles()
    logs = opened(files, SMALL, NOW)
    log = logs.create("t", 0, SMALL, topic_id=TOPIC_ID, now=NOW)
    for sequence in (0, 2):
        log.append_as_leader(batch(2, producer=1, sequence=sequence), leader_epoch=0, now=NOW)
        if not sequence:
            log.flush_now()
        log.roll(NOW)
    append(log, 3)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(5)
    asyncio.run(logs.checkpoint())
    assert [each.base_offset for each in log.segments] == [0, 2, 4]
    # Below the log start, and not flushed: a crash may have left nothing of it.
    disk = files.copy()
    disk.open(f"d/t-0/{2:020}.log").truncate(0)
    disk.write_atomically_now(f"d/t-0/{4:020}.snapshot", b"junk")
    found = found_after(disk.copy(), SMALL)
    # That producer 1 has sent sequence 3 is not known: nor must it be expected to send 2.
    assert found.known == {}


# --- gaps ---------------------------------------------------------------------------------


def test_a_segment_begins_where_the_log_ends_also_before_a_gap() -> None:
    files = MemoryFiles()
    log = opened(files, SMALL, NOW).create("t", 0, SMALL, topic_id=TOPIC_ID, now=NOW)
    offset = 0
    for _ in range(24):
        data = batch(3, base_offset=offset, leader_epoch=0)
        log.append_as_follower(data, leader_epoch=0, now=NOW)
        offset += 10
    assert len(log.segments) > 2
    found = found_after(files.crash(Random(1), Crash.EVERYTHING), SMALL)
    assert found.found == stored_in(log)


def test_a_gap_that_segments_cannot_bridge_is_on_disk_before() -> None:
    files = MemoryFiles()
    log = opened(files, SMALL, NOW).create("t", 0, SMALL, topic_id=TOPIC_ID, now=NOW)
    for base in (0, 1 << 40):
        data = batch(1, base_offset=base, leader_epoch=0)
        log.append_as_follower(data, leader_epoch=0, now=NOW)
    assert [each.base_offset for each in log.segments] == [0, 1 << 40]
    found = found_after(files.crash(Random(1), Crash.EVERYTHING), SMALL)
    assert found.found == stored_in(log)


@pytest.mark.parametrize("crash", list(Crash))
def test_holes_of_a_cleaner_are_no_holes_when_the_policy_is_another_one(crash: Crash) -> None:
    files = MemoryFiles()
    log = opened(files, COMPACTED, NOW).create("t", 0, COMPACTED, topic_id=TOPIC_ID, now=NOW)
    append(log, *[3] * 16)
    log.roll(NOW)
    append(log, 3)
    log.flush_now()
    log.update_high_watermark(log.log_end_offset)
    cleaner = Cleaner(lambda: NOW)
    found = to_the_end(cleaner.dirtiest([log], NOW))
    assert found is not None
    journal = files.record()
    assert work_now(cleaner.clean(found)) is not None
    assert log.segments.first.size == 0, "there is no hole"
    offsets = {record for each in stored_in(log) for record in (each.base, each.last)}
    for cut in some(journal, crash):
        disk = journal.disk_at(cut).crash(Random(cut), crash)
        again = found_after(disk, SMALL)
        check_whole(again)
        assert {offset for each in again.found for offset in (each.base, each.last)} >= offsets
        assert found_after(disk.copy(), SMALL).fingerprint == again.fingerprint
