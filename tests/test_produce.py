"""Produce, through its bytes, on logs in memory."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.context import Context
from ottla.broker.handlers.produce import produce
from ottla.protocol.apis import APIS
from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import CONTROL_FLAG, Record, TimestampType, iterate_batches
from ottla.storage.config import COMPACT, LogConfig
from tests.data_rig import Broker, FakeConnection, topic_id
from tests.log_rig import NOW, batch, headers, records
from tests.raw_batches import changed

NEWEST = 13
COMPACTED = LogConfig(cleanup_policy=frozenset({COMPACT}), segment_index_bytes=4_800)
THREE: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2, 3)}


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


def request(
    *parts: tuple[str, int, Any],
    acks: int = 1,
    timeout_ms: int = 1000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One topic for each part, in each version's way of naming it."""
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic_id(name),
                partition_data=[PartitionProduceData(index=index, records=data)],
            )
            for name, index, data in parts
        ],
    )


def one(broker: Broker, asked: ProduceRequest, version: int = NEWEST) -> PartitionProduceResponse:
    """The answer for the only partition."""
    answer = broker.ask(produce, asked, version)
    ((part,),) = [topic.partition_responses for topic in answer.responses]
    assert isinstance(part, PartitionProduceResponse)
    return part


@pytest.mark.parametrize("version", range(3, NEWEST + 1))
def test_a_batch_is_appended_in_every_version(broker: Broker, version: int) -> None:
    (partition,) = broker.create("t")
    assert one(broker, request(("t", 0, batch(3))), version).base_offset == 0
    part = one(broker, request(("t", 0, batch(2))), version)
    assert (part.index, part.error_code, part.base_offset) == (0, 0, 3)
    assert part.log_append_time_ms == -1
    assert part.log_start_offset == (0 if version >= 5 else -1)
    assert part.error_message is None
    assert part.current_leader is None
    assert [each.base_offset for each in headers(partition.log)] == [0, 3]
    assert [record.offset for record in records(partition.log)] == [0, 1, 2, 3, 4]


def test_a_large_batch_is_appended_where_it_was_received(broker: Broker) -> None:
    (partition,) = broker.create("t")
    one(broker, request(("t", 0, batch(3, size=10_000))))
    assert [record.value for record in records(partition.log)] == [
        str(i).encode() * 10_000 for i in range(3)
    ]


def test_an_answer_names_the_topic_as_the_version_does(broker: Broker) -> None:
    broker.create("t")
    assert broker.ask(produce, request(("t", 0, batch())), 12).responses[0].name == "t"
    assert broker.ask(produce, request(("t", 0, batch())), 13).responses[0].topic_id == topic_id(
        "t"
    )


def test_log_append_time_is_told(broker: Broker) -> None:
    config = LogConfig(
        message_timestamp_type=TimestampType.LOG_APPEND_TIME, segment_index_bytes=4_800
    )
    broker.create("t", config=config)
    broker.wall_ms += 5
    assert one(broker, request(("t", 0, batch()))).log_append_time_ms == NOW.wall_ms + 5


def test_a_duplicate_answers_with_the_first_offset(broker: Broker) -> None:
    (partition,) = broker.create("t")
    first = request(("t", 0, batch(3, producer=7)))
    assert one(broker, first).base_offset == 0
    one(broker, request(("t", 0, batch(3, producer=7, sequence=3))))
    again = one(broker, request(("t", 0, batch(3, producer=7))))
    assert (again.error_code, again.base_offset) == (0, 0)
    assert again.log_append_time_ms == NOW.wall_ms + 2, "as Kafka: the time of what is stored"
    assert partition.log.log_end_offset == 6


def flipped(data: bytearray) -> bytearray:
    data[-1] ^= 1
    return data


def magic(number: int) -> bytearray:
    data = batch()
    data[16] = number
    return data


INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
REFUSALS = [
    ("null", None, INVALID),
    ("nothing", b"", INVALID),
    ("magic 0", magic(0), INVALID),
    ("magic 1", magic(1), INVALID),
    ("magic 3", magic(3), CORRUPT),
    ("two batches", batch() + batch(), INVALID),
    ("a control batch", changed(batch(), attributes=CONTROL_FLAG), INVALID),
    ("a base offset", batch(base_offset=4), INVALID),
    ("a wrong crc", flipped(batch()), CORRUPT),
    ("a half batch", batch()[:70], INVALID),
    ("zeros", bytes(100), CORRUPT),
    ("too large", batch(1, size=1 << 21), ErrorCode.MESSAGE_TOO_LARGE),
    ("a gap in the sequence", batch(producer=9, sequence=4), None),
]


@pytest.mark.parametrize(("name", "data", "code"), REFUSALS, ids=[each[0] for each in REFUSALS])
def test_a_bad_batch_is_refused_for_its_partition_only(
    broker: Broker, name: str, data: Any, code: ErrorCode | None
) -> None:
    partition, other = broker.create("t", 2)
    asked = request(("t", 0, data), ("t", 1, batch()))
    asked.topic_data[0].partition_data += asked.topic_data.pop().partition_data
    ((bad, good),) = [each.partition_responses for each in broker.ask(produce, asked, 9).responses]
    assert bad.error_code == (code or 0)
    assert (bad.base_offset, bad.log_append_time_ms) == (-1 if code else 0, -1)
    assert good.error_code == 0
    assert other.log.log_end_offset == 3
    assert partition.log.log_end_offset == (0 if code else 3)


def test_zstandard_needs_version_7(broker: Broker) -> None:
    broker.create("t")
    data = build_batch([Record(0, NOW.wall_ms, b"k", b"v")], codec=Codec.ZSTD)
    assert (
        one(broker, request(("t", 0, data)), 6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    assert one(broker, request(("t", 0, data)), 7).error_code == 0


def test_the_records_to_blame_are_named(broker: Broker) -> None:
    (partition,) = broker.create("t", config=COMPACTED)
    data = build_batch([Record(i, NOW.wall_ms, b"k" if i % 2 else None, b"v") for i in range(4)])
    part = one(broker, request(("t", 0, data)))
    assert part.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in part.record_errors] == [0, 2]
    assert part.error_message
    assert part.log_start_offset == 0
    assert partition.log.log_end_offset == 0
    assert one(broker, request(("t", 0, data)), 7).record_errors == []


def test_where_the_log_begins_is_told_of_errors_that_are_not_the_logs(broker: Broker) -> None:
    (partition,) = broker.create("t")
    one(broker, request(("t", 0, batch(5, producer=7))))
    partition.delete_records(2)
    gap = one(broker, request(("t", 0, batch(5, producer=7, sequence=9))))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (gap.log_start_offset, gap.error_message) == (2, None)
    assert one(broker, request(("t", 0, flipped(batch())))).log_start_offset == -1


# whom it is for


def test_unknown_topics_and_partitions(broker: Broker) -> None:
    broker.create("t")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one(broker, request(("t", 1, batch()))).error_code == unknown
    assert one(broker, request(("u", 0, batch())), 12).error_code == unknown
    assert one(broker, request(("u", 0, batch())), 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_failed_log_directory_is_a_storage_error(broker: Broker) -> None:
    (partition,) = broker.create("t")
    partition.log.folder.log_dir.fail("broken")
    part = one(broker, request(("t", 0, batch())))
    assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    broker.drop("t", code=ErrorCode.KAFKA_STORAGE_ERROR)
    part = one(broker, request(("t", 0, batch())))
    assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("version", [9, 12, 13])
def test_who_is_not_the_leader_says_who_is(broker: Broker, version: int) -> None:
    broker.create("t", leader=2, replicas=(1, 2), epoch=6)
    answer = broker.ask(produce, request(("t", 0, batch())), version)
    part = answer.responses[0].partition_responses[0]
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if version < 10:
        assert (part.current_leader, answer.node_endpoints) == (None, [])
    else:
        assert part.current_leader == LeaderIdAndEpoch(leader_id=2, leader_epoch=6)
        far = NodeEndpoint(node_id=2, host="far", port=9092, rack=None)
        assert answer.node_endpoints == [far]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_for_the_admin_client_only(broker: Broker, name: str) -> None:
    broker.create(name)
    asked = request((name, 0, batch()))
    assert one(broker, asked).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    answer = broker.ask(produce, asked, NEWEST, client_id="__admin_client")
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_of_a_partition_named_twice_the_last_batch_counts(broker: Broker) -> None:
    (partition,) = broker.create("t")
    answer = broker.ask(produce, request(("t", 0, batch(3)), ("t", 0, batch(5))), NEWEST)
    assert [len(topic.partition_responses) for topic in answer.responses] == [1]
    assert partition.log.log_end_offset == 5


def test_a_request_for_many_partitions_lets_others_have_a_turn(broker: Broker) -> None:
    partitions = broker.create("t", 600)
    parts = [PartitionProduceData(index=i, records=batch(1, size=2)) for i in range(600)]
    asked = request(("t", 0, b""))
    asked.topic_data[0].partition_data = parts
    answer = broker.ask(produce, asked, NEWEST)
    assert [part.index for part in answer.responses[0].partition_responses] == list(range(600))
    assert {part.error_code for part in answer.responses[0].partition_responses} == {0}
    assert {partition.log.log_end_offset for partition in partitions} == {1}
    assert broker.pauses >= 2


def test_large_requests_are_appended_with_pauses(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = batch(2)
    monkeypatch.setattr("ottla.broker.handlers.produce._AT_ONCE_BYTES", 2 * len(data))
    partitions = broker.create("t", 5)
    answer = broker.ask(produce, request(*[("t", i, data) for i in range(5)]), NEWEST)
    assert [part.error_code for part in answer.responses[0].partition_responses] == [0] * 5
    assert [partition.log.log_end_offset for partition in partitions] == [2] * 5
    assert broker.pauses == 1


def test_what_waits_for_its_turn_is_kept_from_the_next_receive(broker: Broker) -> None:
    partitions = broker.create("t", 300)
    received = broker.receive_buffer[: len(batch(1))]
    received[:] = batch(1)
    asked = request(("t", 0, b""))
    asked.topic_data[0].partition_data = [
        PartitionProduceData(index=i, records=received) for i in range(300)
    ]
    context = Context(APIS[0], 9, 1, "test", broker.connection)  # type: ignore[arg-type]
    answer = produce(broker, context, asked)  # type: ignore[arg-type]
    received[:] = bytes(len(received))
    broker.run(broker.loop.create_task(answer))  # type: ignore[arg-type]
    assert {partition.log.log_end_offset for partition in partitions} == {1}


# acks


@pytest.mark.parametrize("acks", [2, -2, 7])
def test_other_acks_are_refused(broker: Broker, acks: int) -> None:
    (partition,) = broker.create("t")
    part = one(broker, request(("t", 0, batch()), acks=acks))
    assert part.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert partition.log.log_end_offset == 0
    missing = one(broker, request(("t", 9, batch()), acks=acks))
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_without_acks_nothing_is_answered(broker: Broker) -> None:
    (partition,) = broker.create("t")
    assert broker.ask(produce, request(("t", 0, batch()), acks=0), NEWEST) is None
    assert partition.log.log_end_offset == 3
    assert not broker.connection.is_closed


@pytest.mark.parametrize("index", [0, 1])
def test_without_acks_an_error_closes_the_connection(broker: Broker, index: int) -> None:
    broker.create("t")
    data = flipped(batch()) if index == 0 else batch()
    connection = FakeConnection()
    asked = request(("t", index, data), acks=0)
    assert broker.ask(produce, asked, NEWEST, connection=connection) is None
    assert connection.is_closed


def test_acks_all_needs_enough_in_sync(broker: Broker) -> None:
    (partition,) = broker.create("t", replicas=(1, 2), isr=(1,), min_insync_replicas=2)
    part = one(broker, request(("t", 0, batch()), acks=-1))
    assert part.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    assert one(broker, request(("t", 0, batch()), acks=1)).error_code == 0


def fetched(broker: Broker, name: str, index: int, replica: int, offset: int) -> None:
    broker.partitions[name, index].replica_fetched(
        replica, offset=offset, log_start_offset=0, now=broker.now()
    )


def test_acks_all_waits_for_the_followers_of_every_partition(broker: Broker) -> None:
    broker.create("t", 2, **THREE)
    asked = request(("t", 0, batch(3)), ("t", 1, batch(4)), acks=-1)
    waiting = broker.ask(produce, asked, NEWEST)
    for index, offset in ((0, 3), (1, 4)):
        for replica in (2, 3):
            assert not waiting.done()
            fetched(broker, "t", index, replica, offset)
            broker.loop.turn()
    parts = waiting.result().responses[0].partition_responses
    assert [(part.error_code, part.base_offset) for part in parts] == [(0, 0), (0, 0)]
    assert broker.loop.time() < 1


def test_who_waits_holds_no_memory_of_the_request(broker: Broker) -> None:
    broker.create("t", **THREE)
    received = bytearray(batch(3))
    asked = request(("t", 0, memoryview(received)), acks=-1)
    context = Context(APIS[0], 9, 1, "test", broker.connection)  # type: ignore[arg-type]
    answer: Any = produce(broker, context, asked)  # type: ignore[arg-type]
    received.append(0)  # refused while a view is left
    for replica in (2, 3):
        fetched(broker, "t", 0, replica, 3)
    assert broker.run(answer).responses[0].partition_responses[0].error_code == 0


def test_what_comes_too_late_is_timed_out_with_its_offset(broker: Broker) -> None:
    broker.create("t", 2, **THREE)
    asked = request(("t", 0, batch(3)), ("t", 1, batch(4)), acks=-1, timeout_ms=700)
    waiting = broker.ask(produce, asked, NEWEST)
    for replica in (2, 3):
        fetched(broker, "t", 0, replica, 3)
    parts = broker.run(waiting).responses[0].partition_responses
    assert broker.loop.time() == pytest.approx(0.7)
    assert [(part.error_code, part.base_offset) for part in parts] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.REQUEST_TIMED_OUT, 0),
    ]
    assert not broker.partitions["t", 1]._waiting


def test_who_waits_hears_of_a_new_leader(broker: Broker) -> None:
    (partition,) = broker.create("t", **THREE)
    waiting = broker.ask(produce, request(("t", 0, batch(3)), acks=-1), NEWEST)
    broker.lead(partition, leader=2, leader_epoch=1)
    (part,) = broker.run(waiting).responses[0].partition_responses
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("acks", [1, -1])
def test_after_fsync_the_answer_waits_for_the_disk(acks: int) -> None:
    broker = Broker(after_fsync=True)
    (partition,) = broker.create("t")
    broker.loop.turn(10)
    waiting = broker.ask(produce, request(("t", 0, batch(3)), acks=acks), NEWEST)
    (part,) = (
        (waiting if not hasattr(waiting, "done") else broker.run(waiting))
        .responses[0]
        .partition_responses
    )
    assert (part.error_code, part.base_offset) == (0, 0)
    assert partition.log.recovery_point == partition.log.high_watermark == 3
    broker.loop.close()


def test_a_fault_within_an_append_is_no_refusal(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (partition,) = broker.create("t")
    one(broker, request(("t", 0, flipped(batch()))))
    one(broker, request(("t", 0, batch())))
    assert not broker.is_changing

    def broken(*_: Any, **__: Any) -> None:
        raise IndexError

    monkeypatch.setattr(type(partition.log), "append_as_leader", broken)
    with pytest.raises(IndexError):
        one(broker, request(("t", 0, batch())))
    assert broker.is_changing, "the process must end: nobody knows what is in the log"


# transactions


@pytest.mark.parametrize("transactional_id", ["tx", None])
@pytest.mark.parametrize("acks", [0, 1])
def test_transactions_are_refused_for_good(
    broker: Broker, transactional_id: str | None, acks: int
) -> None:
    partitions = broker.create("t", 2)
    bad = batch(producer=7, transactional=True)
    asked = request(("t", 0, batch()), ("t", 1, bad), acks=acks, transactional_id=transactional_id)
    answer = broker.ask(produce, asked, NEWEST)
    assert [each.log.log_end_offset for each in partitions] == [0, 0]
    if acks == 0:
        assert answer is None
        assert broker.connection.is_closed
        return
    codes = [part.error_code for part in answer.responses[0].partition_responses]
    assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert not ErrorCode(codes[0]).retriable


def test_batches_keep_their_bytes_but_for_their_place(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=5)
    sent = batch(3)
    one(broker, request(("t", 0, batch(2))))
    one(broker, request(("t", 0, sent)))
    fetched = partition.log.read(2, 1 << 20)
    assert fetched is not None
    ((_, header),) = iterate_batches(fetched.data)
    assert (header.base_offset, header.partition_leader_epoch) == (2, 5)
    assert bytes(fetched.data[16:]) == bytes(sent[16:])
