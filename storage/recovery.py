"""Opening a partition's folder: putting right what a crash, or a bad disk, has left there.

Everything is a generator that pauses after a few milliseconds of work. Opening twice gives the same
as once, also when the first was cut short. A folder that cannot be put right is a `CorruptFile`,
and stays as it is.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ottla.storage.checkpoints import epochs_text, parse_epochs, parse_partition_metadata
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.epochs import EpochEntry, LeaderEpochs
from ottla.storage.errors import CorruptFile, DiskFull, StorageError
from ottla.storage.folder import Folder, LogDir, Promise
from ottla.storage.leftovers import remove_leftovers
from ottla.storage.log import Log
from ottla.storage.log_view import LogParts
from ottla.storage.lookup import Headers, corrupt, locate
from ottla.storage.names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    folder_name,
    offset_name,
    parse_folder_name,
    parse_offset_name,
)
from ottla.storage.producer_loading import forget_old_batches, load_producers
from ottla.storage.producers import ProducerStates
from ottla.storage.scan import Scan
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.snapshots import Snapshots
from ottla.storage.steps import Reading, Slices, at_once

logger = logging.getLogger(__name__)

# A log of so many bytes is read whole sooner than two files.
_SHORT_BYTES = 16 << 10


def open_log(
    folder: Folder, *, log_start_offset: int, recovery_point: int, is_clean: bool, now: Now
) -> Slices[Log]:
    """The log in a folder that is there. `is_clean` says that the last process ended well; the two
    offsets are what the log directory's checkpoints say, 0 where they say nothing."""
    name = parse_folder_name(folder.name)
    if name is None:
        raise ValueError(f"{folder.path} is no partition's folder")
    opening = _Opening(folder, log_start_offset, recovery_point, is_clean, now)
    parts = yield from opening.parts()
    return Log(
        folder,
        parts,
        topic=name.topic,
        partition=name.partition,
        topic_id=read_topic_id(folder),
        now=now,
    )


def reopen_log(log: Log, now: Now) -> Slices[None]:
    """Puts right what a change has left that failed half-way, in place: whoever holds the log goes
    on with it. Where it cannot be done the log stays as it is, and it may be tried again."""
    log.let_go()
    partition = log.topic, log.partition
    # The checkpoints may speak of a change that was not even begun.
    promise = Promise(recovery_point=log.recovery_point, log_start_offset=log.log_start_offset)
    log.folder.log_dir.promise(partition, promise)
    opening = _Opening(log.folder, log.log_start_offset, log.recovery_point, False, now)
    opening.damaged = {
        segment.base_offset for segment in log.segments if segment.transaction_index.is_wrong
    }
    try:
        parts = yield from opening.parts()
    except StorageError:
        opening.segments.close()
        raise
    log.begin_again(parts)


def read_topic_id(folder: Folder) -> bytes | None:
    """From partition.metadata; None where there is none, or none that can be read."""
    path = folder.file(PARTITION_METADATA)
    try:
        return parse_partition_metadata(path, folder.files.read_whole(path))
    except FileNotFoundError:
        return None
    except CorruptFile as error:
        logger.warning("recovery.no_topic_id error=%s", error)
        return None


class _Opening:
    """What is known while a folder is being opened.

    What vouches for what: all below the recovery point is on disk (batches, indexes, names, the
    snapshot where the first suspect segment begins), and neither looked at nor changed. From there
    on only batches are believed: indexes, epochs and snapshots are made again from them, since each
    may be of before a truncation, or of before a crash in the last recovery. Below the log start
    anything may be missing.
    """

    def __init__(
        self, folder: Folder, log_start: int, recovery_point: int, is_clean: bool, now: Now
    ) -> None:
        self.folder = folder
        self.log_start_offset = log_start
        self.recovery_point = recovery_point
        self.is_clean = is_clean
        self.now = now
        self.segments = Segments(folder)
        self.producers = ProducerStates(folder.log_dir.producer_expiration_ms)
        self.end = -1
        """The log end offset, once it is known."""
        self.damaged: set[int] = set()
        """Base offsets of segments whose indexes are missing."""

    def parts(self) -> Slices[LogParts]:
        if self.is_clean:
            self.folder.names_are_on_disk()
        remove_leftovers(self.folder, self.now)
        self._find_segments()
        yield
        known = yield from self._read_epochs()
        yield from self._index_damaged()
        suspects = [] if self.is_clean else self.segments.between(self.recovery_point, 1 << 63)
        if suspects:
            yield from self._recover(suspects)
        else:
            yield from self._find_end()
        end = self.end
        if end < self.log_start_offset or not len(self.segments):
            self._start_over()
            end = self.log_start_offset
        start = max(self.log_start_offset, self.segments.first.base_offset)
        yield from self._settle_epochs(known, start, end)
        if not suspects:
            self.snapshots.remove_behind(end)
            yield from load_producers(
                self.producers, self.snapshots, self.segments, end=end, now=self.now
            )
        self._settle_snapshots(end)
        self.segments.active.rest()
        recovery_point = end if self.is_clean else min(self.recovery_point, end)
        return LogParts(
            self.segments, self.epochs, self.producers, self.snapshots, start, end, recovery_point
        )

    # what is there

    def _find_segments(self) -> None:
        files = self.folder.files
        names = [parse_offset_name(name) for name in files.list(self.folder.path)]
        found = {(name.offset, name.suffix) for name in names if name and not name.state}
        swapped = {name.offset for name in names if name and name.state == SWAP}
        for offset, suffix in sorted(found):
            if suffix == LOG:
                size = files.size(self.folder.file(offset_name(offset, LOG)))
                segment = Segment(self.folder, offset, size=size, now=self.now)
                segment.is_new = size == 0
                self.segments.add(segment)
                if not {(offset, OFFSET_INDEX), (offset, TIME_INDEX)} <= found:
                    self._damage(segment, "an index is missing")
                elif offset in swapped:
                    self._damage(segment, "its swap was cut short")
                elif (offset, TRANSACTION_INDEX) in found:
                    self._check_transactions(segment)
            elif suffix != SNAPSHOT and (offset, LOG) not in found:
                path = self.folder.file(offset_name(offset, suffix))
                logger.warning("recovery.remove_orphan path=%s", path)
                files.remove(path)
                self.folder.names_changed()
        for offset in sorted(swapped - {offset for offset, suffix in found if suffix == LOG}):
            self._remove_swapped(offset)
        self.snapshots = Snapshots(
            self.folder, [offset for offset, suffix in found if suffix == SNAPSHOT]
        )

    def _check_transactions(self, segment: Segment) -> None:
        try:
            at_once(segment.transaction_index.load())
        except CorruptFile as error:
            self._damage(segment, str(error))

    def _damage(self, segment: Segment, reason: str) -> None:
        logger.warning("recovery.damaged path=%s reason=%s", segment.file_path(LOG), reason)
        self.damaged.add(segment.base_offset)

    def _read_epochs(self) -> Slices[bytes]:
        """Returns the text that is on disk, empty where it is not worth keeping."""
        path = self.folder.file(LEADER_EPOCH_CHECKPOINT)
        self.epochs = LeaderEpochs()
        yield
        try:
            text = self.folder.files.read_whole(path)
            self.epochs = LeaderEpochs([EpochEntry(*entry) for entry in parse_epochs(path, text)])
            return text
        except FileNotFoundError:
            pass
        except CorruptFile as error:
            logger.warning("recovery.no_epochs error=%s", error)
        return b""

    def _settle_epochs(self, known: bytes, start: int, end: int) -> Slices[None]:
        yield from self._complete_epochs(start, end)
        # In this order: an entry that is moved up to the end must not be there at one start, and be
        # gone at the next.
        self.epochs.truncate_from_start(start)
        self.epochs.truncate_from_end(end)
        text = epochs_text(self.epochs.entries)
        if text != known and (known or self.segments.size_bytes):
            path = self.folder.file(LEADER_EPOCH_CHECKPOINT)
            self.folder.files.write_atomically_now(path, text)

    def _complete_epochs(self, start: int, end: int) -> Slices[None]:
        """The log may begin farther in front than it did when the checkpoint was written."""
        entries = self.epochs.entries
        first = entries[0].start_offset if entries else end
        for segment in self.segments.between(start, first) if start < first else ():
            headers = Headers(segment, 0)
            try:
                while (found := at_once(headers.next())) is not None:
                    header = found.header
                    if header.base_offset >= first:
                        return
                    if header.partition_leader_epoch >= 0:
                        self.epochs.bear_out(header.partition_leader_epoch, header.base_offset)
                    yield
            except CorruptFile:
                return

    # recovery

    def _index_damaged(self) -> Slices[None]:
        """Where indexes are missing that the recovery point, or a clean stop, vouches for."""
        durable = list(self.segments)
        if not self.is_clean:
            durable = durable[: max(0, self.segments.floor(self.recovery_point))]
        for segment in durable:
            if segment.base_offset in self.damaged:
                yield from self._index_anew(segment)

    def _index_anew(self, segment: Segment) -> Slices[None]:
        # While it is there, a start that finds all indexes knows that they are not whole.
        self._begin_swap(segment.base_offset)
        producers = yield from self._producers_at(segment.base_offset)
        scan = Scan(segment, producers, None, is_durable=True)
        yield from scan.run()
        scan.finish()
        segment.flush_now()
        self.folder.sync_names_now()
        self._remove_swapped(segment.base_offset)

    def _begin_swap(self, offset: int) -> None:
        path = self.folder.file(offset_name(offset, OFFSET_INDEX, SWAP))
        if not self.folder.files.exists(path):
            self.folder.files.create(path).close()
            self.folder.names_changed()
        self.folder.sync_names_now()

    def _remove_swapped(self, offset: int) -> None:
        for suffix in (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX):
            path = self.folder.file(offset_name(offset, suffix, SWAP))
            if self.folder.files.exists(path):
                self.folder.files.remove(path)
                self.folder.names_changed()

    def _producers_at(self, offset: int) -> Slices[ProducerStates]:
        producers = ProducerStates(self.folder.log_dir.producer_expiration_ms)
        yield from load_producers(
            producers, self.snapshots, self.segments, end=offset, now=self.now
        )
        return producers

    def _recover(self, suspects: list[Segment]) -> Slices[None]:
        """Goes through all of them, up to the first hole."""
        suspects = self._without_those_below_the_start(suspects)
        producers = self.producers = yield from self._producers_at(suspects[0].base_offset)
        self._keep_snapshot(suspects[0].base_offset)
        for segment in suspects:
            scan = Scan(segment, producers, self.epochs, is_durable=False)
            yield from scan.run()
            self.end = scan.next_offset
            if self._is_hole_behind(segment, scan):
                # First, lest a recovery that is cut short here finds a whole segment before them.
                self._remove_behind(segment)
            scan.finish()
            self._remove_swapped(segment.base_offset)
            after = self.segments.floor(segment.base_offset) + 1
            is_last = after == len(self.segments)
            offset = self.end if is_last else self.segments[after].base_offset
            forget_old_batches(producers, offset=offset, now=self.now)
            self._write_snapshot(offset)
            if is_last:
                break

    def _without_those_below_the_start(self, suspects: list[Segment]) -> list[Segment]:
        """Nobody wants them any more, so it does not matter what a crash has left of them. What is
        in front of them goes as well, lest somebody goes on from there over a hole."""
        count = sum(after.base_offset <= self.log_start_offset for after in suspects[1:])
        if count:
            kept = suspects[count].base_offset
            gone = [segment for segment in self.segments if segment.base_offset < kept]
            self.segments.remove(gone, self.now)
        return suspects[count:]

    def _is_hole_behind(self, segment: Segment, scan: Scan) -> bool:
        """Whether batches between this segment and the next are lost. Compaction leaves holes, too:
        there only bad bytes tell."""
        number = self.segments.floor(segment.base_offset) + 1
        if number == len(self.segments) or self.segments[number].base_offset == scan.next_offset:
            return False
        return scan.is_bad or not self.folder.config.is_compacted

    def _remove_behind(self, segment: Segment) -> None:
        """What follows a hole was not safe on disk either."""
        logger.warning(
            "recovery.remove_segments path=%s behind=%d", self.folder.path, segment.base_offset
        )
        self.segments.remove_behind(segment.base_offset, self.now)

    def _keep_snapshot(self, offset: int) -> None:
        """Recovery begins at it, and so will the next one: nothing else knows of batches that are
        gone. Those behind it are of batches that may be gone in another way."""
        self.snapshots.remove_behind(offset)
        self._write_snapshot(offset)
        self.snapshots.sync_now(offset)
        self.folder.sync_names_now()

    def _write_snapshot(self, offset: int) -> None:
        if self.snapshots.latest == offset or offset <= self.segments.first.base_offset:
            return
        # On a full disk the next start has to read more batches.
        with suppress(DiskFull):
            self.snapshots.write(offset, self.producers.snapshot())

    def _settle_snapshots(self, end: int) -> None:
        """The disk has all names at the end of it: what was removed must not come back beside what
        is written in its place."""
        self._write_snapshot(end)
        self.snapshots.sync_now(end)
        self.folder.sync_names_now()
        self.snapshots.remove_strays([segment.base_offset for segment in self.segments], end)

    def _find_end(self) -> Slices[None]:
        """Of a log that was stopped cleanly."""
        if not len(self.segments):
            return
        active = self.segments.active
        try:
            self.end = at_once(_next_offset(active)) if active.size else active.base_offset
        except CorruptFile as error:
            self._damage(active, str(error))
            yield from self._recover([active])

    def _start_over(self) -> None:
        """The log start is behind all that there is, as a truncation may leave it."""
        if len(self.segments):
            logger.warning(
                "recovery.start_over path=%s end=%d log_start=%d",
                self.folder.path,
                self.end,
                self.log_start_offset,
            )
        self.epochs.clear()
        self.producers.clear()
        self.snapshots.remove_behind(-1)
        self.segments.start_at(self.log_start_offset, self.now, one_by_one=False)


def _next_offset(segment: Segment) -> Reading[int]:
    """Behind the last batch, which the offset index leads close to."""
    position = 0
    if segment.size > _SHORT_BYTES:
        yield from segment.offset_index.load()
        located = yield from locate(segment, segment.offset_index.last_offset)
        position = located.position if located else 0
    headers = Headers(segment, position, ahead_bytes=_SHORT_BYTES)
    end = segment.base_offset
    while (found := (yield from headers.next())) is not None:
        header = found.header
        if header.base_offset < end or not segment.can_hold(header.last_offset):
            reason = f"offset {header.base_offset} does not follow {end - 1}"
            raise corrupt(segment, found.position, reason)
        end = header.next_offset
    return end


def create_log(
    log_dir: LogDir,
    topic: str,
    partition: int,
    config: LogConfig,
    *,
    topic_id: bytes | None,
    now: Now,
    name: str | None = None,
) -> Log:
    """A new, empty log in a new folder. It is on disk for good when its first batch is."""
    folder = Folder(log_dir, name or folder_name(topic, partition), config)
    folder.files.make_directory(folder.path)
    folder.files.create(folder.file(LEADER_EPOCH_CHECKPOINT)).close()
    segments = Segments(folder)
    segments.begin(0, now)
    producers = ProducerStates(log_dir.producer_expiration_ms)
    parts = LogParts(segments, LeaderEpochs(), producers, Snapshots(folder, []), 0, 0, 0)
    log = Log(folder, parts, topic=topic, partition=partition, topic_id=topic_id, now=now)
    log.is_settled = False
    return log
