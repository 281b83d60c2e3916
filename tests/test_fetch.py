"""Fetch without sessions, through its bytes: what is read, who is refused, who waits how long."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.handlers.fetch import fetch
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.records import ControlRecordType, iterate_batches
from ottla.replication.partition import Partition
from ottla.storage.memory_operations import Fault
from ottla.storage.producers import Origin
from tests.data_rig import Broker, FakeConnection, topic_id
from tests.log_rig import NOW, batch, marker

NEWEST = 18
WAIT_MS = 500
ENOUGH = 1 << 20


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


def wanted(index: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    fields.setdefault("partition_max_bytes", ENOUGH)
    return FetchPartition(partition=index, fetch_offset=offset, **fields)


def request(*partitions: FetchPartition, topic: str = "t", **fields: Any) -> FetchRequest:
    fields.setdefault("max_wait_ms", WAIT_MS)
    fields.setdefault("min_bytes", 1)
    return FetchRequest(
        topics=[FetchTopic(topic=topic, topic_id=topic_id(topic), partitions=list(partitions))],
        **fields,
    )


def ask(broker: Broker, asked: FetchRequest, version: int = NEWEST, **given: Any) -> Any:
    return broker.ask(fetch, asked, version, **given)


def parts(answer: Any) -> list[PartitionData]:
    assert isinstance(answer, FetchResponse), "it waits"
    assert answer.error_code == 0
    return [part for topic in answer.responses for part in topic.partitions]


def one(broker: Broker, asked: FetchRequest, version: int = NEWEST) -> PartitionData:
    (part,) = parts(ask(broker, asked, version))
    return part


def now(broker: Broker, partition: FetchPartition, version: int = NEWEST, **fields: Any) -> Any:
    """What is there without waiting."""
    return one(broker, request(partition, max_wait_ms=0, **fields), version)


def append(partition: Partition, *counts: int, **fields: Any) -> None:
    for count in counts:
        partition.append(batch(count, **fields), acks=1, now=NOW)


def offsets(part: PartitionData) -> list[int]:
    """The base offsets of the batches."""
    return [header.base_offset for _, header in iterate_batches(part.records or b"")]


SIZE = len(batch(3))

# what is read


@pytest.mark.parametrize("version", range(4, NEWEST + 1))
def test_batches_are_read_in_every_version(broker: Broker, version: int) -> None:
    (partition,) = broker.create("t")
    append(partition, 3, 3)
    part = one(broker, request(wanted()), version)
    assert offsets(part) == [0, 3]
    assert (part.partition_index, part.error_code, part.high_watermark) == (0, 0, 6)
    assert part.last_stable_offset == 6
    assert part.log_start_offset == (0 if version >= 5 else -1)
    assert part.aborted_transactions is None
    assert (part.preferred_read_replica, part.diverging_epoch, part.current_leader) == (
        -1,
        None,
        None,
    )


def test_a_batch_comes_whole_also_for_an_offset_inside(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3, 3, 3)
    assert offsets(one(broker, request(wanted(offset=4)))) == [3, 6]


def test_the_end_is_empty_and_behind_it_is_out_of_range(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3)
    part = now(broker, wanted(offset=3))
    assert (part.error_code, part.records, part.high_watermark) == (0, b"", 3)
    for offset in (4, -1):
        part = one(broker, request(wanted(offset=offset)))
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (-1, -1, -1)
        assert (part.records, part.aborted_transactions) == (b"", None)
    partition.delete_records(2)
    assert one(broker, request(wanted(offset=1))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_consumers_see_what_the_followers_have(broker: Broker) -> None:
    (partition,) = broker.create("t", replicas=(1, 2), isr=(1, 2))
    append(partition, 3, 3)
    assert now(broker, wanted()).records == b""
    assert now(broker, wanted(offset=5)).error_code == 0, "between watermark and end is no error"
    partition.replica_fetched(2, offset=3, log_start_offset=0, now=NOW)
    part = now(broker, wanted())
    assert (offsets(part), part.high_watermark) == ([0], 3)


def test_committed_readers_are_told_what_was_aborted(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 2, producer=7, transactional=True)
    data = marker(7, ControlRecordType.ABORT)
    partition.append(data, acks=1, now=NOW, origin=Origin.COORDINATOR)
    append(partition, 2, producer=8, transactional=True)
    part = now(broker, wanted(), isolation_level=1)
    assert (part.high_watermark, part.last_stable_offset) == (5, 3)
    assert offsets(part) == [0, 2]
    assert part.aborted_transactions == [AbortedTransaction(producer_id=7, first_offset=0)]
    part = now(broker, wanted(offset=3), isolation_level=1)
    assert (part.records, part.aborted_transactions) == (b"", [])
    part = now(broker, wanted())
    assert (offsets(part), part.aborted_transactions) == ([0, 2, 3], None)


def test_what_there_is_no_room_for_tells_of_no_transactions(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3)
    found = parts(ask(broker, request(wanted(), wanted(1), isolation_level=1)))
    assert found[0].aborted_transactions == []
    (other,) = broker.create("u")
    append(other, 3)
    asked = request(wanted(), isolation_level=1, max_bytes=SIZE + 1)
    asked.topics += request(wanted(), topic="u").topics
    found = parts(ask(broker, asked))
    assert [part.aborted_transactions for part in found] == [[], None], "as Kafka"


# how much


def test_the_first_batch_passes_however_large_it_is(broker: Broker) -> None:
    partitions = broker.create("t", 3)
    for partition in partitions[1:]:
        append(partition, 3, 3)
    found = parts(ask(broker, request(*[wanted(i) for i in range(3)], max_bytes=10)))
    assert [len(part.records or b"") for part in found] == [0, SIZE, 0]
    found = parts(ask(broker, request(*[wanted(i, partition_max_bytes=10) for i in range(3)])))
    assert [len(part.records or b"") for part in found] == [0, SIZE, 0]


def test_limits_cut_the_answer(broker: Broker) -> None:
    partitions = broker.create("t", 2)
    for partition in partitions:
        append(partition, 3, 3, 3)
    asked = request(wanted(0, partition_max_bytes=2 * SIZE), wanted(1), max_bytes=3 * SIZE)
    found = parts(ask(broker, asked))
    assert [len(part.records or b"") for part in found] == [2 * SIZE, SIZE]
    broker.config["fetch.max.bytes"] = SIZE
    found = parts(ask(broker, asked))
    assert [len(part.records or b"") for part in found] == [SIZE, 0]


def test_an_answer_is_cut_at_bytes_and_not_at_batches(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3, 3)
    part = one(broker, request(wanted(partition_max_bytes=SIZE + 30)))
    assert len(part.records or b"") == SIZE + 30


def test_while_memory_is_short_a_fetch_gets_less(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3, 3, 3)
    broker.answer_bytes_left = 2 * SIZE
    assert offsets(one(broker, request(wanted()))) == [0, 3]
    broker.answer_bytes_left = 1
    assert offsets(one(broker, request(wanted()))) == [0], "one batch always passes"
    broker.answer_bytes_left = 0
    waiting = ask(broker, request(wanted()))
    assert [part.records for part in parts(broker.run(waiting))] == [b""]
    assert broker.loop.time() == pytest.approx(WAIT_MS / 1000)


# who is refused


def test_unknown_partitions_are_answered_at_once(broker: Broker) -> None:
    broker.create("t")
    part = one(broker, request(wanted(1)))
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert part.aborted_transactions == []
    unknown = request(wanted(), topic="u")
    assert one(broker, unknown, 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one(broker, unknown, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    nameless = request(wanted(), topic="")
    assert one(broker, nameless, 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one(broker, nameless, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unknown_partition_ends_no_wait(broker: Broker) -> None:
    broker.create("t")
    waiting = ask(broker, request(wanted(0), wanted(1)))
    codes = [part.error_code for part in parts(broker.run(waiting))]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert broker.loop.time() == pytest.approx(WAIT_MS / 1000)


def test_an_offset_out_of_range_ends_the_wait(broker: Broker) -> None:
    broker.create("t", 2)
    found = parts(ask(broker, request(wanted(0), wanted(1, 9))))
    assert [part.error_code for part in found] == [0, ErrorCode.OFFSET_OUT_OF_RANGE]


@pytest.mark.parametrize(
    ("known", "code"),
    [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_reader_must_know_the_epoch(broker: Broker, known: int, code: ErrorCode) -> None:
    broker.create("t", epoch=3)
    assert one(broker, request(wanted(current_leader_epoch=known))).error_code == code
    assert now(broker, wanted(current_leader_epoch=3)).error_code == 0


@pytest.mark.parametrize("version", [15, 16])
def test_who_is_not_the_leader_says_who_is(broker: Broker, version: int) -> None:
    broker.create("t", leader=2, replicas=(2,), epoch=6)
    broker.drop("t", code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = ask(broker, request(wanted()), version)
    (part,) = parts(answer)
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if version < 16:
        assert (part.current_leader, answer.node_endpoints) == (None, [])
    else:
        assert part.current_leader == LeaderIdAndEpoch(leader_id=2, leader_epoch=6)
        far = NodeEndpoint(node_id=2, host="far", port=9092, rack=None)
        assert answer.node_endpoints == [far]


def test_an_old_consumer_reads_from_the_leader_only(broker: Broker) -> None:
    broker.create("t", leader=2, replicas=(1, 2))
    assert one(broker, request(wanted()), 10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert now(broker, wanted(), 11).error_code == 0


def test_a_storage_error_is_told_to_those_who_know_it(broker: Broker) -> None:
    broker.create("t")
    broker.drop("t", code=ErrorCode.KAFKA_STORAGE_ERROR)
    assert one(broker, request(wanted()), 5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert one(broker, request(wanted()), 6).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_the_id_of_another_topic_of_that_name_is_inconsistent(broker: Broker) -> None:
    (partition,) = broker.create("t")
    partition.topic_id = bytes(16)
    assert one(broker, request(wanted())).error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert now(broker, wanted(), 12).error_code == 0


def test_diverging_readers_get_no_records(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=2)
    append(partition, 3)
    broker.lead(partition, leader_epoch=4)
    append(partition, 3)
    part = one(broker, request(wanted(offset=5, last_fetched_epoch=2)))
    assert part.diverging_epoch == EpochEndOffset(epoch=2, end_offset=3)
    assert (part.error_code, part.records, part.high_watermark) == (0, b"", 6)
    part = one(broker, request(wanted(offset=3, last_fetched_epoch=2)))
    assert (part.diverging_epoch, offsets(part)) == (None, [3])
    part = one(broker, request(wanted(offset=3, last_fetched_epoch=5)))
    assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_batch_that_is_damaged_on_disk_is_one_partitions_error(broker: Broker) -> None:
    bad, good = broker.create("t", 2)
    for partition in (bad, good):
        append(partition, 3, 3)
    bad.log.roll(NOW)
    next(iter(bad.log.segments)).file.write(8, bytes(4))
    found = parts(ask(broker, request(wanted(0), wanted(1))))
    assert [part.error_code for part in found] == [ErrorCode.CORRUPT_MESSAGE, 0]


# followers


def as_follower(replica: int, version: int, *partitions: FetchPartition) -> FetchRequest:
    if version >= 15:
        state = ReplicaState(replica_id=replica, replica_epoch=1)
        return request(*partitions, replica_state=state, max_wait_ms=0)
    return request(*partitions, replica_id=replica, max_wait_ms=0)


@pytest.mark.parametrize("version", [14, 15])
def test_followers_see_the_end_and_move_the_watermark(broker: Broker, version: int) -> None:
    (partition,) = broker.create("t", replicas=(1, 2), isr=(1, 2))
    append(partition, 3, 3)
    part = one(broker, as_follower(2, version, wanted()), version)
    assert (offsets(part), part.high_watermark, part.last_stable_offset) == ([0, 3], 0, -1)
    part = one(broker, as_follower(2, version, wanted(offset=6)), version)
    assert (part.records, part.high_watermark) == (b"", 6)


def test_a_stranger_is_no_follower(broker: Broker) -> None:
    broker.create("t")
    part = one(broker, as_follower(5, NEWEST, wanted()))
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_that_is_ahead_does_not_count(broker: Broker) -> None:
    (partition,) = broker.create("t", replicas=(1, 2), isr=(1, 2))
    append(partition, 3)
    part = one(broker, as_follower(2, NEWEST, wanted(offset=9)))
    assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.log.high_watermark == 0


# waiting


def test_a_fetch_waits_for_records(broker: Broker) -> None:
    (partition,) = broker.create("t")
    waiting = ask(broker, request(wanted()))
    assert not waiting.done()
    broker.loop.call_later(0.2, append, partition, 3)
    (part,) = parts(broker.run(waiting))
    assert offsets(part) == [0]
    assert broker.loop.time() == pytest.approx(0.2)
    assert not partition.watchers
    assert not broker.connection.callbacks


def test_and_no_longer_than_it_said(broker: Broker) -> None:
    (partition,) = broker.create("t")
    (part,) = parts(broker.run(ask(broker, request(wanted()))))
    assert (part.error_code, part.records) == (0, b"")
    assert broker.loop.time() == pytest.approx(WAIT_MS / 1000)
    assert not partition.watchers


def test_a_fetch_waits_until_there_is_enough(broker: Broker) -> None:
    one_, two = broker.create("t", 2)
    append(one_, 3)
    waiting = ask(broker, request(wanted(0), wanted(1), min_bytes=3 * SIZE - 10))
    append(two, 3)
    broker.loop.turn()
    assert not waiting.done()
    append(one_, 3)
    broker.loop.turn()
    assert [offsets(part) for part in parts(waiting.result())] == [[0, 3], [0]]


def test_min_bytes_never_ask_for_more_than_max_bytes(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3)
    asked = request(wanted(), min_bytes=1 << 20, max_bytes=SIZE)
    assert offsets(one(broker, asked)) == [0]


def test_what_a_partition_may_not_give_does_not_count(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3)
    waiting = ask(broker, request(wanted(partition_max_bytes=SIZE), min_bytes=SIZE + 1))
    append(partition, 3, 3)
    broker.loop.turn()
    assert not waiting.done()
    broker.run(waiting)


def test_one_request_to_many_partitions_is_looked_at_once(broker: Broker) -> None:
    partitions = broker.create("t", 10)
    waiting = ask(broker, request(*[wanted(i) for i in range(10)]))
    for partition in partitions:
        append(partition, 3)
    found = parts(broker.run(waiting))
    assert [offsets(part) for part in found] == [[0]] * 10


def test_a_roll_ends_the_wait(broker: Broker) -> None:
    """As in Kafka: a reader in an older segment gets no more than the rest of that."""
    (partition,) = broker.create("t")
    append(partition, 3)
    waiting = ask(broker, request(wanted(), min_bytes=1 << 20))
    partition.log.roll(NOW)
    append(partition, 3)
    broker.loop.turn()
    assert [offsets(part) for part in parts(waiting.result())] == [[0]]


def test_a_committed_reader_waits_for_the_end_of_the_transaction(broker: Broker) -> None:
    (partition,) = broker.create("t")
    waiting = ask(broker, request(wanted(), isolation_level=1))
    append(partition, 2, producer=7, transactional=True)
    broker.loop.turn()
    assert not waiting.done()
    data = marker(7, ControlRecordType.COMMIT)
    partition.append(data, acks=1, now=NOW, origin=Origin.COORDINATOR)
    broker.loop.turn()
    assert offsets(parts(waiting.result())[0]) == [0, 2]


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_new_leader_ends_the_wait(broker: Broker, epoch: int) -> None:
    (partition,) = broker.create("t", replicas=(1, 2))
    waiting = ask(broker, request(wanted(current_leader_epoch=epoch)), 10)
    broker.lead(partition, leader=2, leader_epoch=1)
    broker.loop.turn()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch < 0 else ErrorCode.FENCED_LEADER_EPOCH
    assert parts(waiting.result())[0].error_code == code


def test_a_deleted_topic_ends_the_wait(broker: Broker) -> None:
    broker.create("t")
    waiting = ask(broker, request(wanted()))
    broker.drop("t")
    broker.loop.turn()
    code = parts(waiting.result())[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_peer_that_goes_waits_no_more(broker: Broker) -> None:
    (partition,) = broker.create("t")
    connection = FakeConnection()
    waiting = ask(broker, request(wanted()), connection=connection)
    connection.close()
    broker.loop.turn()
    assert waiting.done()
    assert not partition.watchers
    assert broker.loop.time() == 0


# what is cold, and what is long


def make_cold(broker: Broker, index: int) -> None:
    path = f"logs/t-{index}/{0:020}.log"
    broker.rig.files.fail(
        lambda operation: operation.kind == "read_cached" and operation.path == path,
        Fault.COLD,
        times=None,
    )


def test_what_memory_does_not_hold_is_awaited(broker: Broker) -> None:
    partitions = broker.create("t", 3)
    for partition in partitions:
        append(partition, 3)
    for partition in partitions[1:]:
        append(partition, 3)
        partition.log.roll(NOW)
    make_cold(broker, 1)
    found = parts(ask(broker, request(*[wanted(i) for i in range(3)])))
    assert [offsets(part) for part in found] == [[0], [0, 3], [0, 3]]
    assert not any(partition.watchers for partition in partitions)


def test_what_is_cold_after_a_wait_is_awaited(broker: Broker) -> None:
    (partition,) = broker.create("t")
    waiting = ask(broker, request(wanted()))
    append(partition, 3)
    make_cold(broker, 0)
    assert offsets(parts(broker.run(waiting))[0]) == [0]


def test_what_was_not_enough_is_read_again_with_what_is_cold(broker: Broker) -> None:
    cold, hot = broker.create("t", 2)
    append(hot, 3)
    waiting = ask(broker, request(wanted(0), wanted(1), min_bytes=3 * SIZE - 10))
    append(hot, 3)
    append(cold, 3)
    make_cold(broker, 0)
    assert [offsets(part) for part in parts(broker.run(waiting))] == [[0], [0, 3]]


def test_a_fetch_of_very_many_partitions_lets_others_have_a_turn(broker: Broker) -> None:
    partitions = broker.create("t", 600)
    append(partitions[400], 3)
    found = parts(ask(broker, request(*[wanted(i) for i in range(600)])))
    assert [part.partition_index for part in found] == list(range(600))
    assert [part.partition_index for part in found if part.records] == [400]
    assert broker.pauses == 3
    assert not any(partition.watchers for partition in partitions)


def test_much_data_is_read_with_pauses(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.fetch_reads._AT_ONCE_BYTES", 2 * SIZE - 1)
    partitions = broker.create("t", 10)
    for partition in partitions[1:]:
        append(partition, 3)
    asked = request(*[wanted(i) for i in range(10)], max_bytes=7 * SIZE)
    found = parts(ask(broker, asked))
    assert [len(part.records or b"") // SIZE for part in found] == [0, *[1] * 7, 0, 0]
    assert broker.pauses == 2


def test_what_changes_before_a_long_fetch_goes_on_is_not_missed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.fetch_reads._AT_ONCE_MAX", 1)
    partitions = broker.create("t", 2)
    asked = request(wanted(0), wanted(1))
    turn = broker.loop.turn

    def append_then_turn(count: int = 5) -> None:
        append(partitions[0], 3)
        turn(count)

    monkeypatch.setattr(broker.loop, "turn", append_then_turn)
    found = parts(ask(broker, asked))
    assert [offsets(part) for part in found] == [[0], []]


def test_what_changes_during_a_long_fetch_is_not_missed(broker: Broker) -> None:
    partitions = broker.create("t", 300)
    pause = broker.pause

    async def append_then_pause() -> None:
        append(partitions[0], 3)
        await pause()

    broker.pause = append_then_pause  # type: ignore[method-assign]
    waiting = ask(broker, request(*[wanted(i) for i in range(300)]))
    broker.pause = pause  # type: ignore[method-assign]
    found = parts(waiting if isinstance(waiting, FetchResponse) else broker.run(waiting))
    assert offsets(found[0]), "it did not wait for what was there"
    assert broker.loop.time() == 0
