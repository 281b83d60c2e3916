"""Which part of a log may be cleaned, and when that is worth it."""

import pytest

from ottla.storage.cleanable import first_dirty_offset, log_to_clean
from ottla.storage.config import COMPACT, DELETE
from tests.cleaning_rig import CleaningRig


def aged(**changes: object) -> CleaningRig:
    """Three closed segments of two records, one second apart, and one record in the last."""
    rig = CleaningRig(**changes)  # type: ignore[arg-type]
    for _ in range(3):
        rig.append(("a", "1"), ("b", "1"), timestamp=rig.now.wall_ms - 1, roll=True)
        rig.later(1_000)
    rig.append(("a", "1"))
    rig.log.update_high_watermark(7)
    return rig


HIGH_WATERMARKS = [(7, 6), (6, 6), (5, 4), (4, 4), (1, 0), (0, 0)]


@pytest.mark.parametrize(("high_watermark", "end"), HIGH_WATERMARKS)
def test_whole_segments_below_the_high_watermark_may_be_cleaned(
    high_watermark: int, end: int
) -> None:
    rig = aged()
    rig.log.update_high_watermark(high_watermark)
    assert log_to_clean(rig.log, None, rig.now).first_uncleanable_offset == end


LAGS = [(0, 6), (999, 6), (1_000, 6), (1_001, 4), (2_001, 2), (3_001, 0), (99_999, 0)]


@pytest.mark.parametrize(("lag_ms", "end"), LAGS)
def test_young_segments_wait(lag_ms: int, end: int) -> None:
    rig = aged(min_compaction_lag_ms=lag_ms)
    assert log_to_clean(rig.log, None, rig.now).first_uncleanable_offset == end


def test_the_ratio_is_that_of_dirty_bytes() -> None:
    rig = aged()
    ratios = [log_to_clean(rig.log, offset, rig.now).ratio for offset in (0, 2, 4, 6)]
    assert ratios == [1.0, 2 / 3, 1 / 3, 0.0]


RATIOS = [(0.0, 4, True), (0.3, 4, True), (0.34, 4, False), (0.0, 6, False), (0.99, 0, True)]


@pytest.mark.parametrize(("wanted", "checkpoint", "is_worth_it"), RATIOS)
def test_a_log_is_cleaned_when_it_is_dirty_enough(
    wanted: float, checkpoint: int, is_worth_it: bool
) -> None:
    rig = aged(min_cleanable_dirty_ratio=wanted)
    assert log_to_clean(rig.log, checkpoint, rig.now).is_worth_it is is_worth_it


OVERDUE = [(2_999, 0, True), (3_000, 0, False), (2_999, 2, False), (1_999, 2, True), (1, 6, False)]


@pytest.mark.parametrize(("lag_ms", "checkpoint", "is_worth_it"), OVERDUE)
def test_a_log_is_cleaned_when_its_records_have_waited_too_long(
    lag_ms: int, checkpoint: int, is_worth_it: bool
) -> None:
    rig = aged(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=lag_ms)
    assert log_to_clean(rig.log, checkpoint, rig.now).is_worth_it is is_worth_it


def test_an_empty_log_is_not_worth_it() -> None:
    rig = CleaningRig()
    to_clean = log_to_clean(rig.log, None, rig.now)
    assert (to_clean.ratio, to_clean.is_worth_it) == (0.0, False)


CHECKPOINTS = [(None, 2, 0), (2, 2, 0), (5, 5, 0), (7, 7, 0), (1, 2, 1), (8, 2, 1)]


@pytest.mark.parametrize(("checkpoint", "offset", "lines"), CHECKPOINTS)
def test_a_checkpoint_counts_only_inside_the_log(
    checkpoint: int | None, offset: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig = aged()
    rig.log.maybe_increment_log_start_offset(2)
    assert first_dirty_offset(rig.log, checkpoint) == offset
    assert caplog.text.count("bad_checkpoint") == lines


def test_a_checkpoint_that_retention_has_passed_is_nothing_to_speak_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = aged(cleanup_policy=frozenset({COMPACT, DELETE}))
    rig.log.maybe_increment_log_start_offset(2)
    assert first_dirty_offset(rig.log, 1) == 2
    assert not caplog.text
