"""On which brokers the replicas of new partitions are placed.

Pure but for the dice that are handed in. As Kafka's striped placer: replicas go round the racks,
and round the brokers within each rack, from a random start; the next partition begins one further.
Fenced brokers come last, and never lead.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError


class UsableBroker(NamedTuple):
    id: int
    rack: str | None
    fenced: bool


class _Ring:
    """Brokers of one rack, in turns. In each round (one partition) none comes twice."""

    __slots__ = ("brokers", "round", "start", "taken")

    def __init__(self) -> None:
        self.brokers: list[int] = []
        self.round = 0
        self.start = 0
        self.taken = 0

    def begin(self, random: Random) -> None:
        if self.brokers:
            self.brokers.sort()
            self.start = random.randrange(len(self.brokers))

    def take(self, round: int) -> int | None:
        """The next broker of this round, None when all were taken."""
        count = len(self.brokers)
        if not count:
            return None
        if self.round != round:
            self.round, self.taken = round, 0
            self.start = (self.start + 1) % count
        if self.taken == count:
            return None
        broker = self.brokers[(self.start + self.taken) % count]
        self.taken += 1
        return broker


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self) -> None:
        self.fenced = _Ring()
        self.unfenced = _Ring()

    def take(self, round: int) -> int | None:
        broker = self.unfenced.take(round)
        return self.fenced.take(round) if broker is None else broker


class Placer:
    """Places one partition after the other; made anew for each request."""

    def __init__(self, brokers: Iterable[UsableBroker], random: Random) -> None:
        self._random = random
        by_name: dict[str | None, _Rack] = {}
        self._count = self._unfenced_count = 0
        for broker in brokers:
            rack = by_name.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.id)
            self._count += 1
            self._unfenced_count += not broker.fenced
        # A broker without a rack stands before all racks.
        names = sorted(by_name, key=lambda name: (name is not None, name or ""))
        self._racks = [by_name[name] for name in names]
        for rack in self._racks:
            rack.fenced.begin(random)
            rack.unfenced.begin(random)
        self._first = random.randrange(len(self._racks)) if self._racks else 0
        self._round = 0

    def check(self, replication_factor: int) -> None:
        if replication_factor <= 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Invalid replication factor {replication_factor}: the replication factor must be"
                " positive.",
            )
        if not self._unfenced_count:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "All brokers are currently fenced, or have all their log directories cordoned.",
            )
        if replication_factor > self._count:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The target replication factor of {replication_factor} cannot be reached because"
                f" only {self._count} broker(s) are registered or some brokers have all their log"
                " directories cordoned.",
            )

    def place(self, replication_factor: int) -> list[int]:
        """The replicas of the next partition, the preferred leader first."""
        if self._round == self._unfenced_count > 1:
            # Every broker has led once. The same stripes again would put the same brokers together.
            self._shuffle()
            self._round = 0
        racks = self._racks
        self._first %= len(racks)
        leader, leader_rack = self._leader()
        replicas = [leader]
        at, skipped = self._first, False
        while len(replicas) < replication_factor:
            # The leader's rack has given one already: it is passed over once.
            if at == leader_rack and not skipped:
                skipped = True
            elif (broker := racks[at].take(self._round)) is not None:
                replicas.append(broker)
            at = (at + 1) % len(racks)
        self._round += 1
        self._first += 1
        return replicas

    def _leader(self) -> tuple[int, int]:
        at = self._first
        while True:
            broker = self._racks[at].unfenced.take(self._round)
            if broker is not None:
                return broker, at
            at = (at + 1) % len(self._racks)

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for rack in self._racks:
            self._random.shuffle(rack.fenced.brokers)
            self._random.shuffle(rack.unfenced.brokers)
