"""A broker as the handlers of configurations need it: with the real controller and image.

What lies between them, the metadata log, is left out: what is decided holds at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar, cast

from ottla.broker.broker import Broker
from ottla.broker.config_rules import Rules
from ottla.broker.config_sources import load
from ottla.broker.context import Context
from ottla.broker.handlers import configs as handlers
from ottla.broker.world import World
from ottla.protocol.apis import APIS
from ottla.protocol.messages import configs as messages
from ottla.protocol.messages.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
)
from ottla.protocol.schema import decode, encode
from ottla.replication.controller import Controller, Outcome
from ottla.replication.metadata_records import Versioned
from ottla.storage.clock import Now

T = TypeVar("T")
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NOW = Now(1000, 1_700_000_000_000)


class FakeConnection:
    listener = "PLAINTEXT"
    dialled = ("127.0.0.1", 9092)


class Controllers:
    """Decides and applies at once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.controller = Controller(
            node_id=1, cluster_id="c", random=Random(1), rules=Rules(lambda: broker.config)
        )
        self._offset = -1

    def replay(self, records: list[Versioned]) -> None:
        if not records:
            return
        self._offset += len(records)
        self.controller.replay(records, offset=self._offset, epoch=1)
        self._broker.image = self.controller.image
        self._broker.config = self._broker.config.with_dynamic(self._broker.image.configs)

    async def decide(self, decision: Callable[[Controller, Now], Outcome[Any]]) -> Any:
        outcome = decision(self.controller, NOW)
        self.replay(list(outcome.records))
        return outcome.response


class Rig:
    """One broker with a topic, started with some settings."""

    def __init__(self, *settings: str) -> None:
        config = load(settings=settings).config
        world = World(lambda: NOW, Random(1), cast(Any, None), cast(Any, None))
        self.broker = Broker(world, config, node_id=1)
        self.controllers = Controllers(self.broker)
        self.broker.controllers = cast(Any, self.controllers)
        endpoint = BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0)
        self.controllers.replay(
            [
                Versioned(
                    RegisterBrokerRecord(
                        broker_id=1,
                        incarnation_id=bytes(16),
                        broker_epoch=0,
                        end_points=[endpoint],
                        features=[],
                        rack=None,
                    )
                ),
                Versioned(UnfenceBrokerRecord(id=1, epoch=0)),
                Versioned(TopicRecord(name="t", topic_id=b"t" * 16)),
            ]
        )

    def set(self, kind: int, name: str, **settings: str) -> None:
        self.controllers.replay(
            [
                Versioned(
                    ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
                )
                for key, value in (
                    (key.replace("_", "."), value) for key, value in settings.items()
                )
            ]
        )

    def ask(self, handler: Any, request: Any, version: int) -> Any:
        """The answer, as a client of that version would read it."""
        api = next(api for api in APIS.values() if api.request() is type(request))
        context = Context(api, version, 1, "c", cast(Any, FakeConnection()))
        answer = handler(
            self.broker, context, decode(type(request), version, encode(request, version))
        )
        if asyncio.iscoroutine(answer):
            answer = asyncio.run(answer)
        return decode(api.response(), version, encode(answer, version))

    def describe(
        self,
        kind: int,
        name: str,
        *names: str,
        version: int = 4,
        synonyms: bool = True,
        documentation: bool = False,
    ) -> Any:
        resource = messages.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(names) or None
        )
        request = messages.DescribeConfigsRequest(
            resources=[resource],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )
        return self.ask(handlers.describe_configs, request, version).results[0]

    def entry(self, kind: int, resource: str, name: str, **arguments: Any) -> Any:
        (entry,) = self.describe(kind, resource, name, **arguments).configs
        return entry

    def alter(
        self, kind: int, name: str, *changes: tuple[str, int, str | None], validates: bool = False
    ) -> tuple[int, str | None]:
        request = messages.IncrementalAlterConfigsRequest(
            resources=[incremental(kind, name, *changes)], validate_only=validates
        )
        (answer,) = self.ask(handlers.incremental_alter_configs, request, 1).responses
        return answer.error_code, answer.error_message

    def replace(
        self, resource: tuple[int, str], settings: dict[str, str | None]
    ) -> tuple[int, str | None]:
        request = messages.AlterConfigsRequest(
            resources=[legacy(*resource, settings)], validate_only=False
        )
        (answer,) = self.ask(handlers.alter_configs, request, 2).responses
        return answer.error_code, answer.error_message


def incremental(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:
    config = messages.IncrementalAlterConfigsRequestAlterableConfig
    return messages.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[config(name=key, config_operation=op, value=value) for key, op, value in changes],
    )


def legacy(kind: int, name: str, settings: dict[str, str | None]) -> Any:
    config = messages.AlterConfigsRequestAlterableConfig
    return messages.AlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[config(name=key, value=value) for key, value in settings.items()],
    )


def told(entry: Any) -> tuple[Any, ...]:
    """A configuration as it is told: value, source, and synonyms with theirs."""
    synonyms = [(each.name, each.value, each.source) for each in entry.synonyms]
    return (entry.value, entry.config_source, synonyms)
