"""ListOffsets and OffsetForLeaderEpoch."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.handlers.offsets import list_offsets, offset_for_leader_epoch
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offsets import (
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.replication.partition import Partition
from ottla.storage.memory_operations import Fault
from tests.data_rig import Broker
from tests.log_rig import NOW, batch

NEWEST = 11
LATEST, EARLIEST, MAX, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -1, -2, -3, -4, -5, -6


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


def append(partition: Partition, count: int, *, at: int = 0, **fields: Any) -> None:
    """Records one millisecond apart, from `at` milliseconds on."""
    data = batch(count, timestamp=NOW.wall_ms + at, **fields)
    partition.append(data, acks=1, now=NOW)


def listed(
    broker: Broker,
    timestamp: int,
    *,
    version: int = NEWEST,
    topic: str = "t",
    epoch: int = -1,
    committed: bool = False,
    replica: int = -1,
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(
        partition_index=0, current_leader_epoch=epoch, timestamp=timestamp
    )
    request = ListOffsetsRequest(
        replica_id=replica,
        isolation_level=int(committed),
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    answer = broker.ask(list_offsets, request, version)
    found = answer.topics[0].partitions[0]
    assert isinstance(found, ListOffsetsPartitionResponse)
    return found


def told(found: ListOffsetsPartitionResponse) -> tuple[int, int, int, int]:
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


def test_the_ends_of_an_empty_log(broker: Broker) -> None:
    broker.create("t", epoch=3)
    assert told(listed(broker, LATEST)) == (0, -1, 0, 3)
    assert told(listed(broker, EARLIEST)) == (0, -1, 0, 3)
    assert told(listed(broker, MAX)) == (0, -1, -1, -1)
    assert told(listed(broker, NOW.wall_ms)) == (0, -1, -1, -1)


def test_special_times(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=3)
    append(partition, 3, at=10)
    append(partition, 3)
    assert told(listed(broker, LATEST)) == (0, -1, 6, 3)
    assert told(listed(broker, EARLIEST)) == (0, -1, 0, 3)
    assert told(listed(broker, MAX)) == (0, NOW.wall_ms + 12, 2, 3)
    assert told(listed(broker, EARLIEST_LOCAL)) == (0, -1, 0, 3)
    assert told(listed(broker, LATEST_TIERED)) == (0, -1, -1, -1)
    assert told(listed(broker, PENDING)) == (0, -1, -1, -1)


def test_a_time_finds_the_first_record_that_is_not_earlier(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 3)
    append(partition, 3, at=10)
    cases = {0: 0, 1: 1, 2: 2, 3: 3, 11: 4, 12: 5}
    for time, offset in cases.items():
        assert listed(broker, NOW.wall_ms + time).offset == offset
    assert told(listed(broker, NOW.wall_ms + 13)) == (0, -1, -1, -1)
    assert listed(broker, 0).offset == 0


@pytest.mark.parametrize(
    ("timestamp", "first"),
    [(MAX, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING, 11), (-7, 12)],
)
def test_older_versions_know_fewer_special_times(
    broker: Broker, timestamp: int, first: int
) -> None:
    broker.create("t")
    for version in range(1, NEWEST + 1):
        code = listed(broker, timestamp, version=version).error_code
        assert code == (0 if version >= first else ErrorCode.UNSUPPORTED_VERSION)


def test_deleted_records_are_not_found(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 6)
    partition.delete_records(4)
    assert listed(broker, EARLIEST).offset == 4
    assert listed(broker, NOW.wall_ms).offset == 4


def test_committed_readers_end_at_the_last_stable_offset(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 2)
    append(partition, 3, at=10, producer=7, transactional=True)
    assert listed(broker, LATEST).offset == 5
    assert listed(broker, LATEST, committed=True).offset == 2
    assert listed(broker, NOW.wall_ms + 10).offset == 2
    assert listed(broker, NOW.wall_ms + 10, committed=True).offset == -1


def test_replicas_see_the_end_of_the_log(broker: Broker) -> None:
    (partition,) = broker.create("t", replicas=(1, 2), isr=(1, 2))
    append(partition, 2)
    assert listed(broker, LATEST).offset == 0
    assert listed(broker, LATEST, replica=2).offset == 2


@pytest.mark.parametrize(
    ("version", "code"),
    [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_new_leader_that_does_not_know_its_watermark(
    broker: Broker, version: int, code: ErrorCode
) -> None:
    (partition,) = broker.create("t", replicas=(1, 2), isr=(1, 2))
    append(partition, 2)
    broker.lead(partition, leader_epoch=1)
    assert listed(broker, LATEST, version=version).error_code == code
    assert listed(broker, NOW.wall_ms, version=version).error_code == code
    assert listed(broker, EARLIEST, version=version).error_code == 0
    assert listed(broker, LATEST, version=version, replica=2).offset == 2


def test_a_partition_named_twice_is_an_invalid_request(broker: Broker) -> None:
    broker.create("t", 2)
    partitions = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in (0, 1, 0)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)]
    )
    (topic,) = broker.ask(list_offsets, request, NEWEST).topics
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.NONE),
    ]


def test_whom_to_ask(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=3)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert listed(broker, LATEST, topic="u").error_code == unknown
    assert listed(broker, LATEST, epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert listed(broker, LATEST, epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    broker.lead(partition, leader=2, leader_epoch=4)
    assert listed(broker, LATEST).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert listed(broker, LATEST, replica=-2).error_code == 0, "a person who debugs"
    partition.log.folder.log_dir.fail("broken")
    code = listed(broker, LATEST, replica=-2).error_code
    assert code == ErrorCode.KAFKA_STORAGE_ERROR


def test_what_memory_does_not_hold_is_awaited(broker: Broker) -> None:
    (partition,) = broker.create("t")
    for at in range(200):
        append(partition, 3, at=at * 10)
    broker.rig.files.fail(lambda operation: operation.kind == "read_cached", Fault.COLD, times=None)
    assert listed(broker, NOW.wall_ms + 1001).offset == 301


def test_very_many_partitions_let_others_have_a_turn(broker: Broker) -> None:
    broker.create("t", 300)
    partitions = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(300)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)]
    )
    answer = broker.ask(list_offsets, request, NEWEST)
    assert len(answer.topics[0].partitions) == 300
    assert broker.pauses == 4


# leader epochs


def end_of(
    broker: Broker, epoch: int, *, current: int = -1, topic: str = "t", version: int = 4
) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    answer = broker.ask(offset_for_leader_epoch, request, version)
    found = answer.topics[0].partitions[0]
    assert isinstance(found, EpochEndOffset)
    return found


@pytest.mark.parametrize("version", [2, 3, 4])
def test_epochs_end_where_the_next_one_begins(broker: Broker, version: int) -> None:
    (partition,) = broker.create("t", epoch=2)
    append(partition, 5)
    broker.lead(partition, leader_epoch=4)
    append(partition, 3)
    cases = {2: (2, 5), 3: (2, 5), 4: (4, 8), 5: (-1, -1), 1: (1, 0)}
    for epoch, (largest, end) in cases.items():
        found = end_of(broker, epoch, version=version)
        assert (found.error_code, found.leader_epoch, found.end_offset) == (0, largest, end)


def test_epochs_are_told_by_the_leader_that_the_client_knows(broker: Broker) -> None:
    (partition,) = broker.create("t", epoch=2)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(broker, 2, topic="u").error_code == unknown
    assert end_of(broker, 2, current=1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert end_of(broker, 2, current=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    broker.lead(partition, leader=2, leader_epoch=4)
    refused = end_of(broker, 2)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (refused.leader_epoch, refused.end_offset) == (-1, -1)
