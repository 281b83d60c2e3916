"""What the controller must know of configs: which values are right, and what holds by default.

A Protocol only: the tables of all configs are the broker's, and replication must not know them.
Every refusal is a KafkaError with Kafka's code and sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

Settings = Mapping[str, str]


class EffectiveConfig(NamedTuple):
    """One config of a topic as it holds, wherever its value came from."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool = False
    is_read_only: bool = False


class ConfigRules(Protocol):
    """`settings` are what will hold for the resource itself, `before` what holds until then."""

    def validate_topic(self, settings: Settings, before: Settings) -> None: ...
    def validate_broker(self, settings: Settings, before: Settings) -> None: ...
    def validate_group(self, settings: Settings) -> None: ...
    def validate_client_metrics(self, name: str, settings: Settings) -> None: ...

    def is_list(self, resource_type: int, name: str) -> bool:
        """APPEND and SUBTRACT are possible."""

    def default(self, resource_type: int, name: str) -> str | None:
        """What Kafka's definition gives; the node's own properties do not count here."""

    def topic_value(
        self, name: str, topic: Settings, *, node: Settings, cluster: Settings
    ) -> str | None:
        """A topic's config as it holds: its own, this node's, the cluster's, the properties'."""

    def topic_configs(
        self, topic: Settings, *, node: Settings, cluster: Settings
    ) -> Sequence[EffectiveConfig]:
        """All configs of a topic, by name, as CreateTopics answers them."""
