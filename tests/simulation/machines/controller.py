"""The controller of a cluster of several brokers, under random requests, silence and restarts.

Checked after every step: what is replayed from the records alone, encoded and decoded, is the same
image; so is what a snapshot of it gives; a leader is in sync; epochs do not fall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages import cluster, configs, replicas, topics
from ottla.protocol.messages.transactions import AllocateProducerIdsRequest
from ottla.replication.config_rules import TOPIC, EffectiveConfig
from ottla.replication.controller import Controller, Outcome
from ottla.replication.metadata import Delta, Image
from ottla.replication.metadata_records import Versioned, decode_record, encode_record
from ottla.replication.metadata_versions import SUPPORTED_FEATURES
from ottla.storage.clock import Now

STEPS = 80
NAMES = ("a", "b", "a.b", "a_b", "long-name", "")
CLUSTER = "cluster"
Add = Callable[..., None]


class Broken(AssertionError):
    """The records are not the whole truth, or not a possible one."""


class AnyValue:
    """Rules for configs that refuse one value and know of no list."""

    def validate_topic(self, settings: Mapping[str, str], before: Mapping[str, str]) -> None:
        if "bad" in settings.values():
            raise KafkaError(ErrorCode.INVALID_CONFIG, "bad")

    validate_broker = validate_topic

    def validate_group(self, settings: Mapping[str, str]) -> None:
        self.validate_topic(settings, {})

    def validate_client_metrics(self, name: str, settings: Mapping[str, str]) -> None:
        self.validate_topic(settings, {})

    def is_list(self, resource_type: int, name: str) -> bool:
        return name == "cleanup.policy"

    def default(self, resource_type: int, name: str) -> str | None:
        return "delete" if name == "cleanup.policy" else None

    def topic_value(
        self,
        name: str,
        topic: Mapping[str, str],
        *,
        node: Mapping[str, str],
        cluster: Mapping[str, str],
    ) -> str | None:
        return topic.get(name) or node.get(name) or cluster.get(name)

    def topic_configs(
        self, topic: Mapping[str, str], *, node: Mapping[str, str], cluster: Mapping[str, str]
    ) -> Sequence[EffectiveConfig]:
        return [EffectiveConfig(name, value, 1) for name, value in sorted(topic.items())]


def play(seed: int, add: Add) -> None:
    Play(seed, add).run()


class Play:
    def __init__(self, seed: int, add: Add) -> None:
        self._random = Random(f"controller {seed}")
        self._add = add
        self._now_ms = 1_000
        self._offset = -1
        self._epoch = 1
        self._image = Image()
        self._count = self._random.randint(1, 4)
        self._epochs: dict[int, int] = {}
        self._dice = Random(f"dice {seed}")
        self._controller = self._made(None)

    def _made(self, image: Image | None) -> Controller:
        return Controller(
            node_id=1, cluster_id=CLUSTER, random=self._dice, rules=AnyValue(), image=image
        )

    def run(self) -> None:
        self._take(self._controller.bootstrap(self._now()))
        for broker in range(1, self._count + 1):
            self._register(broker)
        steps = (
            *(self._create, self._create, self._delete, self._grow, self._configure),
            *(self._heartbeat, self._heartbeat, self._heartbeat, self._expire, self._elect),
            *(self._reassign, self._shrink, self._shrink, self._allocate, self._restart),
            self._fail_over,
        )
        for _ in range(STEPS):
            self._now_ms += self._random.choice((1, 100, 3_000))
            step = self._random.choice(steps)
            try:
                step()
            except KafkaError as error:
                self._add("refused", step.__name__, error.code.name, error.message)
            self._check()

    def _now(self) -> Now:
        return Now(self._now_ms, 10**12 + self._now_ms)

    # the log

    def _take(self, outcome: Outcome[Any]) -> Any:
        self._add(self._now_ms, outcome.response)
        if outcome.records:
            self._offset += len(outcome.records)
            self._controller.replay(outcome.records, offset=self._offset, epoch=self._epoch)
            written = [encode_record(record) for record in outcome.records]
            self._add("records", written)
            self._image = self._replayed(self._image, [decode_record(each) for each in written])
        return outcome.response

    def _replayed(self, image: Image, records: list[Versioned]) -> Image:
        delta = Delta(image)
        for record in records:
            delta.replay(record)
        return delta.apply(offset=self._offset, epoch=self._epoch)

    def _check(self) -> None:
        known = list(self._controller.image.records())
        if known != list(self._image.records()):
            raise Broken("the image is not what the records say")
        if known != list(self._replayed(Image(), known).records()):
            raise Broken("a snapshot is not the image")
        for topic in self._image.topics.by_name.values():
            for index, partition in topic.partitions.items():
                self._check_partition(f"{topic.name}-{index}", partition)

    def _check_partition(self, name: str, partition: Any) -> None:
        if len(set(partition.replicas)) != len(partition.replicas) or not partition.replicas:
            raise Broken(f"{name}: replicas {partition.replicas}")
        if partition.leader >= 0:
            if partition.leader not in partition.isr:
                raise Broken(f"{name} is led by {partition.leader}, in sync are {partition.isr}")
            if self._image.brokers[partition.leader].fenced:
                raise Broken(f"{name} is led by {partition.leader}, which is fenced")
        if not set(partition.isr) <= set(partition.replicas):
            raise Broken(f"{name}: in sync {partition.isr}, replicas {partition.replicas}")

    # brokers

    def _register(self, broker: int) -> None:
        request = cluster.BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=CLUSTER,
            incarnation_id=self._random.randbytes(16),
            listeners=[
                cluster.BrokerRegistrationRequestListener(
                    name="PLAINTEXT", host="localhost", port=9092 + broker, security_protocol=0
                )
            ],
            features=[
                cluster.BrokerRegistrationRequestFeature(
                    name=name, min_supported_version=first, max_supported_version=last
                )
                for name, (first, last) in SUPPORTED_FEATURES.items()
            ],
            rack=None,
            log_dirs=[bytes([broker]) * 16],
            previous_broker_epoch=self._random.choice((-1, self._epochs.get(broker, -1))),
        )
        answer = self._take(
            self._controller.register_broker(request, self._now(), next_offset=self._offset + 1)
        )
        self._epochs[broker] = answer.broker_epoch
        self._beat(broker)

    def _beat(self, broker: int, *, want_fence: bool = False, want_shut_down: bool = False) -> None:
        request = cluster.BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self._epochs[broker],
            current_metadata_offset=self._random.choice((self._offset, self._offset, 0)),
            want_fence=want_fence,
            want_shut_down=want_shut_down,
        )
        self._take(self._controller.broker_heartbeat(request, self._now()))

    def _heartbeat(self) -> None:
        draw = self._random.random()
        self._beat(self._broker(), want_fence=draw < 0.1, want_shut_down=draw > 0.9)

    def _broker(self) -> int:
        return self._random.randint(1, self._count)

    def _restart(self) -> None:
        self._register(self._broker())

    def _expire(self) -> None:
        deadline_ms = self._controller.deadline()
        if deadline_ms is not None and self._random.random() < 0.5:
            self._now_ms = max(self._now_ms, deadline_ms)
        for _ in range(10):
            outcome = self._controller.expire(self._now())
            if not outcome.records:
                return
            self._take(outcome)

    def _fail_over(self) -> None:
        """Another controller begins with what the log says."""
        self._epoch += 1
        self._controller = self._made(self._image)
        self._take(self._controller.bootstrap(self._now()))

    # topics

    def _topic(self) -> str:
        return self._random.choice(NAMES)

    def _create(self) -> None:
        request = topics.CreateTopicsRequest(
            topics=[
                topics.CreatableTopic(
                    name=self._topic(),
                    num_partitions=self._random.choice((-1, 1, 3, 0)),
                    replication_factor=self._random.choice((-1, 1, 2, 3)),
                    assignments=[],
                    configs=[
                        topics.CreatableTopicConfig(name="x", value=value)
                        for value in self._random.choices(("1", "bad"), (9, 1), k=1)
                    ],
                )
                for _ in range(self._random.randint(1, 2))
            ],
            validate_only=self._random.random() < 0.1,
        )
        self._take(self._controller.create_topics(request, self._now()))

    def _delete(self) -> None:
        request = topics.DeleteTopicsRequest(
            topics=[topics.DeleteTopicState(name=self._topic(), topic_id=bytes(16))],
            timeout_ms=1,
        )
        self._take(self._controller.delete_topics(request, self._now()))

    def _grow(self) -> None:
        request = topics.CreatePartitionsRequest(
            topics=[
                topics.CreatePartitionsTopic(
                    name=self._topic(), count=self._random.randint(1, 6), assignments=None
                )
            ],
            timeout_ms=1,
            validate_only=self._random.random() < 0.1,
        )
        self._take(self._controller.create_partitions(request, self._now()))

    def _configure(self) -> None:
        request = configs.IncrementalAlterConfigsRequest(
            resources=[
                configs.IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name=self._topic(),
                    configs=[
                        configs.IncrementalAlterConfigsRequestAlterableConfig(
                            name=self._random.choice(("cleanup.policy", "x")),
                            config_operation=self._random.randint(0, 3),
                            value=self._random.choice(("compact", "delete", "bad")),
                        )
                    ],
                )
            ],
            validate_only=False,
        )
        self._take(self._controller.incremental_alter_configs(request, self._now()))

    # partitions

    def _partition(self) -> tuple[Any, int] | None:
        found = [
            (topic, index)
            for topic in self._image.topics.by_name.values()
            for index in topic.partitions
        ]
        return self._random.choice(found) if found else None

    def _elect(self) -> None:
        request = replicas.ElectLeadersRequest(
            election_type=self._random.randint(0, 1), topic_partitions=None
        )
        self._take(self._controller.elect_leaders(request, self._now()))

    def _reassign(self) -> None:
        found = self._partition()
        if found is None:
            return
        brokers = list(range(1, self._count + 1))
        wanted = self._random.sample(brokers, self._random.randint(1, self._count))
        request = replicas.AlterPartitionReassignmentsRequest(
            topics=[
                replicas.ReassignableTopic(
                    name=found[0].name,
                    partitions=[
                        replicas.ReassignablePartition(
                            partition_index=found[1],
                            replicas=self._random.choice((wanted, wanted, None)),
                        )
                    ],
                )
            ]
        )
        self._take(self._controller.alter_partition_reassignments(request, self._now()))

    def _shrink(self) -> None:
        """A leader says who is in sync."""
        found = self._partition()
        if found is None:
            return
        topic, index = found
        partition = topic.partitions[index]
        leader = partition.leader if partition.leader > 0 else 1
        members = [each for each in partition.replicas if self._random.random() < 0.7]
        isr = members if leader in members else [*members, leader]
        request = replicas.AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=self._epochs[leader],
            topics=[
                replicas.AlterPartitionRequestTopicData(
                    topic_id=topic.id,
                    partitions=[
                        replicas.AlterPartitionRequestPartitionData(
                            partition_index=index,
                            leader_epoch=partition.leader_epoch,
                            new_isr_with_epochs=[
                                replicas.BrokerState(
                                    broker_id=each, broker_epoch=self._epochs.get(each, -1)
                                )
                                for each in isr
                            ],
                            partition_epoch=partition.partition_epoch,
                        )
                    ],
                )
            ],
        )
        self._take(self._controller.alter_partition(request, self._now()))

    def _allocate(self) -> None:
        broker = self._broker()
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=self._epochs[broker])
        self._take(self._controller.allocate_producer_ids(request, self._now()))
