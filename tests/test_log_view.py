"""What readers see of a log: batches as they are stored, up to where they may."""

from dataclasses import replace

import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import (
    Record,
    iterate_batches,
    read_header,
)
from ottla.storage.log import Isolation, LogOffset
from ottla.storage.memory_operations import Fault
from ottla.storage.steps import at_once
from tests.log_rig import (
    NOW,
    SMALL,
    Rig,
    append,
    batch,
    records,
    refused,
    transaction,
)

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
