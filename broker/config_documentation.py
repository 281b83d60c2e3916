"""What each configuration is for, in our own words; loaded when somebody asks.

The texts stand in modules of their own. What a broker sets for topics and groups is told as they
are; what has no effect here says so.
"""

from __future__ import annotations

from ottla.broker import config_keys
from ottla.broker.documentation_brokers import BROKERS
from ottla.broker.documentation_coordinators import COORDINATORS
from ottla.broker.documentation_security import SECURITY
from ottla.broker.documentation_topics import CLIENT_METRICS, GROUPS, TOPICS

NO_EFFECT = " Accepted, but without effect here."
ONLY_DEFAULT = " Not supported yet: it can only be set to its default."

_TOPIC_OF_BROKER = {synonym: name for name, synonym in config_keys.TOPIC_SYNONYMS.items()}


def _read(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for line in filter(None, text.split("\n")):
        if line[0] != " ":
            lines = found[line] = []
        else:
            lines.append(line.strip())
    return {name: " ".join(lines) for name, lines in found.items()}


_TOPICS = _read(TOPICS)
_GROUPS = _read(GROUPS)
_CLIENT_METRICS = _read(CLIENT_METRICS)
_BROKERS = _read(BROKERS) | _read(COORDINATORS) | _read(SECURITY)


def documentation(kind: str, name: str) -> str | None:
    """`kind` is what Kafka's answers are about: a broker, a topic, a group, client metrics."""
    if kind == "topic":
        return _with_effect(_TOPICS[name], name in config_keys.TOPIC_ACCEPTED, False)
    if kind == "group":
        return _with_effect(_GROUPS[name], True, False)
    if kind == "client metrics":
        return _with_effect(_CLIENT_METRICS[name], True, False)
    base = config_keys.base_name(name)
    text = _broker_text(base)
    if text is None:
        return None
    is_accepted = base in config_keys.ACCEPTED or base in config_keys.ONLY_DYNAMIC
    return _with_effect(text, is_accepted, base in config_keys.REFUSED)


def _broker_text(name: str) -> str | None:
    if name in _BROKERS:
        return _BROKERS[name]
    if name in _TOPIC_OF_BROKER:
        topic = _TOPIC_OF_BROKER[name]
        return f"For topics without {topic} of their own. {_TOPICS[topic]}"
    of_group = name.removeprefix("group.")
    if of_group in _GROUPS:
        return f"For groups without {of_group} of their own. {_GROUPS[of_group]}"
    kind, _, rest = of_group.partition(".")
    bound, _, setting = rest.partition(".")
    for group_name in (f"{kind}.{setting}", f"{kind}.num.{setting}"):
        if group_name in _GROUPS:
            which = "smallest" if bound == "min" else "largest"
            return f"The {which} {group_name} that a group may have."
    return None


def _with_effect(text: str, is_accepted: bool, is_refused: bool) -> str:
    if is_refused:
        return text + ONLY_DEFAULT
    return text + NO_EFFECT if is_accepted else text
