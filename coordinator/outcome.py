"""What a coordinator decided: records for its log, and replies to those who asked.

Pure. A reply may be to somebody who asked long ago, and who is known by the token that came with
the request. Replies leave when the log has committed the records, and everything replayed before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Now(Protocol):
    """The two clocks, which are never mixed."""

    @property
    def monotonic_ms(self) -> int: ...
    @property
    def wall_ms(self) -> int: ...


Token = Any
"""Whoever waits for a reply; what it is only the shell knows."""


class Record(NamedTuple):
    """A record of a coordinator's log, encoded. Without a value it is a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    to: Token
    response: Any


@dataclass(slots=True)
class Outcome:
    records: list[Record] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def reply(self, to: Token, response: Any) -> Outcome:
        self.replies.append(Reply(to, response))
        return self
