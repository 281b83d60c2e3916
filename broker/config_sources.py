"""Where a broker's configuration comes from: a file, `--set`, and the options of the command.

Knows how each is written, and their order; `config` says what they amount to. Whatever is wrong is
one line, and nothing has been touched by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.broker import config_keys
from ottla.broker.config import BrokerConfig
from ottla.broker.config_checks import check_together
from ottla.broker.config_key import InvalidValue
from ottla.broker.listeners import ListenersRefused
from ottla.storage.errors import CorruptFile, StorageError

DEFAULT_LISTENERS = "PLAINTEXT://127.0.0.1:9092"
DEFAULT_DATA = "./ottla-data"

_OUR_DEFAULTS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
}


class ConfigError(Exception):
    """A configuration that no broker can start with, in one line."""


class Loaded(NamedTuple):
    config: BrokerConfig
    notices: list[str]
    """What a person should know: names that nobody knows, a default that is ours."""


class _Source(NamedTuple):
    where: str
    texts: Mapping[str, str]
    forgives_unknown: bool


def load(
    *,
    file: str | None = None,
    settings: Sequence[str] = (),
    listen: str | None = None,
    data: str | None = None,
    read: Callable[[str], bytes] | None = None,
) -> Loaded:
    """`settings` are the NAME=VALUE of `--set`. What comes later overrides what came before."""
    sources = list(_sources(file, settings, listen, data, read))
    notices: list[str] = []
    static: dict[str, str] = {}
    for source in sources:
        _merge(static, source, notices)
    _same_node_id(static)
    if "listeners" not in static:
        static["listeners"] = DEFAULT_LISTENERS
        if file is not None:
            notices.append(f"{file} has no listeners: listening on {DEFAULT_LISTENERS}")
    if "log.dirs" not in static and "log.dir" not in static:
        static["log.dirs"] = DEFAULT_DATA
    for name, text in _OUR_DEFAULTS.items():
        static.setdefault(name, text)
    static.setdefault("broker.id", static["node.id"])
    try:
        config = BrokerConfig(static)
        check_together(config)
    except (InvalidValue, ListenersRefused) as error:
        raise ConfigError(str(error)) from error
    return Loaded(config, notices)


def _sources(
    file: str | None,
    settings: Sequence[str],
    listen: str | None,
    data: str | None,
    read: Callable[[str], bytes] | None,
) -> Iterator[_Source]:
    if file is not None:
        if read is None:
            raise ConfigError(f"{file}: there is nothing to read it with")
        yield _file(file, read)
    yield _Source("--set", dict(map(_setting, settings)), False)
    options = {}
    if listen is not None:
        options["listeners"] = f"PLAINTEXT://{_address(listen)}"
    if data is not None:
        options["log.dirs"] = data
    yield _Source("options", options, False)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {text}: needs NAME=VALUE")
    return name.strip(), value


def _address(listen: str) -> str:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise ConfigError(f"--listen {listen}: needs HOST:PORT")
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else listen


def _file(path: str, read: Callable[[str], bytes]) -> _Source:
    try:
        content = read(path)
    except (OSError, StorageError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(f"{path}: cannot be read: {reason or error}") from error
    if path.endswith(".properties"):
        return _Source(path, _properties(path, content), True)
    return _Source(path, _yaml(path, content), False)


def _properties(path: str, content: bytes) -> dict[str, str]:
    from ottla.storage.properties import parse_properties

    try:
        return parse_properties(path, content)
    except CorruptFile as error:
        raise ConfigError(str(error)) from error


def _yaml(path: str, content: bytes) -> dict[str, str]:
    import yaml

    try:
        document = yaml.load(
            content, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        )
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{path}: is no YAML: {said}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: needs NAME: VALUE lines")
    texts: dict[str, str] = {}
    _flatten(path, "", document, texts)
    return texts


def _flatten(path: str, prefix: str, node: Mapping[object, object], to: dict[str, str]) -> None:
    """`log: {retention: {ms: 1}}` means `log.retention.ms: 1`."""
    for part, value in node.items():
        name = f"{prefix}{part}"
        if isinstance(value, dict):
            _flatten(path, f"{name}.", value, to)
            continue
        if name in to:
            raise ConfigError(f"{path}: {name} is there twice")
        text = _yaml_text(value)
        if text is None:
            raise ConfigError(f"{path}: {name} needs a text, a number, true, false or a list")
        to[name] = text


def _yaml_text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        texts = [_yaml_text(item) for item in value if not isinstance(item, list)]
        if len(texts) == len(value) and None not in texts:
            return ",".join(filter(None, texts))
    return None


def _merge(static: dict[str, str], source: _Source, notices: list[str]) -> None:
    for name, text in source.texts.items():
        key = config_keys.BROKER.get(config_keys.base_name(name))
        if key is None:
            if not source.forgives_unknown:
                raise ConfigError(f"{source.where}: {name}: {_unknown(name)}")
            notices.append(f"{source.where}: {name} is not known, and has no effect")
            static[name] = text
            continue
        try:
            value = key.parsed(text)
        except InvalidValue as error:
            raise ConfigError(f"{source.where}: {error}") from error
        if key.name in config_keys.REFUSED and value != key.default:
            shown = "" if key.is_sensitive else f"={text}"
            raise ConfigError(f"{source.where}: {name}{shown} is not supported yet")
        static[name] = text


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    if name in config_keys.TOPIC_SYNONYMS:
        return f"is a topic's; the broker's is {config_keys.TOPIC_SYNONYMS[name]}"
    close = get_close_matches(name, config_keys.BROKER, n=1)
    return "no such configuration" + (f"; did you mean {close[0]}?" if close else "")


def _same_node_id(static: dict[str, str]) -> None:
    """`broker.id` is the old name of `node.id`."""
    old, new = static.get("broker.id"), static.get("node.id")
    if new is None and old is not None:
        static["node.id"] = old
    elif new is not None and old is not None and new.strip() != old.strip():
        raise ConfigError("You must set `node.id` to the same value as `broker.id`.")
