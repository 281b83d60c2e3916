"""The metadata log on disk: its folder, its snapshots, and what it says of the quorum.

Knows no roles. The log and its newest snapshot together hold everything; a snapshot stands for what
is below it, so that the log may begin later. Opening and reading are in slices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from ottla.protocol.messages.raft_records import KRaftVersionRecord, VotersRecord
from ottla.replication.quorum_batches import BATCH_BYTES_MAX, Batch, read_batches
from ottla.replication.quorum_snapshots import (
    DELETED,
    Snapshot,
    find_snapshots,
    snapshot_batches,
    snapshot_name,
    writing,
)
from ottla.replication.raft_messages import Position
from ottla.replication.voters import Voters, voters_of
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptFile
from ottla.storage.folder import Folder, LogDir
from ottla.storage.log import Log
from ottla.storage.long_work import Work
from ottla.storage.names import parse_folder_name
from ottla.storage.recovery import create_log, open_log
from ottla.storage.retention import delete_old_segments
from ottla.storage.steps import Slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.replication.metadata_records import Versioned

logger = logging.getLogger(__name__)

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
FOLDER = f"{TOPIC}-0"
_DAY_MS = 24 * 60 * 60 * 1000
_SLICE_BATCHES = 250
BEFORE_THE_LOG = -1
"""The offset of voters that stand in the snapshot of a formatted directory only."""


class MetadataLogSettings(NamedTuple):
    """By Kafka's names: metadata.log.segment.bytes, metadata.max.retention.ms and so on."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    max_retention_bytes: int = 100 << 20
    max_retention_ms: int = 7 * _DAY_MS
    file_delete_delay_ms: int = 60_000

    @property
    def log_config(self) -> LogConfig:
        """Only snapshots decide what is deleted."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            max_message_bytes=BATCH_BYTES_MAX,
            retention_ms=-1,
            retention_bytes=-1,
            file_delete_delay_ms=self.file_delete_delay_ms,
        )


class QuorumRecords(NamedTuple):
    """What control records said, from this offset on."""

    offset: int
    kraft_version: int
    voters: Voters


class MetadataLog:
    __slots__ = ("_log_dir", "_now", "_path", "_settings", "history", "log", "snapshots")

    def __init__(
        self, log_dir: LogDir, *, settings: MetadataLogSettings, now: Callable[[], Now]
    ) -> None:
        self._log_dir = log_dir
        self._path = f"{log_dir.path}/{FOLDER}"
        self._settings = settings
        self._now = now
        self.log: Log
        self.snapshots: list[Position] = []
        """The oldest first."""
        self.history: list[QuorumRecords] = []

    @property
    def files_path(self) -> str:
        return self._path

    # opening

    def opening(self) -> Slices[None]:
        """`CorruptFile` where something is missing that was there."""
        files, config, now = self._log_dir.files, self._settings.log_config, self._now()
        if not files.exists(self._path):
            self._refuse_topics()
            self.log = create_log(self._log_dir, TOPIC, 0, config, topic_id=TOPIC_ID, now=now)
            return
        self.snapshots = find_snapshots(files, self._path)
        newest = self.newest
        self.log = yield from open_log(
            Folder(self._log_dir, FOLDER, config),
            log_start_offset=0,
            # What a snapshot stands for was committed, and so it was on disk.
            recovery_point=newest.offset if newest else 0,
            is_clean=False,
            now=now,
        )
        if self.log.topic_id is None:
            self.log.topic_id = TOPIC_ID
            self.log.is_settled = False
        self._join(newest, now)
        yield from self._read_history()

    def _refuse_topics(self) -> None:
        """A directory that Kafka has formatted, and that never ran, has no log yet; but one with
        topics has lost it."""
        for name in self._log_dir.files.list(self._log_dir.path):
            if parse_folder_name(name) is not None:
                reason = f"the metadata log is missing, and {name} is there"
                raise CorruptFile(self._path, where="", reason=reason)

    def _join(self, newest: Position | None, now: Now) -> None:
        """Makes one of the log and its newest snapshot."""
        log = self.log
        latest = 0 if log.epochs.latest is None else log.epochs.latest
        if newest is not None and newest > Position(latest, log.log_end_offset):
            # Of a follower that had fetched a snapshot and then came to its end.
            logger.warning("quorum.start_at_snapshot log=%s offset=%d", log, newest.offset)
            log.truncate_fully_and_start_at(newest.offset, now)
        if log.log_start_offset > (newest.offset if newest else 0):
            reason = f"the log begins at {log.log_start_offset}, and no snapshot leads up to it"
            raise CorruptFile(self._path, where="", reason=reason)
        self._forget_before(log.log_start_offset, now)

    @property
    def newest(self) -> Position | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def end(self) -> Position:
        """Where the log ends, and the epoch of what stands before that."""
        latest = self.log.epochs.latest
        if latest is None:
            latest = self.newest.epoch if self.newest else 0
        return Position(latest, self.log.log_end_offset)

    # the quorum, as the log tells of it

    def _read_history(self) -> Slices[None]:
        start = 0
        if (newest := self.newest) is not None:
            start = newest.offset
            with closing(self.open_snapshot(newest)) as snapshot:
                self.note(snapshot.controls, newest.offset - 1)
        for batch in self.batches(start):
            if batch is None:
                yield
            elif batch.header.is_control:
                self.note(batch.controls(), batch.header.base_offset)

    def note(self, controls: Sequence[Any], offset: int) -> None:
        """Keeps what control records say of the quorum."""
        _, version, voters = (
            self.history[-1] if self.history else QuorumRecords(offset, 0, Voters())
        )
        before = version, voters
        for message in controls:
            if isinstance(message, KRaftVersionRecord):
                version = message.k_raft_version
            elif isinstance(message, VotersRecord):
                voters = voters_of(message)
        if (version, voters) != before or any(isinstance(m, VotersRecord) for m in controls):
            self.history.append(QuorumRecords(offset, version, voters))

    def _controls_at(self, position: Position) -> list[Any]:
        """What the snapshot there has to say of the quorum."""
        for records in reversed(self.history):
            if records.offset < position.offset or records.offset == BEFORE_THE_LOG:
                version = KRaftVersionRecord(version=0, k_raft_version=records.kraft_version)
                return [version, records.voters.record()] if records.kraft_version else []
        return []

    # reading

    def batches(self, start_offset: int) -> Iterator[Batch | None]:
        """All from this offset on; None now and then, where the reader may pause."""
        for segment in self.log.segments.between(start_offset, 1 << 63):
            for number, batch in enumerate(read_batches(segment.file, segment.size), 1):
                if batch.header.last_offset >= start_offset:
                    yield batch
                if number % _SLICE_BATCHES == 0:
                    yield None

    def open_snapshot(self, position: Position) -> Snapshot:
        return Snapshot(self._log_dir.files, f"{self._path}/{snapshot_name(position)}")

    # snapshots

    def writing_snapshot(
        self, position: Position, records: Iterator[Versioned], *, last_contained_log_timestamp: int
    ) -> Work[int]:
        """Returns the size in bytes."""
        size = yield from writing(
            self._log_dir.files,
            self._path,
            snapshot_name(position),
            snapshot_batches(
                records,
                self._controls_at(position),
                epoch=position.epoch,
                wall_ms=self._now().wall_ms,
                last_contained_log_timestamp=last_contained_log_timestamp,
            ),
        )
        self.snapshots.append(position)
        return size

    def clean(self, now: Now) -> None:
        """Forgets the oldest snapshots, and the log below the next one, where there is too much of
        them or they are too old."""
        while len(self.snapshots) > 1 and self._has_too_much(now):
            start = self.snapshots[1].offset
            if start > self.log.log_start_offset:
                self.log.maybe_increment_log_start_offset(start)
                delete_old_segments(self.log, now)
            self._forget_before(start, now)

    def _has_too_much(self, now: Now) -> bool:
        settings, files = self._settings, self._log_dir.files
        if settings.max_retention_bytes >= 0:
            paths = [f"{self._path}/{snapshot_name(each)}" for each in self.snapshots]
            size = self.log.size_bytes + sum(files.size(path) for path in paths)
            if size > settings.max_retention_bytes:
                return True
        if settings.max_retention_ms < 0:
            return False
        with closing(self.open_snapshot(self.snapshots[0])) as oldest:
            age_ms = now.wall_ms - oldest.last_contained_log_timestamp
        return age_ms > settings.max_retention_ms

    def _forget_before(self, start_offset: int, now: Now) -> None:
        files, chores = self._log_dir.files, self._log_dir.chores
        due_ms = now.monotonic_ms + self._settings.file_delete_delay_ms
        for position in [each for each in self.snapshots if each.offset < start_offset]:
            path = f"{self._path}/{snapshot_name(position)}"
            logger.info("quorum.delete_snapshot path=%s", path)
            files.rename(path, path + DELETED)
            self.snapshots.remove(position)
            chores.remove(partial(files.remove, path + DELETED), due_ms=due_ms)
