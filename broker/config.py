"""The configuration of one broker: what its files and options say, and what it was told since.

Knows neither files nor options (`config_sources` reads them). A `BrokerConfig` never changes: a
change is a new one, which is swapped in whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.broker import config_keys
from ottla.broker.config_key import InvalidValue, Key, Value
from ottla.broker.listeners import Listeners, address_counts, resolved_listeners
from ottla.protocol.compression import Codec
from ottla.protocol.records import TimestampType
from ottla.storage.config import LogConfig

BROKER_RESOURCE = 4
"""What the metadata log calls a broker; its name is the node id, or empty for all brokers."""

_DEFAULTS = {name: key.default for name, key in config_keys.BROKER.items()}


class BrokerConfig:
    """`config["num.partitions"]` is a value with its type, as it holds now."""

    __slots__ = (
        "_static_values",
        "dynamic",
        "dynamic_default",
        "listeners",
        "log_config",
        "log_dirs",
        "metadata_log_dir",
        "node_id",
        "static",
        "topic_defaults",
        "values",
    )

    def __init__(
        self,
        static: Mapping[str, str],
        *,
        dynamic: Mapping[str, str] | None = None,
        dynamic_default: Mapping[str, str] | None = None,
    ) -> None:
        self.static = static
        """What files and options have set, as it was written."""
        self.dynamic = dynamic or {}
        """What the metadata log has set for this broker."""
        self.dynamic_default = dynamic_default or {}
        """The same for all brokers."""
        self._static_values = values = {**_DEFAULTS, **_parsed(static)}
        if self.dynamic_default:
            values = {**values, **_parsed(self.dynamic_default)}
        if self.dynamic:
            values = {**values, **_parsed(self.dynamic)}
        self.values: Mapping[str, Value] = values
        self.node_id: int = values["node.id"]
        is_map_set = "listener.security.protocol.map" in static
        self.listeners: Listeners = resolved_listeners(self._static_values, is_map_set=is_map_set)
        self.log_dirs: tuple[str, ...] = values["log.dirs"] or values["log.dir"]
        self.metadata_log_dir: str = values["metadata.log.dir"] or self.log_dirs[0]
        self.topic_defaults: Mapping[str, Value] = dict(_topic_defaults(values))
        self.log_config = log_config(self.topic_defaults)
        """What a topic without settings of its own obeys."""

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    @property
    def advertised(self) -> Mapping[str, tuple[str, int]]:
        """By the names of listeners, the address that clients are told, where one was set."""
        return {name: (each.host, each.port) for name, each in self.listeners.advertised.items()}

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """How many connections some addresses may have."""
        return address_counts(self["max.connections.per.ip.overrides"])

    def topic_value(self, name: str, overrides: Mapping[str, str]) -> Value:
        """One setting of a topic, of which `overrides` are its own."""
        text = overrides.get(name)
        if text is None:
            return self.topic_defaults[name]
        return config_keys.TOPIC[name].parsed(text)

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, Value]:
        """All settings of a topic."""
        values = dict(self.topic_defaults)
        for name, text in overrides.items():
            key = config_keys.TOPIC.get(name)
            if key is not None:
                values[name] = key.parsed(text)
        return values

    def topic(self, overrides: Mapping[str, str]) -> LogConfig:
        """What the logs of a topic obey."""
        return log_config(self.topic_values(overrides)) if overrides else self.log_config

    def with_dynamic(self, configs: Mapping[tuple[int, str], Mapping[str, str]]) -> BrokerConfig:
        """This configuration with what the metadata log says by now."""
        dynamic = dict(_taken(configs.get((BROKER_RESOURCE, str(self.node_id)), {})))
        dynamic_default = dict(_taken(configs.get((BROKER_RESOURCE, ""), {})))
        if dynamic == self.dynamic and dynamic_default == self.dynamic_default:
            return self
        return BrokerConfig(self.static, dynamic=dynamic, dynamic_default=dynamic_default)


def _parsed(texts: Mapping[str, str]) -> dict[str, Value]:
    keys = config_keys.BROKER
    return {name: keys[name].parsed(text) for name, text in texts.items() if name in keys}


def _taken(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What a running broker takes of it: Kafka skips the rest, and so the broker starts at all."""
    for name, text in texts.items():
        base = config_keys.base_name(name)
        key = config_keys.BROKER.get(base) or config_keys.ONLY_DYNAMIC.get(base)
        if key is not None and not config_keys.is_dynamic(base):
            continue
        if _is_valid(key, text):
            yield name, text


def _is_valid(key: Key | None, text: str) -> bool:
    try:
        if key is not None:
            key.parsed(text)
    except InvalidValue:
        return False
    return True


def _topic_defaults(values: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    for name, key in config_keys.TOPIC.items():
        synonym = config_keys.TOPIC_SYNONYMS.get(name)
        yield name, key.default if synonym is None else broker_value(values, synonym)


def broker_value(values: Mapping[str, Value], name: str) -> Value:
    """The value of a configuration that may be set in several units, in the first of them."""
    for synonym in config_keys.BROKER_SYNONYMS.get(name, (name,)):
        value = values[synonym]
        if value is None:
            continue
        if synonym in config_keys.UNIT_MS:
            value *= config_keys.UNIT_MS[synonym]
        return max(value, -1) if name == "log.retention.ms" else value
    return None


def log_config(values: Mapping[str, Value]) -> LogConfig:
    compression: str = values["compression.type"]
    segment_bytes: int = values["segment.bytes"]
    return LogConfig(
        segment_bytes=values["internal.segment.bytes"] or segment_bytes,
        segment_ms=values["segment.ms"],
        segment_jitter_ms=values["segment.jitter.ms"],
        segment_index_bytes=values["segment.index.bytes"],
        index_interval_bytes=values["index.interval.bytes"],
        preallocate=values["preallocate"],
        cleanup_policy=frozenset(values["cleanup.policy"]),
        retention_ms=values["retention.ms"],
        retention_bytes=values["retention.bytes"],
        file_delete_delay_ms=values["file.delete.delay.ms"],
        delete_retention_ms=values["delete.retention.ms"],
        min_cleanable_dirty_ratio=values["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=values["min.compaction.lag.ms"],
        max_compaction_lag_ms=values["max.compaction.lag.ms"],
        flush_messages=values["flush.messages"],
        flush_ms=values["flush.ms"],
        max_message_bytes=values["max.message.bytes"],
        message_timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if values["message.timestamp.type"] == "LogAppendTime"
            else TimestampType.CREATE_TIME
        ),
        message_timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
        message_timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
        compression_type=_CODECS[compression],
        compression_gzip_level=values["compression.gzip.level"],
        compression_lz4_level=values["compression.lz4.level"],
        compression_zstd_level=values["compression.zstd.level"],
    )


_CODECS = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
