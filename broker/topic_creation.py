"""Topics that come to be because somebody asked for them: auto.create.topics.enable.

The first answer is that the topic is not there; the client asks again, and finds it.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.config import BrokerConfig

logger = logging.getLogger(__name__)

_IN_FLIGHT_MAX = 10_000

# The topics of the coordinators, whoever asks for them first: where a broker's configuration says
# how many partitions and replicas they have, and what else holds for them.
_INTERNAL: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "__consumer_offsets": (
        "offsets.topic",
        {"segment.bytes": "offsets.topic.segment.bytes"},
        {"cleanup.policy": "compact", "compression.type": "producer"},
    ),
    "__transaction_state": (
        "transaction.state.log",
        {
            "segment.bytes": "transaction.state.log.segment.bytes",
            "min.insync.replicas": "transaction.state.log.min.isr",
        },
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
        },
    ),
    "__share_group_state": (
        "share.coordinator.state.topic",
        {
            "segment.bytes": "share.coordinator.state.topic.segment.bytes",
            "min.insync.replicas": "share.coordinator.state.topic.min.isr",
        },
        {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
    ),
}

INTERNAL_TOPICS = frozenset(_INTERNAL)


def creatable(name: str, config: BrokerConfig, *, brokers: int | None = None) -> CreatableTopic:
    """A topic as the broker's configuration has it; -1 leaves a number to the controller.

    Where nothing is said of the replicas of an internal topic there are as many as `brokers`, if
    these are few: a single node for development would else have no groups at all.
    """
    partitions = replicas = -1
    settings: dict[str, str] = {}
    if name in _INTERNAL:
        prefix, configured, fixed = _INTERNAL[name]
        partitions = config[f"{prefix}.num.partitions"]
        replicas = config[f"{prefix}.replication.factor"]
        if brokers is not None and f"{prefix}.replication.factor" not in config.static:
            replicas = max(1, min(replicas, brokers))
        settings = fixed | {key: str(config[source]) for key, source in configured.items()}
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=text) for key, text in settings.items()],
    )


def alive_count(broker: Broker) -> int:
    return sum(not each.fenced for each in broker.image.brokers.values())


class TopicCreation:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._in_flight: dict[str, None] = {}

    def ask(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Begins to create topics, each once, and says what to answer meanwhile."""
        new = [name for name in names if name not in self._in_flight]
        if new and len(self._in_flight) + len(new) <= _IN_FLIGHT_MAX:
            self._in_flight.update(dict.fromkeys(new))
            self._broker.begin(self._create(new))
        return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    async def _create(self, names: list[str]) -> None:
        config = self._broker.config
        request = CreateTopicsRequest(
            topics=[creatable(name, config, brokers=alive_count(self._broker)) for name in names],
            timeout_ms=config["request.timeout.ms"],
            validate_only=False,
        )
        try:
            response = await self._broker.controllers.decide(
                lambda controller, now: controller.create_topics(request, now)
            )
            for topic in response.topics:
                if topic.error_code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                    logger.info(
                        "topic.not_created topic=%s error=%s", topic.name, topic.error_message
                    )
        except KafkaError as error:
            logger.warning("topic.not_created topics=%s error=%s", ",".join(names), error)
        finally:
            for name in names:
                self._in_flight.pop(name, None)
