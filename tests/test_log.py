"""A log: what is appended gets its place; what is refused leaves no trace."""

from collections.abc import Callable

import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode
from ottla.protocol.records import (
    ControlRecordType,
    TimestampType,
    iterate_records,
)
from ottla.storage.config import LogConfig
from ottla.storage.log import Appended, UnexpectedOffsets
from ottla.storage.memory_operations import Fault, Operation
from ottla.storage.producers import Origin
from ottla.storage.steps import at_once
from ottla.storage.verification import UnverifiedTransaction, VerificationGuard
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
    refused,
    transaction,
)

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


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


def test_an_epoch_can_be_assigned_while_others_work() -> None:
    import asyncio

    rig = Rig()
    log = rig.create()
    append(log, 2)

    async def main() -> None:
        assigning = asyncio.ensure_future(log.assign_epoch_aside(3))
        await asyncio.sleep(0)
        assert log.epochs.latest == 0
        await assigning

    asyncio.run(main())
    assert log.epochs.entries == [(0, 0), (3, 2)]
    assert rig.files.read_whole(rig.path("leader-epoch-checkpoint")) == b"0\n2\n0 0\n3 2\n"


# --- verification of transactions ---------------------------------------------------------


def test_a_transaction_begins_only_where_its_coordinator_was_asked() -> None:
    rig = Rig()
    rig.log_dir.verifies_transactions = True
    log = rig.create()
    sent = batch(2, producer=4, transactional=True)

    def append_with(guard: VerificationGuard | None) -> Appended:
        return log.append_as_leader(bytearray(sent), leader_epoch=0, now=NOW, guard=guard)

    with pytest.raises(UnverifiedTransaction):
        append_with(None)
    assert log.log_end_offset == 0
    guard = log.start_verification(
        producer_id=4, producer_epoch=0, sequence=0, supports_epoch_bump=False, now=NOW
    )
    assert append_with(guard).base_offset == 0
    assert append_with(None).is_duplicate
    data = marker(4, COMMIT)
    log.append_as_leader(data, leader_epoch=0, now=NOW, origin=Origin.COORDINATOR)
    sent = batch(2, producer=4, sequence=2, transactional=True)
    with pytest.raises(UnverifiedTransaction):
        append_with(guard)


def test_an_append_that_the_disk_refuses_leaves_the_guard() -> None:
    rig = Rig()
    rig.log_dir.verifies_transactions = True
    log = rig.create()
    log.settle()
    guard = log.start_verification(
        producer_id=4, producer_epoch=0, sequence=0, supports_epoch_bump=False, now=NOW
    )
    log.assign_epoch(0)

    def append_it() -> Appended:
        sent = batch(2, producer=4, transactional=True)
        return log.append_as_leader(sent, leader_epoch=0, now=NOW, guard=guard)

    rig.files.fail(lambda operation: operation.kind == "write", Fault.ENOSPC)
    assert refused(append_it) is ErrorCode.KAFKA_STORAGE_ERROR
    assert append_it().last_offset == 1


def test_a_late_marker_of_version_2_is_refused() -> None:
    log = Rig().create()
    transaction(log, 1, COMMIT)

    def append_marker(epoch: int) -> Appended:
        return log.append_as_leader(
            marker(1, COMMIT, epoch=epoch),
            leader_epoch=0,
            now=NOW,
            origin=Origin.COORDINATOR,
            transaction_version=2,
        )

    assert refused(lambda: append_marker(0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append_marker(1).base_offset == 3
