"""Topics that come to be because somebody asked for them: auto.create.topics.enable.

The first answer is that the topic is not there; the client asks again, and finds it.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import CreatableTopic, CreateTopicsRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)

_IN_FLIGHT_MAX = 10_000


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
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name, num_partitions=-1, replication_factor=-1, assignments=[], configs=[]
                )
                for name in names
            ],
            timeout_ms=self._broker.config["request.timeout.ms"],
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
