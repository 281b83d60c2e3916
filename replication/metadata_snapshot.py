"""An Image as the records of a snapshot, in Kafka's order: features first.

Knows no file: what surrounds the records in a snapshot is the quorum's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
)
from ottla.replication.metadata_brokers import broker_record
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import topic_records
from ottla.replication.metadata_versions import (
    METADATA_VERSION,
    register_broker_version,
)

if TYPE_CHECKING:
    from ottla.replication.metadata import Image


def snapshot_records(image: Image) -> Iterator[Versioned]:
    """All that an image holds. The reader of a snapshot knows no transactions."""
    if image.transaction is not None:
        raise ValueError("a snapshot in the midst of a transaction would lose it")
    return _records(image)


def _records(image: Image) -> Iterator[Versioned]:
    level = image.features.metadata_version
    yield from _features(image)
    for broker in image.brokers.values():
        yield Versioned(broker_record(broker), register_broker_version(level))
    yield from _whole(image.controllers.values())
    for topic in image.topics.by_id.values():
        yield from topic_records(topic, level)
    for (resource_type, resource), settings in image.configs.items():
        for name, value in settings.items():
            yield Versioned(
                ConfigRecord(
                    resource_type=resource_type, resource_name=resource, name=name, value=value
                )
            )
    yield from _quotas(image)
    if image.producer_ids.next_producer_id >= 0:
        next_id = image.producer_ids.next_producer_id
        yield Versioned(ProducerIdsRecord(broker_id=-1, next_producer_id=next_id))
    yield from _whole(image.acls.values())
    yield from _whole(image.scram.values())
    yield from _whole(image.tokens.values())


def _features(image: Image) -> Iterator[Versioned]:
    level = image.features.metadata_version
    # First: how the records after it are to be read depends on it.
    if level:
        yield Versioned(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
    for name, other in image.features.levels.items():
        yield Versioned(FeatureLevelRecord(name=name, feature_level=other))


def _quotas(image: Image) -> Iterator[Versioned]:
    for entity, limits in image.quotas.items():
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, value in limits.items():
            yield Versioned(ClientQuotaRecord(entity=parts, key=key, value=value, remove=False))


def _whole(messages: Any) -> Iterator[Versioned]:
    """Messages that an image keeps as they came."""
    for message in messages:
        yield Versioned(message)
