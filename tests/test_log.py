"""A log: what is appended is read again, as it is; what is refused leaves no trace."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import (
    ControlRecordType,
    Record,
    TimestampType,
    iterate_batches,
    iterate_records,
    read_header,
)
from ottla.storage.config import LogConfig
from ottla.storage.log import Isolation, Log, LogOffset, UnexpectedOffsets
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from ottla.storage.producers import Origin
from ottla.storage.steps import at_once
from tests.log_rig import (
    NOW,
    SMALL,
    Rig,
    append,
    batch,
    batches,
    committed,
    headers,
    marker,
    records,
)

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def refused(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


# --- appending as a leader ----------------------------------------------------------------


def test_a_leader_gives_batches_offsets_and_its_epoch() -> None:
    log = Rig().create()
    results = append(log, 3, 1, 2, epoch=5)
    assert [(each.base_offset, each.last_offset) for each in results] == [(0, 2), (3, 3), (4, 5)]
    assert log.log_end_offset == 6
    assert [each.partition_leader_epoch for each in headers(log)] == [5, 5, 5]
    assert [record.offset for record in records(log)] == [0, 1, 2, 3, 4, 5]


def test_what_is_read_is_what_was_written() -> None:
    log = Rig().create()
    sent = batch(4)
    log.append_as_leader(sent, leader_epoch=0, now=NOW)
    assert batches(log)[0][1] == bytes(sent)


def test_junk_behind_a_batch_is_dropped() -> None:
    log = Rig().create()
    log.append_as_leader(batch() + b"\1\2\3\4\5\6\7", leader_epoch=0, now=NOW)
    append(log, 2)
    assert [each.base_offset for each in headers(log)] == [0, 3]


def test_the_answer_to_create_time_has_no_time() -> None:
    (result,) = append(Rig().create(), 1)
    assert result.log_append_time_ms == -1


def test_log_append_time_is_written_into_the_batch_with_a_new_crc() -> None:
    log = Rig(LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)).create()
    result = log.append_as_leader(batch(timestamp=17), leader_epoch=0, now=NOW)
    assert result.log_append_time_ms == NOW.wall_ms
    assert {record.timestamp for record in records(log)} == {NOW.wall_ms}
    reopened = Rig(files=log.folder.files.copy()).open()  # type: ignore[attr-defined]
    assert reopened.log_end_offset == 3


def test_a_batch_is_compressed_anew_for_a_topic_with_its_own_codec() -> None:
    log = Rig(LogConfig(compression_type=Codec.ZSTD)).create()
    log.append_as_leader(batch(producer=4, sequence=0), leader_epoch=0, now=NOW)
    (header,) = headers(log)
    assert header.compression is Codec.ZSTD
    assert (header.producer_id, header.base_sequence) == (4, 0)
    assert [record.value for record in records(log)] == [
        record.value for record in iterate_records(batch(), decompressed_max=1 << 20)
    ]


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = Rig(LogConfig(segment_bytes=300)).create()
    code = refused(lambda: log.append_as_leader(batch(size=200), leader_epoch=0, now=NOW))
    assert code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


BAD_BATCHES = {
    "a wrong crc": (lambda data: data[:-1] + b"\1", ErrorCode.CORRUPT_MESSAGE),
    "a base offset": (lambda data: b"\0" * 7 + b"\1" + data[8:], ErrorCode.INVALID_RECORD),
    "magic 1": (lambda data: data[:16] + b"\1" + data[17:], ErrorCode.INVALID_RECORD),
    "cut short": (lambda data: data[:-1], ErrorCode.INVALID_RECORD),
    "two batches": (lambda data: data + data, ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("spoil", "code"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_a_bad_batch_is_refused_and_leaves_no_trace(
    spoil: Callable[[bytes], bytes], code: ErrorCode
) -> None:
    log = Rig().create()
    append(log, 2)
    spoiled = bytearray(spoil(bytes(batch())))
    assert refused(lambda: log.append_as_leader(spoiled, leader_epoch=0, now=NOW)) is code
    assert (log.log_end_offset, len(headers(log))) == (2, 1)


def test_a_batch_above_the_topics_limit_is_refused() -> None:
    log = Rig(LogConfig(max_message_bytes=100)).create()
    code = refused(lambda: log.append_as_leader(batch(), leader_epoch=0, now=NOW))
    assert code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_coordinator_may_append_several_batches_and_markers() -> None:
    log = Rig().create()
    data = batch(2) + batch(3) + marker(5, COMMIT)
    result = log.append_as_leader(data, leader_epoch=2, now=NOW, origin=Origin.COORDINATOR)
    assert (result.base_offset, result.last_offset) == (0, 5)
    assert [each.base_offset for each in headers(log)] == [0, 2, 5]


# --- producers ----------------------------------------------------------------------------


def test_a_duplicate_is_answered_with_its_old_offsets_and_not_appended() -> None:
    log = Rig().create()
    log.append_as_leader(batch(producer=1), leader_epoch=0, now=NOW)
    log.append_as_leader(batch(producer=1, sequence=3), leader_epoch=0, now=NOW)
    again = log.append_as_leader(batch(producer=1), leader_epoch=0, now=NOW)
    assert (again.is_duplicate, again.base_offset, again.last_offset) == (True, 0, 2)
    assert again.log_append_time_ms == NOW.wall_ms + 2
    assert log.log_end_offset == 6


def test_a_gap_in_the_sequence_is_refused() -> None:
    log = Rig().create()
    log.append_as_leader(batch(producer=1), leader_epoch=0, now=NOW)
    skipping = batch(producer=1, sequence=4)
    code = refused(lambda: log.append_as_leader(skipping, leader_epoch=0, now=NOW))
    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 3


def transaction(log: Log, producer: int, end: ControlRecordType | None) -> None:
    data = batch(2, producer=producer, transactional=True, sequence=0, epoch=0)
    log.append_as_leader(data, leader_epoch=0, now=NOW)
    if end is not None:
        data = marker(producer, end)
        log.append_as_leader(data, leader_epoch=0, now=NOW, origin=Origin.COORDINATOR)


def test_the_last_stable_offset_is_the_first_open_transactions() -> None:
    log = Rig().create()
    append(log, 2)
    transaction(log, 1, None)
    append(log, 2)
    log.update_high_watermark(log.log_end_offset)
    assert (log.high_watermark, log.last_stable_offset) == (6, 2)


def test_a_transaction_is_undecided_until_its_marker_is_below_the_high_watermark() -> None:
    log = Rig().create()
    transaction(log, 1, COMMIT)
    log.update_high_watermark(2)
    assert log.last_stable_offset == 0
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3


def test_a_reader_of_committed_data_sees_the_aborted_transactions_of_its_range() -> None:
    log = Rig().create()
    transaction(log, 1, ABORT)
    transaction(log, 2, COMMIT)
    transaction(log, 3, ABORT)
    isolation = committed(log)
    fetched = log.read(0, 1 << 20, isolation=isolation)
    assert fetched is not None and fetched.aborted is not None
    assert [(each.producer_id, each.first_offset) for each in fetched.aborted] == [(1, 0), (3, 6)]
    assert at_once(log.aborted_transactions(3, 6)) == []


def test_an_aborted_transaction_is_found_from_an_older_segment_on() -> None:
    log = Rig().create()
    transaction(log, 1, None)
    log.roll(NOW)
    append(log, 2)
    data = marker(1, ABORT)
    log.append_as_leader(data, leader_epoch=0, now=NOW, origin=Origin.COORDINATOR)
    fetched = log.read(0, 1 << 20, isolation=committed(log))
    assert fetched is not None and fetched.aborted is not None
    assert [each.first_offset for each in fetched.aborted] == [0]


def test_data_and_its_abort_in_one_fetch_of_a_follower() -> None:
    log = Rig().create()
    data = batch(2, producer=9, transactional=True, leader_epoch=0)
    data += marker(9, ABORT, base_offset=2, leader_epoch=0)
    log.append_as_follower(data, leader_epoch=0, now=NOW)
    fetched = log.read(0, 1 << 20, isolation=committed(log))
    assert fetched is not None and fetched.aborted is not None
    assert [(each.producer_id, each.last_offset) for each in fetched.aborted] == [(9, 2)]


# --- appending as a follower --------------------------------------------------------------


def test_a_follower_keeps_offsets_and_epochs_gaps_too() -> None:
    log = Rig().create()
    data = batch(2, base_offset=7, leader_epoch=3) + batch(1, base_offset=20, leader_epoch=4)
    log.append_as_follower(data, leader_epoch=4, now=NOW)
    assert [(each.base_offset, each.partition_leader_epoch) for each in headers(log)] == [
        (7, 3),
        (20, 4),
    ]
    assert log.epochs.entries == [(3, 7), (4, 20)]


BACKWARD = {"within": ((0, 5, 4), 0), "behind the log": ((1,), 3), "the same": ((0, 0), 0)}


@pytest.mark.parametrize(("bases", "there"), BACKWARD.values(), ids=BACKWARD)
def test_a_follower_refuses_offsets_that_do_not_rise(bases: tuple[int, ...], there: int) -> None:
    log = Rig().create()
    if there:
        append(log, there)
    data = b"".join(batch(1, base_offset=base, leader_epoch=0) for base in bases)
    with pytest.raises(UnexpectedOffsets):
        log.append_as_follower(data, leader_epoch=0, now=NOW)
    assert log.log_end_offset == there


def test_a_follower_leaves_out_what_is_cut_short_or_of_a_later_leader() -> None:
    log = Rig().create()
    data = batch(1, leader_epoch=1) + batch(1, base_offset=1, leader_epoch=2)
    log.append_as_follower(data, leader_epoch=1, now=NOW)
    assert log.log_end_offset == 1
    data = batch(1, base_offset=1, leader_epoch=2) + batch(1, base_offset=2, leader_epoch=2)[:-1]
    log.append_as_follower(data, leader_epoch=2, now=NOW)
    assert log.log_end_offset == 2


def test_a_follower_refuses_a_wrong_crc() -> None:
    log = Rig().create()
    data = batch(1, leader_epoch=0)
    data[-1] ^= 1
    code = refused(lambda: log.append_as_follower(data, leader_epoch=0, now=NOW))
    assert code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0


# --- rolling ------------------------------------------------------------------------------


def test_a_segment_is_rolled_when_it_is_full() -> None:
    rig = Rig(SMALL)
    log = rig.create()
    append(log, *[3] * 20)
    assert len(log.segments) > 2
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    assert [record.offset for record in records(log)] == list(range(60))


def test_time_in_records_rolls_a_segment() -> None:
    log = Rig(LogConfig(segment_ms=1000)).create()
    append(log, 1)
    for timestamp, count in [(NOW.wall_ms + 1000, 1), (NOW.wall_ms + 1001, 2)]:
        log.append_as_leader(batch(1, timestamp=timestamp), leader_epoch=0, now=NOW)
        assert len(log.segments) == count


def test_a_record_of_1970_rolls_at_the_next_append() -> None:
    log = Rig().create()
    log.append_as_leader(batch(1, timestamp=5), leader_epoch=0, now=NOW)
    append(log, 1, 1)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_full_index_rolls_a_segment() -> None:
    log = Rig(LogConfig(index_interval_bytes=0, segment_index_bytes=36)).create()
    append(log, *[1] * 8)
    # Of three places in the time index one is kept for the last entry.
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]


def test_offsets_too_far_apart_roll_a_segment() -> None:
    log = Rig().create()
    far = 1 << 31
    for base in (0, far - 1, far, far + 5):
        data = batch(1, base_offset=base, leader_epoch=0)
        log.append_as_follower(data, leader_epoch=0, now=NOW)
    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert [each.base_offset for each in headers(log)] == [0, far - 1, far, far + 5]


def test_a_rolled_segment_has_trimmed_indexes_and_a_snapshot_follows_it() -> None:
    rig = Rig(LogConfig(index_interval_bytes=0))
    log = rig.create()
    append(log, 1, 1, 1)
    assert rig.files.size(rig.path(f"{0:020}.index")) == 10 << 20
    assert rig.files.size(rig.path(f"{0:020}.timeindex")) == (10 << 20) // 12 * 12
    log.roll(NOW)
    assert rig.files.size(rig.path(f"{0:020}.index")) == 2 * 8
    assert rig.files.size(rig.path(f"{0:020}.timeindex")) == 2 * 12
    assert rig.files.exists(rig.path(f"{3:020}.snapshot"))
    assert log.segments.active.base_offset == 3


def test_an_empty_segment_is_not_rolled() -> None:
    log = Rig().create()
    log.roll(NOW)
    assert len(log.segments) == 1


def test_the_flush_behind_a_roll_moves_the_recovery_point() -> None:
    rig = Rig()
    log = rig.create()
    append(log, 2)
    log.roll(NOW)
    append(log, 2)
    assert log.recovery_point == 0
    rig.log_dir.chores.flush_now()
    assert log.recovery_point == 2


# --- reading ------------------------------------------------------------------------------


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    log = Rig().create()
    append(log, 3, 3, 3)
    fetched = log.read(4, 1 << 20)
    assert fetched is not None
    assert read_header(fetched.data).base_offset == 3
    assert fetched.start.offset == 3


def test_the_first_batch_is_read_whole_if_asked_for() -> None:
    log = Rig().create()
    append(log, 3)
    size = log.segments.active.size
    whole, cut, none = (
        log.read(0, 10),
        log.read(0, 10, minimum_one=False),
        log.read(0, 0, minimum_one=False),
    )
    assert whole is not None and cut is not None and none is not None
    assert [len(each.data) for each in (whole, cut, none)] == [size, 10, 0]
    assert [each.is_first_incomplete for each in (whole, cut, none)] == [False, True, False]


def test_a_read_ends_where_the_segment_ends() -> None:
    log = Rig().create()
    append(log, 2)
    log.roll(NOW)
    append(log, 2)
    fetched = log.read(0, 1 << 20)
    assert fetched is not None
    assert len(fetched.data) == log.segments.first.size


def test_a_read_ends_at_the_high_watermark_or_the_last_stable_offset() -> None:
    log = Rig().create()
    append(log, 2)
    transaction(log, 1, None)
    append(log, 2)
    log.update_high_watermark(4)
    last_offsets = {
        Isolation.LOG_END: 5,
        Isolation.HIGH_WATERMARK: 3,
        Isolation.TXN_COMMITTED: 1,
    }
    for isolation, last_offset in last_offsets.items():
        fetched = log.read(0, 1 << 20, isolation=isolation)
        assert fetched is not None
        *_, (_, header) = iterate_batches(fetched.data)
        assert header.last_offset == last_offset
        beyond = log.read(5, 1 << 20, isolation=isolation)
        assert beyond is not None
        assert bool(beyond.data) == (isolation is Isolation.LOG_END)


def test_reading_at_the_end_is_empty_and_beyond_it_out_of_range() -> None:
    log = Rig().create()
    append(log, 2)
    at_end = log.read(2, 100)
    assert at_end is not None and at_end.data == b""
    assert at_end.start == LogOffset(2, 0, log.segments.active.size)
    assert refused(lambda: log.read(3, 100)) is ErrorCode.OFFSET_OUT_OF_RANGE
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    assert refused(lambda: log.read(0, 100)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_passes_over_a_hole_that_compaction_left() -> None:
    log = Rig().create()
    data = batch(1, leader_epoch=0) + batch(1, base_offset=50, leader_epoch=0)
    log.append_as_follower(data, leader_epoch=0, now=NOW)
    fetched = log.read(3, 1 << 20)
    assert fetched is not None
    assert read_header(fetched.data).base_offset == 50


def test_cold_bytes_are_awaited() -> None:
    import asyncio

    rig = Rig()
    log = rig.create()
    append(log, 3)
    rig.files.fail(lambda op: op.kind == "read_cached", Fault.COLD, times=None)
    assert log.read(0, 100) is None
    fetched = asyncio.run(log.read_cold(0, 100))
    assert read_header(fetched.data).record_count == 3


# --- times --------------------------------------------------------------------------------


def test_the_first_record_that_is_not_earlier_is_found() -> None:
    log = Rig(SMALL).create()
    append(log, *[3] * 30)
    for timestamp in range(NOW.wall_ms - 1, NOW.wall_ms + 91):
        found = at_once(log.offset_for_timestamp(timestamp))
        expected = next((r for r in records(log) if r.timestamp >= timestamp), None)
        assert (found and (found.offset, found.timestamp)) == (
            expected and (expected.offset, expected.timestamp)
        )


def test_times_need_not_rise() -> None:
    log = Rig(replace(SMALL, index_interval_bytes=0)).create()
    stamps = [50, 10, 90, 20, 90, 30, 70]
    for stamp in stamps:
        log.append_as_leader(batch(1, timestamp=stamp), leader_epoch=0, now=NOW)
    for timestamp in range(0, 100, 5):
        found = at_once(log.offset_for_timestamp(timestamp))
        expected = next((i for i, stamp in enumerate(stamps) if stamp >= timestamp), None)
        assert (found.offset if found else None) == expected
    latest = at_once(log.offset_of_max_timestamp())
    assert latest is not None
    assert (latest.offset, latest.timestamp) == (2, 90)


def test_a_batch_that_cannot_be_decoded_is_passed_over() -> None:
    log = Rig().create()
    bad = build_batch([Record(0, NOW.wall_ms, None, b"x" * 400)], codec=Codec.GZIP, leader_epoch=0)
    bad[80:90] = bytes(10)
    from ottla.protocol.records import crc_of

    bad[17:21] = crc_of(bad, 0, len(bad)).to_bytes(4)
    log.append_as_follower(bad, leader_epoch=0, now=NOW)
    append(log, 1)
    found = at_once(log.offset_for_timestamp(NOW.wall_ms))
    assert found is not None and found.offset == 1


# --- epochs -------------------------------------------------------------------------------


def test_an_epoch_is_on_disk_before_its_first_batch() -> None:
    rig = Rig()
    log = rig.create()
    append(log, 2, epoch=1)
    append(log, 2, epoch=4)
    seen: list[Operation] = []
    rig.files.fail(lambda op: bool(seen.append(op)), Fault.EIO)  # type: ignore[func-returns-value]
    append(log, 1, epoch=6)
    kinds = [(op.kind, op.path.rpartition("/")[2]) for op in seen]
    first_write = kinds.index(("write", f"{0:020}.log"))
    assert any("leader-epoch-checkpoint" in name for _, name in kinds[:first_write])
    assert log.epochs.entries == [(1, 0), (4, 2), (6, 4)]
    assert log.end_offset_for_epoch(4) == (4, 4)


def test_a_leader_assigns_its_epoch_before_it_appends() -> None:
    rig = Rig()
    log = rig.create()
    append(log, 2)
    log.assign_epoch(3)
    assert rig.files.read_whole(rig.path("leader-epoch-checkpoint")) == b"0\n2\n0 0\n3 2\n"


# --- watermarks ---------------------------------------------------------------------------


def test_the_high_watermark_stays_within_the_log() -> None:
    log = Rig().create()
    append(log, 5)
    assert log.update_high_watermark(99) == 5
    log.maybe_increment_log_start_offset(3)
    assert log.update_high_watermark(1) == 3


def test_the_high_watermark_is_incremented_only() -> None:
    log = Rig().create()
    append(log, 5)
    assert log.maybe_increment_high_watermark(LogOffset(3))
    assert not log.maybe_increment_high_watermark(LogOffset(2))
    assert not log.maybe_increment_high_watermark(LogOffset(3))
    assert log.high_watermark == 3
    with pytest.raises(ValueError, match="behind the end"):
        log.maybe_increment_high_watermark(LogOffset(6))


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
