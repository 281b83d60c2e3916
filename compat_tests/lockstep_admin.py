"""Random administration of two brokers in lockstep: topics, partitions, configurations.

    .venv/bin/python -m compat_tests.lockstep_admin --steps 4000 --seed 2

A request changes one configuration at most: of two that are bad either may be named. What brokers
are asked is only validated, so that the story stays the same for both.
"""

import argparse
from collections.abc import Callable
from random import Random
from typing import Any

from compat_tests.apache_kafka import Kafka
from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.chapters import FEATURES_OFF, SETTINGS
from compat_tests.wire_story.configs import BROKER, TOPIC, incremental, legacy
from compat_tests.wire_story.teller import Teller
from compat_tests.wire_story.topics import new_topic
from ottla.protocol.messages.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)

USUAL_NAMES = ["a", "b", "c.d", "c_d", "c.d_e"]
NAMES = [*USUAL_NAMES * 4, "x" * 200, "bad name", "", "..", "__internal"]
TOPIC_KEYS = [
    *("segment.bytes", "retention.ms", "cleanup.policy", "max.message.bytes", "compression.type"),
    *("min.insync.replicas", "message.timestamp.type", "flush.ms", "no.such", "segment.ms"),
    *("min.cleanable.dirty.ratio", "unclean.leader.election.enable", "retention.bytes"),
    *("leader.replication.throttled.replicas", "local.retention.ms", "index.interval.bytes"),
    *("remote.storage.enable", "preallocate", "min.compaction.lag.ms", "max.compaction.lag.ms"),
    *("message.timestamp.after.max.ms", "compression.gzip.level"),
]
BROKER_KEYS = [
    *("log.cleaner.threads", "message.max.bytes", "num.io.threads", "log.retention.ms", "node.id"),
    *("log.segment.bytes", "min.insync.replicas", "background.threads", "no.such.config"),
    *("log.flush.interval.ms", "max.connections", "log.cleanup.policy", "compression.type"),
    *("auto.create.topics.enable", "unclean.leader.election.enable", "log.retention.hours"),
    *("follower.replication.throttled.rate", "num.network.threads", "ssl.keystore.location"),
    "log.message.timestamp.type",
]
VALUES = [
    *("1", "0", "-1", "-2", "9", "12", "100", "1048576", "99999999999", "0.5", "1.5", " 7 "),
    *("x", "", "compact", "delete", "compact,delete", "gzip", "none", "producer", "true", "FALSE"),
    *("LogAppendTime", "1:2", "*", None),
]
Asked = tuple[Any, int]


class Story:
    """Draws requests."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)

    def next(self) -> Asked:
        deeds: list[Callable[[], Asked]] = [
            *[self._create] * 2,
            *[self._alter] * 3,
            self._delete,
            self._grow,
            self._replace,
            self._alter_broker,
        ]
        return self._dice.choice(deeds)()

    def _name(self) -> str:
        return self._dice.choice(NAMES)

    def _create(self) -> Asked:
        dice = self._dice
        configs: dict[str, Any] = {}
        if dice.random() < 0.5:
            configs[dice.choice(TOPIC_KEYS).replace(".", "_")] = dice.choice(VALUES)
        partitions, replicas = dice.choice([1, 2, -1, 0, 3, -3]), dice.choice([1, 1, 1, -1, 2, 0])
        topics = [new_topic(self._name(), partitions, replicas, **configs)]
        if dice.random() < 0.25:
            topics.append(new_topic(self._name()))
        if dice.random() < 0.15:
            brokers = [[1], [1], [2], [1, 1], []]
            assigned = {index: dice.choice(brokers) for index in range(dice.randrange(1, 3))}
            topics = [new_topic(self._name(), -1, -1, assigned=assigned)]
        validates = dice.random() < 0.2
        request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=validates)
        return request, dice.choice([2, 4, 5, 7])

    def _delete(self) -> Asked:
        names = [self._name()] * self._dice.choice([1, 1, 1, 2])
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=30_000)
        return request, self._dice.choice([1, 5])

    def _grow(self) -> Asked:
        dice = self._dice
        assigned = [CreatePartitionsAssignment(broker_ids=dice.choice([[1], [2], []]))]
        topic = CreatePartitionsTopic(
            name=self._name(),
            count=dice.randrange(-1, 7),
            assignments=dice.choice([None, None, assigned]),
        )
        validates = dice.random() < 0.3
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=30_000, validate_only=validates
        )
        return request, dice.choice([0, 3])

    def _alter(self) -> Asked:
        dice = self._dice
        change = (dice.choice(TOPIC_KEYS), dice.choice([0, 0, 0, 1, 2, 3]), dice.choice(VALUES))
        return incremental(TOPIC, self._name(), change, validates=dice.random() < 0.3), 1

    def _replace(self) -> Asked:
        dice = self._dice
        configs = {dice.choice(TOPIC_KEYS): dice.choice(VALUES)} if dice.random() < 0.5 else {}
        request = legacy(TOPIC, self._name(), configs, validates=dice.random() < 0.5)
        return request, dice.choice([0, 2])

    def _alter_broker(self) -> Asked:
        dice = self._dice
        change = (dice.choice(BROKER_KEYS), dice.choice([0, 0, 1, 2, 3]), dice.choice(VALUES))
        return incremental(BROKER, dice.choice(["1", "1", "", "2"]), change, validates=True), 1


def answered(teller: Teller, request: Any, version: int) -> Any:
    answer = teller.wire.ask(request, version)
    if isinstance(request, CreateTopicsRequest):
        for topic in answer.topics:
            if any(topic.topic_id):
                teller.comparable.met(topic.topic_id, topic.name)
    return teller.comparable.answer(answer, version)


def run(kafka_bootstrap: str, our_bootstrap: str, *, steps: int, seed: int) -> list[str]:
    """The differences, each with the request."""
    story, found = Story(seed), []
    with Teller(kafka_bootstrap) as kafka, Teller(our_bootstrap) as ours:
        for step in range(steps):
            request, version = story.next()
            kafkas, our = answered(kafka, request, version), answered(ours, request, version)
            if our != kafkas:
                found.append(f"step {step}: {request}\n  Kafka: {kafkas}\n  ours:  {our}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, prog="python -m compat_tests.lockstep_admin"
    )
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with Kafka(properties=SETTINGS, features=FEATURES_OFF) as kafka, Ottla(settings=SETTINGS) as us:
        steps, seed = arguments.steps, arguments.seed
        found = run(kafka.bootstrap, us.bootstrap, steps=steps, seed=seed)
    print("\n".join(found[:10]))
    print(f"{steps} steps, seed {seed}: {len(found)} differences")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
