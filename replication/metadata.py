"""The cluster's metadata: an immutable Image, and the Delta that makes the next one of records.

Knows no log, no snapshot file and no request. Every record of Kafka 4.3 that says something is
kept, also what nothing acts upon yet, so that a snapshot loses nothing. A Delta copies a section
when its first record comes; an Image that was handed out never changes.

What a transaction of the log brings is held back in the Image until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ottla.protocol.messages import metadata_records as messages
from ottla.replication.metadata_brokers import (
    BrokerImage,
    Endpoint,
    changed,
    registered,
)
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import (
    PartitionRegistration,
    TopicImage,
    Topics,
    merged,
    registration,
    without_elr,
)
from ottla.replication.metadata_versions import KRAFT_VERSION, METADATA_VERSION

__all__ = [
    "BrokerImage",
    "Delta",
    "Endpoint",
    "Features",
    "Image",
    "PartitionRegistration",
    "ProducerIds",
    "TopicImage",
    "Topics",
    "image_of",
]

# Resource types of configs.
TOPIC = 2
BROKER = 4

Quota = tuple[tuple[str, str | None], ...]


class Features(NamedTuple):
    """Finalized features: the level of metadata.version (0: none yet), and the others by name."""

    metadata_version: int = 0
    levels: Mapping[str, int] = {}

    @property
    def finalized(self) -> dict[str, int]:
        """All of them by name."""
        own = {METADATA_VERSION: self.metadata_version} if self.metadata_version else {}
        return own | dict(self.levels)


class ProducerIds(NamedTuple):
    next_producer_id: int = -1


NO_FEATURES = Features()
NO_PRODUCER_IDS = ProducerIds()


@dataclass(slots=True, frozen=True)
class Image:
    """Everything that the log says up to `offset`, which is -1 before the first record."""

    offset: int = -1
    epoch: int = -1
    features: Features = NO_FEATURES
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    controllers: Mapping[int, messages.RegisterControllerRecord] = field(default_factory=dict)
    topics: Topics = field(default_factory=lambda: Topics({}, {}))
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    quotas: Mapping[Quota, Mapping[str, float]] = field(default_factory=dict)
    producer_ids: ProducerIds = NO_PRODUCER_IDS
    acls: Mapping[bytes, messages.AccessControlEntryRecord] = field(default_factory=dict)
    # By mechanism and user.
    scram: Mapping[tuple[int, str], messages.UserScramCredentialRecord] = field(
        default_factory=dict
    )
    tokens: Mapping[str, messages.DelegationTokenRecord] = field(default_factory=dict)
    # The records of the transaction that is open; None while there is none.
    transaction: tuple[Versioned, ...] | None = None

    def records(self) -> Iterator[Versioned]:
        """All of it as records, in Kafka's order. Not while a transaction is open."""
        from ottla.replication.metadata_snapshot import snapshot_records

        return snapshot_records(self)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What is set for a resource itself, empty if nothing is."""
        return self.configs.get((resource_type, name), {})

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.configs.get((TOPIC, name), {})

    def partition(self, topic: str, index: int) -> PartitionRegistration | None:
        found = self.topics.by_name.get(topic)
        return None if found is None else found.partitions.get(index)


class Delta:
    """Records on their way into an Image, and what they change.

    What changed stands in dicts, which keep their order: `created_topics` and `deleted_topics` (by
    id, the latter as they were), `changed_partitions` (id and index, of topics that stay),
    `changed_configs`, `changed_brokers`, `changed_features`.
    """

    __slots__ = (
        "_features",
        "_next_producer_id",
        "_owned",
        "_partitions",
        "_settings",
        "_transaction",
        "changed_brokers",
        "changed_configs",
        "changed_features",
        "changed_partitions",
        "created_topics",
        "deleted_topics",
        "image",
    )

    def __init__(self, image: Image) -> None:
        self.image = image
        self.created_topics: dict[bytes, str] = {}
        self.deleted_topics: dict[bytes, TopicImage] = {}
        self.changed_partitions: dict[tuple[bytes, int], None] = {}
        self.changed_configs: dict[tuple[int, str], None] = {}
        self.changed_brokers: dict[int, None] = {}
        self.changed_features: dict[str, None] = {}
        self._owned: dict[str, dict[Any, Any]] = {}
        self._features: tuple[int, dict[str, int]] | None = None
        self._next_producer_id = image.producer_ids.next_producer_id
        # The inner dicts that belong to this delta, of topics and of configs and quotas.
        self._partitions: dict[bytes, dict[int, PartitionRegistration]] = {}
        self._settings: dict[Any, dict[str, Any]] = {}
        self._transaction: list[Versioned] | None = (
            None if image.transaction is None else list(image.transaction)
        )

    def replay(self, record: Versioned) -> None:
        """Take one record. An impossible one raises: the log is not what this node believes."""
        if self._transaction is None:
            REPLAYS[type(record.message)](self, record.message)
        elif type(record.message) is messages.EndTransactionRecord:
            held, self._transaction = self._transaction, None
            for earlier in held:
                self.replay(earlier)
        elif type(record.message) is messages.AbortTransactionRecord:
            self._transaction = None
        else:
            self._transaction.append(record)

    def apply(self, *, offset: int, epoch: int) -> Image:
        """The image after these records, the last of which stands at `offset`."""
        topics = self.image.topics
        if "by_id" in self._owned:
            self._close_topics()
            topics = Topics(self._owned.pop("by_name"), self._owned.pop("by_id"))
        features = self.image.features
        if self._features is not None:
            features = Features(*self._features)
        sections: dict[str, Any] = self._owned
        self._owned = {}
        return replace(
            self.image,
            offset=offset,
            epoch=epoch,
            features=features,
            topics=topics,
            producer_ids=ProducerIds(self._next_producer_id),
            transaction=None if self._transaction is None else tuple(self._transaction),
            **sections,
        )

    def topic(self, topic_id: bytes) -> TopicImage | None:
        """The topic as of the last record; its partitions are not all there yet."""
        found: TopicImage | None = self._owned.get("by_id", self.image.topics.by_id).get(topic_id)
        return found

    def _own(self, section: str) -> dict[Any, Any]:
        """A section as this delta may change it, copied when first asked for."""
        owned = self._owned.get(section)
        if owned is None:
            owned = self._owned[section] = dict(getattr(self.image, section))
        return owned

    def _own_topics(self) -> tuple[dict[str, TopicImage], dict[bytes, TopicImage]]:
        if "by_id" not in self._owned:
            self._owned["by_id"] = dict(self.image.topics.by_id)
            self._owned["by_name"] = dict(self.image.topics.by_name)
        return self._owned["by_name"], self._owned["by_id"]

    def _own_partitions(self, topic_id: bytes) -> dict[int, PartitionRegistration]:
        owned = self._partitions.get(topic_id)
        if owned is None:
            topic = self._own_topics()[1][topic_id]
            owned = self._partitions[topic_id] = dict(topic.partitions)
        return owned

    def _close_topics(self) -> None:
        by_name, by_id = self._own_topics()
        for topic_id, partitions in self._partitions.items():
            old = by_id[topic_id]
            by_id[topic_id] = by_name[old.name] = TopicImage(old.name, topic_id, partitions)
        self._partitions = {}

    def _set(self, section: str, key: Any, name: str, value: Any) -> None:
        """Set one value of a mapping of mappings; None removes it, and the last one its mapping."""
        outer = self._own(section)
        inner = self._settings.get(key)
        if inner is None:
            inner = self._settings[key] = dict(outer.get(key, {}))
        if value is None:
            inner.pop(name, None)
        else:
            inner[name] = value
        if inner:
            outer[key] = inner
        else:
            outer.pop(key, None)

    # ---- records of topics

    def _topic(self, record: messages.TopicRecord) -> None:
        by_name, by_id = self._own_topics()
        made = TopicImage(record.name, record.topic_id, {})
        by_name[record.name] = by_id[record.topic_id] = made
        self._partitions[record.topic_id] = {}
        self.created_topics[record.topic_id] = record.name

    def _remove_topic(self, record: messages.RemoveTopicRecord) -> None:
        by_name, by_id = self._own_topics()
        topic_id = record.topic_id
        topic = by_id.pop(topic_id)
        if by_name[topic.name].id == topic_id:
            del by_name[topic.name]
        self._partitions.pop(topic_id, None)
        if self.created_topics.pop(topic_id, None) is None:
            self.deleted_topics[topic_id] = self.image.topics.by_id[topic_id]
        for index in topic.partitions:
            self.changed_partitions.pop((topic_id, index), None)
        key = (TOPIC, topic.name)
        if key in self._owned.get("configs", self.image.configs):
            del self._own("configs")[key]
            self._settings.pop(key, None)
            self.changed_configs[key] = None

    def _partition(self, record: messages.PartitionRecord) -> None:
        partitions = self._own_partitions(record.topic_id)
        partitions[record.partition_id] = registration(record)
        self.changed_partitions[record.topic_id, record.partition_id] = None

    def _partition_change(self, record: messages.PartitionChangeRecord) -> None:
        partitions = self._own_partitions(record.topic_id)
        partitions[record.partition_id] = merged(partitions[record.partition_id], record)
        self.changed_partitions[record.topic_id, record.partition_id] = None

    def _clear_elr(self, record: messages.ClearElrRecord) -> None:
        by_name, by_id = self._own_topics()
        topics = [by_name[record.topic_name].id] if record.topic_name else list(by_id)
        for topic_id in topics:
            seen = self._partitions.get(topic_id, by_id[topic_id].partitions)
            for index, old in list(seen.items()):
                new = without_elr(old)
                if new is not old:
                    self._own_partitions(topic_id)[index] = new
                    self.changed_partitions[topic_id, index] = None

    # ---- records of brokers and controllers

    def _register_broker(self, record: messages.RegisterBrokerRecord) -> None:
        self._own("brokers")[record.broker_id] = registered(record)
        self.changed_brokers[record.broker_id] = None

    def _unregister_broker(self, record: messages.UnregisterBrokerRecord) -> None:
        self._registration(record.broker_id, record.broker_epoch)
        del self._own("brokers")[record.broker_id]
        self.changed_brokers[record.broker_id] = None

    def _fence_broker(self, record: messages.FenceBrokerRecord) -> None:
        self._put_broker(self._registration(record.id, record.epoch)._replace(fenced=True))

    def _unfence_broker(self, record: messages.UnfenceBrokerRecord) -> None:
        self._put_broker(self._registration(record.id, record.epoch)._replace(fenced=False))

    def _change_broker(self, record: messages.BrokerRegistrationChangeRecord) -> None:
        self._put_broker(changed(self._registration(record.broker_id, record.broker_epoch), record))

    def _registration(self, broker_id: int, epoch: int) -> BrokerImage:
        found: BrokerImage = self._own("brokers")[broker_id]
        if found.epoch != epoch:
            raise ValueError(f"a change of broker {broker_id} at epoch {epoch}, not {found.epoch}")
        return found

    def _put_broker(self, broker: BrokerImage) -> None:
        self._own("brokers")[broker.id] = broker
        self.changed_brokers[broker.id] = None

    def _register_controller(self, record: messages.RegisterControllerRecord) -> None:
        self._own("controllers")[record.controller_id] = record

    # ---- all other records

    def _config(self, record: messages.ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        self._set("configs", key, record.name, record.value)
        self.changed_configs[key] = None

    def _feature_level(self, record: messages.FeatureLevelRecord) -> None:
        # Its level stands in a control record of the log. Old nodes wrote it here by mistake.
        if record.name == KRAFT_VERSION:
            return
        level, others = self._features or (
            self.image.features.metadata_version,
            dict(self.image.features.levels),
        )
        if record.name == METADATA_VERSION:
            level = record.feature_level
        elif record.feature_level == 0:
            others.pop(record.name, None)
        else:
            others[record.name] = record.feature_level
        self._features = (level, others)
        self.changed_features[record.name] = None

    def _quota(self, record: messages.ClientQuotaRecord) -> None:
        # A dict drops repetitions, as Kafka does; the order of the parts means nothing.
        parts = {part.entity_type: part.entity_name for part in record.entity}
        value = None if record.remove else record.value
        self._set("quotas", tuple(sorted(parts.items())), record.key, value)

    def _producer_ids(self, record: messages.ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id

    def _acl(self, record: messages.AccessControlEntryRecord) -> None:
        self._own("acls")[record.id] = record

    def _remove_acl(self, record: messages.RemoveAccessControlEntryRecord) -> None:
        del self._own("acls")[record.id]

    def _scram(self, record: messages.UserScramCredentialRecord) -> None:
        self._own("scram")[record.mechanism, record.name] = record

    def _remove_scram(self, record: messages.RemoveUserScramCredentialRecord) -> None:
        self._own("scram").pop((record.mechanism, record.name), None)

    def _token(self, record: messages.DelegationTokenRecord) -> None:
        self._own("tokens")[record.token_id] = record

    def _remove_token(self, record: messages.RemoveDelegationTokenRecord) -> None:
        self._own("tokens").pop(record.token_id, None)

    def _begin_transaction(self, _: messages.BeginTransactionRecord) -> None:
        self._transaction = []

    def _nothing(self, _: object) -> None:
        """The record says nothing that lasts."""

    def _stray(self, record: object) -> None:
        raise ValueError(f"{type(record).__name__} without a transaction")


REPLAYS: dict[type, Callable[[Delta, Any], None]] = {
    messages.RegisterBrokerRecord: Delta._register_broker,
    messages.UnregisterBrokerRecord: Delta._unregister_broker,
    messages.TopicRecord: Delta._topic,
    messages.PartitionRecord: Delta._partition,
    messages.ConfigRecord: Delta._config,
    messages.PartitionChangeRecord: Delta._partition_change,
    messages.FenceBrokerRecord: Delta._fence_broker,
    messages.UnfenceBrokerRecord: Delta._unfence_broker,
    messages.RemoveTopicRecord: Delta._remove_topic,
    messages.DelegationTokenRecord: Delta._token,
    messages.UserScramCredentialRecord: Delta._scram,
    messages.FeatureLevelRecord: Delta._feature_level,
    messages.ClientQuotaRecord: Delta._quota,
    messages.ProducerIdsRecord: Delta._producer_ids,
    messages.BrokerRegistrationChangeRecord: Delta._change_broker,
    messages.AccessControlEntryRecord: Delta._acl,
    messages.RemoveAccessControlEntryRecord: Delta._remove_acl,
    messages.NoOpRecord: Delta._nothing,
    messages.ZkMigrationStateRecord: Delta._nothing,
    messages.RemoveUserScramCredentialRecord: Delta._remove_scram,
    messages.BeginTransactionRecord: Delta._begin_transaction,
    messages.EndTransactionRecord: Delta._stray,
    messages.AbortTransactionRecord: Delta._stray,
    messages.RemoveDelegationTokenRecord: Delta._remove_token,
    messages.RegisterControllerRecord: Delta._register_controller,
    messages.ClearElrRecord: Delta._clear_elr,
}


def image_of(batch: Iterable[Versioned], *, offset: int = -1, epoch: int = -1) -> Image:
    """The image that records make of nothing, a snapshot's for example."""
    delta = Delta(Image())
    for record in batch:
        delta.replay(record)
    return delta.apply(offset=offset, epoch=epoch)
