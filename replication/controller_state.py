"""What the controller's deciders look at: the image, the rules, the settings, and the dice.

Only `replay` in controller.py changes it. Deciders are plain functions of this state and a request;
they return an Outcome, or raise a KafkaError that is the answer to the whole request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Generic, NamedTuple, TypeVar

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.config_rules import BROKER, ConfigRules, EffectiveConfig, Settings
from ottla.replication.metadata import Image, TopicImage
from ottla.replication.metadata_brokers import BrokerImage
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import UNASSIGNED, PartitionRegistration
from ottla.replication.metadata_versions import ELR_FEATURE, NEWEST
from ottla.replication.partition_change import PartitionChange
from ottla.replication.topic_names import may_collide, unified

Response = TypeVar("Response")

# What one request may write at most, and how many partitions it may create.
RECORDS_MAX = 10_000
PARTITIONS_MAX = 10_000
TOO_LARGE = "Unable to perform excessively large batch operation."


class Outcome(Generic[Response]):
    """What was decided: an answer, and the records on which it rests.

    `is_atomic`: the records must reach the log as one batch, or not at all.
    """

    __slots__ = ("is_atomic", "records", "response")

    def __init__(
        self, response: Response, records: list[Versioned] | None = None, *, is_atomic: bool = True
    ) -> None:
        self.response = response
        self.records = [] if records is None else records
        self.is_atomic = is_atomic


class Failure(NamedTuple):
    """The error of one item of a request."""

    code: ErrorCode
    message: str | None = None


def failure(error: KafkaError) -> Failure:
    """Kafka sends a sentence only where it has more to say than the code."""
    return Failure(error.code, None if error.message == error.code.message else error.message)


class ControllerSettings(NamedTuple):
    """The properties of the node that the controller obeys, in Kafka's names."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    broker_session_timeout_ms: int = 9_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    metadata_version: int = NEWEST
    """Of a new cluster."""
    min_insync_replicas: int = 1
    """Of a new cluster, where eligible leader replicas are on."""


class Session:
    """What a broker's heartbeats told. Not in the log: another controller begins anew."""

    __slots__ = (
        "epoch",
        "is_entering_shutdown",
        "last_contact_ms",
        "metadata_offset",
        "shutdown_offset",
    )

    def __init__(self, epoch: int, last_contact_ms: int) -> None:
        self.epoch = epoch
        self.last_contact_ms = last_contact_ms
        self.metadata_offset = -1
        self.shutdown_offset = -1
        """What others must know before it may go down; -1 while it stays."""
        self.is_entering_shutdown = False
        """The records that move its leaders are about to be replayed."""


class ControllerState:
    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        random: Random,
        rules: ConfigRules,
        settings: ControllerSettings,
        image: Image,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.random = random
        self.rules = rules
        self.settings = settings
        self.image = image
        self.kraft_version = 1
        # Topics whose names may collide, by what is the same for all that do.
        self.colliding: dict[str, dict[str, None]] = {}
        self.sessions: dict[int, Session] = {}
        # Where in the log each broker's registration stands.
        self.registered_at: dict[int, int] = {}

    @property
    def level(self) -> int:
        """Of metadata.version."""
        return self.image.features.metadata_version

    @property
    def has_elr(self) -> bool:
        return self.image.features.levels.get(ELR_FEATURE, 0) > 0

    # ---- topics

    def topic(self, name: str) -> TopicImage | None:
        return self.image.topics.by_name.get(name)

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        for topic in self.image.topics.by_id.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition

    def collision(self, name: str) -> str | None:
        """A topic that is there and collides with this name."""
        if not may_collide(name):
            return None
        return next(iter(self.colliding.get(unified(name), ())), None)

    # ---- brokers

    def is_active(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def default_directory(self, broker_id: int) -> bytes:
        broker = self.image.brokers.get(broker_id)
        return UNASSIGNED if broker is None else broker.default_directory

    def checked_broker(self, broker_id: int, epoch: int) -> BrokerImage:
        """The broker that asks; an older incarnation of it is refused."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"No broker registration found for broker id {broker_id}",
            )
        if broker.epoch != epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
            )
        return broker

    # ---- configs

    def topic_value(self, topic: str, name: str) -> str | None:
        node, cluster = self._broker_settings()
        own = self.image.topic_config(topic)
        return self.rules.topic_value(name, own, node=node, cluster=cluster)

    def topic_configs(self, own: Settings) -> list[EffectiveConfig]:
        node, cluster = self._broker_settings()
        return list(self.rules.topic_configs(own, node=node, cluster=cluster))

    def _broker_settings(self) -> tuple[Settings, Settings]:
        configs = self.image
        return configs.config(BROKER, str(self.node_id)), configs.config(BROKER, "")

    def may_elect_uncleanly(self, topic: str) -> bool:
        found = self.topic_value(topic, "unclean.leader.election.enable")
        return found is not None and found.strip().lower() == "true"

    def min_isr(self, topic: TopicImage) -> int | None:
        """How many must be in sync, for eligible leader replicas; None while those are off."""
        if not self.has_elr:
            return None
        configured = int(self.topic_value(topic.name, "min.insync.replicas") or 1)
        return min(configured, len(next(iter(topic.partitions.values())).replicas))

    # ---- partitions

    def change(
        self,
        topic: TopicImage,
        index: int,
        partition: PartitionRegistration,
        *,
        is_acceptable: Callable[[int], bool] | None = None,
    ) -> PartitionChange:
        """A change of this partition, as yet of nothing."""
        acceptable = is_acceptable or self.is_active

        def may_lead(broker_id: int) -> bool:
            return acceptable(broker_id) and self._serves(partition, broker_id)

        return PartitionChange(
            topic.id,
            index,
            partition,
            is_acceptable=may_lead,
            default_directory=self.default_directory,
            level=self.level,
            min_isr=self.min_isr(topic),
        )

    def _serves(self, partition: PartitionRegistration, broker_id: int) -> bool:
        """The broker's directory of this partition is well; a new replica has none yet."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return False
        if broker_id not in partition.replicas:
            return True
        return broker.has_online(partition.directory(broker_id))
