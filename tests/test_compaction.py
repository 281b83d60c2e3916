"""Cleaning a log: of each key the last record stays where it is, whatever happens meanwhile."""

import asyncio
from random import Random

import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.records import (
    CRC_POSITION,
    TimestampType,
    check_crc,
    iterate_batches,
    iterate_records,
    read_header,
)
from ottla.storage.cleanable import log_to_clean
from ottla.storage.compaction import CleaningAborted, clean, groups_of
from ottla.storage.errors import CorruptFile
from ottla.storage.long_work import work_now, work_on
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault
from ottla.storage.offset_map import OffsetMap
from ottla.storage.steps import at_once
from tests.cleaning_rig import ABORT, COMMIT, COMPACTED, RETENTION_MS, CleaningRig, kept
from tests.log_rig import Rig, batches

# --- what stays ---------------------------------------------------------------------------


def test_of_each_key_the_last_record_stays_at_its_offset() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("b", "1"), ("a", "2"))
    rig.append(("c", "1"), ("b", "2"), roll=True)
    rig.append(("a", "3"))
    rig.closed().clean()
    assert rig.kept == [(3, "c", "1"), (4, "b", "2"), (5, "a", "3")]
    assert rig.log.log_end_offset == 6


def test_the_active_segment_stays_as_it_is_and_says_nothing_of_keys() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"))
    rig.closed()
    rig.append(("a", "2"), ("a", "3"))
    rig.log.update_high_watermark(rig.log.log_end_offset)
    rig.clean()
    assert rig.kept == [(0, "a", "1"), (1, "a", "2"), (2, "a", "3")]


def test_nothing_is_cleaned_behind_the_high_watermark() -> None:
    rig = CleaningRig()
    for value in "1234":
        rig.append(("a", value), roll=True)
    rig.log.update_high_watermark(2)
    rig.clean()
    assert rig.kept == [(1, "a", "2"), (2, "a", "3"), (3, "a", "4")]


def test_nothing_is_cleaned_behind_an_open_transaction() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), roll=True)
    rig.append(("a", "2"), roll=True)
    rig.append(("t", "1"), producer=7, transactional=True, roll=True)
    rig.append(("a", "3"), roll=True)
    rig.closed().clean()
    assert rig.kept == [(1, "a", "2"), (2, "t", "1"), (3, "a", "3")]


def test_records_without_a_key_go() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), (None, "lost"), ("b", "1"), roll=True)
    rig.append(("c", "1"))
    rig.closed().clean()
    assert rig.kept == [(0, "a", "1"), (2, "b", "1"), (3, "c", "1")]


def test_the_last_batch_of_a_round_stays_as_an_empty_one() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"))
    rig.append((None, "goes"), (None, "goes too"))
    rig.closed().clean()
    assert [(each.base_offset, each.last_offset, each.record_count) for each in rig.headers] == [
        (0, 0, 1),
        (1, 2, 0),
    ]


def test_the_last_batch_of_a_producer_stays_for_its_sequence() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), producer=5, sequence=0)
    rig.append(("a", "2"), ("a", "3"), producer=5, sequence=1)
    rig.append(("a", "4"))
    rig.closed().clean()
    assert [each.base_offset for each in rig.headers] == [1, 3]
    empty = rig.headers[0]
    assert (empty.record_count, empty.producer_id, empty.base_sequence) == (0, 5, 1)
    assert (empty.last_sequence, empty.last_offset) == (2, 2)


def test_a_later_batch_of_the_producer_lets_the_empty_one_go() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), producer=5, sequence=0)
    rig.append(("a", "2"))
    rig.closed().clean()
    rig.append(("b", "1"), producer=5, sequence=1)
    rig.closed().clean()
    assert [each.base_offset for each in rig.headers] == [1, 2]


def test_a_producer_is_known_after_a_restart_by_its_empty_batch() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("a", "2"), producer=5, sequence=0)
    rig.append(("a", "3"))
    rig.closed().clean()
    killed = rig.rig.killed()
    for name in killed.names():
        if name.endswith(".snapshot"):
            killed.files.remove(killed.path(name))
    reopened = killed.open()
    assert reopened.producers.producers[5].batches[-1].last_sequence == 1


# --- batches ------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_written_anew_in_its_own_codec(codec: Codec) -> None:
    rig = CleaningRig()
    rig.append(("a", "1" * 99), ("b", "2" * 99), ("c", "3" * 99), codec=codec, roll=True)
    rig.append(("b", "4"))
    rig.closed().clean()
    header, data = batches(rig.log)[0]
    check_crc(data, 0, header)
    assert header.compression is codec
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 2)
    first, last = iterate_records(data, decompressed_max=1 << 20)
    assert (first.offset, first.value, first.headers) == (0, b"1" * 99, (("header", b"0"),))
    assert (last.offset, last.value, last.headers) == (2, b"3" * 99, (("header", b"2"),))
    assert last.timestamp - first.timestamp == 2


def test_a_batch_that_loses_nothing_stays_byte_for_byte() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("b", "1"), codec=Codec.ZSTD)
    rig.append(("c", "1"))
    before = batches(rig.log)
    rig.closed().clean()
    assert batches(rig.log) == before


def test_times_stay_when_the_first_record_goes() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("b", "1"), ("c", "1"), timestamp=5_000, roll=True)
    rig.append(("a", "2"))
    rig.closed().clean()
    header, data = batches(rig.log)[0]
    assert (header.base_timestamp, header.max_timestamp) == (5_001, 5_002)
    records = list(iterate_records(data, decompressed_max=1 << 20))
    assert [each.timestamp for each in records] == [5_001, 5_002]


def test_the_append_time_of_a_batch_stays() -> None:
    rig = CleaningRig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    rig.append(("a", "1"), ("b", "1"), timestamp=5_000, roll=True)
    appended_ms = rig.now.wall_ms
    rig.later(77).append(("a", "2"))
    rig.closed().clean()
    header, data = batches(rig.log)[0]
    assert header.is_log_append_time and header.max_timestamp == appended_ms
    assert [each.timestamp for each in iterate_records(data, decompressed_max=999)] == [appended_ms]


def test_a_batch_of_very_many_records_is_walked_in_pieces() -> None:
    rig = CleaningRig(segment_bytes=1 << 20)
    rig.append(*((f"k{number}", "1") for number in range(3_000)), ("k7", None), roll=True)
    rig.append(*((f"k{number}", "2") for number in range(0, 3_000, 2)))
    rig.closed().clean()
    first = [each for each in rig.kept if each[0] <= 3_000]
    assert [each[1] for each in first] == [
        f"k{number}" for number in range(1, 3_000, 2) if number != 7
    ] + ["k7"]
    assert rig.headers[0].has_delete_horizon


# --- tombstones ---------------------------------------------------------------------------


def test_a_tombstone_goes_only_when_it_was_there_long_enough() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("a", None), ("b", "1"), roll=True)
    rig.append(("c", "1"))
    rig.closed().clean()
    assert rig.kept == [(1, "a", None), (2, "b", "1"), (3, "c", "1")]
    horizon = rig.headers[0].delete_horizon_ms
    assert horizon == rig.now.wall_ms + RETENTION_MS
    rig.later(RETENTION_MS - 1)
    rig.append(("d", "1"))
    rig.closed().clean()
    assert (1, "a", None) in rig.kept
    rig.later(1)
    rig.append(("e", "1"))
    rig.closed().clean()
    assert rig.kept[0] == (2, "b", "1")


def test_a_delete_horizon_is_set_once() -> None:
    rig = CleaningRig()
    rig.append(("a", None), ("b", "1"), roll=True)
    rig.append(("c", "1"))
    rig.closed().clean()
    horizon = rig.headers[0].delete_horizon_ms
    rig.later(5_000).append(("b", "2"))
    rig.closed().clean()
    assert rig.headers[0].delete_horizon_ms == horizon
    assert rig.headers[0].record_count == 1


def test_times_stay_under_a_delete_horizon() -> None:
    rig = CleaningRig()
    rig.append(("a", None), ("b", "1"), timestamp=5_000)
    rig.append(("c", "1"))
    rig.closed().clean()
    data = batches(rig.log)[0][1]
    assert [each.timestamp for each in iterate_records(data, decompressed_max=999)] == [
        5_000,
        5_001,
    ]


# --- transactions -------------------------------------------------------------------------


def test_records_of_an_aborted_transaction_go_and_overwrite_nothing() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"))
    rig.append(("a", "never"), ("b", "never"), producer=7, transactional=True)
    rig.end(7, ABORT)
    rig.append(("c", "1"))
    rig.closed().clean()
    assert rig.kept == [(0, "a", "1"), (4, "c", "1")]


def test_records_of_a_committed_transaction_are_as_any_others() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("b", "1"))
    rig.append(("a", "2"), producer=7, transactional=True)
    rig.end(7, COMMIT)
    rig.append(("c", "1"))
    rig.closed().clean()
    assert rig.kept == [(1, "b", "1"), (2, "a", "2"), (4, "c", "1")]


@pytest.mark.parametrize("type_", [COMMIT, ABORT])
def test_a_marker_goes_after_its_records_and_a_delay_of_its_own(type_: object) -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), producer=7, transactional=True)
    rig.end(7, type_)  # type: ignore[arg-type]
    # A later transaction of the producer, so that nothing is kept for the producer's sake.
    rig.append(("a", "2"), producer=7, sequence=1, transactional=True)
    rig.end(7, COMMIT)
    rig.append(("z", "0"))
    rig.closed().clean()
    assert rig.controls == [1, 3], "its records were there until now"
    rig.append(("z", "1"))
    rig.closed().clean()
    assert rig.controls == [1, 3]
    assert rig.headers[0].delete_horizon_ms == rig.now.wall_ms + RETENTION_MS
    rig.later(RETENTION_MS).append(("z", "2"))
    rig.closed().clean()
    assert rig.controls == [3]


def test_the_last_marker_of_a_producer_stays_for_its_epoch() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), producer=7, transactional=True)
    rig.end(7, COMMIT, epoch=1)
    rig.append(("a", "2"))
    for _ in range(4):
        rig.closed().later(RETENTION_MS).clean()
        rig.append(("z", "1"))
    marker = rig.headers[0]
    assert (marker.base_offset, marker.record_count, marker.producer_epoch) == (1, 0, 1)
    assert marker.is_control and not marker.has_delete_horizon


def test_the_transaction_index_holds_what_is_still_there() -> None:
    rig = CleaningRig()
    rig.append(("a", "never"), producer=7, transactional=True)
    rig.end(7, ABORT)
    rig.append(("b", "1"))
    rig.closed().clean()
    index = rig.log.segments.first.transaction_index
    assert [each.producer_id for each in at_once(index.load())] == [7]
    rig.append(("c", "1"), producer=7, sequence=1, transactional=True)
    rig.end(7, COMMIT)
    rig.closed().clean()
    rig.append(("d", "1"))
    rig.closed().clean()
    entries = [at_once(each.transaction_index.load()) for each in rig.log.segments]
    assert not any(entries), "the last round has met no batch of it"


def test_a_transaction_over_several_segments_stays_aborted() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), roll=True)
    rig.append(("a", "never"), producer=7, transactional=True, roll=True)
    rig.append(("a", "nor this"), producer=7, sequence=1, transactional=True, roll=True)
    rig.end(7, ABORT)
    rig.append(("b", "1"))
    rig.closed().clean()
    assert rig.kept == [(0, "a", "1"), (4, "b", "1")]


# --- rounds -------------------------------------------------------------------------------


def test_a_small_map_takes_several_rounds_and_comes_to_the_same() -> None:
    rig = CleaningRig()
    for value in "12":
        rig.append(*((key, value) for key in "abcdef"), roll=True)
    rig.closed()
    ends = []
    checkpoint: int | None = None
    for _ in range(6):
        to_clean = log_to_clean(rig.log, checkpoint, rig.now)
        offsets = OffsetMap(2)
        cleaned = work_now(clean(to_clean, offsets, lambda: rig.now))
        offsets.close()
        assert cleaned is not None
        checkpoint = cleaned.end_offset
        ends.append(checkpoint)
    assert ends == [2, 4, 6, 8, 10, 12]
    assert rig.kept == [(6 + number, key, "2") for number, key in enumerate("abcdef")]


def test_what_was_cleaned_before_is_cleaned_of_what_is_new() -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("b", "1"))
    first = rig.closed().clean()
    rig.append(("a", "2"))
    second = rig.closed().clean()
    assert first is not None and second is not None
    assert (first.end_offset, second.end_offset, second.mapped_count) == (2, 3, 1)
    assert rig.kept == [(1, "b", "1"), (2, "a", "2")]


def test_small_segments_become_one() -> None:
    rig = CleaningRig()
    for number in range(6):
        rig.append((f"k{number}", "1"), roll=True)
    rig.closed().clean()
    assert [each.base_offset for each in rig.log.segments] == [0, 6]
    names = [name for name in rig.rig.names() if name.endswith((".log", ".snapshot"))]
    assert names == [
        "00000000000000000000.log",
        "00000000000000000006.log",
        "00000000000000000006.snapshot",
    ]


def test_segments_are_joined_up_to_the_size_of_one() -> None:
    rig = CleaningRig()
    for number in range(6):
        rig.append((f"k{number}", "1"), roll=True)
    size = rig.log.segments.first.size
    segments = list(rig.log.segments)[:-1]
    assert [len(group) for group in groups_of(segments, end=6)] == [6]
    rig.log.config = COMPACTED
    for segment_bytes, lengths in ((size * 2, [2, 2, 2]), (size * 4, [4, 2]), (size - 1, [1] * 6)):
        segments[0].folder.config = CleaningRig(segment_bytes=segment_bytes).config
        assert [len(group) for group in groups_of(segments, end=6)] == lengths


def test_segments_whose_offsets_lie_too_far_apart_stay_apart() -> None:
    rig = CleaningRig()
    for number in range(3):
        rig.append((f"k{number}", "1"), roll=True)
    segments = list(rig.log.segments)[:-1]
    assert [len(group) for group in groups_of(segments, end=1 << 31)] == [3]
    assert [len(group) for group in groups_of(segments, end=(1 << 31) + 1)] == [2, 1]


def test_readers_who_come_late_find_what_is_left() -> None:
    rig = CleaningRig()
    for value in range(20):
        rig.append(("a", str(value)), ("b", str(value)), roll=value % 3 == 0)
    rig.closed().clean()
    for offset in range(38):
        fetched = rig.log.read(offset, 1 << 20)
        assert fetched is not None
        assert read_header(fetched.data).base_offset == 38


# --- trouble ------------------------------------------------------------------------------


def corrupted(rig: CleaningRig, position: int) -> CleaningRig:
    file = rig.log.segments.first.file
    byte = file.read(position, 1)[0]
    file.write(position, bytes([byte ^ 1]))
    return rig


@pytest.mark.parametrize("position", [3, 9, 16, CRC_POSITION, 22, 40, 70])
def test_a_damaged_batch_ends_the_cleaning_and_nothing_is_lost(position: int) -> None:
    rig = CleaningRig()
    rig.append(("a", "1"), ("a", "2"), roll=True)
    rig.append(("a", "3"))
    corrupted(rig.closed(), position)
    to_clean = log_to_clean(rig.log, None, rig.now)
    before = rig.rig.names()
    with pytest.raises(CorruptFile, match="position 0"):
        work_now(clean(to_clean, OffsetMap(100), lambda: rig.now))
    assert rig.rig.names() == before


@pytest.mark.parametrize("truncate", [True, False])
def test_a_cleaning_ends_when_segments_vanish_under_it(truncate: bool) -> None:
    rig = CleaningRig()
    for value in range(300):
        rig.append((f"k{value % 50}", str(value)), roll=value % 100 == 99)
    log = rig.closed().log

    async def pause(moved_bytes: int) -> None:
        if truncate:
            log.truncate_to(250, rig.now)
        else:
            log.delete_segments([log.segments.first], rig.now)

    work = clean(log_to_clean(log, None, rig.now), OffsetMap(1000), lambda: rig.now)
    with pytest.raises(CleaningAborted):
        asyncio.run(work_on(work, pause))
    assert [name for name in rig.rig.names() if "cleaned" in name] == []
    assert len(rig.kept) == (250 if truncate else 200)


def test_a_cleaning_that_is_closed_leaves_no_file_behind() -> None:
    rig = CleaningRig()
    for value in range(50):
        rig.append((f"k{value % 5}", str(value)))
    before = (rig.closed().rig.names(), rig.kept)
    for steps in range(1, 8):
        work = clean(log_to_clean(rig.log, None, rig.now), OffsetMap(9), lambda: rig.now)
        answer = b""
        for _ in range(steps):
            step = work.send(answer) if answer else next(work)
            if not hasattr(step, "file"):
                break
            answer = step.file.read(step.position, step.size)  # type: ignore[union-attr]
        work.close()
        assert (rig.rig.names(), rig.kept) == before


# --- crashes ------------------------------------------------------------------------------

CRASHES = (Crash.SYNCED, Crash.PREFIX, Crash.LOST_NAMES, Crash.BOTH_NAMES, Crash.MIXED)


def _history() -> CleaningRig:
    rig = CleaningRig(segment_bytes=2_000)
    for value in range(24):
        rig.append((f"k{value % 5}", str(value)), (f"x{value}", None), roll=value % 4 == 3)
    rig.append(("t", "never"), producer=7, transactional=True)
    rig.end(7, ABORT)
    rig.append(("last", "1"))
    rig.closed()
    rig.append(("active", "1"))
    rig.log.flush_now()
    rig.log.update_high_watermark(rig.log.log_end_offset)
    return rig


def test_a_crash_at_any_moment_loses_no_last_record_of_a_key() -> None:
    rig = _history()
    before = rig.kept
    end = rig.log.log_end_offset
    last = {key: (offset, key, value) for offset, key, value in before if key != "t"}
    journal = rig.files.record()
    assert rig.clean() is not None
    after = rig.kept
    assert set(last.values()) <= set(after) and len(after) < len(before)
    random = Random(5)
    states = 0
    for cut in journal.cuts():
        for crash in CRASHES:
            states += 1
            disk = journal.disk_at(cut).crash(random, crash)
            recovered = _recovered(disk, rig, end)
            assert set(last.values()) <= set(recovered) <= set(before)
            assert _recovered(disk, rig, end) == recovered
    assert states > 100


def _recovered(disk: MemoryFiles, rig: CleaningRig, end: int) -> list[object]:
    log = Rig(rig.config, disk.copy(), rig.now).open(recovery_point=end)
    assert log.log_end_offset == end
    for segment in log.segments:
        for position, header in iterate_batches(data := segment.file.read(0, segment.size)):
            check_crc(data, position, header)
    return list(kept(log))


# --- faults -------------------------------------------------------------------------------

FAULTS = (Fault.EIO, Fault.ENOSPC, Fault.SHORT_WRITE, Fault.EMFILE)


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_operation_fails_no_last_record_of_a_key_is_lost(fault: Fault) -> None:
    first = _history()
    before = first.kept
    start = first.files.operation_count
    assert first.clean() is not None
    count = first.files.operation_count - start
    last = {(offset, key, value) for offset, key, value in before if key != "t"}
    last = {max(each for each in last if each[1] == key) for key in {each[1] for each in last}}
    for number in range(count):
        rig = _history()
        end = rig.log.log_end_offset
        rig.files.fail(rig.files.operation_count + number, fault)
        rig.clean()
        if rig.rig.log_dir.failure is None:
            assert last <= set(rig.kept)
            for _ in range(3):
                rig.clean()
            assert last <= set(rig.kept)
        assert last <= set(_recovered(rig.files, rig, end)) <= set(before)
