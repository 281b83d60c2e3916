"""A broker's life as a real controller wrote it down (compat_tests/record_controller.py).

The same events are told to ours: its records must be those of Kafka, one after the other. That
cluster has eligible leader replicas, and its broker was once killed.
"""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.messages import cluster, topics
from ottla.replication.controller import Controller, Outcome
from ottla.replication.metadata import image_of
from ottla.replication.metadata_records import (
    CLASSES,
    Versioned,
    decode_record,
    encode_record,
)
from ottla.storage.clock import Now
from tests.controller_rig import ELSEWHERE, Configs, Rules, creatable

T = TypeVar("T")
RECORDING = Path(__file__).parent / "data" / "kafka-4.3.1-controller.jsonl.gz"
BY_TYPE = {cls.__name__.removesuffix("Record").upper(): cls for cls in CLASSES.values()}
# Each start of Kafka's own controller tells of itself; ours is a part of its broker.
NOT_OURS = "RegisterControllerRecord"
FAR = 1_000_000


def recorded() -> list[tuple[int, Versioned]]:
    """The records, each with the offset of its batch."""
    found = []
    for line in gzip.decompress(RECORDING.read_bytes()).decode().splitlines():
        batch = json.loads(line)
        for record in batch["records"]:
            name = record["type"].removesuffix("_RECORD").replace("_", "")
            message: Any = from_json(BY_TYPE[name], record["version"], record["data"])
            found.append((batch["offset"], Versioned(message, record["version"])))
    return found


class Dice(Random):
    """Throws the ids that Kafka has thrown."""

    def __init__(self, throws: list[bytes]) -> None:
        super().__init__(1)
        self._throws = throws

    def randbytes(self, n: int) -> bytes:
        return self._throws.pop(0)


class Telling:
    """Tells events to a controller of ours, and compares what it writes."""

    def __init__(self) -> None:
        self.rest = [each for each in recorded() if type(each[1].message).__name__ != NOT_OURS]
        made = [each for _, each in self.rest if type(each.message).__name__ == "TopicRecord"]
        ids = Dice([each.message.topic_id for each in made])
        self.controller = Controller(node_id=ELSEWHERE, cluster_id="c", random=ids, rules=Rules())
        self.now = Now(0, 0)
        self.broker: Any = None

    def expect(self, outcome: Outcome[T]) -> T:
        records = outcome.records
        assert records
        offset = self.rest[0][0]
        theirs, self.rest = self.rest[: len(records)], self.rest[len(records) :]
        assert list(map(shown, records)) == [shown(record) for _, record in theirs]
        offset = max(offset + len(records) - 1, self.controller.image.offset + len(records))
        self.controller.replay(records, offset=offset, epoch=1)
        return outcome.response

    def registration(self, *, previous_epoch: int = -1) -> None:
        """As the next registration in the recording was asked for."""
        found = [each for _, each in self.rest if "RegisterBroker" in type(each.message).__name__]
        self.broker = broker = found[0].message
        request = cluster.BrokerRegistrationRequest(
            broker_id=broker.broker_id,
            cluster_id="c",
            incarnation_id=broker.incarnation_id,
            listeners=[
                cluster.BrokerRegistrationRequestListener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in broker.end_points
            ],
            features=[
                cluster.BrokerRegistrationRequestFeature(
                    name=each.name,
                    min_supported_version=each.min_supported_version,
                    max_supported_version=each.max_supported_version,
                )
                for each in broker.features
            ],
            rack=broker.rack,
            log_dirs=broker.log_dirs,
            previous_broker_epoch=previous_epoch,
        )
        epoch = broker.broker_epoch
        self.expect(self.controller.register_broker(request, self.now, next_offset=epoch))

    def heartbeat(self, *, wants_fence: bool = False, **more: Any) -> None:
        request = cluster.BrokerHeartbeatRequest(
            broker_id=self.broker.broker_id,
            broker_epoch=self.broker.broker_epoch,
            current_metadata_offset=FAR,
            want_fence=wants_fence,
            want_shut_down=more.pop("wants_shutdown", False),
            **more,
        )
        self.expect(self.controller.broker_heartbeat(request, self.now))

    def create(self, name: str, partitions: int, configs: Configs) -> None:
        topic = creatable(name, partitions, 1, configs=configs)
        request = topics.CreateTopicsRequest(topics=[topic])
        self.expect(self.controller.create_topics(request, self.now))


def shown(record: Versioned) -> tuple[str, int, Any]:
    name = type(record.message).__name__
    return name, record.version, to_json(record.message, record.version)


def test_a_broker_s_life_is_written_down_as_kafka_writes_it() -> None:
    telling = Telling()
    controller, now = telling.controller, telling.now
    levels = [each for _, each in telling.rest if "FeatureLevel" in type(each.message).__name__]
    telling.expect(controller.bootstrap(now, levels))
    telling.registration()
    telling.heartbeat()
    telling.heartbeat(cordoned_log_dirs=[])
    telling.create("first", 2, {"retention.ms": "-1"})
    telling.create("second", 1, {"min.insync.replicas": "2", "retention.ms": "-1"})
    grow = topics.CreatePartitionsTopic(name="second", count=3, assignments=None)
    request = topics.CreatePartitionsRequest(topics=[grow], timeout_ms=0, validate_only=False)
    telling.expect(controller.create_partitions(request, now))
    gone = topics.DeleteTopicsRequest(topic_names=["second"], timeout_ms=0)
    telling.expect(controller.delete_topics(gone, now))

    telling.heartbeat(wants_shutdown=True)
    telling.heartbeat(wants_shutdown=True)

    telling.registration(previous_epoch=telling.broker.broker_epoch)
    telling.heartbeat(wants_fence=True, cordoned_log_dirs=[])
    telling.heartbeat()

    # Killed: its session ends, then it comes back and does not know what it has lost.
    telling.now = Now(60_000, 60_000)
    telling.expect(controller.expire(telling.now))
    telling.registration()
    telling.heartbeat()
    telling.heartbeat(cordoned_log_dirs=[])
    telling.heartbeat(wants_shutdown=True)
    telling.heartbeat(wants_shutdown=True)
    assert not telling.rest


def test_what_kafka_wrote_goes_through_an_image_and_its_snapshot() -> None:
    records = [record for _, record in recorded()]
    for record in records:
        assert decode_record(encode_record(record)) == record
    image = image_of(records)
    assert image_of(image.records()) == image
    first = image.topics.by_name["first"].partitions[0]
    assert (first.leader, first.leader_epoch, first.isr, first.elr) == (-1, 5, (), (1,))
