"""What the clients were promised, and what they saw; and whether a log holds to it.

A record's value says who sent it and as the how many-th, so that it can be told from every other.
What a cut of the power may take is known at the cut: what was acknowledged and not yet flushed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

Partition = tuple[str, int]


# No node is back so soon.
UNREAD_S = 0.001


class Broken(AssertionError):
    """The broker did not keep its word."""


class Stored(NamedTuple):
    """A record as the log has it."""

    offset: int
    epoch: int
    value: bytes


@dataclass(slots=True)
class Sent:
    producer: str
    """One life of a producer."""
    number: int
    value: bytes
    is_idempotent: bool
    is_acknowledged: bool = False
    offset: int = -1
    may_be_lost: bool = False


@dataclass(slots=True)
class Ledger:
    """Everything that was sent to and seen of all partitions."""

    sent: dict[Partition, dict[bytes, Sent]] = field(default_factory=dict)
    seen: dict[Partition, dict[int, bytes]] = field(default_factory=dict)
    bounds: dict[Partition, int] = field(default_factory=dict)
    """What lies at or above it a cut of the power may have taken, once at least."""
    cut_s: float = 0.0
    """When the power was cut last, and what was flushed then."""
    flushed: dict[Partition, int] = field(default_factory=dict)
    unsure_lines: bool = False
    """Connections were cut: a request of an old one may be served behind one of the next."""
    acknowledged_count: int = 0
    seen_count: int = 0
    lost_count: int = 0

    # what happens

    def send(self, partition: Partition, sent: Sent) -> None:
        self.sent.setdefault(partition, {})[sent.value] = sent

    def acknowledge(self, partition: Partition, value: bytes, offset: int, *, now_s: float) -> None:
        sent = self.sent[partition][value]
        sent.is_acknowledged, sent.offset = True, offset
        if self.cut_s and now_s < self.cut_s + UNREAD_S:
            # It had come before the cut, and is only read now.
            sent.may_be_lost = offset >= self.flushed.get(partition, 0)
        self.acknowledged_count += 1

    def see(self, partition: Partition, offset: int, value: bytes) -> None:
        """A consumer was given it."""
        self.seen_count += 1
        seen = self.seen.setdefault(partition, {})
        before = seen.setdefault(offset, value)
        if before != value:
            if offset < self.bounds.get(partition, offset + 1):
                raise Broken(f"{partition} at {offset}: {_short(before)} and later {_short(value)}")
            seen[offset] = value
        if value not in self.sent.get(partition, {}):
            raise Broken(f"{partition} at {offset}: nobody sent {_short(value)}")

    def power_cut(self, flushed: dict[Partition, int], *, now_s: float) -> None:
        """Up to where each log was flushed; nothing behind it was promised to stay."""
        self.cut_s, self.flushed = now_s, flushed
        for partition in self.sent:
            bound = flushed.get(partition, 0)
            self.bounds[partition] = min(bound, self.bounds.get(partition, bound))
            for sent in self.sent[partition].values():
                if sent.is_acknowledged and (sent.offset >= bound or sent.offset < 0):
                    sent.may_be_lost = True

    # whether it was kept

    def check(self, partition: Partition, log: list[Stored]) -> None:
        """The whole log, as it is in the end."""
        sent = self.sent.get(partition, {})
        places: dict[bytes, list[int]] = {}
        epoch = -1
        for expected, stored in enumerate(log):
            if stored.offset != expected:
                raise Broken(f"{partition}: {stored.offset} stands where {expected} should")
            if stored.value not in sent:
                raise Broken(f"{partition} at {stored.offset}: nobody sent {_short(stored.value)}")
            if stored.epoch < epoch:
                raise Broken(f"{partition} at {stored.offset}: epoch {stored.epoch} behind {epoch}")
            epoch = stored.epoch
            places.setdefault(stored.value, []).append(stored.offset)
        self._check_promises(partition, sent, places)
        self._check_order(partition, sent, places)
        self._check_seen(partition, log)

    def _check_promises(
        self, partition: Partition, sent: dict[bytes, Sent], places: dict[bytes, list[int]]
    ) -> None:
        for each in sent.values():
            found = places.get(each.value, [])
            if each.is_idempotent and len(found) > 1:
                raise Broken(
                    f"{partition}: {_short(each.value)} is there {len(found)} times: {found}"
                )
            if each.is_acknowledged and each.may_be_lost and not found:
                self.lost_count += 1
            if not each.is_acknowledged or each.may_be_lost:
                continue
            if not found:
                raise Broken(f"{partition}: {_short(each.value)} was acknowledged and is gone")
            if each.offset >= 0 and each.offset not in found:
                raise Broken(
                    f"{partition}: {_short(each.value)} is not at {each.offset} but {found}"
                )

    def _check_order(
        self, partition: Partition, sent: dict[bytes, Sent], places: dict[bytes, list[int]]
    ) -> None:
        last: dict[str, Sent] = {}
        for value, offsets in places.items():
            each = sent[value]
            before = last.get(each.producer)
            last[each.producer] = each
            if before is None or before.number < each.number:
                continue
            if each.is_idempotent or not self.unsure_lines:
                raise Broken(f"{partition} at {offsets}: {_short(value)} behind {before.number}")

    def _check_seen(self, partition: Partition, log: list[Stored]) -> None:
        bound = self.bounds.get(partition)
        for offset, value in self.seen.get(partition, {}).items():
            if bound is not None and offset >= bound:
                continue
            if offset >= len(log) or log[offset].value != value:
                raise Broken(
                    f"{partition}: a consumer saw {_short(value)} at {offset}, and it is gone"
                )


def _short(value: bytes) -> str:
    """Who sent it, and as the how many-th."""
    return value.rstrip(b"x").decode()
