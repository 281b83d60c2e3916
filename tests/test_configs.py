"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, as Kafka answers.

With the real controller and image; what lies between (the metadata log) is left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar, cast

import pytest

from ottla.broker.broker import Broker
from ottla.broker.config_rules import Rules
from ottla.broker.config_sources import load
from ottla.broker.context import Context
from ottla.broker.handlers import configs as handlers
from ottla.broker.world import World
from ottla.protocol.apis import APIS
from ottla.protocol.errors import ErrorCode, KafkaError
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


# ---- describing

BROKER_SETTINGS = (
    "log.retention.hours=100",
    "message.max.bytes=1000000",
    "listener.name.plaintext.max.connections=77",
    "ssl.keystore.password=pw",
)

TOPIC_TOLD = [  # name, value, source, synonyms: what Kafka told of a topic under these settings
    ("compression.type", "producer", 5, [("compression.type", "producer", 5)]),
    ("flush.ms", "9223372036854775807", 5, []),
    ("remote.storage.enable", "false", 5, []),
    (
        "max.message.bytes",
        "1000000",
        4,
        [("message.max.bytes", "1000000", 4), ("message.max.bytes", "1048588", 5)],
    ),
    # What is set in hours has another name, and Kafka tells no synonyms before its own.
    ("retention.ms", "360000000", 5, []),
    ("segment.ms", "1234", 1, [("segment.ms", "1234", 1)]),
    (
        "min.cleanable.dirty.ratio",
        "1.0",
        1,
        [
            ("min.cleanable.dirty.ratio", "1.0", 1),
            ("log.cleaner.min.cleanable.ratio", "0.5", 5),
        ],
    ),
    (
        "cleanup.policy",
        "compact,delete",
        1,
        [("cleanup.policy", "compact,delete", 1), ("log.cleanup.policy", "delete", 5)],
    ),
]


@pytest.mark.parametrize(("name", "value", "source", "synonyms"), TOPIC_TOLD)
def test_a_topics_configuration_is_told_as_kafka_tells_it(
    name: str, value: str, source: int, synonyms: list[tuple[str, str, int]]
) -> None:
    rig = Rig(*BROKER_SETTINGS)
    rig.set(
        TOPIC,
        "t",
        segment_ms="1234",
        min_cleanable_dirty_ratio="1",
        cleanup_policy=" compact , delete ",
    )
    assert told(rig.entry(TOPIC, "t", name)) == (value, source, synonyms)


def test_all_of_a_topics_configurations_are_told_but_internal_ones() -> None:
    rig = Rig()
    assert len(rig.describe(TOPIC, "t").configs) == 33
    rig.set(TOPIC, "t", internal_segment_bytes="20")
    assert len(rig.describe(TOPIC, "t").configs) == 34
    assert told(rig.entry(TOPIC, "t", "internal.segment.bytes"))[:2] == ("20", 1)


def test_synonyms_come_in_the_order_in_which_they_count() -> None:
    rig = Rig("message.max.bytes=4")
    rig.set(BROKER, "", message_max_bytes="3")
    rig.set(BROKER, "1", message_max_bytes="2")
    rig.set(TOPIC, "t", max_message_bytes="1")
    assert told(rig.entry(TOPIC, "t", "max.message.bytes")) == (
        "1",
        1,
        [
            ("max.message.bytes", "1", 1),
            ("message.max.bytes", "2", 2),
            ("message.max.bytes", "3", 3),
            ("message.max.bytes", "4", 4),
            ("message.max.bytes", "1048588", 5),
        ],
    )


BROKER_TOLD = [  # name, value, is it read only, is it sensitive, source, type, synonyms
    ("broker.id", "1", True, False, 4, 3, [("broker.id", "1", 4), ("broker.id", "-1", 5)]),
    (
        "controller.listener.names",
        "CONTROLLER",
        True,
        False,
        4,
        7,
        [("controller.listener.names", "CONTROLLER", 4)],
    ),
    (
        "listener.name.plaintext.max.connections",
        "77",
        True,
        False,
        4,
        3,
        [
            ("listener.name.plaintext.max.connections", "77", 4),
            ("max.connections", "2147483647", 5),
        ],
    ),
    ("log.retention.ms", None, False, False, 5, 5, []),
    ("log.retention.minutes", None, True, False, 5, 3, []),
    (
        "log.retention.hours",
        "100",
        True,
        False,
        4,
        3,
        [("log.retention.hours", "100", 4), ("log.retention.hours", "168", 5)],
    ),
    ("log.roll.hours", "168", True, False, 5, 3, [("log.roll.hours", "168", 5)]),
    (
        "log.cleaner.io.max.bytes.per.second",
        "1.7976931348623157E308",
        False,
        False,
        5,
        6,
        [("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", 5)],
    ),
    ("ssl.keystore.password", None, False, True, 4, 9, [("ssl.keystore.password", None, 4)]),
    ("sasl.jaas.config", None, False, True, 5, 9, []),
]


@pytest.mark.parametrize(
    ("name", "value", "read_only", "sensitive", "source", "kind", "synonyms"), BROKER_TOLD
)
def test_a_brokers_configuration_is_told_as_kafka_tells_it(
    name: str,
    value: str | None,
    read_only: bool,
    sensitive: bool,
    source: int,
    kind: int,
    synonyms: list[tuple[str, str, int]],
) -> None:
    entry = Rig(*BROKER_SETTINGS).entry(BROKER, "1", name)
    assert told(entry) == (value, source, synonyms)
    assert (entry.read_only, entry.is_sensitive, entry.config_type) == (read_only, sensitive, kind)


def test_all_of_a_brokers_configurations_are_told_but_internal_ones() -> None:
    names = {entry.name for entry in Rig().describe(BROKER, "1").configs}
    assert len(names) == 340
    assert "log.initial.task.delay.ms" not in names
    assert "ottla.ack.after.fsync" not in names
    rig = Rig("ottla.ack.after.fsync=true", "log.initial.task.delay.ms=5")
    assert rig.entry(BROKER, "1", "ottla.ack.after.fsync").value == "true"
    assert rig.entry(BROKER, "1", "log.initial.task.delay.ms").value == "5"


def test_what_nobody_knows_may_be_a_secret() -> None:
    rig = Rig()
    rig.set(BROKER, "1", custom_thing="secret")
    entry = rig.entry(BROKER, "1", "custom.thing")
    assert told(entry) == (None, 2, [("custom.thing", None, 2)])
    assert (entry.read_only, entry.is_sensitive, entry.config_type) == (True, True, 0)


def test_the_default_broker_tells_what_was_told_to_all() -> None:
    rig = Rig()
    assert rig.describe(BROKER, "").configs == []
    rig.set(BROKER, "", message_max_bytes="5", leader_replication_throttled_rate="6")
    rig.set(BROKER, "1", message_max_bytes="7")
    found = {entry.name: entry for entry in rig.describe(BROKER, "").configs}
    assert told(found["message.max.bytes"]) == ("5", 3, [("message.max.bytes", "5", 3)])
    assert not found["leader.replication.throttled.rate"].read_only
    assert found["leader.replication.throttled.rate"].config_type == 5


def test_a_group_is_told_with_the_brokers_synonyms() -> None:
    rig = Rig()
    rig.set(GROUP, "g", consumer_session_timeout_ms=" 50000 ")
    assert told(rig.entry(GROUP, "g", "consumer.session.timeout.ms")) == (
        "50000",
        8,
        [
            ("consumer.session.timeout.ms", "50000", 8),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ],
    )
    assert told(rig.entry(GROUP, "g", "share.auto.offset.reset")) == (
        "latest",
        5,
        [("share.auto.offset.reset", "latest", 5)],
    )
    assert len(rig.describe(GROUP, "any group at all").configs) == 17


def test_a_subscription_is_told() -> None:
    rig = Rig()
    rig.set(CLIENT_METRICS, "s", interval_ms="200", metrics="a,a")
    assert told(rig.entry(CLIENT_METRICS, "s", "interval.ms")) == (
        "200",
        7,
        [("interval.ms", "200", 7)],
    )
    assert rig.entry(CLIENT_METRICS, "s", "metrics").value == "a"
    assert told(rig.entry(CLIENT_METRICS, "s", "match")) == ("", 5, [])


def test_loggers_are_told() -> None:
    logging.getLogger("ottla.test.configs").setLevel(logging.ERROR)
    entry = Rig().entry(LOGGER, "1", "ottla.test.configs", documentation=True)
    assert told(entry) == ("ERROR", 6, [])
    assert (entry.config_type, entry.read_only, entry.documentation) == (0, False, "")


WRONG_RESOURCES = [  # resource, error, message
    ((BROKER, "9"), 42, "Unexpected broker id, expected 1 or empty string, but received 9"),
    ((BROKER, "x"), 42, "Broker id must be an integer, but it is: x"),
    ((BROKER, " 1"), 42, "Broker id must be an integer, but it is:  1"),
    ((LOGGER, ""), 42, "Broker id must not be empty"),
    ((LOGGER, "9"), 42, "Unexpected broker id, expected 1 but received 9"),
    ((LOGGER, "x"), 42, "Broker id must be an integer, but it is: x"),
    ((CLIENT_METRICS, ""), 42, "Client metrics subscription name must not be empty"),
    ((GROUP, ""), 42, "Group name must not be empty"),
    ((TOPIC, ""), 17, "Topic name is invalid: the empty string is not allowed"),
    ((TOPIC, ".."), 17, "Topic name is invalid: '..' is not allowed"),
    (
        (TOPIC, "a/b"),
        17,
        "Topic name is invalid: 'a/b' contains one or more characters other than ASCII "
        "alphanumerics, '.', '_' and '-'",
    ),
    ((TOPIC, "nope"), 3, ""),
]


@pytest.mark.parametrize(("resource", "code", "message"), WRONG_RESOURCES)
def test_a_resource_that_is_not_there_is_refused_in_kafkas_words(
    resource: tuple[int, str], code: int, message: str
) -> None:
    result = Rig().describe(*resource)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])
    assert (result.resource_type, result.resource_name) == resource


@pytest.mark.parametrize("kind", [0, 1, 77])
def test_a_resource_of_no_kind_fails_the_whole_request(kind: int) -> None:
    with pytest.raises(KafkaError) as refusal:
        Rig().describe(kind, "x")
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_version_tells_what_it_can(version: int) -> None:
    entry = Rig().entry(TOPIC, "t", "retention.ms", version=version, documentation=version >= 3)
    assert entry.value == "604800000"
    assert entry.config_type == (5 if version >= 3 else 0)
    assert bool(entry.documentation) == (version >= 3)


def test_nothing_is_told_that_was_not_asked_for() -> None:
    rig = Rig()
    entry = rig.entry(TOPIC, "t", "retention.bytes", synonyms=False)
    assert (entry.synonyms, entry.documentation, entry.config_source) == ([], None, 5)
    assert rig.describe(TOPIC, "t", "no.such").configs == []


# ---- altering

THERE, REFUSED_REQUEST, REFUSED_CONFIG = 0, 42, 40
ALTERED = [  # resource, changes, error, message
    ((TOPIC, "t"), [("segment.ms", SET, "5")], 0, None),
    ((TOPIC, "t"), [("nope", DELETE, None)], 0, None),
    ((TOPIC, "t"), [("nope", SET, "1")], 40, "Unknown topic config name: nope"),
    ((TOPIC, "t"), [("segment.ms", SET, None)], 42, "Null value not supported for : segment.ms"),
    (
        (TOPIC, "t"),
        [("segment.ms", SET, "1"), ("segment.ms", SET, "2")],
        42,
        "Error due to duplicate config keys",
    ),
    (
        (TOPIC, "t"),
        [("segment.ms", APPEND, "1")],
        40,
        "Can't APPEND to key segment.ms because its type is not LIST.",
    ),
    ((TOPIC, "t"), [("cleanup.policy", 9, "1")], -1, None),
    ((TOPIC, "nope"), [("segment.ms", SET, "1")], 3, "The topic 'nope' does not exist."),
    ((TOPIC, ""), [("segment.ms", SET, "1")], 42, "Default topic resources are not allowed."),
    (
        (BROKER, "1"),
        [("log.dirs", SET, "/x")],
        42,
        "Cannot update these configs dynamically: [log.dirs]",
    ),
    ((BROKER, "1"), [("message.max.bytes", SET, "5")], 0, None),
    ((BROKER, ""), [("message.max.bytes", SET, "5")], 0, None),
    (
        (BROKER, "2"),
        [("message.max.bytes", SET, "5")],
        42,
        "Unexpected broker id, expected 1, but received 2",
    ),
    (
        (BROKER, "x"),
        [("message.max.bytes", SET, "5")],
        42,
        "Node id must be an integer, but it is: x",
    ),
    ((BROKER, "1"), [("nope", 9, "5")], 42, "Unknown operations type 9"),
    ((GROUP, "g"), [("consumer.session.timeout.ms", SET, "50000")], 0, None),
    (
        (GROUP, ""),
        [("consumer.session.timeout.ms", SET, "50000")],
        42,
        "Default group resources are not allowed.",
    ),
    ((CLIENT_METRICS, "s"), [("interval.ms", SET, "1000")], 0, None),
    ((CLIENT_METRICS, ""), [("interval.ms", SET, "1000")], 42, "Subscription name can't be empty"),
    ((LOGGER, "5"), [("root", SET, "WARN")], 42, "Unexpected node id. Expected 1, but received 5"),
    ((LOGGER, ""), [("root", SET, "WARN")], 42, "Node id must be an integer, but it is: "),
    ((LOGGER, "1"), [("nope", SET, "WARN")], 40, "Logger nope does not exist!"),
    ((LOGGER, "1"), [("root", 7, "WARN")], -1, None),
    ((77, "x"), [("a", SET, "1")], 42, "Unknown resource type 77"),
    ((0, "x"), [("a", SET, "1")], 42, "Unknown resource type 0"),
]


@pytest.mark.parametrize(("resource", "changes", "code", "message"), ALTERED)
def test_a_change_is_answered_as_kafka_answers_it(
    resource: tuple[int, str],
    changes: list[tuple[str, int, str | None]],
    code: int,
    message: str | None,
) -> None:
    assert Rig().alter(*resource, *changes) == (code, message)


REPLACED = [  # resource, settings, error, message
    ((TOPIC, "t"), {"retention.ms": "5"}, 0, None),
    ((TOPIC, "t"), {"retention.ms": None}, 42, "Null value not supported for : retention.ms"),
    ((TOPIC, "t"), {"nope": "5"}, 40, "Unknown topic config name: nope"),
    ((TOPIC, ""), {"nope": "5"}, 42, "Default topic resources are not allowed."),
    (
        (BROKER, "1"),
        {"log.dirs": "/x"},
        42,
        "Cannot update these configs dynamically: [log.dirs]",
    ),
    ((BROKER, "5"), {}, 42, "Unexpected broker id, expected 1, but received 5"),
    ((LOGGER, "1"), {"root": "WARN"}, 42, "Unknown resource type 8"),
    ((77, "x"), {}, 42, "Unknown resource type 77"),
]


@pytest.mark.parametrize(("resource", "settings", "code", "message"), REPLACED)
def test_a_replacement_is_answered_as_kafka_answers_it(
    resource: tuple[int, str], settings: dict[str, str | None], code: int, message: str | None
) -> None:
    assert Rig().replace(resource, settings) == (code, message)


def test_what_is_set_is_told() -> None:
    rig = Rig()
    assert rig.alter(TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert rig.entry(TOPIC, "t", "cleanup.policy").value == "delete,compact"
    assert rig.alter(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert rig.entry(TOPIC, "t", "cleanup.policy").value == "compact"
    assert rig.alter(TOPIC, "t", ("cleanup.policy", DELETE, None)) == (0, None)
    assert rig.entry(TOPIC, "t", "cleanup.policy").config_source == 5


def test_a_replacement_removes_what_it_does_not_name() -> None:
    rig = Rig()
    rig.set(TOPIC, "t", segment_ms="5", retention_ms="6")
    assert rig.replace((TOPIC, "t"), {"segment.ms": "7"}) == (0, None)
    assert rig.broker.image.topic_config("t") == {"segment.ms": "7"}


def test_what_is_only_validated_changes_nothing() -> None:
    rig = Rig()
    before = rig.broker.image
    assert rig.alter(TOPIC, "t", ("segment.ms", SET, "5"), validates=True) == (0, None)
    logging.getLogger("ottla.test.configs").setLevel(logging.ERROR)
    change = ("ottla.test.configs", SET, "DEBUG")
    assert rig.alter(LOGGER, "1", change, validates=True) == (0, None)
    assert rig.broker.image is before
    assert rig.entry(LOGGER, "1", "ottla.test.configs").value == "ERROR"


def test_loggers_change_all_or_none() -> None:
    rig = Rig()
    logging.getLogger("ottla.test.configs").setLevel(logging.ERROR)
    good, bad = ("ottla.test.configs", SET, "DEBUG"), ("nope", SET, "DEBUG")
    assert rig.alter(LOGGER, "1", good, bad)[0] == 40
    assert rig.entry(LOGGER, "1", "ottla.test.configs").value == "ERROR"
    assert rig.alter(LOGGER, "1", good) == (0, None)
    assert rig.entry(LOGGER, "1", "ottla.test.configs").value == "DEBUG"


def test_each_resource_of_a_request_is_for_itself() -> None:
    rig = Rig()
    change = ("segment.ms", SET, "99")
    request = messages.IncrementalAlterConfigsRequest(
        resources=[
            incremental(TOPIC, "t", change),
            incremental(TOPIC, "nope", change),
            incremental(BROKER, "1", ("log.dirs", SET, "/x")),
            incremental(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            incremental(GROUP, "g", ("consumer.session.timeout.ms", SET, "50001")),
        ],
        validate_only=False,
    )
    answers = rig.ask(handlers.incremental_alter_configs, request, 1).responses
    assert [(each.resource_type, each.resource_name, each.error_code) for each in answers] == [
        (TOPIC, "t", 0),
        (TOPIC, "nope", 3),
        (BROKER, "1", 42),
        (GROUP, "g", 42),
        (GROUP, "g", 42),
    ]
    assert answers[4].error_message == "Each resource must appear at most once."
    assert rig.broker.image.topic_config("t") == {"segment.ms": "99"}


def test_no_resource_at_all_is_no_error() -> None:
    rig = Rig()
    nothing = messages.IncrementalAlterConfigsRequest(resources=[], validate_only=False)
    assert rig.ask(handlers.incremental_alter_configs, nothing, 0).responses == []
    old = messages.AlterConfigsRequest(resources=[], validate_only=False)
    assert rig.ask(handlers.alter_configs, old, 0).responses == []


def test_what_a_broker_is_told_holds_at_once() -> None:
    rig = Rig()
    assert rig.alter(BROKER, "1", ("message.max.bytes", SET, "5")) == (0, None)
    assert rig.broker.config.topic({}).max_message_bytes == 5
    assert rig.alter(BROKER, "1", ("message.max.bytes", DELETE, None)) == (0, None)
    assert rig.broker.config.topic({}).max_message_bytes == 1048588


# ---- listing


def listed(rig: Rig, *kinds: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
    request = messages.ListConfigResourcesRequest()
    if version:
        request = messages.ListConfigResourcesRequest(resource_types=list(kinds))
    answer = rig.ask(handlers.list_config_resources, request, version)
    return answer.error_code, [
        (each.resource_type, each.resource_name) for each in answer.config_resources
    ]


def test_resources_are_listed() -> None:
    rig = Rig()
    rig.set(GROUP, "g", consumer_session_timeout_ms="50000")
    rig.set(CLIENT_METRICS, "s", interval_ms="1000")
    rig.set(BROKER, "", message_max_bytes="5")
    everything = [(GROUP, "g"), (CLIENT_METRICS, "s"), (LOGGER, "1"), (BROKER, "1"), (TOPIC, "t")]
    assert listed(rig) == (0, everything)
    assert listed(rig, TOPIC, GROUP) == (0, [(GROUP, "g"), (TOPIC, "t")])
    assert listed(rig, version=0) == (0, [(CLIENT_METRICS, "s")])


def test_what_has_no_settings_left_is_not_listed() -> None:
    rig = Rig()
    rig.set(CLIENT_METRICS, "s", interval_ms="1000")
    assert rig.alter(CLIENT_METRICS, "s", ("interval.ms", DELETE, None)) == (0, None)
    assert listed(rig, CLIENT_METRICS) == (0, [])


@pytest.mark.parametrize("kind", [0, 77])
def test_resources_of_no_kind_are_not_listed(kind: int) -> None:
    assert listed(Rig(), TOPIC, kind) == (ErrorCode.UNSUPPORTED_VERSION, [])
