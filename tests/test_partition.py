"""A replica that owns its log: what counts when, and who is told."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.records import INT32_MAX
from ottla.replication.partition import Diverging, Partition
from ottla.storage.config import COMPACT, DELETE, LogConfig
from ottla.storage.log import Isolation
from ottla.storage.log_view import LogOffset
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from tests.data_rig import Broker
from tests.log_rig import NOW, SMALL, TOPIC_ID, batch, refused

THREE: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2, 3)}


class Watcher:
    def __init__(self) -> None:
        self.marks = 0

    def mark(self) -> None:
        self.marks += 1


class Told:
    """What a writer that waits was told."""

    def __init__(self) -> None:
        self.errors: list[ErrorCode] = []

    def __call__(self, error: ErrorCode) -> None:
        self.errors.append(error)


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


def append(partition: Partition, count: int = 3, *, acks: int = 1) -> int:
    """Returns the offset behind it."""
    return partition.append(batch(count), acks=acks, now=NOW).last_offset + 1


def size_of_log(files: MemoryFiles) -> int:
    path = f"logs/t-0/{0:020}.log"
    return files.size(path) if files.exists(path) else 0


def fetched(partition: Partition, replica: int, offset: int) -> None:
    partition.replica_fetched(replica, offset=offset, log_start_offset=0, now=NOW)


# appending


def test_what_a_leader_alone_appends_counts_at_once(broker: Broker) -> None:
    (partition,) = broker.create("t")
    assert append(partition) == 3
    assert partition.log.high_watermark == 3
    assert partition.has_counted(3, 1)
    assert partition.has_counted(3, -1)


def test_only_the_leader_appends(broker: Broker) -> None:
    (partition,) = broker.create("t")
    broker.lead(partition, leader=2, leader_epoch=1)
    assert refused(lambda: append(partition)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.log_end_offset == 0


def test_acks_all_needs_enough_replicas_in_sync(broker: Broker) -> None:
    (partition,) = broker.create("t", replicas=(1, 2, 3), isr=(1,), min_insync_replicas=2)
    assert refused(lambda: append(partition, acks=-1)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    append(partition, acks=1)
    assert partition.log.high_watermark == 0, "too few have it, whatever the acks"


def test_followers_move_the_high_watermark_and_with_it_the_writers(broker: Broker) -> None:
    (partition,) = broker.create("t", **THREE)
    told = Told()
    end = append(partition, acks=-1)
    assert partition.has_counted(end, 1)
    assert not partition.has_counted(end, -1)
    partition.when_counted(end, -1, told)
    fetched(partition, 2, end)
    fetched(partition, 3, end - 1)
    assert partition.log.high_watermark == end - 1
    assert told.errors == []
    fetched(partition, 3, end)
    assert partition.log.high_watermark == end
    assert told.errors == [ErrorCode.NONE]


def test_a_follower_that_leaves_the_isr_frees_the_writers(broker: Broker) -> None:
    (partition,) = broker.create("t", **THREE)
    told = Told()
    end = append(partition, acks=-1)
    partition.when_counted(end, -1, told)
    fetched(partition, 2, end)
    broker.lead(partition, isr=(1, 2), partition_epoch=1)
    assert told.errors == [ErrorCode.NONE]


def test_a_writer_hears_that_the_leader_has_changed(broker: Broker) -> None:
    (partition,) = broker.create("t", **THREE)
    told, forgotten = Told(), Told()
    partition.when_counted(append(partition, acks=-1), -1, told)
    partition.forget(partition.when_counted(3, -1, forgotten))
    broker.lead(partition, leader=2, leader_epoch=1)
    assert told.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert forgotten.errors == []


def test_a_writer_goes_on_waiting_for_the_same_leader(broker: Broker) -> None:
    (partition,) = broker.create("t", **THREE)
    told = Told()
    partition.when_counted(append(partition, acks=-1), -1, told)
    broker.lead(partition, leader_epoch=1)
    assert told.errors == []
    for replica in (2, 3):
        fetched(partition, replica, 3)
    assert told.errors == [ErrorCode.NONE]


def test_the_epoch_is_in_the_checkpoint_before_its_first_batch(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=7)
    assert partition.log.epochs.entries == []
    append(partition)
    broker.lead(partition, leader_epoch=9)
    append(partition)
    path = "logs/t-0/leader-epoch-checkpoint"
    assert broker.rig.files.read_whole(path).decode().split("\n")[2:4] == ["7 0", "9 3"]


# on disk first


@pytest.fixture
def durable() -> Iterator[Broker]:
    broker = Broker(after_fsync=True)
    yield broker
    broker.loop.close()


def test_after_fsync_nothing_counts_before_it(durable: Broker) -> None:
    (partition,) = durable.create("t")
    durable.loop.turn()
    told = [Told(), Told()]
    end = append(partition)
    assert partition.log.high_watermark == 0
    for acks, each in zip((1, -1), told, strict=True):
        assert not partition.has_counted(end, acks)
        partition.when_counted(end, acks, each)
    after_power_loss = durable.rig.files.crash(Random(1), Crash.SYNCED)
    assert not after_power_loss.exists("logs/t-0") or not size_of_log(after_power_loss)
    durable.loop.turn(10)
    assert partition.log.high_watermark == end
    assert [each.errors for each in told] == [[ErrorCode.NONE], [ErrorCode.NONE]]
    assert size_of_log(durable.rig.files.crash(Random(1), Crash.SYNCED)) == len(batch(3))


def test_writers_share_a_flush(durable: Broker) -> None:
    (partition,) = durable.create("t")
    durable.loop.turn(10)
    syncs: list[int] = []
    flush = type(partition.log).flush

    async def counting(log: object, offset: int | None = None) -> None:
        syncs.append(partition.log.log_end_offset)
        await flush(partition.log, offset)
        await asyncio.sleep(0.001)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(partition.log), "flush", counting)
        told = [Told() for _ in range(50)]
        for number, each in enumerate(told):
            partition.when_counted(append(partition, 1), -1, each)
            if number == 0:
                durable.loop.turn()
        durable.loop.run_until_complete(asyncio.sleep(1))
    assert [each.errors for each in told] == [[ErrorCode.NONE]] * 50
    assert syncs == [1, 50]


def test_a_flush_that_fails_refuses_the_writers(durable: Broker) -> None:
    (partition,) = durable.create("t")
    durable.loop.turn(10)
    told = Told()
    partition.when_counted(append(partition), 1, told)
    partition.log.folder.log_dir.fail("broken")
    durable.loop.turn(10)
    assert told.errors == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert partition.log.high_watermark == 0


def test_a_leader_flushes_what_it_finds_before_it_counts(durable: Broker) -> None:
    (partition,) = durable.create("t")
    durable.loop.turn(10)
    partition.log.append_as_leader(batch(4), leader_epoch=0, now=NOW)
    durable.lead(partition, leader_epoch=1)
    assert partition.log.high_watermark == 0
    durable.loop.turn(10)
    assert partition.log.high_watermark == 4


def test_a_log_that_flushes_by_itself_counts_too(durable: Broker) -> None:
    (partition,) = durable.create("t")
    durable.loop.turn(10)
    partition.log.config = LogConfig(flush_messages=1)
    told = Told()
    partition.when_counted(append(partition), -1, told)
    assert partition.log.recovery_point == 3
    durable.loop.turn(10)
    assert told.errors == [ErrorCode.NONE]


# those who watch


def test_watchers_hear_of_appends_watermarks_starts_and_roles(broker: Broker) -> None:
    (partition,) = broker.create("t")
    watcher = Watcher()
    partition.watchers[watcher] = None
    append(partition)
    assert watcher.marks == 1
    partition.delete_records(2)
    assert watcher.marks == 2
    partition.delete_records(1)
    assert watcher.marks == 2, "nothing has changed"
    broker.lead(partition, leader=2, leader_epoch=1)
    partition.retire()
    assert watcher.marks == 4


def test_watchers_hear_when_followers_move_the_watermark(broker: Broker) -> None:
    (partition,) = broker.create("t", **THREE)
    append(partition)
    watcher = Watcher()
    partition.watchers[watcher] = None
    fetched(partition, 2, 3)
    assert watcher.marks == 0
    fetched(partition, 3, 3)
    assert watcher.marks == 1


# reading


def test_a_reader_of_another_history_is_told_where_they_part(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=2)
    append(partition, 5)
    broker.lead(partition, leader_epoch=4)
    append(partition, 5)

    def check(offset: int, epoch: int) -> Diverging | None:
        return partition.check_reader(offset, current_leader_epoch=-1, last_fetched_epoch=epoch)

    assert check(5, 2) is None
    assert check(9, 4) is None
    assert check(6, 2) == Diverging(2, 5), "the log was truncated, and went on"
    assert check(7, 3) == Diverging(2, 5)
    assert check(11, 4) == Diverging(4, 10)
    assert refused(lambda: check(5, 5)) is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.delete_records(3)
    assert refused(lambda: check(2, 2)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_of_an_epoch_that_a_crash_took_whole_is_sent_back(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=2)
    broker.lead(partition, leader_epoch=4)
    assert partition.end_offset_for_epoch(3) == (3, 0)
    found = partition.check_reader(9, current_leader_epoch=-1, last_fetched_epoch=3)
    assert found == Diverging(3, 0)


def test_the_current_epoch_ends_where_the_log_ends_even_before_its_first_batch(
    broker: Broker,
) -> None:
    (partition,) = broker.create("t", epoch=2)
    assert partition.end_offset_for_epoch(2) == (2, 0)
    # One that no leader ever had lies before all, as in Kafka.
    assert partition.end_offset_for_epoch(-2) == (-2, 0)
    assert partition.end_offset_for_epoch(-1) == (-1, -1)
    assert partition.epoch_at_start() == 2
    append(partition, 5)
    broker.lead(partition, leader_epoch=4)
    assert partition.end_offset_for_epoch(4) == (4, 5)
    assert partition.end_offset_for_epoch(3) == (2, 5)
    assert partition.end_offset_for_epoch(2) == (2, 5)
    assert partition.epoch_at_start() == 2


def test_a_follower_serves_who_allows_it(broker: Broker) -> None:
    (partition,) = broker.create("t", leader=2, replicas=(1, 2))

    def check(leader_only: bool) -> None:
        partition.check_reader(
            0, current_leader_epoch=-1, last_fetched_epoch=-1, leader_only=leader_only
        )

    check(False)
    assert refused(lambda: check(True)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.retire()
    assert refused(lambda: check(False)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_bytes_are_counted_by_their_positions(broker: Broker) -> None:
    (partition,) = broker.create("t", config=SMALL)
    append(partition)
    here = partition.log.end
    assert partition.readable_bytes(here, Isolation.HIGH_WATERMARK) == 0
    size = len(batch(3))
    append(partition)
    for isolation in Isolation:
        assert partition.readable_bytes(here, isolation) == size
    partition.log.roll(NOW)
    append(partition)
    assert partition.readable_bytes(here, Isolation.HIGH_WATERMARK) == INT32_MAX
    assert partition.readable_bytes(LogOffset(0), Isolation.LOG_END) == INT32_MAX


# deleting records


@pytest.mark.parametrize(
    ("offset", "start"),
    [(-1, 6), (0, 0), (4, 4), (6, 6)],
)
def test_records_are_deleted_up_to_an_offset(broker: Broker, offset: int, start: int) -> None:
    (partition,) = broker.create("t")
    append(partition, 6)
    assert partition.delete_records(offset) == start
    assert partition.log.log_start_offset == start


@pytest.mark.parametrize("offset", [7, -2])
def test_records_that_are_not_there_are_not_deleted(broker: Broker, offset: int) -> None:
    (partition,) = broker.create("t")
    append(partition, 6)
    code = refused(lambda: partition.delete_records(offset))
    assert code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_compacted_topics_keep_their_records(broker: Broker) -> None:
    (only,) = broker.create("c", config=LogConfig(cleanup_policy=frozenset({COMPACT})))
    assert refused(lambda: only.delete_records(-1)) is ErrorCode.POLICY_VIOLATION
    (both,) = broker.create("b", config=LogConfig(cleanup_policy=frozenset({COMPACT, DELETE})))
    assert both.delete_records(-1) == 0
    broker.lead(both, leader=2, leader_epoch=1)
    assert refused(lambda: both.delete_records(-1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_tells_who_it_is(broker: Broker) -> None:
    (partition,) = broker.create("t", id=TOPIC_ID)
    assert repr(partition).startswith("Partition(t-0, leader, Log(")
