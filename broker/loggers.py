"""The levels of this process's loggers, under the names that Kafka's tools know.

Levels are forgotten when the process ends, as Kafka's are. `root` is the root of all.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import ErrorCode, KafkaError

ROOT = "root"
SET, DELETE = 0, 1
_OPERATIONS = ("SET", "DELETE", "APPEND", "SUBTRACT")
# Kafka's TRACE is below everything that Python names.
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.NOTSET + 1,
    "WARN": logging.WARNING,
}


def logger_levels() -> dict[str, str]:
    """By name, the level of every logger that there is."""
    levels = {ROOT: _name(logging.getLogger().getEffectiveLevel())}
    for name in sorted(_names()):
        levels[name] = _name(logging.getLogger(name).getEffectiveLevel())
    return levels


def check_change(name: str, operation: int, level: str | None) -> None:
    """Raises KafkaError where a level cannot be changed so."""
    if not 0 <= operation < len(_OPERATIONS):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if operation not in (SET, DELETE):
        said = f"{_OPERATIONS[operation]} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(ErrorCode.INVALID_REQUEST, said)
    if name != ROOT and name not in _names():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE and name == ROOT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
    if operation == SET and level not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def change(name: str, operation: int, level: str | None) -> None:
    logger = logging.getLogger(None if name == ROOT else name)
    logger.setLevel(logging.NOTSET if operation == DELETE else LEVELS[level or ""])


def _names() -> list[str]:
    known = logging.Logger.manager.loggerDict
    return [name for name, logger in known.items() if isinstance(logger, logging.Logger)]


def _name(level: int) -> str:
    """The lowest of Kafka's levels that lets nothing more pass."""
    above = [name for name, value in LEVELS.items() if value >= level]
    return min(above, key=LEVELS.__getitem__) if above else "FATAL"
