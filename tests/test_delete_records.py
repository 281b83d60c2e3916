"""DeleteRecords, through its bytes."""

from collections.abc import Iterator

import pytest

from ottla.broker.handlers.records import delete_records
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.storage.config import COMPACT, LogConfig
from tests.data_rig import Broker
from tests.log_rig import NOW, batch


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


def deleted(
    broker: Broker, *wanted: tuple[int, int], topic: str = "t", version: int = 2
) -> list[tuple[int, int, int]]:
    """Index, error and low watermark of each partition."""
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted
    ]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=1000
    )
    (found,) = broker.ask(delete_records, request, version).topics
    assert found.name == topic
    return [
        (each.partition_index, each.error_code, each.low_watermark) for each in found.partitions
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_are_deleted(broker: Broker, version: int) -> None:
    first, second = broker.create("t", 2)
    for partition in (first, second):
        partition.append(batch(6), acks=1, now=NOW)
    assert deleted(broker, (0, 4), (1, -1), version=version) == [(0, 0, 4), (1, 0, 6)]
    assert (first.log.log_start_offset, second.log.log_start_offset) == (4, 6)


def test_each_partition_has_its_error(broker: Broker) -> None:
    (partition,) = broker.create("t")
    partition.append(batch(6), acks=1, now=NOW)
    out_of_range, unknown = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert deleted(broker, (0, 7), (3, 1)) == [(0, out_of_range, -1), (3, unknown, -1)]
    broker.create("c", config=LogConfig(cleanup_policy=frozenset({COMPACT})))
    assert deleted(broker, (0, -1), topic="c") == [(0, ErrorCode.POLICY_VIOLATION, -1)]
    broker.create("__consumer_offsets")
    assert deleted(broker, (0, -1), topic="__consumer_offsets") == [
        (0, ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    ]


def test_very_many_partitions_let_others_have_a_turn(broker: Broker) -> None:
    broker.create("t", 100)
    assert len(deleted(broker, *[(index, -1) for index in range(100)])) == 100
    assert broker.pauses == 3
