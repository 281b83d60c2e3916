"""Telling a running broker new values: which it takes, and which not.

Knows no request. Only the broker itself can say: it depends on how it was started. Sentences are
Kafka's, with what its exceptions put around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.broker import config_keys
from ottla.broker.config import BrokerConfig
from ottla.broker.config_checks import check_together
from ottla.broker.config_key import PER_BROKER, InvalidValue
from ottla.broker.listeners import ListenersRefused
from ottla.protocol.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = range(4)

_THREADS = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_ONLY_BY_LISTENER = ("ssl.",)
_CLUSTER_WIDE_OF_LISTENERS = (
    "max.connections",
    "max.connection.creation.rate",
    "num.network.threads",
)
# Kafka opens and closes listeners while it runs. Here they are what they were at the start.
_FIXED = ("listeners", "listener.security.protocol.map")


def operated(before: Mapping[str, str], changes: Iterable[tuple[str, int, str]]) -> dict[str, str]:
    """What a broker's settings become by operations on them."""
    settings = dict(before)
    for name, operation, text in changes:
        if operation == SET:
            settings[name] = text
        elif operation == DELETE:
            settings.pop(name, None)
        elif operation in (APPEND, SUBTRACT):
            settings[name] = _with_items(settings, name, operation, text)
        else:
            raise _malformed(f"Unknown operations type {operation}")
    return settings


def _with_items(settings: Mapping[str, str], name: str, operation: int, text: str) -> str:
    key = config_keys.BROKER.get(name)
    if key is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if key.type != "LIST":
        verb = "append" if operation == APPEND else "subtract"
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}"
        )
    present = settings.get(name, key.text(key.default)) or ""
    items = [item for item in present.split(",") if item]
    named = text.split(",")
    if operation == APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def check_update(config: BrokerConfig, settings: Mapping[str, str], *, of_one: bool) -> None:
    """Raises INVALID_REQUEST where this broker does not take them, for itself or for all."""
    _check_names(settings)
    try:
        for name, text in settings.items():
            base = config_keys.base_name(name)
            key = config_keys.BROKER.get(base) or config_keys.ONLY_DYNAMIC.get(base)
            if key is not None:
                key.parsed(text)
        if not of_one:
            _check_cluster_wide(settings)
        _check_supported(config, settings)
        if of_one:
            default = config.dynamic_default
            changed = BrokerConfig(config.static, dynamic=settings, dynamic_default=default)
        else:
            own = config.dynamic
            changed = BrokerConfig(config.static, dynamic=own, dynamic_default=settings)
    except (InvalidValue, ListenersRefused) as error:
        raise _malformed(str(error)) from error
    try:
        check_together(changed)
    except InvalidValue as error:
        raise _malformed(f"requirement failed: {error}") from error
    except ListenersRefused as error:
        raise _malformed(str(error)) from error
    _check_threads(config, changed)
    _check_connections(settings, changed)
    _check_local_retention(changed)


def _check_names(settings: Mapping[str, str]) -> None:
    fixed = [n for n in settings if n in config_keys.BROKER and not config_keys.is_dynamic(n)]
    if fixed:
        raise _malformed(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    of_listeners = [name for name in settings if name.startswith(_ONLY_BY_LISTENER)]
    if of_listeners:
        raise _malformed(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{', '.join(of_listeners)}]"
        )


def _check_cluster_wide(settings: Mapping[str, str]) -> None:
    own = [name for name in settings if _is_of_one_broker(name)]
    if own:
        raise InvalidValue(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(own)}]"
        )


def _is_of_one_broker(name: str) -> bool:
    base = config_keys.base_name(name)
    if base in _CLUSTER_WIDE_OF_LISTENERS:
        return False
    key = config_keys.BROKER.get(name)
    return base != name or (key is not None and key.update == PER_BROKER)


def _check_supported(config: BrokerConfig, settings: Mapping[str, str]) -> None:
    for name, text in settings.items():
        key = config_keys.BROKER.get(name)
        if key is None:
            continue
        value = key.parsed(text)
        if name in config_keys.REFUSED and value != key.default:
            raise InvalidValue(f"{name} is not supported yet")
        if name in _FIXED and value != config[name]:
            raise InvalidValue(f"{name} cannot be changed while the broker runs")


def _check_threads(config: BrokerConfig, changed: BrokerConfig) -> None:
    for name in _THREADS:
        before, after = config[name], changed[name]
        said = f"Dynamic thread count update validation failed for {name}={after}, value should "
        if after < before // 2:
            raise _not_applied(f"{said}be at least half the current value {before}")
        if after > before * 2:
            raise _not_applied(f"{said}not be greater than double the current value {before}")
    before, after = config["log.cleaner.threads"], changed["log.cleaner.threads"]
    if after < 1:
        raise _not_applied("Log cleaner threads should be at least 1")
    if after < before // 2:
        raise _not_applied(
            f"Log cleaner threads cannot be reduced to less than half the current value {before}"
        )
    if after > before * 2:
        raise _not_applied(
            f"Log cleaner threads cannot be increased to more than double the current value "
            f"{before}"
        )


def _check_connections(settings: Mapping[str, str], changed: BrokerConfig) -> None:
    """Nobody could connect any more, and take it back."""
    for name in ("max.connections", "max.connection.creation.rate"):
        if name in settings and changed[name] <= 0:
            raise _not_applied(f"Invalid {name} {changed[name]}")


def _check_local_retention(changed: BrokerConfig) -> None:
    """What stays on the broker, with tiered storage, is a part of all that stays; -2 means all."""
    for unit in ("ms", "bytes"):
        name, whole_name = f"log.local.retention.{unit}", f"log.retention.{unit}"
        local, whole = changed[name], changed.topic_defaults[f"retention.{unit}"]
        if local == -2 or whole == -1:
            continue
        said = f"Invalid value {local} for configuration {name}: Value must not be "
        if local == -1:
            raise _not_applied(f"{said}-1 as {whole_name} value is set as {whole}.")
        if local > whole:
            raise _not_applied(f"{said}more than {whole_name} property value: {whole}")


def _not_applied(reason: str) -> KafkaError:
    return _malformed(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} for "
        "configuration Invalid dynamic configuration"
    )


def _malformed(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
