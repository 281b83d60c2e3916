"""What a leader of the quorum knows of its replicas: how far they are, and when they last came.

Pure. The high watermark is the largest offset that a majority of voters has on disk; it is shown
only once a record of the leader's own epoch is below it, or a later leader could take back what was
committed. A voter asks for what comes next, so its fetch offset tells what it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.replication.voters import UNKNOWN_DIRECTORY, ReplicaKey, Voters
from ottla.storage.clock import Now

UNKNOWN_OFFSET = -1
NEVER_MS = -1
OBSERVER_SESSION_TIMEOUT_MS = 5 * 60 * 1000


@dataclass(slots=True)
class Replica:
    """Times are for people, by the wall clock; `came_ms` is for waits."""

    key: ReplicaKey
    came_ms: int
    end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = NEVER_MS
    last_caught_up_ms: int = NEVER_MS
    leader_end_then: int = UNKNOWN_OFFSET


class Progress:
    __slots__ = ("_me", "epoch_start_offset", "high_watermark", "observers", "replicas", "voters")

    def __init__(
        self, me: ReplicaKey, voters: Voters, *, epoch_start_offset: int, now: Now
    ) -> None:
        self._me = me
        self.voters = voters
        self.epoch_start_offset = epoch_start_offset
        self.high_watermark: int | None = None
        # Who does not come from the beginning on gets as long as one that came just now.
        self.replicas = {
            voter.key.id: Replica(voter.key, now.monotonic_ms) for voter in voters.voters
        }
        self.observers: dict[ReplicaKey, Replica] = {}

    def flushed(self, end_offset: int) -> bool:
        """The leader itself has everything below on disk. Whether the high watermark rose."""
        own = self.replicas[self._me.id]
        if end_offset < own.end_offset:
            raise ValueError(f"the leader's log has shrunk from {own.end_offset} to {end_offset}")
        own.end_offset = end_offset
        return self._raise_high_watermark()

    def fetched(self, key: ReplicaKey, offset: int, *, leader_end_offset: int, now: Now) -> bool:
        """Another replica asks for `offset`. Whether the high watermark rose."""
        replica = self._replica(key, now)
        if offset >= leader_end_offset:
            replica.last_caught_up_ms = now.wall_ms
        elif 0 <= replica.leader_end_then <= offset:
            replica.last_caught_up_ms = max(replica.last_caught_up_ms, replica.last_fetch_ms)
        replica.end_offset = offset
        replica.leader_end_then = leader_end_offset
        replica.last_fetch_ms = now.wall_ms
        replica.came_ms = now.monotonic_ms
        return self._raise_high_watermark()

    def _replica(self, key: ReplicaKey, now: Now) -> Replica:
        voter = self.replicas.get(key.id)
        if voter is not None and voter.key.directory_id in (key.directory_id, UNKNOWN_DIRECTORY):
            return voter
        return self.observers.setdefault(key, Replica(key, now.monotonic_ms))

    def _raise_high_watermark(self) -> bool:
        ends = sorted((replica.end_offset for replica in self.replicas.values()), reverse=True)
        reached = ends[self.voters.majority - 1]
        if reached <= max(self.epoch_start_offset, self.high_watermark or 0):
            return False
        self.high_watermark = reached
        return True

    def lost_touch_ms(self, timeout_ms: int) -> int | None:
        """When too few voters will have come for so long; None where the leader suffices."""
        others = self.voters.majority - 1
        if others == 0:
            return None
        came = sorted((each.came_ms for each in self._others()), reverse=True)
        return came[others - 1] + timeout_ms

    def silent(self, since_ms: int) -> list[ReplicaKey]:
        """Voters that have not come since."""
        return [each.key for each in self._others() if each.came_ms <= since_ms]

    def by_progress(self) -> list[ReplicaKey]:
        """The other voters, those that have most first: who should lead next."""
        ordered = sorted(self._others(), key=lambda each: -each.end_offset)
        return [each.key for each in ordered]

    def _others(self) -> list[Replica]:
        return [each for each in self.replicas.values() if each.key.id != self._me.id]

    def voters_changed(self, voters: Voters, now: Now) -> bool:
        """Those that stay, or come from among the observers, keep what is known of them."""
        before = self.replicas
        self.voters = voters
        self.replicas = {}
        for voter in voters.voters:
            known = before.pop(voter.key.id, None) or self.observers.pop(voter.key, None)
            replica = known or Replica(voter.key, now.monotonic_ms)
            replica.key = voter.key
            self.replicas[voter.key.id] = replica
        self.observers.update((replica.key, replica) for replica in before.values())
        return self._raise_high_watermark()

    def forget_observers(self, now: Now) -> None:
        """Those that have not come for long."""
        oldest_ms = now.monotonic_ms - OBSERVER_SESSION_TIMEOUT_MS
        for key in [key for key, each in self.observers.items() if each.came_ms <= oldest_ms]:
            del self.observers[key]
