"""The configuration of one broker and of its topics: what holds, wherever it was said."""

import pytest

from ottla.broker.config import BrokerConfig
from ottla.broker.config_sources import load
from ottla.protocol.compression import Codec
from ottla.protocol.records import TimestampType
from ottla.storage.config import LogConfig

HOUR_MS = 3_600_000


def config(*settings: str) -> BrokerConfig:
    return load(settings=settings).config


def test_kafkas_defaults_are_the_logs_defaults() -> None:
    assert config().topic({}) == LogConfig()


RETENTIONS = [  # settings of the broker, retention.ms of a topic
    ((), 168 * HOUR_MS),
    (("log.retention.hours=2",), 2 * HOUR_MS),
    (("log.retention.hours=2", "log.retention.minutes=3"), 180_000),
    (("log.retention.hours=2", "log.retention.minutes=3", "log.retention.ms=4"), 4),
    (("log.retention.ms=-1",), -1),
    (("log.retention.ms=-5",), -1),
    (("log.retention.hours=-1",), -1),
]


@pytest.mark.parametrize(("settings", "retention_ms"), RETENTIONS)
def test_the_smallest_unit_that_is_set_counts(settings: tuple[str, ...], retention_ms: int) -> None:
    assert config(*settings).topic({}).retention_ms == retention_ms


def test_other_times_have_units_too() -> None:
    made = config(
        "log.roll.hours=1", "log.roll.jitter.hours=2", "log.flush.scheduler.interval.ms=9"
    )
    assert made.topic({}).segment_ms == HOUR_MS
    assert made.topic({}).segment_jitter_ms == 2 * HOUR_MS
    assert made.topic({}).flush_ms == 9


def test_a_topics_own_settings_count_most() -> None:
    made = config("log.retention.ms=5", "compression.type=lz4").topic(
        {
            "retention.ms": "6",
            "cleanup.policy": "compact,delete",
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "preallocate": "true",
            "min.cleanable.dirty.ratio": "0.1",
        }
    )
    assert made.retention_ms == 6
    assert made.cleanup_policy == {"compact", "delete"}
    assert made.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert made.compression_type is Codec.ZSTD
    assert made.preallocate is True
    assert made.min_cleanable_dirty_ratio == 0.1


def test_small_segments_are_asked_for_by_an_internal_name() -> None:
    assert config().topic({"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_one_value_of_a_topic_is_found() -> None:
    made = config("min.insync.replicas=2")
    assert made.topic_value("min.insync.replicas", {}) == 2
    assert made.topic_value("min.insync.replicas", {"min.insync.replicas": "3"}) == 3


def test_a_setting_that_nobody_knows_does_not_stop_a_topic() -> None:
    assert config().topic({"of.the.future": "1"}) == LogConfig()


def test_what_was_told_counts_before_what_was_written() -> None:
    written = config("message.max.bytes=10", "log.retention.hours=1")
    told = written.with_dynamic(
        {
            (4, ""): {"message.max.bytes": "20", "log.retention.ms": "30"},
            (4, "1"): {"message.max.bytes": "21"},
            (4, "2"): {"message.max.bytes": "22"},
        }
    )
    assert told["message.max.bytes"] == 21
    assert told.topic({}).max_message_bytes == 21
    assert told.topic({}).retention_ms == 30
    assert written["message.max.bytes"] == 10
    assert told.with_dynamic({})["message.max.bytes"] == 10


def test_a_configuration_stays_the_same_while_nothing_changes() -> None:
    told = config().with_dynamic({(4, ""): {"message.max.bytes": "20"}, (2, "t"): {"a": "b"}})
    assert told.with_dynamic({(4, ""): {"message.max.bytes": "20"}}) is told


def test_what_a_running_broker_does_not_take_is_passed_over() -> None:
    told = config().with_dynamic(
        {(4, "1"): {"log.dirs": "/else", "num.io.threads": "many", "message.max.bytes": "20"}}
    )
    assert told.dynamic == {"message.max.bytes": "20"}
    assert told.log_dirs == ("./ottla-data",)


def test_listeners_are_those_of_the_start() -> None:
    told = config().with_dynamic({(4, "1"): {"listeners": "PLAINTEXT://:1"}})
    assert told.listeners == config().listeners


def test_metadata_lives_in_the_first_directory_unless_it_has_its_own() -> None:
    assert config("log.dirs=/a,/b").metadata_log_dir == "/a"
    assert config("log.dirs=/a,/b", "metadata.log.dir=/c").metadata_log_dir == "/c"
    assert config("log.dir=/d").log_dirs == ("/d",)
