"""Which log is cleaned next, what is remembered of it, and what becomes of one that cannot be."""

import asyncio
import logging

import pytest

from ottla.storage.checkpoints import parse_offsets
from ottla.storage.cleaner import Cleaner
from ottla.storage.config import COMPACT, DELETE
from ottla.storage.errors import CorruptFile
from ottla.storage.folder import LogDir
from ottla.storage.log import Log
from ottla.storage.long_work import work_now, work_on
from ottla.storage.memory_operations import Fault
from ottla.storage.recovery import create_log
from ottla.storage.steps import to_the_end
from tests.cleaning_rig import COMPACTED, CleaningRig, keyed
from tests.log_rig import NOW, TOPIC_ID
from tests.raw_batches import changed

CHECKPOINT = "logs/cleaner-offset-checkpoint"


def dirty(**changes: object) -> CleaningRig:
    rig = CleaningRig(**changes)  # type: ignore[arg-type]
    for value in range(9):
        rig.append((f"k{value % 2}", str(value)))
    return rig.closed()


def checkpoints(rig: CleaningRig) -> dict[tuple[str, int], int]:
    return parse_offsets(CHECKPOINT, rig.files.read_whole(CHECKPOINT))


def another(log_dir: LogDir, topic: str, *, batch_count: int) -> Log:
    log = create_log(log_dir, topic, 0, COMPACTED, topic_id=TOPIC_ID, now=NOW)
    for _ in range(batch_count):
        log.append_as_leader(keyed([("a", "1")]), leader_epoch=0, now=NOW)
    log.roll(NOW)
    log.update_high_watermark(log.log_end_offset)
    return log


# --- choosing -----------------------------------------------------------------------------


def test_the_dirtiest_log_comes_first() -> None:
    rig = dirty()
    rig.clean()
    rig.append(("a", "1"))
    rig.closed()
    other = another(rig.rig.log_dir, "u", batch_count=2)
    for log in (other, rig.log):
        found = to_the_end(rig.cleaner.dirtiest([rig.log, other], NOW))
        assert found is not None and found.log is log
        work_now(rig.cleaner.clean(found))
    assert to_the_end(rig.cleaner.dirtiest([rig.log, other], NOW)) is None


def test_a_log_that_was_cleaned_is_not_cleaned_again() -> None:
    rig = dirty()
    assert rig.clean() is not None
    assert rig.clean() is None


def test_logs_without_the_policy_are_left_alone() -> None:
    rig = dirty(cleanup_policy=frozenset({DELETE}))
    assert rig.clean() is None
    rig.log.config = dirty(cleanup_policy=frozenset({COMPACT, DELETE})).config
    assert rig.clean() is not None


def test_many_logs_are_looked_at_in_slices() -> None:
    rig = dirty()
    work = rig.cleaner.dirtiest([rig.log] * 300, NOW)
    assert sum(1 for _ in work) == 300 // 64


# --- checkpoints --------------------------------------------------------------------------


def test_a_restart_goes_on_where_the_last_cleaning_ended() -> None:
    rig = dirty()
    rig.clean()
    assert checkpoints(rig) == {("t", 0): 9}
    assert Cleaner(lambda: NOW).checkpoint(rig.log) == 9


def test_a_checkpoint_that_cannot_be_read_makes_all_dirty(caplog: pytest.LogCaptureFixture) -> None:
    rig = dirty()
    rig.clean()
    rig.files.write_atomically_now(CHECKPOINT, b"0\n1\nt 0 x\n")
    assert Cleaner(lambda: NOW).checkpoint(rig.log) is None
    assert caplog.text.count("cleaner.bad_checkpoints") == 1


def test_a_checkpoint_outside_the_log_is_put_right_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = dirty()
    rig.files.write_atomically_now(CHECKPOINT, b"0\n1\nt 0 500\n")
    rig.log.update_high_watermark(0)
    for _ in range(3):
        assert rig.clean() is None
    assert checkpoints(rig) == {("t", 0): 0}
    assert caplog.text.count("cleaner.bad_checkpoint ") == 1


def test_truncation_makes_what_comes_then_dirty() -> None:
    rig = dirty()
    rig.clean()
    rig.cleaner.truncated(rig.log, 20)
    assert rig.cleaner.checkpoint(rig.log) == 9
    rig.cleaner.truncated(rig.log, 4)
    assert checkpoints(rig) == {("t", 0): 4}


def test_a_log_that_is_deleted_is_forgotten() -> None:
    rig = dirty()
    rig.clean()
    rig.cleaner.forget(rig.log)
    assert checkpoints(rig) == {}


def test_what_is_known_of_a_log_moves_with_it() -> None:
    rig = dirty()
    rig.clean()
    rig.files.make_directory("other")
    rig.cleaner.uncleanable[rig.log] = "why"
    log_dir = LogDir(
        rig.files, "other", random=rig.rig.log_dir.random, indexes=rig.rig.log_dir.indexes
    )
    moved = another(log_dir, "t", batch_count=1)
    rig.cleaner.moved(rig.log, moved)
    assert (rig.cleaner.checkpoint(rig.log), rig.cleaner.checkpoint(moved)) == (None, 9)
    assert rig.cleaner.uncleanable == {moved: "why"}


# --- trouble ------------------------------------------------------------------------------


def test_a_log_with_a_damaged_batch_is_set_aside_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = dirty()
    before = rig.rig.names()
    file = rig.log.segments.first.file
    file.write(70, bytes([file.read(70, 1)[0] ^ 1]))
    for _ in range(3):
        assert rig.clean() is None
    assert caplog.text.count("cleaner.uncleanable") == 1
    assert "position 0: stored crc" in rig.cleaner.uncleanable[rig.log]
    assert rig.rig.names() == before and not rig.files.exists(CHECKPOINT)


def test_a_batch_that_cannot_be_decoded_sets_its_log_aside() -> None:
    rig = CleaningRig()
    data = keyed([("a", "1"), ("b", "1")])
    data[61] = 0x7E  # the size of the first record
    rig.write(changed(data), roll=True)
    rig.append(("a", "2"))
    assert rig.closed().clean() is None
    assert "records[0]" in rig.cleaner.uncleanable[rig.log]


def test_a_full_disk_ends_one_attempt_and_the_next_may_succeed() -> None:
    rig = dirty()
    before = rig.kept
    rig.files.fail(lambda each: each.kind == "write" and ".cleaned" in each.path, Fault.ENOSPC)
    assert rig.clean() is None
    assert rig.kept == before
    assert rig.rig.log_dir.failure is None and not rig.cleaner.uncleanable
    assert not any("cleaned" in name for name in rig.rig.names())
    assert rig.clean() is not None


def test_a_failed_sync_takes_the_directory_offline_and_nothing_is_swapped() -> None:
    rig = dirty()
    rig.files.fail(lambda each: each.kind == "sync" and ".cleaned" in each.path, Fault.EIO)
    assert rig.clean() is None
    assert rig.rig.log_dir.failure is not None
    assert rig.clean() is None, "an offline directory is left alone"
    assert not rig.files.exists(CHECKPOINT)


def test_an_aborted_cleaning_leaves_the_log_as_it_was() -> None:
    rig = CleaningRig()
    for value in range(300):
        rig.append((f"k{value % 5}", str(value)))
    before = rig.closed().kept

    async def pause(moved_bytes: int) -> None:
        assert rig.cleaner.is_cleaning(rig.log)
        rig.cleaner.abort(rig.log)
        assert not rig.cleaner.is_cleaning(rig.log)

    found = to_the_end(rig.cleaner.dirtiest([rig.log], NOW))
    assert found is not None
    assert asyncio.run(work_on(rig.cleaner.clean(found), pause)) is None
    assert rig.kept == before and not rig.files.exists(CHECKPOINT)
    assert not any("cleaned" in name for name in rig.rig.names())
    assert rig.clean() is not None


def test_a_log_is_not_chosen_twice() -> None:
    rig = dirty()
    found = to_the_end(rig.cleaner.dirtiest([rig.log], NOW))
    assert found is not None
    work = rig.cleaner.clean(found)
    next(work)
    assert to_the_end(rig.cleaner.dirtiest([rig.log], NOW)) is None
    work.close()
    assert to_the_end(rig.cleaner.dirtiest([rig.log], NOW)) is not None


def test_a_log_that_cannot_even_be_judged_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = dirty(min_compaction_lag_ms=1)

    def damaged(segment: object) -> int:
        raise CorruptFile("x.timeindex", where="entry 3", reason="is wrong")

    monkeypatch.setattr("ottla.storage.segment.Segment.largest_timestamp", damaged)
    with caplog.at_level(logging.WARNING):
        assert rig.clean() is None and rig.clean() is None
    assert caplog.text.count("cleaner.uncleanable") == 1
