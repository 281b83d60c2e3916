"""What clients see of a broker's topics: ids, configs, partitions, offsets and every batch.

Two brokers that serve the same directory, one after the other, must show the same.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from compat_tests.wire_story.teller import Teller, batch, fetch, produce
from compat_tests.wire_story.wire import Wire
from ottla.protocol.compression import Codec
from ottla.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from ottla.protocol.messages.transactions import InitProducerIdRequest
from ottla.protocol.records import iterate_batches

TOPIC, BROKER = 2, 4
SET = 0
DYNAMIC_SOURCES = (1, 2, 3)
FETCH_BYTES = 50_000


class Seen(NamedTuple):
    """Everything that the two must agree upon."""

    topics: dict[str, dict[str, Any]]
    broker_configs: dict[str, str]


def fill(bootstrap: str, *, round_number: int = 0) -> None:
    """Topics with configs, batches of all kinds, deleted records, a deleted topic."""
    with Teller(bootstrap) as teller:
        _fill(teller, f"round-{round_number}")


def _fill(teller: Teller, name: str) -> None:
    teller.topic(f"{name}-plain", partitions=3, configs={"segment.bytes": "1048576"})
    teller.topic(f"{name}-compacted", configs={"cleanup.policy": "compact"})
    teller.topic(f"{name}-deleted")
    for at in range(12):
        codec = list(Codec)[at % 5]
        data = batch(b"%d" % at * 5000, b"x" * 40_000, b"y" * 100_000, codec=codec)
        teller.produced(f"{name}-plain", data, partition=at % 3)
        teller.produced(f"{name}-compacted", batch(b"v%d" % at, key=b"k%d" % (at % 3)))
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    said = teller.until(asked, 4, lambda answer: answer.error_code == 0)
    for sequence in range(7):
        data = batch(
            b"idempotent", producer_id=said.producer_id, producer_epoch=0, base_sequence=sequence
        )
        teller.produced(f"{name}-plain", data)
    partition = DeleteRecordsPartition(partition_index=1, offset=2)
    topics = [DeleteRecordsTopic(name=f"{name}-plain", partitions=[partition])]
    teller.wire.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)
    teller.wire.ask(DeleteTopicsRequest(topic_names=[f"{name}-deleted"], timeout_ms=10_000), 5)
    _configure(teller, TOPIC, f"{name}-plain", "max.message.bytes", "777777")
    _configure(teller, BROKER, "1", "log.cleaner.threads", "2")
    _configure(teller, BROKER, "", "message.max.bytes", "2222222")
    teller.until(
        MetadataRequest(topics=None, allow_auto_topic_creation=False),
        12,
        lambda answer: all(topic.name != f"{name}-deleted" for topic in answer.topics),
    )


def append(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """A record each; waits first until the topic is served."""
    with Teller(bootstrap) as teller:
        teller.until_served(topic, 1)
        for value in values:
            teller.until(
                produce(topic, batch(value)),
                9,
                lambda said: not said.responses[0].partition_responses[0].error_code,
            )


def seen(bootstrap: str) -> Seen:
    with Teller(bootstrap) as teller:
        return _seen(teller)


def _seen(teller: Teller) -> Seen:
    said = teller.until(
        MetadataRequest(topics=None, allow_auto_topic_creation=False),
        12,
        lambda answer: all(
            not each.error_code and each.leader_id == 1
            for topic in answer.topics
            for each in topic.partitions
        ),
    )
    topics = {}
    for topic in said.topics:
        teller.until_served(topic.name, len(topic.partitions))
        topics[topic.name] = {
            "id": topic.topic_id.hex(),
            "configs": _configs(teller.wire, TOPIC, topic.name),
            **{
                f"partition {index}": _partition(teller.wire, topic.name, index)
                for index in range(len(topic.partitions))
            },
        }
    configs = {**_configs(teller.wire, BROKER, ""), **_configs(teller.wire, BROKER, "1")}
    return Seen(topics, configs)


def _partition(wire: Wire, topic: str, index: int) -> dict[str, Any]:
    return {
        "start": _offset(wire, topic, index, -2),
        "end": _offset(wire, topic, index, -1),
        "batches": [
            (header.base_offset, header.last_offset, header.record_count, header.crc)
            for header in _batches(wire, topic, index)
        ],
    }


def _batches(wire: Wire, topic: str, index: int) -> Iterator[Any]:
    offset = _offset(wire, topic, index, -2)
    end = _offset(wire, topic, index, -1)
    while offset < end:
        asked = fetch(topic, offset, partition=index, partition_max_bytes=FETCH_BYTES)
        data = wire.ask(asked, 11).responses[0].partitions[0].records
        found = [header for _, header in iterate_batches(bytes(data))]
        if not found:
            raise AssertionError(f"{topic}-{index} ends at {offset} in place of {end}")
        yield from found
        offset = found[-1].last_offset + 1


def _offset(wire: Wire, topic: str, index: int, timestamp: int) -> int:
    asked = [ListOffsetsPartition(partition_index=index, timestamp=timestamp)]
    topics = [ListOffsetsTopic(name=topic, partitions=asked)]
    answer = wire.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def _configs(wire: Wire, kind: int, name: str) -> dict[str, str]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    configs = wire.ask(DescribeConfigsRequest(resources=[resource]), 4).results[0].configs
    return {each.name: each.value for each in configs if each.config_source in DYNAMIC_SOURCES}


def _configure(teller: Teller, kind: int, name: str, key: str, value: str) -> None:
    """Sets a config, and waits until it is seen: Kafka answers a little earlier."""
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name=key, config_operation=SET, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[change]
    )
    teller.wire.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    asked = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[key]
    )
    teller.until(
        DescribeConfigsRequest(resources=[asked]),
        4,
        lambda said: any(each.value == value for each in said.results[0].configs),
    )
