"""What DescribeConfigs says of each resource: values, where they come from, and their synonyms.

Knows no request beyond what it asks for. The order of synonyms is the order in which they count:
the topic, this broker, all brokers, what the broker was started with, Kafka's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.broker import config_keys
from ottla.broker.config import BrokerConfig
from ottla.broker.config_key import Key, Value, value_text
from ottla.broker.config_rules import (
    SOURCE_BROKER,
    SOURCE_CLUSTER,
    SOURCE_DEFAULT,
    SOURCE_STATIC,
    SOURCE_TOPIC,
    group_defaults,
    group_synonym,
)
from ottla.protocol.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

SOURCE_LOGGER, SOURCE_CLIENT_METRICS, SOURCE_GROUP = 6, 7, 8

UNKNOWN_TYPE = 0
TYPES = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}

Entries = list[DescribeConfigsResourceResult]


class Asked(NamedTuple):
    """Which configurations of a resource are to be told, and what of them."""

    names: frozenset[str] | None
    """None: all."""
    synonyms: bool
    documentation: bool

    def wants(self, name: str) -> bool:
        return self.names is None or name in self.names


def topic_entries(config: BrokerConfig, own: Mapping[str, str], asked: Asked) -> Entries:
    values = config.topic_values(own)
    entries = []
    for name, key in config_keys.TOPIC.items():
        if not asked.wants(name) or (key.is_internal and name not in own):
            continue
        text = key.text(values[name])
        synonyms = []
        if name in own:
            synonyms.append(DescribeConfigsSynonym(name=name, value=text, source=SOURCE_TOPIC))
        if name in config_keys.TOPIC_SYNONYMS:
            synonyms += _synonyms(config, config_keys.TOPIC_SYNONYMS[name])
        entries.append(_entry(asked, "topic", name, key, text, synonyms))
    return entries


def broker_entries(config: BrokerConfig, asked: Asked) -> Entries:
    """This broker's: all that Kafka knows, and whatever else was set."""
    entries = []
    for name, value in _broker_values(config):
        if asked.wants(name):
            synonyms = _synonyms(config, name)
            entries.append(_broker_entry(asked, name, value, synonyms))
    return entries


def cluster_entries(config: BrokerConfig, asked: Asked) -> Entries:
    """What all brokers were told."""
    entries = []
    for name, text in config.dynamic_default.items():
        if asked.wants(name):
            synonym = DescribeConfigsSynonym(
                name=name, value=None if _is_sensitive(name) else text, source=SOURCE_CLUSTER
            )
            entries.append(_broker_entry(asked, name, text, [synonym]))
    return entries


def group_entries(config: BrokerConfig, own: Mapping[str, str], asked: Asked) -> Entries:
    values = group_defaults(config)
    entries = []
    for name, key in config_keys.GROUP.items():
        if not asked.wants(name):
            continue
        value = key.parsed(own[name]) if name in own else values[name]
        text = key.text(value)
        synonyms = []
        if name in own:
            synonyms.append(DescribeConfigsSynonym(name=name, value=text, source=SOURCE_GROUP))
        synonym = group_synonym(name)
        if synonym is not None:
            synonyms += _synonyms(config, synonym)
        else:
            default = key.text(key.default)
            synonyms.append(DescribeConfigsSynonym(name=name, value=default, source=SOURCE_DEFAULT))
        entries.append(_entry(asked, "group", name, key, text, synonyms))
    return entries


def client_metrics_entries(own: Mapping[str, str], asked: Asked) -> Entries:
    entries = []
    for name, key in config_keys.CLIENT_METRICS.items():
        if not asked.wants(name):
            continue
        text = key.text(key.parsed(own[name]) if name in own else key.default)
        synonyms = []
        if name in own:
            source = SOURCE_CLIENT_METRICS
            synonyms.append(DescribeConfigsSynonym(name=name, value=text, source=source))
        entries.append(_entry(asked, "client metrics", name, key, text, synonyms))
    return entries


def logger_entries(levels: Mapping[str, str], asked: Asked) -> Entries:
    return [
        DescribeConfigsResourceResult(
            name=name,
            value=level,
            read_only=False,
            config_source=SOURCE_LOGGER,
            is_sensitive=False,
            synonyms=[],
        )
        for name, level in levels.items()
        if asked.wants(name)
    ]


def _entry(
    asked: Asked,
    kind: str,
    name: str,
    key: Key,
    text: str | None,
    synonyms: list[DescribeConfigsSynonym],
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=text,
        read_only=False,
        config_source=synonyms[0].source if synonyms else SOURCE_DEFAULT,
        is_sensitive=False,
        synonyms=synonyms if asked.synonyms else [],
        config_type=TYPES[key.type],
        documentation=_documentation(kind, name) if asked.documentation else None,
    )


def _broker_entry(
    asked: Asked, name: str, value: Value, synonyms: list[DescribeConfigsSynonym]
) -> DescribeConfigsResourceResult:
    key = _broker_key(name)
    kind = "STRING" if key is None or isinstance(value, str) else key.type
    is_sensitive = key is None or key.is_sensitive
    return DescribeConfigsResourceResult(
        name=name,
        value=None if is_sensitive else value_text(kind, value),
        read_only=not config_keys.is_dynamic(name),
        config_source=synonyms[0].source if synonyms else SOURCE_DEFAULT,
        is_sensitive=is_sensitive,
        synonyms=synonyms if asked.synonyms else [],
        config_type=UNKNOWN_TYPE if key is None else TYPES[key.type],
        documentation=_documentation("broker", name) if asked.documentation else None,
    )


def _broker_values(config: BrokerConfig) -> Iterator[tuple[str, Value]]:
    extra = {**config.static, **config.dynamic_default, **config.dynamic}
    for name, text in extra.items():
        key = config_keys.BROKER.get(name)
        if key is None:
            other = _broker_key(name)
            yield name, text if other is None else other.parsed(text)
        elif key.is_internal:
            yield name, config[name]
    for name, key in config_keys.BROKER.items():
        if not key.is_internal:
            yield name, config[name]


def _synonyms(config: BrokerConfig, name: str) -> list[DescribeConfigsSynonym]:
    """Where a broker's configuration is set, under any of its names; the first counts."""
    names: Iterable[str] = config_keys.BROKER_SYNONYMS.get(name, (name,))
    if name.startswith(config_keys.LISTENER_PREFIX):
        names = (name, config_keys.base_name(name))
    is_sensitive = _is_sensitive(name)
    found = []
    for source, settings in (
        (SOURCE_BROKER, config.dynamic),
        (SOURCE_CLUSTER, config.dynamic_default),
        (SOURCE_STATIC, config.static),
    ):
        for each in names:
            if each in settings:
                text = None if is_sensitive else settings[each]
                found.append(DescribeConfigsSynonym(name=each, value=text, source=source))
    for each in names:
        key = config_keys.BROKER.get(each)
        if key is not None and key.default is not None:
            default = None if is_sensitive else key.text(key.default)
            found.append(DescribeConfigsSynonym(name=each, value=default, source=SOURCE_DEFAULT))
    # Kafka leaves out what is set in another unit before the first that bears the name itself.
    for at, synonym in enumerate(found):
        if synonym.name == name:
            return found[at:]
    return []


def _broker_key(name: str) -> Key | None:
    key = config_keys.BROKER.get(name)
    if key is not None:
        return key
    base = config_keys.base_name(name)
    return config_keys.BROKER.get(base) or config_keys.ONLY_DYNAMIC.get(base)


def _is_sensitive(name: str) -> bool:
    """What nobody knows might be a secret."""
    key = _broker_key(name)
    return key is None or key.is_sensitive


def _documentation(kind: str, name: str) -> str | None:
    from ottla.broker.config_documentation import documentation

    return documentation(kind, name)
