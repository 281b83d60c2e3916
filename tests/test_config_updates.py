"""What a running broker takes, in the words of a running Apache Kafka 4.3.1."""

import pytest

from ottla.broker.config_sources import load
from ottla.broker.config_updates import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    check_update,
    operated,
)
from ottla.protocol.errors import ErrorCode, KafkaError

CONFIG = load(settings=["log.retention.hours=100", "message.max.bytes=1000000"]).config


def not_applied(reason: str) -> str:
    return (
        f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} for "
        "configuration Invalid dynamic configuration"
    )


REFUSED = [  # of one broker, settings, message
    (
        True,
        {"node.id": "5", "log.dirs": "/x"},
        "Cannot update these configs dynamically: [node.id, log.dirs]",
    ),
    (
        True,
        {"log.retention.hours": "5"},
        "Cannot update these configs dynamically: [log.retention.hours]",
    ),
    (
        True,
        {"message.max.bytes": "x"},
        "Invalid value x for configuration message.max.bytes: Not a number of type INT",
    ),
    (
        True,
        {"num.io.threads": "100"},
        not_applied(
            "Dynamic thread count update validation failed for num.io.threads=100, value should "
            "not be greater than double the current value 8"
        ),
    ),
    (
        True,
        {"num.io.threads": "1"},
        not_applied(
            "Dynamic thread count update validation failed for num.io.threads=1, value should be "
            "at least half the current value 8"
        ),
    ),
    (
        True,
        {"log.cleaner.threads": "5"},
        not_applied(
            "Log cleaner threads cannot be increased to more than double the current value 1"
        ),
    ),
    (
        True,
        {"ssl.keystore.password": "50"},
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: [ssl.keystore.password]",
    ),
    (
        False,
        {"listener.name.internal.ssl.keystore.password": "50"},
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listener.name.internal.ssl.keystore.password]",
    ),
    (
        False,
        {"listeners": "PLAINTEXT://:1"},
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listeners]",
    ),
    (True, {"listeners": "PLAINTEXT://:1"}, "listeners cannot be changed while the broker runs"),
    (
        True,
        {"log.retention.ms": "0"},
        "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal "
        "to 1",
    ),
    (
        True,
        {"log.cleaner.dedupe.buffer.size": "5"},
        "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
        "thread.",
    ),
    (
        True,
        {"max.connections.per.ip": "0"},
        "requirement failed: max.connections.per.ip can be set to zero only if "
        "max.connections.per.ip.overrides property is set.",
    ),
    (
        True,
        {"max.connections.per.ip.overrides": "127.0.0.1:5,b!:2"},
        "max.connections.per.ip.overrides contains invalid addresses : b!",
    ),
    (
        True,
        {"principal.builder.class": "x.Y"},
        "Invalid value x.Y for configuration principal.builder.class: Class x.Y could not be "
        "found.",
    ),
    (
        False,
        {"log.local.retention.ms": "999999999999"},
        not_applied(
            "Invalid value 999999999999 for configuration log.local.retention.ms: Value must not "
            "be more than log.retention.ms property value: 360000000"
        ),
    ),
    (
        False,
        {"log.local.retention.ms": "-1"},
        not_applied(
            "Invalid value -1 for configuration log.local.retention.ms: Value must not be -1 as "
            "log.retention.ms value is set as 360000000."
        ),
    ),
    (True, {"max.connections": "0"}, not_applied("Invalid max.connections 0")),
    (
        False,
        {"max.connection.creation.rate": "0"},
        not_applied("Invalid max.connection.creation.rate 0"),
    ),
    (True, {"config.providers": "x"}, "config.providers is not supported yet"),
    (
        False,
        {"leader.replication.throttled.rate": "-1"},
        "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at "
        "least 0",
    ),
]


@pytest.mark.parametrize(("of_one", "settings", "message"), REFUSED)
def test_what_a_running_broker_does_not_take_is_said_in_kafkas_words(
    of_one: bool, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_update(CONFIG, settings, of_one=of_one)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert refusal.value.message == message


TAKEN = [
    (True, {}),
    (True, {"no.such.config": "1", "message.max.bytes": "2000000"}),
    (False, {"num.network.threads": "2", "max.connections": "5"}),
    (True, {"listener.name.internal.ssl.keystore.password": "50"}),
    (True, {"log.retention.ms": "-5"}),
    (True, {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:50"}),
    (True, {"listeners": "PLAINTEXT://127.0.0.1:9092"}),
    (False, {"unclean.leader.election.enable": "TRUE"}),
    (False, {"leader.replication.throttled.rate": "5"}),
]


@pytest.mark.parametrize(("of_one", "settings"), TAKEN)
def test_what_kafka_takes_is_taken(of_one: bool, settings: dict[str, str]) -> None:
    check_update(CONFIG, settings, of_one=of_one)


def test_operations_make_settings_of_settings() -> None:
    before = {"message.max.bytes": "5", "no.such": "1"}
    changes = [
        ("message.max.bytes", DELETE, ""),
        ("num.io.threads", SET, "9"),
        ("log.cleanup.policy", APPEND, "compact,delete"),
        ("metric.reporters", SUBTRACT, "org.apache.kafka.common.metrics.JmxReporter"),
    ]
    assert operated(before, changes) == {
        "no.such": "1",
        "num.io.threads": "9",
        "log.cleanup.policy": "delete,compact",
        "metric.reporters": "",
    }
    assert before == {"message.max.bytes": "5", "no.such": "1"}


WRONG_OPERATIONS = [  # operation, error, message
    (
        ("message.max.bytes", APPEND, "5"),
        ErrorCode.INVALID_CONFIG,
        "Config value append is not allowed for config key: message.max.bytes",
    ),
    (
        ("message.max.bytes", SUBTRACT, "5"),
        ErrorCode.INVALID_CONFIG,
        "Config value subtract is not allowed for config key: message.max.bytes",
    ),
    (("nope", APPEND, "5"), ErrorCode.INVALID_CONFIG, "Unknown config name: nope"),
    (("nope", 9, "5"), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
]


@pytest.mark.parametrize(("change", "code", "message"), WRONG_OPERATIONS)
def test_an_operation_that_makes_no_sense_is_refused(
    change: tuple[str, int, str], code: ErrorCode, message: str
) -> None:
    with pytest.raises(KafkaError) as refusal:
        operated({}, [change])
    assert (refusal.value.code, refusal.value.message) == (code, message)
