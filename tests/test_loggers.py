"""The levels of loggers, under Kafka's names."""

import logging
from collections.abc import Iterator

import pytest

from ottla.broker.loggers import DELETE, SET, change, check_change, logger_levels
from ottla.protocol.errors import ErrorCode, KafkaError

NAME = "ottla.test.loggers"


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    made = logging.getLogger(NAME)
    before = made.level
    yield made
    made.setLevel(before)


@pytest.mark.parametrize("level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
def test_a_level_is_set_and_told(level: str) -> None:
    check_change(NAME, SET, level)
    change(NAME, SET, level)
    assert logger_levels()[NAME] == level


def test_a_level_that_is_removed_is_that_of_the_logger_above(logger: logging.Logger) -> None:
    change(NAME, SET, "TRACE")
    change(NAME, DELETE, None)
    assert logger.level == logging.NOTSET
    assert logger_levels()[NAME] == logger_levels()["root"]


def test_a_level_between_kafkas_is_told_as_the_next_above(logger: logging.Logger) -> None:
    logger.setLevel(logging.INFO + 1)
    assert logger_levels()[NAME] == "WARN"
    logger.setLevel(logging.CRITICAL + 1)
    assert logger_levels()[NAME] == "FATAL"


VALID = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
REFUSED = [  # name, operation, level, error, message
    (
        "root",
        SET,
        "warn",
        ErrorCode.INVALID_CONFIG,
        f"Cannot set the log level of root to warn as it is not a supported log level. {VALID}",
    ),
    ("nope", SET, "INFO", ErrorCode.INVALID_CONFIG, "Logger nope does not exist!"),
    ("nope", DELETE, None, ErrorCode.INVALID_CONFIG, "Logger nope does not exist!"),
    (
        "root",
        DELETE,
        None,
        ErrorCode.INVALID_REQUEST,
        "Removing the log level of the root logger is not allowed",
    ),
    (
        "root",
        2,
        "a",
        ErrorCode.INVALID_REQUEST,
        "APPEND operation is not allowed for the BROKER_LOGGER resource",
    ),
]


@pytest.mark.parametrize(("name", "operation", "level", "code", "message"), REFUSED)
def test_a_change_is_refused_in_kafkas_words(
    name: str, operation: int, level: str | None, code: ErrorCode, message: str
) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_change(name, operation, level)
    assert (refusal.value.code, refusal.value.message) == (code, message)


def test_an_operation_that_nobody_knows_fails_as_in_kafka() -> None:
    with pytest.raises(KafkaError) as refusal:
        check_change("root", 7, "WARN")
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
