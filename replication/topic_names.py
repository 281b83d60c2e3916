"""Which names a topic may have, in Kafka's words for those that it may not.

Knows names only. Names that differ in nothing but `.` and `_` collide: metrics would mix them up.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.names import is_topic_name

CLUSTER_METADATA = "__cluster_metadata"
NAME_LENGTH_MAX = 249


def why_invalid(name: str) -> str | None:
    """What is wrong with a topic's name, None if nothing is."""
    if is_topic_name(name):
        return None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    else:
        reason = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_'"
            " and '-'"
        )
    return f"Topic name is invalid: {reason}"


def check_topic_name(name: str) -> None:
    reason = why_invalid(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def may_collide(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The same for all names that collide with each other."""
    return name.replace(".", "_")
