"""DescribeProducers."""

from collections.abc import Iterator

import pytest

from ottla.broker.handlers.transactions import describe_producers
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.transactions import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from ottla.protocol.records import ControlRecordType
from ottla.storage.producers import Origin
from tests.data_rig import Broker
from tests.log_rig import NOW, batch, marker


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


def described(broker: Broker, name: str = "t", index: int = 0) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[index])])
    found = broker.ask(describe_producers, request, 0).topics[0].partitions[0]
    assert isinstance(found, PartitionResponse)
    return found


def test_producers_are_described(broker: Broker) -> None:
    (partition,) = broker.create("t")
    partition.append(batch(3, producer=7, epoch=2), acks=1, now=NOW)
    data = batch(2, producer=8, transactional=True)
    partition.append(data, acks=1, now=NOW)
    idle = ProducerState(
        producer_id=7,
        producer_epoch=2,
        last_sequence=2,
        last_timestamp=NOW.wall_ms + 2,
        coordinator_epoch=-1,
        current_txn_start_offset=-1,
    )
    found = described(broker)
    assert (found.error_code, found.error_message) == (0, None)
    assert found.active_producers[0] == idle
    assert found.active_producers[1].current_txn_start_offset == 3
    data = marker(8, ControlRecordType.COMMIT, coordinator_epoch=6)
    partition.append(data, acks=1, now=NOW, origin=Origin.COORDINATOR)
    ended = described(broker).active_producers[1]
    assert (ended.coordinator_epoch, ended.current_txn_start_offset) == (6, -1)


def test_a_producer_that_sent_no_batch_has_no_sequence(broker: Broker) -> None:
    (partition,) = broker.create("t")
    data = marker(8, ControlRecordType.COMMIT)
    partition.append(data, acks=1, now=NOW, origin=Origin.COORDINATOR)
    assert described(broker).active_producers[0].last_sequence == -1


def test_what_is_not_there_is_not_described(broker: Broker) -> None:
    broker.create("t", leader=2, replicas=(2,))
    broker.drop("t", code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cases = {
        ("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ("t", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("no name", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    for (name, index), code in cases.items():
        found = described(broker, name, index)
        assert (found.error_code, found.active_producers) == (code, [])
