"""What the controller lets pass, in the words of a running Apache Kafka 4.3.1."""

from collections.abc import Mapping

import pytest

from ottla.broker.config_rules import Rules
from ottla.broker.config_sources import load
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.config_rules import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigRules

INVALID_CONFIG, INVALID_REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST


def rules(*settings: str) -> ConfigRules:
    config = load(settings=settings).config
    return Rules(lambda: config)


def validate(kind: int, settings: Mapping[str, str], name: str = "s") -> None:
    made = rules()
    if kind == TOPIC:
        made.validate_topic(settings, {})
    elif kind == GROUP:
        made.validate_group(settings)
    else:
        made.validate_client_metrics(name, settings)


REFUSED = [  # resource, settings, error, message
    (TOPIC, {"nope": "0"}, INVALID_CONFIG, "Unknown topic config name: nope"),
    (
        TOPIC,
        {"remote.storage.enable": "true"},
        INVALID_CONFIG,
        "Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage.",
    ),
    (
        TOPIC,
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        INVALID_CONFIG,
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
    ),
    (
        TOPIC,
        {"segment.bytes": "20"},
        INVALID_CONFIG,
        "Invalid value 20 for configuration segment.bytes: Value must be at least 1048576",
    ),
    (GROUP, {"nope": "0"}, INVALID_CONFIG, "Unknown group config name: nope"),
    (
        GROUP,
        {"consumer.session.timeout.ms": "5"},
        INVALID_CONFIG,
        "consumer.session.timeout.ms must be greater than or equal to "
        "group.consumer.min.session.timeout.ms",
    ),
    (
        GROUP,
        {"consumer.session.timeout.ms": "0"},
        INVALID_CONFIG,
        "Invalid value 0 for configuration consumer.session.timeout.ms: Value must be at least 1",
    ),
    (
        GROUP,
        {"consumer.heartbeat.interval.ms": "100000"},
        INVALID_CONFIG,
        "consumer.heartbeat.interval.ms must be less than or equal to "
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        GROUP,
        {"share.delivery.count.limit": "1000"},
        INVALID_CONFIG,
        "share.delivery.count.limit must be less than or equal to "
        "group.share.max.delivery.count.limit",
    ),
    (
        GROUP,
        {"share.record.lock.duration.ms": "1000"},
        INVALID_CONFIG,
        "share.record.lock.duration.ms must be greater than or equal to "
        "group.share.min.record.lock.duration.ms",
    ),
    (
        GROUP,
        {"streams.num.standby.replicas": "3"},
        INVALID_CONFIG,
        "streams.num.standby.replicas must be less than or equal to "
        "group.streams.max.standby.replicas",
    ),
    (
        GROUP,
        {"consumer.assignment.interval.ms": "30000"},
        INVALID_CONFIG,
        "consumer.assignment.interval.ms must be less than or equal to "
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        CLIENT_METRICS,
        {"interval.ms": "1"},
        INVALID_REQUEST,
        "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
    ),
    (
        CLIENT_METRICS,
        {"interval.ms": "x"},
        INVALID_CONFIG,
        "Invalid value x for configuration interval.ms: Not a number of type INT",
    ),
    (CLIENT_METRICS, {"nope": "x"}, INVALID_REQUEST, "Unknown client metrics configuration: nope"),
    *(
        (
            CLIENT_METRICS,
            {"match": pattern},
            INVALID_CONFIG,
            f"Illegal client matching pattern: {pattern}",
        )
        for pattern in ("x", "client_id=[", "client_id=a=b", "client_id=", "nope=a")
    ),
]


@pytest.mark.parametrize(("kind", "settings", "code", "message"), REFUSED)
def test_a_setting_is_refused_in_kafkas_words(
    kind: int, settings: dict[str, str], code: ErrorCode, message: str
) -> None:
    with pytest.raises(KafkaError) as refusal:
        validate(kind, settings)
    assert (refusal.value.code, refusal.value.message) == (code, message)


TAKEN = [
    (TOPIC, {}),
    (TOPIC, {"cleanup.policy": "", "remote.log.copy.disable": "true"}),
    (TOPIC, {"internal.segment.bytes": "20", "leader.replication.throttled.replicas": "*"}),
    (GROUP, {}),
    (GROUP, {"consumer.heartbeat.interval.ms": "15000", "share.heartbeat.interval.ms": "10000"}),
    (GROUP, {"share.auto.offset.reset": "by_duration:PT1H"}),
    (GROUP, {"consumer.session.timeout.ms": " 50000 "}),
    (CLIENT_METRICS, {"match": "client_id=(?<a>b),client_software_name=z", "metrics": "a,a"}),
    (CLIENT_METRICS, {"interval.ms": "100"}),
]


@pytest.mark.parametrize(("kind", "settings"), TAKEN)
def test_a_setting_is_taken_where_kafka_takes_it(kind: int, settings: dict[str, str]) -> None:
    validate(kind, settings)


def test_a_subscription_needs_a_name() -> None:
    with pytest.raises(KafkaError, match="Subscription name can't be empty"):
        validate(CLIENT_METRICS, {"interval.ms": "200"}, name="")


def test_a_topic_is_held_against_what_the_broker_says() -> None:
    made = rules("log.cleaner.max.compaction.lag.ms=5")
    with pytest.raises(KafkaError, match="conflict topic config setting"):
        made.validate_topic({"min.compaction.lag.ms": "6"}, {})


def test_a_group_is_held_against_what_the_broker_says() -> None:
    made = rules("group.consumer.min.session.timeout.ms=50000")
    with pytest.raises(KafkaError, match="must be greater than or equal to"):
        made.validate_group({"consumer.session.timeout.ms": "46000"})


def test_a_group_inherits_what_the_broker_itself_would_refuse() -> None:
    # The bounds count for what is inherited too, but not those of assignments.
    with pytest.raises(KafkaError, match=r"must be less than or equal to group\.share\.max"):
        rules("group.share.max.heartbeat.interval.ms=3000").validate_group({})
    rules("group.share.max.assignment.interval.ms=500").validate_group({})


def test_only_lists_can_be_appended_to() -> None:
    made = rules()
    assert made.is_list(TOPIC, "cleanup.policy")
    assert made.is_list(BROKER, "log.cleanup.policy")
    assert not made.is_list(TOPIC, "retention.ms")
    assert not made.is_list(TOPIC, "nope")
    # Kafka does not know the types of these.
    assert not made.is_list(CLIENT_METRICS, "match")


def test_defaults_are_kafkas_and_not_the_nodes() -> None:
    made = rules("log.retention.hours=1")
    assert made.default(TOPIC, "retention.ms") == "604800000"
    assert made.default(TOPIC, "cleanup.policy") == "delete"
    assert made.default(TOPIC, "nope") is None


EFFECTIVE = [  # topic, node, cluster, value, source
    ({}, {}, {}, "604800000", 5),
    ({}, {}, {"log.retention.ms": "3"}, "3", 3),
    ({}, {"log.retention.ms": "2"}, {"log.retention.ms": "3"}, "2", 2),
    ({"retention.ms": "1"}, {"log.retention.ms": "2"}, {"log.retention.ms": "3"}, "1", 1),
]


@pytest.mark.parametrize(("topic", "node", "cluster", "value", "source"), EFFECTIVE)
def test_what_is_nearest_to_a_topic_counts(
    topic: dict[str, str],
    node: dict[str, str],
    cluster: dict[str, str],
    value: str,
    source: int,
) -> None:
    made = rules()
    found = {each.name: each for each in made.topic_configs(topic, node=node, cluster=cluster)}
    assert (found["retention.ms"].value, found["retention.ms"].source) == (value, source)
    assert made.topic_value("retention.ms", topic, node=node, cluster=cluster) == value


def test_what_a_node_was_started_with_counts_in_milliseconds() -> None:
    made = rules("log.retention.hours=2")
    found = {each.name: each for each in made.topic_configs({}, node={}, cluster={})}
    assert (found["retention.ms"].value, found["retention.ms"].source) == ("7200000", 4)


def test_internal_configurations_are_told_where_they_are_set() -> None:
    made = rules()
    own = {"internal.segment.bytes": "20"}
    plain = [each.name for each in made.topic_configs({}, node={}, cluster={})]
    assert plain == sorted(plain)
    assert "internal.segment.bytes" not in plain
    told = [each.name for each in made.topic_configs(own, node={}, cluster={})]
    assert "internal.segment.bytes" in told
