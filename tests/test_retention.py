"""Old segments go by time, by size and by the log's start; only the first, and never too early."""

from dataclasses import replace

import pytest

from ottla.storage.clock import Now
from ottla.storage.config import COMPACT, DELETE, LogConfig
from ottla.storage.log import Log
from ottla.storage.retention import delete_old_segments
from tests.log_rig import NOW, Rig, batch

HOUR_MS = 60 * 60 * 1000
CONFIG = LogConfig(segment_bytes=100_000, segment_index_bytes=480, retention_ms=-1)


def filled(times: list[int], **changes: object) -> tuple[Rig, Log]:
    """One segment with three records for each time, counted back from now."""
    rig = Rig(replace(CONFIG, **changes))  # type: ignore[arg-type]
    log = rig.create()
    for number, time in enumerate(times):
        if number:
            log.roll(NOW)
        log.append_as_leader(batch(3, timestamp=NOW.wall_ms - time - 2), leader_epoch=0, now=NOW)
    log.update_high_watermark(log.log_end_offset)
    return rig, log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def later(ms: int) -> Now:
    return Now(NOW.monotonic_ms + ms, NOW.wall_ms + ms)


TIMES = [  # retention.ms, what is left of four segments that are 4, 3, 2 and 1 hours old
    (-1, [0, 3, 6, 9]),
    (4 * HOUR_MS, [0, 3, 6, 9]),
    (4 * HOUR_MS - 1, [3, 6, 9]),
    (2 * HOUR_MS, [6, 9]),
    (HOUR_MS // 2, [12]),
    (0, [12]),
]


@pytest.mark.parametrize(("retention_ms", "left"), TIMES)
def test_segments_go_by_the_time_of_their_last_record(retention_ms: int, left: list[int]) -> None:
    _, log = filled([hours * HOUR_MS for hours in (4, 3, 2, 1)], retention_ms=retention_ms)
    assert delete_old_segments(log, NOW) == 4 - len([base for base in left if base < 12])
    assert bases(log) == left
    assert (log.log_start_offset, log.log_end_offset) == (left[0], 12)


def test_the_active_segment_goes_too_and_the_log_goes_on_at_its_end() -> None:
    _, log = filled([HOUR_MS], retention_ms=1)
    assert delete_old_segments(log, NOW) == 1
    assert (bases(log), log.log_start_offset) == ([3], 3)
    assert delete_old_segments(log, later(HOUR_MS)) == 0, "an empty end stays"
    log.append_as_leader(batch(1), leader_epoch=0, now=NOW)
    assert log.log_end_offset == 4


def test_a_young_segment_protects_those_behind_it() -> None:
    _, log = filled([0, 5 * HOUR_MS], retention_ms=HOUR_MS)
    assert delete_old_segments(log, NOW) == 0


def test_records_of_the_future_stay_until_their_time_has_come() -> None:
    _, log = filled([-HOUR_MS], retention_ms=10)
    assert delete_old_segments(log, NOW) == 0
    assert delete_old_segments(log, later(HOUR_MS + 11)) == 1


def test_a_segment_without_times_goes_by_that_of_its_file() -> None:
    rig = Rig(replace(CONFIG, retention_ms=HOUR_MS))
    log = rig.create()
    log.append_as_leader(batch(1, timestamp=-1), leader_epoch=0, now=NOW)
    log.roll(NOW)
    log.update_high_watermark(1)
    path = rig.path("00000000000000000000.log")
    rig.files.set_mtime_ms(path, NOW.wall_ms - HOUR_MS)
    assert delete_old_segments(log, NOW) == 0
    rig.files.set_mtime_ms(path, NOW.wall_ms - HOUR_MS - 1)
    assert delete_old_segments(log, NOW) == 1


def test_segments_go_as_long_as_what_is_left_is_large_enough() -> None:
    _, log = filled([0, 0, 0, 0])
    size = log.segments.first.size
    for retention_bytes, count, left in (
        (size * 4, 0, [0, 3, 6, 9]),
        (size * 3 + 1, 0, [0, 3, 6, 9]),
        (size * 3, 1, [3, 6, 9]),
        (size, 2, [9]),
        (0, 1, [12]),
        (0, 0, [12]),
    ):
        log.config = replace(log.config, retention_bytes=retention_bytes)
        assert delete_old_segments(log, NOW) == count
        assert bases(log) == left


def test_segments_below_the_log_start_go_under_any_policy() -> None:
    for policy in (frozenset[str](), frozenset({COMPACT}), frozenset({DELETE})):
        _, log = filled([0, 0, 0], cleanup_policy=policy)
        log.maybe_increment_log_start_offset(5)
        assert delete_old_segments(log, NOW) == 1
        assert (bases(log), log.log_start_offset) == ([3, 6], 5)


@pytest.mark.parametrize("policy", [frozenset[str](), frozenset({COMPACT})])
def test_without_the_policy_nothing_goes_by_time_or_size(policy: frozenset[str]) -> None:
    _, log = filled([HOUR_MS, HOUR_MS], cleanup_policy=policy, retention_ms=1, retention_bytes=1)
    assert delete_old_segments(log, NOW) == 0


def test_both_policies_together_delete_too() -> None:
    both = frozenset({COMPACT, DELETE})
    _, log = filled([HOUR_MS, 0], cleanup_policy=both, retention_ms=1_000)
    assert delete_old_segments(log, NOW) == 1


def test_what_not_all_replicas_have_stays() -> None:
    _, log = filled([5 * HOUR_MS, 5 * HOUR_MS, 5 * HOUR_MS], retention_ms=1)
    log.update_high_watermark(5)
    assert delete_old_segments(log, NOW) == 1
    assert bases(log) == [3, 6]


def test_files_are_renamed_at_once_and_removed_after_the_delay() -> None:
    rig, log = filled([5 * HOUR_MS, 5 * HOUR_MS, 0], retention_ms=HOUR_MS)
    delete_old_segments(log, NOW)
    assert [name for name in rig.names() if name.endswith(".deleted")] == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
        "00000000000000000003.index.deleted",
        "00000000000000000003.log.deleted",
        "00000000000000000003.snapshot.deleted",
        "00000000000000000003.timeindex.deleted",
    ]
    chores, delay_ms = rig.log_dir.chores, log.config.file_delete_delay_ms
    chores.expire(NOW.monotonic_ms + delay_ms - 1)
    assert any(name.endswith(".deleted") for name in rig.names())
    chores.expire(NOW.monotonic_ms + delay_ms)
    assert not any(name.endswith(".deleted") for name in rig.names())


def test_epochs_that_nobody_can_read_any_more_go_with_their_segments() -> None:
    rig = Rig(replace(CONFIG, retention_ms=HOUR_MS))
    log = rig.create()
    for epoch in range(3):
        old = batch(2, timestamp=NOW.wall_ms - 5 * HOUR_MS)
        log.append_as_leader(old, leader_epoch=epoch, now=NOW)
        log.roll(NOW)
    log.append_as_leader(batch(1), leader_epoch=2, now=NOW)
    log.update_high_watermark(log.log_end_offset)
    assert delete_old_segments(log, NOW) == 3
    assert log.epochs.entries == [(2, 6)]
