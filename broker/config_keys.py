"""Every configuration there is, by its name: of brokers, topics, groups and client metrics.

Knows no values. `honoured`, `accepted` and `refused` are the three sorts of configurations: what is
accepted has no effect, and what is refused may only be set to its default.
"""

from __future__ import annotations

from ottla.broker import broker_configs, coordinator_configs, security_configs, topic_configs
from ottla.broker.config_key import CLUSTER_WIDE, PER_BROKER, Key, Row

MINUTE_MS, HOUR_MS = 60_000, 3_600_000

LISTENER_PREFIX = "listener.name."


def _keys(*tables: tuple[Row, ...]) -> dict[str, Key]:
    return {row[0]: Key(*row) for table in tables for row in table}


OWN = _keys(broker_configs.OWN)
"""Ours: Kafka has never heard of them."""

REFUSED = _keys(broker_configs.REFUSED, coordinator_configs.REFUSED, security_configs.REFUSED)
ACCEPTED = _keys(broker_configs.ACCEPTED, coordinator_configs.ACCEPTED, security_configs.ACCEPTED)
HONOURED = OWN | _keys(broker_configs.HONOURED, coordinator_configs.HONOURED)
BROKER = {**HONOURED, **ACCEPTED, **REFUSED}

TOPIC_REFUSED = _keys(topic_configs.TOPIC_REFUSED)
TOPIC_ACCEPTED = _keys(topic_configs.TOPIC_ACCEPTED)
TOPIC = _keys(topic_configs.TOPIC_HONOURED) | TOPIC_ACCEPTED | TOPIC_REFUSED
GROUP = _keys(topic_configs.GROUP_ACCEPTED)
CLIENT_METRICS = _keys(topic_configs.CLIENT_METRICS_ACCEPTED)
ONLY_DYNAMIC = _keys(topic_configs.DYNAMIC_ACCEPTED)

BROKER_SYNONYMS = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.hours": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.hours": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
}
"""Configurations that say the same in several units; the first that is set counts."""

UNIT_MS = {
    "log.roll.hours": HOUR_MS,
    "log.roll.jitter.hours": HOUR_MS,
    "log.retention.minutes": MINUTE_MS,
    "log.retention.hours": HOUR_MS,
}

TOPIC_SYNONYMS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Which configuration of the broker a topic's default comes from."""


def base_name(name: str) -> str:
    """`max.connections` of `listener.name.internal.max.connections`; else the name itself."""
    if name.startswith(LISTENER_PREFIX):
        return name[len(LISTENER_PREFIX) :].partition(".")[2]
    return name


def is_dynamic(name: str) -> bool:
    """Whether a running broker takes a new value."""
    key = BROKER.get(name)
    return name in ONLY_DYNAMIC or (key is not None and key.update in (CLUSTER_WIDE, PER_BROKER))
