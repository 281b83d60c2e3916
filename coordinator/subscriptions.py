"""What consumers of a classic group say that they read: the coordinator looks into it.

Knows no group. Only the beginning is read, which all versions of the consumer protocol share.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.schema import decode
from ottla.protocol.wire import ProtocolError


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """None where one of them cannot be read."""
    topics: set[str] = set()
    for each in metadata:
        try:
            # The version comes first; version 0 is the beginning of all.
            topics.update(decode(ConsumerProtocolSubscription, 0, each[2:]).topics)
        except ProtocolError:
            return None
    return frozenset(topics)
