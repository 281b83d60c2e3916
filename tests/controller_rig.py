"""A controller without a log: what it decides is replayed at once, at offsets that are counted."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
)
from ottla.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.replication.config_rules import EffectiveConfig, Settings
from ottla.replication.controller import Controller, ControllerSettings, Outcome
from ottla.replication.metadata import BrokerImage, TopicImage
from ottla.replication.metadata_records import Versioned, decode_record, encode_record
from ottla.replication.metadata_topics import PartitionRegistration
from ottla.replication.metadata_versions import KNOWN_FEATURES, METADATA_VERSION
from ottla.storage.clock import Now

T = TypeVar("T")
Configs = Mapping[str, str | None]
CLUSTER_ID = "a cluster"
# The controller is none of the brokers, unless a test wants it to be.
ELSEWHERE = 100


class Rules:
    """Configs as far as the controller asks: `bad` is refused, the first of three places counts."""

    def validate_topic(self, settings: Settings, before: Settings) -> None:
        self._validate(settings)

    def validate_broker(self, settings: Settings, before: Settings) -> None:
        self._validate(settings)

    def validate_group(self, settings: Settings) -> None:
        self._validate(settings)

    def validate_client_metrics(self, name: str, settings: Settings) -> None:
        self._validate(settings)

    def _validate(self, settings: Settings) -> None:
        if "bad" in settings.values():
            raise KafkaError(ErrorCode.INVALID_CONFIG, "a bad value")

    def is_list(self, resource_type: int, name: str) -> bool:
        return name == "cleanup.policy"

    def default(self, resource_type: int, name: str) -> str | None:
        return "delete" if name == "cleanup.policy" else None

    def topic_value(
        self, name: str, topic: Settings, *, node: Settings, cluster: Settings
    ) -> str | None:
        for settings in (topic, node, cluster):
            if name in settings:
                return settings[name]
        return None

    def topic_configs(
        self, topic: Settings, *, node: Settings, cluster: Settings
    ) -> Sequence[EffectiveConfig]:
        return [EffectiveConfig(name, value, 1) for name, value in sorted(topic.items())]


class Cluster:
    """`brokers` are registered and unfenced, each with one directory."""

    def __init__(
        self,
        brokers: int = 1,
        *,
        node_id: int = ELSEWHERE,
        seed: int = 1,
        level: int | None = None,
        settings: ControllerSettings | None = None,
    ) -> None:
        self.now = Now(1_000, 1_800_000_000_000)
        self.offset = 0
        if level is not None:
            settings = ControllerSettings(metadata_version=level)
        self.controller = Controller(
            node_id=node_id,
            cluster_id=CLUSTER_ID,
            random=Random(seed),
            rules=Rules(),
            settings=settings,
        )
        self.records: list[Versioned] = []
        """What the last decision wrote."""
        self.do(self.controller.bootstrap(self.now))
        for broker_id in range(1, brokers + 1):
            self.register(broker_id)
            self.heartbeat(broker_id)

    def do(self, outcome: Outcome[T]) -> T:
        """Replays what was decided, as it comes out of the log."""
        self.records = [decode_record(encode_record(record)) for record in outcome.records]
        if outcome.records:
            self.offset += len(outcome.records)
            self.controller.replay(self.records, offset=self.offset, epoch=1)
        return outcome.response

    def replay(self, *messages: Versioned) -> None:
        self.do(Outcome(None, list(messages)))

    def wait(self, ms: int) -> None:
        self.now = Now(self.now.monotonic_ms + ms, self.now.wall_ms + ms)

    # brokers

    def broker(self, broker_id: int) -> BrokerImage:
        return self.controller.image.brokers[broker_id]

    def register(
        self,
        broker_id: int,
        *,
        incarnation: int = 1,
        previous_epoch: int = -1,
        rack: str | None = None,
        directories: Sequence[bytes] | None = None,
        features: Mapping[str, tuple[int, int]] = KNOWN_FEATURES,
        cluster_id: str = CLUSTER_ID,
    ) -> int:
        """The broker's epoch."""
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=cluster_id,
            incarnation_id=bytes((broker_id, incarnation)) * 8,
            listeners=[],
            features=[
                BrokerRegistrationRequestFeature(
                    name=name, min_supported_version=first, max_supported_version=last
                )
                for name, (first, last) in features.items()
            ],
            rack=rack,
            log_dirs=list(directories or [directory(broker_id)]),
            previous_broker_epoch=previous_epoch,
        )
        next_offset = self.offset + 1
        response = self.do(
            self.controller.register_broker(request, self.now, next_offset=next_offset)
        )
        return response.broker_epoch

    def heartbeat(
        self,
        broker_id: int,
        *,
        offset: int | None = None,
        epoch: int | None = None,
        wants_fence: bool = False,
        wants_shutdown: bool = False,
        offline: Sequence[bytes] = (),
        cordoned: Sequence[bytes] | None = None,
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.broker(broker_id).epoch if epoch is None else epoch,
            current_metadata_offset=self.offset if offset is None else offset,
            want_fence=wants_fence,
            want_shut_down=wants_shutdown,
            offline_log_dirs=list(offline),
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
        return self.do(self.controller.broker_heartbeat(request, self.now))

    def restart(self, broker_id: int, incarnation: int, *, previous_epoch: int = -1) -> None:
        self.register(broker_id, incarnation=incarnation, previous_epoch=previous_epoch)
        self.heartbeat(broker_id)

    # topics

    def topic(self, name: str) -> TopicImage:
        return self.controller.image.topics.by_name[name]

    def partition(self, name: str, index: int = 0) -> PartitionRegistration:
        return self.topic(name).partitions[index]

    def create(self, name: str, *replicas: Sequence[int], configs: Configs | None = None) -> bytes:
        """A topic whose partitions are on these brokers; its id."""
        request = CreateTopicsRequest(topics=[creatable(name, assigned=replicas, configs=configs)])
        result = self.do(self.controller.create_topics(request, self.now)).topics[0]
        if result.error_code:
            raise AssertionError(result)
        return result.topic_id


def creatable(
    name: str,
    partitions: int = -1,
    replicas: int = -1,
    *,
    assigned: Sequence[Sequence[int]] = (),
    configs: Configs | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(assigned)
        ],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )


def directory(broker_id: int, number: int = 0) -> bytes:
    return bytes((1, broker_id, number)) + bytes(13)


def without(feature: str) -> dict[str, tuple[int, int]]:
    return {name: levels for name, levels in KNOWN_FEATURES.items() if name != feature}


def only_metadata(first: int, last: int) -> dict[str, tuple[int, int]]:
    return {**KNOWN_FEATURES, METADATA_VERSION: (first, last)}
