"""AlterConfigs and IncrementalAlterConfigs, as Apache Kafka 4.3.1 answers them."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.handlers import configs as handlers
from ottla.protocol.messages import configs as messages
from tests.configs_rig import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    Rig,
    incremental,
)

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
