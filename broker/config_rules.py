"""Which values the controller lets pass, for topics, groups and client metrics, and what holds.

The broker's side of `replication.config_rules.ConfigRules`. Sentences and codes are Kafka's, which
people see in its tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ottla.broker import config_keys
from ottla.broker.config import BrokerConfig
from ottla.broker.config_key import InvalidValue, Key, Value
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.config_rules import BROKER, TOPIC, EffectiveConfig, Settings

SOURCE_TOPIC, SOURCE_BROKER, SOURCE_CLUSTER, SOURCE_STATIC, SOURCE_DEFAULT = 1, 2, 3, 4, 5

_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 3_600_000
_MATCHED = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


class Rules:
    """`current` gives the configuration of this node as it is by now."""

    __slots__ = ("_current",)

    def __init__(self, current: Callable[[], BrokerConfig]) -> None:
        self._current = current

    @property
    def _config(self) -> BrokerConfig:
        return self._current()

    def validate_topic(self, settings: Settings, before: Settings) -> None:
        for name in settings:
            if name not in config_keys.TOPIC:
                raise _invalid(f"Unknown topic config name: {name}")
        values = {**self._config.topic_defaults, **_parsed(config_keys.TOPIC, settings)}
        check_compaction_lags(values)
        if values["remote.storage.enable"]:
            raise _invalid(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )

    def validate_broker(self, settings: Settings, before: Settings) -> None:
        """The broker that was asked has checked them: only it knows what it can take."""

    def validate_group(self, settings: Settings) -> None:
        for name in settings:
            if name not in config_keys.GROUP:
                raise _invalid(f"Unknown group config name: {name}")
        own = _parsed(config_keys.GROUP, settings)
        values = {**group_defaults(self._config), **own}
        for bound in _GROUP_BOUNDS:
            if not bound.only_own or bound.name in own:
                bound.check(values[bound.name], self._config[bound.broker_name])
        for kind in ("consumer", "share", "streams"):
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            if values[session] <= values[heartbeat]:
                raise _invalid(f"{session} must be greater than {heartbeat}")

    def validate_client_metrics(self, name: str, settings: Settings) -> None:
        if not name:
            raise _malformed("Subscription name can't be empty")
        for key in settings:
            if key not in config_keys.CLIENT_METRICS:
                raise _malformed(f"Unknown client metrics configuration: {key}")
        values = _parsed(config_keys.CLIENT_METRICS, settings)
        interval_ms = values.get("interval.ms", _INTERVAL_MS_MAX)
        if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
            raise _malformed(
                f"Invalid value {interval_ms} for interval.ms, interval must be between "
                f"{_INTERVAL_MS_MIN} and {_INTERVAL_MS_MAX} (1 hour)"
            )
        for pattern in values.get("match", ()):
            _check_pattern(pattern)

    def is_list(self, resource_type: int, name: str) -> bool:
        key = _key(resource_type, name)
        return key is not None and key.type == "LIST"

    def default(self, resource_type: int, name: str) -> str | None:
        key = _key(resource_type, name)
        return None if key is None else key.text(key.default)

    def topic_value(
        self, name: str, topic: Settings, *, node: Settings, cluster: Settings
    ) -> str | None:
        return self._effective(config_keys.TOPIC[name], topic, node, cluster).value

    def topic_configs(
        self, topic: Settings, *, node: Settings, cluster: Settings
    ) -> list[EffectiveConfig]:
        return [
            self._effective(key, topic, node, cluster)
            for name, key in sorted(config_keys.TOPIC.items())
            if not key.is_internal or name in topic
        ]

    def _effective(
        self, key: Key, topic: Settings, node: Settings, cluster: Settings
    ) -> EffectiveConfig:
        if key.name in topic:
            return EffectiveConfig(key.name, topic[key.name], SOURCE_TOPIC)
        synonym = config_keys.TOPIC_SYNONYMS.get(key.name, "")
        synonyms = config_keys.BROKER_SYNONYMS.get(synonym, (synonym,))
        static = self._config.static
        for source, settings in (
            (SOURCE_BROKER, node),
            (SOURCE_CLUSTER, cluster),
            (SOURCE_STATIC, static),
        ):
            for name in synonyms:
                if name in settings:
                    return EffectiveConfig(key.name, _in_ms(name, settings[name]), source)
        return EffectiveConfig(key.name, key.text(key.default), SOURCE_DEFAULT)


def check_compaction_lags(values: Mapping[str, Value]) -> None:
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > "
            f"max.compaction.lag.ms ({high})"
        )


def group_defaults(config: BrokerConfig) -> dict[str, Value]:
    """What holds for a group that has no settings of its own."""
    return {
        name: config[synonym] if (synonym := group_synonym(name)) else key.default
        for name, key in config_keys.GROUP.items()
    }


def group_synonym(name: str) -> str | None:
    """Which configuration of the broker a group's default comes from."""
    synonym = f"group.{name}"
    return synonym if synonym in config_keys.BROKER else None


class _Bound(NamedTuple):
    """A limit that the broker sets to a group's setting."""

    name: str
    broker_name: str
    is_least: bool
    only_own: bool
    """Only what a group has set itself is held against it."""

    def check(self, value: int, bound: int) -> None:
        if value < bound if self.is_least else value > bound:
            relation = "greater" if self.is_least else "less"
            raise _invalid(f"{self.name} must be {relation} than or equal to {self.broker_name}")


def _bounds() -> Iterator[_Bound]:
    bounded = {
        "consumer": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
        "share": (
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
            "assignment.interval.ms",
        ),
        "streams": (
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "num.standby.replicas",
            "assignment.interval.ms",
        ),
    }
    for kind, names in bounded.items():
        for name in names:
            only_own = name == "assignment.interval.ms"
            limited = name.removeprefix("num.")
            if limited == name:
                yield _Bound(f"{kind}.{name}", f"group.{kind}.min.{limited}", True, only_own)
            yield _Bound(f"{kind}.{name}", f"group.{kind}.max.{limited}", False, only_own)


_GROUP_BOUNDS = tuple(_bounds())


def _key(resource_type: int, name: str) -> Key | None:
    if resource_type == TOPIC:
        return config_keys.TOPIC.get(name)
    return config_keys.BROKER.get(name) if resource_type == BROKER else None


def _parsed(keys: Mapping[str, Key], settings: Settings) -> dict[str, Value]:
    try:
        return {name: keys[name].parsed(text) for name, text in settings.items()}
    except InvalidValue as error:
        raise _invalid(str(error)) from error


def _in_ms(name: str, text: str) -> str:
    unit_ms = config_keys.UNIT_MS.get(name)
    return text if unit_ms is None else str(int(text) * unit_ms)


def _check_pattern(pattern: str) -> None:
    """Which clients are meant: a name of something known of them, and a regular expression."""
    parts = pattern.split("=")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if len(parts) == 2 and parts[0].strip() in _MATCHED:
        # Java's named groups are Python's with a P.
        expression = re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", parts[1].strip())
        try:
            re.compile(expression)
            return
        except re.error:
            pass
    raise _invalid(f"Illegal client matching pattern: {pattern}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _malformed(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
