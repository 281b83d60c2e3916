"""DescribeConfigs and ListConfigResources, as Apache Kafka 4.3.1 answers them."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.handlers import configs as handlers
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages import configs as messages
from tests.configs_rig import (
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    LOGGER,
    TOPIC,
    Rig,
    told,
)

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


def test_synonyms_begin_with_the_name_itself() -> None:
    rig = Rig("log.retention.hours=100")
    rig.set(BROKER, "1", log_retention_ms="5")
    assert told(rig.entry(BROKER, "1", "log.retention.hours")) == (
        "100",
        4,
        [("log.retention.hours", "100", 4), ("log.retention.hours", "168", 5)],
    )
    assert told(rig.entry(BROKER, "1", "log.retention.ms"))[2] == [
        ("log.retention.ms", "5", 2),
        ("log.retention.hours", "100", 4),
        ("log.retention.hours", "168", 5),
    ]


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
