"""The shell of the quorum's machine: its log, its file of elections, its waiters.

Decides nothing: raft.py does. What is appended counts once it is on disk, in every mode, and once
the high watermark has passed it; only then the listener hears of it, in the order of the log. A
metadata log whose disk has failed ends the broker: `on_failure`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.raft_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum_batches import control_batch, metadata_batch, metadata_batches
from ottla.replication.quorum_commits import Appended, Commits, MetadataListener
from ottla.replication.quorum_log import BEFORE_THE_LOG, MetadataLog, MetadataLogSettings
from ottla.replication.quorum_state import (
    QUORUM_STATE,
    Election,
    parse_quorum_state,
    quorum_state_text,
)
from ottla.replication.raft import Raft
from ottla.replication.raft_messages import Outcome, Position, RaftSettings
from ottla.replication.raft_progress import Replica
from ottla.replication.voters import Listener, ReplicaKey, Voter, Voters, static_voters
from ottla.storage.clock import Now
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.files import Files
from ottla.storage.folder import LogDir
from ottla.storage.index_memory import IndexMemory
from ottla.storage.long_work import Work
from ottla.storage.producers import Origin
from ottla.storage.steps import Slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from random import Random

logger = logging.getLogger(__name__)

_RETRY_S = 0.1
_CLEAN_INTERVAL_MS = 60_000


class QuorumSettings(NamedTuple):
    log: MetadataLogSettings = MetadataLogSettings()
    raft: RaftSettings = RaftSettings()
    max_record_bytes_between_snapshots: int = 20 << 20
    max_snapshot_interval_ms: int = 60 * 60 * 1000


class Description(NamedTuple):
    """As DescribeQuorum tells it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[Replica]
    observers: list[Replica]
    listeners: dict[int, tuple[Listener, ...]]


class Quorum:
    """`configured_voters` are what a configuration names, if it does; `listeners` are where this
    node's controller is reached."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        node_id: int,
        directory_id: bytes,
        random: Random,
        now: Callable[[], Now],
        loop: AbstractEventLoop,
        listener: MetadataListener,
        on_failure: Callable[[], None],
        settings: QuorumSettings | None = None,
        configured_voters: Sequence[int] = (),
        listeners: Sequence[Listener] = (),
    ) -> None:
        self._files = files
        self._me = ReplicaKey(node_id, directory_id)
        self._random = random
        self._now = now
        self._loop = loop
        self._settings = settings = settings or QuorumSettings()
        self._configured_voters = list(configured_voters)
        self._listeners = tuple(listeners)
        self._log_dir = LogDir(files, directory, random=random, indexes=IndexMemory())
        self._log_dir.on_failure = on_failure
        self._metadata = MetadataLog(self._log_dir, settings=settings.log, now=now)
        self._raft: Raft
        self._commits = Commits(listener)
        self._flushing: Task[None] | None = None
        self._is_open = False
        self._snapshot_bytes = 0
        """How much was committed when the last snapshot was taken."""
        self._snapshot_ms = self._cleaned_ms = now().monotonic_ms

    # what it is

    @property
    def is_leader(self) -> bool:
        return self._is_open and self._raft.leader_id == self._me.id

    @property
    def leader_id(self) -> int:
        return self._raft.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._raft.epoch

    @property
    def kraft_version(self) -> int:
        return self._metadata.history[-1].kraft_version if self._metadata.history else 0

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self._raft.high_watermark or 0

    @property
    def log_end_offset(self) -> int:
        return self._metadata.log.log_end_offset

    def describe(self, now: Now) -> Description:
        raft, progress = self._raft, self._raft.progress
        if progress is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        progress.forget_observers(now)
        own = progress.replicas[self._me.id]
        own.last_fetch_ms = own.last_caught_up_ms = now.wall_ms
        return Description(
            raft.leader_id,
            raft.epoch,
            -1 if raft.high_watermark is None else raft.high_watermark,
            list(progress.replicas.values()),
            list(progress.observers.values()),
            {voter.key.id: voter.listeners for voter in raft.voters.voters},
        )

    # opening

    def opening(self) -> Slices[None]:
        """Reads all, and leads where this node is the only voter: then the listener knows
        everything at the end. A StorageError or a KafkaError says why it cannot."""
        metadata = self._metadata
        yield from metadata.opening()
        election, voter_ids = self._read_election()
        voters = self._voters(voter_ids)
        self._raft = Raft(
            self._me,
            voters,
            election,
            metadata.end,
            random=self._random,
            settings=self._settings.raft,
        )
        self._refuse_others(voters)
        yield from self._loading_snapshot()
        outcome = self._raft.start(self._now())
        self._write_election(outcome)
        self._begin_epoch()
        self._is_open = True
        start_offset = self._commits.applied.offset
        yield from self._commits.loading_log(self._metadata.batches(start_offset))

    def _read_election(self) -> tuple[Election, list[int]]:
        path = f"{self._metadata.files_path}/{QUORUM_STATE}"
        try:
            return parse_quorum_state(path, self._files.read_whole(path))
        except FileNotFoundError:
            return Election(), []

    def _voters(self, voter_ids: list[int]) -> Voters:
        """By the log where it names them, else by the configuration, else as they were."""
        if self.kraft_version:
            return self._metadata.history[-1].voters
        return static_voters(self._configured_voters or voter_ids or [self._me.id])

    def _refuse_others(self, voters: Voters) -> None:
        """Nodes do not talk to each other yet."""
        reason = ""
        ids = voters.ids
        if ids == [self._me.id] and self._configured_voters:
            ids = self._configured_voters
        if ids != [self._me.id]:
            named = ", ".join(map(str, ids)) or "nobody"
            reason = f"the quorum's voters are {named}; node {self._me.id} cannot lead it alone"
        elif voters.find(self._me) is None:
            reason = "this directory is not the one that the quorum's voter was registered with"
        if reason:
            raise CorruptFile(self._metadata.files_path, where="", reason=reason)

    def _write_election(self, outcome: Outcome) -> None:
        if outcome.election is None:
            return
        text = quorum_state_text(
            outcome.election, kraft_version=self.kraft_version, voters=self._raft.voters
        )
        path = f"{self._metadata.files_path}/{QUORUM_STATE}"
        try:
            self._files.write_atomically_now(path, text)
        except StorageError as error:
            raise self._log_dir.refused(error) from error

    def _begin_epoch(self) -> None:
        """Tells the log who leads, and brings it to disk: then all before is committed, too."""
        raft, log, now = self._raft, self._metadata.log, self._now()
        controls = [self._leader_change(), *self._changed_voters()]
        batch = control_batch(
            controls, base_offset=self.log_end_offset, epoch=raft.epoch, timestamp_ms=now.wall_ms
        )
        offset = log.append_as_leader(
            batch, leader_epoch=raft.epoch, now=now, origin=Origin.COORDINATOR
        ).base_offset
        self._metadata.note(controls, offset)
        raft.appended(self._metadata.end)
        if self.kraft_version:
            raft.voters_changed(self._metadata.history[-1].voters, now)
        log.flush_now()
        raft.flushed(log.recovery_point)
        log.update_high_watermark(self.high_watermark)
        logger.info("quorum.leader epoch=%d offset=%d", raft.epoch, self.high_watermark)

    def _leader_change(self) -> LeaderChangeMessage:
        return LeaderChangeMessage(
            version=0,
            leader_id=self._me.id,
            voters=[LeaderChangeMessageVoter(voter_id=id) for id in self._raft.voters.ids],
            granting_voters=[LeaderChangeMessageVoter(voter_id=self._me.id)],
        )

    def _changed_voters(self) -> list[Any]:
        """Where the log does not name them yet, or names an address that this node has left."""
        if not self.kraft_version:
            return []
        offset, version, voters = self._metadata.history[-1]
        known = voters.find(self._me)
        own = Voter(self._me, self._listeners or (known.listeners if known else ()))
        if offset != BEFORE_THE_LOG and known == own:
            return []
        record = KRaftVersionRecord(version=0, k_raft_version=version)
        return [record, voters.replacing(own).record()]

    def _loading_snapshot(self) -> Slices[None]:
        newest = self._metadata.newest
        if newest is not None:
            with closing(self._metadata.open_snapshot(newest)) as snapshot:
                yield from self._commits.loading_snapshot(
                    snapshot.records(), newest, snapshot.last_contained_log_timestamp
                )

    # appending

    def append(self, records: Sequence[Versioned], *, is_atomic: bool = True) -> int:
        """Appends records and returns the offset of the last. All or nothing: where it raises, the
        log is as it was. They count when `committed` returns."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        log, raft, now = self._metadata.log, self._raft, self._now()
        base_offset = self.log_end_offset
        data = bytearray()
        offset = base_offset
        for part in metadata_batches(records, is_atomic=is_atomic):
            data += metadata_batch(
                part, base_offset=offset, epoch=raft.epoch, timestamp_ms=now.wall_ms
            )
            offset += len(part)
        size = len(data)
        last_offset = log.append_as_leader(
            data, leader_epoch=raft.epoch, now=now, origin=Origin.COORDINATOR
        ).last_offset
        raft.appended(Position(raft.epoch, last_offset + 1))
        self._commits.append(
            Appended(base_offset, last_offset, raft.epoch, now.wall_ms, size, records)
        )
        self._flush_soon()
        return last_offset

    async def committed(self, offset: int) -> None:
        """Returns when the record at this offset is committed, and the listener has it."""
        if offset < self._commits.applied.offset:
            return
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        if offset >= self.log_end_offset:
            raise ValueError(f"offset {offset} was never appended")
        self._log_dir.check()
        waiter = self._loop.create_future()
        self._commits.wait(offset, waiter)
        self._flush_soon()
        await waiter

    def _flush_soon(self) -> None:
        if self._flushing is None and self._commits.has_uncommitted:
            self._flushing = self._loop.create_task(self._flush())
            self._flushing.add_done_callback(self._flushed)

    async def _flush(self) -> None:
        """One at a time: what is appended meanwhile shares the next one."""
        from asyncio import sleep

        log = self._metadata.log
        while self._commits.has_uncommitted:
            try:
                await log.flush()
            except KafkaError as error:
                if self._log_dir.failure is not None or log.failure is not None:
                    self._commits.fail(error)
                    return
                # Short of descriptors, or the like: what was appended has to get there.
                await sleep(_RETRY_S)
                continue
            outcome = self._raft.flushed(log.recovery_point)
            if outcome.high_watermark is not None:
                log.update_high_watermark(outcome.high_watermark)
                for _ in self._commits.advancing(outcome.high_watermark):
                    await sleep(0)
        # Not when the task is done: who appends before that hears of it would wait for ever.
        self._flushing = None

    def _flushed(self, task: Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._commits.fail(error)
            message = "what the metadata log has committed could not be applied"
            self._loop.call_exception_handler({"message": message, "exception": error})

    # snapshots

    def is_snapshot_due(self, now: Now) -> bool:
        """Enough was committed since the last one, or it is long ago."""
        settings, bytes_since = self._settings, self._commits.applied_bytes - self._snapshot_bytes
        if not bytes_since or not self._is_open:
            return False
        if bytes_since >= settings.max_record_bytes_between_snapshots:
            return True
        interval_ms = settings.max_snapshot_interval_ms
        return 0 < interval_ms <= now.monotonic_ms - self._snapshot_ms

    def writing_snapshot(self, records: Iterator[Versioned]) -> Work[None]:
        """Writes what the listener has at this moment: `records` tell it. Long; where the disk is
        full, the next try comes after as many bytes again."""
        position, timestamp_ms = self._commits.applied, self._commits.applied_ms
        self._snapshot_bytes = self._commits.applied_bytes
        self._snapshot_ms = self._now().monotonic_ms
        return self._writing_snapshot(position, timestamp_ms, records)

    def _writing_snapshot(
        self, position: Position, timestamp_ms: int, records: Iterator[Versioned]
    ) -> Work[None]:
        metadata = self._metadata
        if metadata.newest == position:
            return
        try:
            size = yield from metadata.writing_snapshot(
                position, records, last_contained_log_timestamp=timestamp_ms
            )
        except StorageError as error:
            self._log_dir.refused(error)
            return
        logger.info("quorum.snapshot offset=%d bytes=%d", position.offset, size)
        self._clean(self._now())

    # time

    def upkeep(self, now: Now) -> None:
        """To be called every few seconds."""
        if not self._is_open or self._log_dir.failure is not None:
            return
        try:
            self._log_dir.chores.expire(now.monotonic_ms)
        except StorageError as error:
            # A file that stays is removed at the next start.
            self._log_dir.refused(error)
        if now.monotonic_ms - self._cleaned_ms >= _CLEAN_INTERVAL_MS:
            self._clean(now)

    def _clean(self, now: Now) -> None:
        self._cleaned_ms = now.monotonic_ms
        try:
            self._metadata.clean(now)
        except StorageError as error:
            self._log_dir.refused(error)
        except KafkaError as error:
            logger.warning("quorum.not_cleaned reason=%s", error)

    # the end

    def closing(self) -> Slices[None]:
        """Leaves what a clean stop leaves. Nothing is appended any more."""
        self._is_open = False
        if self._flushing is not None:
            self._flushing.cancel()
        self._commits.fail(KafkaError(ErrorCode.NOT_CONTROLLER))
        yield
        self._metadata.log.close()
