"""One replica of a partition: it owns its log, and tells those who wait for it to move.

Knows no request and no connection. Called synchronously, because every record goes through here;
what is decided, and not done, is in `replica_rules.py`. Appends count once the high watermark has
passed them. Where `ottla.ack.after.fsync` is set, that is behind their flush: one flush is under
way at a time, and those who write meanwhile share the next one.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import INT32_MAX
from ottla.replication.replica_rules import NO_EPOCH, ReplicaRules, Role
from ottla.storage.log import Isolation
from ottla.storage.log_view import LogOffset
from ottla.storage.producers import Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Protocol

    from ottla.replication.metadata_topics import PartitionRegistration
    from ottla.storage.clock import Now
    from ottla.storage.incoming import Mutable
    from ottla.storage.log import Appended, Log

    class Watcher(Protocol):
        def mark(self) -> None:
            """Something that readers see has changed."""


ACKS_ALL = -1
_CLIENT = Origin.CLIENT
_LEADER = Role.LEADER


class Diverging(NamedTuple):
    """Where a reader's log parts from this one: it is to go back there."""

    epoch: int
    end_offset: int


class Acknowledgement:
    """Somebody waits until what was appended before `end_offset` counts."""

    __slots__ = ("acks", "done", "end_offset")

    def __init__(self, end_offset: int, acks: int, done: Callable[[ErrorCode], None]) -> None:
        self.end_offset = end_offset
        self.acks = acks
        self.done = done


class Partition:
    """`run` carries out flushes, and is given where data counts only once it is on disk."""

    __slots__ = (
        "_is_flushing",
        "_run",
        "_waiting",
        "log",
        "partition",
        "rules",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        log: Log,
        *,
        min_insync_replicas: int = 1,
        run: Callable[[Coroutine[Any, Any, None]], object] | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.log = log
        self.rules = ReplicaRules(min_insync_replicas=min_insync_replicas)
        self.watchers: dict[Watcher, None] = {}
        self._waiting: dict[Acknowledgement, None] = {}
        self._run = run
        self._is_flushing = False

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.partition}, {self.rules.role.value}, {self.log})"

    # role

    @property
    def is_leader(self) -> bool:
        return self.rules.role is _LEADER

    @property
    def is_in_service(self) -> bool:
        """Whether this node still has the replica."""
        return self.rules.role is not Role.NONE

    @property
    def leader_epoch(self) -> int:
        return self.rules.leader_epoch

    def become_leader(self, registration: PartitionRegistration, *, now: Now) -> None:
        """From now on this replica appends. The log has the new epoch in its checkpoint before the
        first batch of it, so that nothing has to be written for partitions that nobody uses."""
        # Who waits goes on waiting: what was appended here stays, in whatever epoch.
        self.rules.lead(registration, log_end_offset=self.log.log_end_offset)
        self._advance()
        if self._run is not None:
            self._flush_soon()
        self.changed()

    def become_follower(self, registration: PartitionRegistration) -> None:
        self.rules.follow(registration)
        self._give_up(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.changed()

    def retire(self) -> None:
        """The node gives this replica up: its topic is gone, or its disk."""
        self.rules.role = Role.NONE
        self._give_up(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.changed()

    # appending

    def append(
        self,
        data: Mutable,
        *,
        acks: int,
        now: Now,
        origin: Origin = _CLIENT,
        zstd_allowed: bool = True,
    ) -> Appended:
        """As `Log.append_as_leader`. Whether it counts already is for `has_counted` to say."""
        rules = self.rules
        if rules.role is not _LEADER:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == ACKS_ALL and not rules.has_enough_in_sync:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        appended = log.append_as_leader(
            data,
            leader_epoch=rules.leader_epoch,
            now=now,
            origin=origin,
            zstd_allowed=zstd_allowed,
        )
        if self._run is not None:
            self._flush_soon()
        elif not rules.followers:
            log.update_high_watermark(log.log_end_offset)
        else:
            self._advance()
        for watcher in self.watchers:
            watcher.mark()
        return appended

    def has_counted(self, end_offset: int, acks: int) -> bool:
        """Whether what was appended before `end_offset` may be acknowledged."""
        if acks == ACKS_ALL:
            return self.log.high_watermark >= end_offset
        return self._run is None or self.log.recovery_point >= end_offset

    def when_counted(
        self, end_offset: int, acks: int, done: Callable[[ErrorCode], None]
    ) -> Acknowledgement:
        """Calls `done` once that is so, or once it cannot be any more."""
        waiting = Acknowledgement(end_offset, acks, done)
        self._waiting[waiting] = None
        return waiting

    def forget(self, waiting: Acknowledgement) -> None:
        self._waiting.pop(waiting, None)

    # how far it counts

    def _advance(self) -> None:
        """Moves the high watermark as far as the in-sync replicas are."""
        log = self.log
        own = log.log_end_offset if self._run is None else log.recovery_point
        offset = self.rules.high_watermark(min(own, log.log_end_offset))
        if offset is not None and offset > log.high_watermark:
            log.update_high_watermark(offset)
            self.changed()
        if self._waiting:
            self._acknowledge()

    def _acknowledge(self) -> None:
        counted = [each for each in self._waiting if self.has_counted(each.end_offset, each.acks)]
        # The record is there, and stays; but fewer have it than were asked for.
        is_short = not self.rules.has_enough_in_sync
        for each in counted:
            del self._waiting[each]
            is_refused = is_short and each.acks == ACKS_ALL
            each.done(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if is_refused else ErrorCode.NONE)

    def _give_up(self, error: ErrorCode) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting:
            each.done(error)

    def _flush_soon(self) -> None:
        if not self._is_flushing and self._run is not None:
            self._is_flushing = True
            self._run(self._flush())

    async def _flush(self) -> None:
        """Flushes until everything is on disk. What was appended during one flush shares the
        next."""
        log = self.log
        try:
            # The log may have flushed by itself, where flush.messages asks for that.
            self._advance()
            while log.recovery_point < log.log_end_offset:
                await log.flush()
                self._advance()
        except KafkaError as error:
            self._give_up(error.code)
        finally:
            self._is_flushing = False

    # reading

    def changed(self) -> None:
        """To be called when readers would see something new: another watermark, start or role."""
        for watcher in self.watchers:
            watcher.mark()

    def check_reader(
        self,
        offset: int,
        *,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        leader_only: bool = True,
    ) -> Diverging | None:
        """What stands between a reader and the log; a Diverging if its own log is another one."""
        rules = self.rules
        if current_leader_epoch != rules.leader_epoch:
            rules.check_epoch(current_leader_epoch)
        if rules.role is not _LEADER and (leader_only or rules.role is Role.NONE):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if last_fetched_epoch == NO_EPOCH:
            return None
        epoch, end_offset = self.end_offset_for_epoch(last_fetched_epoch)
        if epoch == NO_EPOCH or end_offset < 0 or offset < self.log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < last_fetched_epoch or end_offset < offset:
            return Diverging(epoch, end_offset)
        return None

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and where it ended; (-1, -1) if none is known."""
        rules, log = self.rules, self.log
        if rules.role is not _LEADER or epoch == NO_EPOCH or epoch > rules.leader_epoch:
            return log.end_offset_for_epoch(epoch)
        if epoch == rules.leader_epoch:
            return epoch, log.log_end_offset
        latest = log.epochs.latest
        if latest is None or latest < epoch:
            # The entry of the leader's epoch is written with its first batch, and counts already:
            # a reader of an epoch that a crash took whole must learn where it is to go back to.
            return epoch if latest is None else latest, rules.epoch_start_offset
        return log.end_offset_for_epoch(epoch)

    def epoch_at_start(self) -> int:
        """The epoch of the log's first offset; -1 where it is not known."""
        log, entries = self.log, self.log.epochs.entries
        if entries:
            return entries[0].epoch if entries[0].start_offset <= log.log_start_offset else -1
        return self.rules.leader_epoch if log.log_start_offset == log.log_end_offset else -1

    def readable_end(self, isolation: Isolation) -> int:
        """How far a reader sees."""
        if isolation is Isolation.LOG_END:
            return self.log.log_end_offset
        if isolation is Isolation.TXN_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark

    def readable_bytes(self, start: LogOffset, isolation: Isolation) -> int:
        """About how much there is to read from `start` on. As in Kafka a reader that waits in an
        older segment has enough, for it gets no more than the rest of that."""
        log = self.log
        end = self.readable_end(isolation)
        if start.offset == end:
            return 0
        if end < log.log_end_offset or start.offset > end:
            return INT32_MAX
        segment, position = log.end[1:]
        return position - start.position if segment == start.segment_base_offset else INT32_MAX

    def replica_fetched(
        self, replica: int, *, offset: int, log_start_offset: int, now: Now
    ) -> None:
        """A follower's fetch says how far it is, and may move the high watermark."""
        got_on = self.rules.fetched(
            replica,
            offset=offset,
            log_start_offset=log_start_offset,
            leader_end_offset=self.log.log_end_offset,
            now=now,
        )
        if got_on:
            self._advance()

    # the log's beginning

    def delete_records(self, offset: int) -> int:
        """Gives up everything before `offset`; returns where the replicas' logs begin now."""
        log = self.log
        if self.rules.role is not _LEADER:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if log.config.is_compacted and not log.config.is_deleted:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        if offset == -1:
            offset = log.high_watermark
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if log.maybe_increment_log_start_offset(offset):
            self.changed()
        return self.rules.low_watermark(log.log_start_offset)
