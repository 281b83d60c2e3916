"""Fetch sessions (KIP-227): which partitions a client fetches, so that it need not repeat them.

Pure: knows no socket and reads no log. A partition marks the sessions that watch it when there is
something new, so that a fetch looks at what changed, and not at all that its session holds. A fetch
without a session is one that nobody keeps.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import INT32_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random
    from typing import Protocol

    from ottla.protocol.messages.fetch import (
        FetchPartition,
        FetchRequest,
        FetchTopic,
        ForgottenTopic,
    )
    from ottla.replication.partition import Partition
    from ottla.storage.clock import Now
    from ottla.storage.log_view import LogOffset

    class Waiting(Protocol):
        def wake(self) -> None:
            """One of the partitions has changed."""

        def give_way(self) -> None:
            """The client has sent another fetch of the same session."""


NO_SESSION = 0
FULL, SESSIONLESS = 0, -1
EVICTION_MS = 120_000
# What all sessions together may hold, and one request may name; Kafka has no such limits.
PARTITIONS_MAX = 500_000
PARTITIONS_NAMED_MAX = 100_000

_UNKNOWN = -1


class Watched:
    """One partition, as one session fetches it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_log_start_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "rank",
        "session",
        "start",
        "topic",
        "topic_id",
    )

    def __init__(self, session: FetchSession, topic: FetchTopic, index: int, rank: int) -> None:
        self.session = session
        self.topic: str | None = None if session.uses_topic_ids else topic.topic
        """None while no topic with this id is known."""
        self.topic_id = topic.topic_id
        self.index = index
        self.rank = rank
        """Its place in the order of the session."""
        self.high_watermark = _UNKNOWN
        self.log_start_offset = _UNKNOWN
        """What the client was last told."""
        self.partition: Partition | None = None
        self.start: LogOffset | None = None
        """Where the last read began."""

    def ask(self, wanted: FetchPartition) -> None:
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.follower_log_start_offset = wanted.log_start_offset

    def mark(self) -> None:
        session = self.session
        session.marked[self] = None
        if session.waiting is not None:
            session.waiting.wake()

    def watch(self, partition: Partition | None) -> None:
        """Follows this partition from now on, and no other."""
        if partition is self.partition:
            return
        if self.partition is not None:
            self.partition.watchers.pop(self, None)
        self.partition = partition
        if partition is not None and self.session.is_watching:
            partition.watchers[self] = None


class FetchSession:
    """What one client fetches. It is kept from its first answer on, if there is room."""

    __slots__ = (
        "_rank",
        "created_ms",
        "epoch",
        "id",
        "is_kept",
        "is_privileged",
        "is_watching",
        "marked",
        "partitions",
        "used_ms",
        "uses_topic_ids",
        "waiting",
        "wants_to_be_kept",
    )

    def __init__(
        self, *, uses_topic_ids: bool, is_privileged: bool, wants_to_be_kept: bool
    ) -> None:
        self.id = NO_SESSION
        self.epoch = FULL
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """A follower's: its sessions may take the place of consumers' ones."""
        self.wants_to_be_kept = wants_to_be_kept
        self.is_kept = False
        self.created_ms = 0
        self.used_ms = 0
        self.partitions: dict[tuple[str | bytes, int], Watched] = {}
        self.marked: dict[Watched, None] = {}
        """Those that may have something to tell."""
        self.is_watching = False
        self.waiting: Waiting | None = None
        self._rank = 0

    def update(self, topics: list[FetchTopic]) -> None:
        partitions, marked, by_id = self.partitions, self.marked, self.uses_topic_ids
        for topic in topics:
            name = topic.topic_id if by_id else topic.topic
            for wanted in topic.partitions:
                key = (name, wanted.partition)
                watched = partitions.get(key)
                if watched is None:
                    self._rank += 1
                    watched = Watched(self, topic, wanted.partition, self._rank)
                    partitions[key] = watched
                watched.ask(wanted)
                marked[watched] = None

    def forget(self, topics: list[ForgottenTopic]) -> None:
        for topic in topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for index in topic.partitions:
                watched = self.partitions.pop((name, index), None)
                if watched is not None:
                    watched.watch(None)
                    self.marked.pop(watched, None)

    def take_marked(self) -> list[Watched]:
        """What is to be looked at, in the session's order."""
        marked = list(self.marked)
        self.marked.clear()
        if len(marked) > 1:
            marked.sort(key=_rank)
        return marked

    def move_to_end(self, watched: Watched) -> None:
        """Who got records comes last the next time."""
        self._rank += 1
        watched.rank = self._rank

    def watch(self) -> None:
        """From now on changes are marked."""
        if not self.is_watching:
            self.is_watching = True
            for watched in self.partitions.values():
                if watched.partition is not None:
                    watched.partition.watchers[watched] = None

    def let_go(self) -> None:
        """Nobody asks for it any more; nothing of it is left for the garbage collector."""
        if self.is_watching:
            self.is_watching = False
            for watched in self.partitions.values():
                if watched.partition is not None:
                    watched.partition.watchers.pop(watched, None)
        self.partitions.clear()
        self.marked.clear()


def _rank(watched: Watched) -> int:
    return watched.rank


class FetchSessions:
    """The sessions that are kept, at most `slots`; who gets a place of another is Kafka's rule."""

    __slots__ = ("_by_id", "_partition_count", "_random", "slots")

    def __init__(self, slots: int, *, random: Random) -> None:
        self.slots = slots
        self._random = random
        # The one that was used longest ago comes first.
        self._by_id: dict[int, FetchSession] = {}
        self._partition_count = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def begin(
        self, request: FetchRequest, *, uses_topic_ids: bool, is_follower: bool, now: Now
    ) -> FetchSession:
        """What this request is to be answered from; KafkaError if it does not fit its session."""
        named = 0
        for topic in request.topics:
            named += len(topic.partitions)
        if named > PARTITIONS_NAMED_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if request.session_epoch in (FULL, SESSIONLESS):
            if request.session_id != NO_SESSION:
                self._remove(request.session_id)
            return self._new(request, uses_topic_ids=uses_topic_ids, is_follower=is_follower)
        found = self._by_id.get(request.session_id)
        if found is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if found.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if found.uses_topic_ids is not uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if self._goes_on(found, request, now):
            return found
        # Nothing is left of it; what was asked for along with that is still answered.
        return self._new(request, uses_topic_ids=uses_topic_ids, is_follower=is_follower)

    @staticmethod
    def _new(request: FetchRequest, *, uses_topic_ids: bool, is_follower: bool) -> FetchSession:
        session = FetchSession(
            uses_topic_ids=uses_topic_ids,
            is_privileged=is_follower,
            wants_to_be_kept=request.session_epoch == FULL,
        )
        session.update(request.topics)
        return session

    def _goes_on(self, session: FetchSession, request: FetchRequest, now: Now) -> bool:
        """Takes up what has changed; whether anything is left in the session."""
        session.epoch = session.epoch + 1 if session.epoch < INT32_MAX else 1
        if session.waiting is not None:
            session.waiting.give_way()
        before = len(session.partitions)
        if request.topics:
            session.update(request.topics)
        if request.forgotten_topics_data:
            session.forget(request.forgotten_topics_data)
        count = len(session.partitions)
        self._partition_count += count - before
        if not count or self._partition_count > PARTITIONS_MAX:
            self._remove(session.id)
            if count:
                raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return False
        session.used_ms = now.monotonic_ms
        del self._by_id[session.id]
        self._by_id[session.id] = session
        return True

    def keep(self, session: FetchSession, now: Now) -> None:
        """Gives it an id, if there is room for it or somebody has to go."""
        if self._partition_count + len(session.partitions) > PARTITIONS_MAX:
            return
        if len(self._by_id) >= self.slots and not self._evict(session, now):
            return
        session.id = self._random.randrange(1, INT32_MAX)
        while session.id in self._by_id:
            session.id = self._random.randrange(1, INT32_MAX)
        session.epoch = 1
        session.is_kept, session.wants_to_be_kept = True, False
        session.created_ms = session.used_ms = now.monotonic_ms
        self._by_id[session.id] = session
        self._partition_count += len(session.partitions)
        session.watch()

    def _evict(self, new: FetchSession, now: Now) -> bool:
        """Whoever is idle goes; else, once it is no more new, one with fewer partitions. Followers'
        sessions outrank those of consumers, new or not."""
        if not self._by_id:
            return False
        oldest = next(iter(self._by_id.values()))
        if now.monotonic_ms - oldest.used_ms > EVICTION_MS:
            self._remove(oldest.id)
            return True
        found = min(
            (
                each
                for each in self._by_id.values()
                if now.monotonic_ms - each.created_ms > EVICTION_MS
                or (new.is_privileged and not each.is_privileged)
            ),
            key=_worth,
            default=None,
        )
        if found is None or _worth(found) >= (new.is_privileged, len(new.partitions), NO_SESSION):
            return False
        self._remove(found.id)
        return True

    def _remove(self, session_id: int) -> None:
        session = self._by_id.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session.partitions)
            session.is_kept = False
            # A fetch that waits for it still has to be woken.
            if session.waiting is None:
                session.let_go()


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.is_privileged, len(session.partitions), session.id
