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
from ottla.storage.errors import CorruptFile, DiskFull
from ottla.storage.folder import Folder, LogDir
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
    TIME_INDEX,
    TRANSACTION_INDEX,
    folder_name,
    offset_name,
    parse_folder_name,
    parse_offset_name,
)
from ottla.storage.producer_loading import load_producers
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
    """What is known while a folder is being opened."""

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
        self.damaged: set[int] = set()
        """Base offsets of segments whose indexes are missing."""

    def parts(self) -> Slices[LogParts]:
        remove_leftovers(self.folder, self.now)
        self._find_segments()
        yield
        known = yield from self._read_epochs()
        yield from self._recover()
        end = yield from self._find_end()
        start = max(self.log_start_offset, self.segments.first.base_offset)
        # In this order: an entry that is moved up to the end must not be there at one start, and be
        # gone at the next.
        self.epochs.truncate_from_start(self.log_start_offset)
        self.epochs.truncate_from_end(end)
        text = epochs_text(self.epochs.entries)
        if text != known and (known or self.segments.size_bytes):
            path = self.folder.file(LEADER_EPOCH_CHECKPOINT)
            self.folder.files.write_atomically_now(path, text)
        self.snapshots.remove_strays({segment.base_offset for segment in self.segments})
        yield from load_producers(
            self.producers, self.snapshots, self.segments, start=start, end=end, now=self.now
        )
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
        for offset, suffix in sorted(found):
            if suffix == LOG:
                size = files.size(self.folder.file(offset_name(offset, LOG)))
                segment = Segment(self.folder, offset, size=size, now=self.now)
                segment.is_new = size == 0
                self.segments.add(segment)
                if not {(offset, OFFSET_INDEX), (offset, TIME_INDEX)} <= found:
                    self._damage(segment, "an index is missing")
                elif (offset, TRANSACTION_INDEX) in found:
                    self._check_transactions(segment)
            elif suffix != SNAPSHOT and (offset, LOG) not in found:
                path = self.folder.file(offset_name(offset, suffix))
                logger.warning("recovery.remove_orphan path=%s", path)
                files.remove(path)
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
        try:
            text = self.folder.files.read_whole(path)
            self.epochs = LeaderEpochs([EpochEntry(*entry) for entry in parse_epochs(path, text)])
            if text or not self.segments.size_bytes:
                return text
        except FileNotFoundError:
            pass
        except CorruptFile as error:
            logger.warning("recovery.no_epochs error=%s", error)
        self.epochs = LeaderEpochs()
        yield from self._collect_epochs()
        return b""

    def _collect_epochs(self) -> Slices[None]:
        """From the batches, where the checkpoint is lost."""
        for segment in self.segments:
            headers = Headers(segment, 0)
            try:
                while (found := at_once(headers.next())) is not None:
                    epoch = found.header.partition_leader_epoch
                    if epoch > (-1 if self.epochs.latest is None else self.epochs.latest):
                        self.epochs.assign(epoch, found.header.base_offset)
                    yield
            except CorruptFile:
                return

    # recovery

    def _recover(self) -> Slices[None]:
        """Goes through what may not be on disk, and through what is damaged."""
        unflushed = set()
        if not self.is_clean:
            unflushed = {
                segment.base_offset
                for segment in self.segments.between(self.recovery_point, 1 << 63)
            }
        for segment in self.segments:
            if segment.base_offset in unflushed:
                yield from self._recover_segment(segment, is_durable=False)
                if self.segments.active is segment:
                    return
            elif segment.base_offset in self.damaged:
                yield from self._recover_segment(segment, is_durable=True)

    def _recover_segment(self, segment: Segment, *, is_durable: bool) -> Slices[None]:
        producers = ProducerStates(self.folder.log_dir.producer_expiration_ms)
        yield from load_producers(
            producers,
            self.snapshots,
            self.segments,
            start=self.log_start_offset,
            end=segment.base_offset,
            now=self.now,
        )
        scan = Scan(segment, producers, self.epochs, is_durable=is_durable)
        yield from scan.run()
        if not is_durable and self._is_hole_behind(segment, scan):
            # First, lest a recovery that is cut short here finds a whole segment before them.
            self._remove_behind(segment)
        scan.finish()
        if scan.next_offset > segment.base_offset:
            with suppress(DiskFull):
                self.snapshots.write(scan.next_offset, producers.snapshot(), sync=False)
        self.damaged.discard(segment.base_offset)

    def _is_hole_behind(self, segment: Segment, scan: Scan) -> bool:
        """Whether batches between this segment and the next are lost. Compaction leaves holes, too:
        there only bad bytes tell."""
        number = self.segments.floor(segment.base_offset) + 1
        if number == len(self.segments) or self.segments[number].base_offset == scan.next_offset:
            return False
        return scan.is_bad or not self.folder.config.is_compacted

    def _remove_behind(self, segment: Segment) -> None:
        """What follows a hole was not safe on disk either."""
        number = self.segments.floor(segment.base_offset)
        behind = list(self.segments)[number + 1 :]
        if behind:
            logger.warning(
                "recovery.remove_segments path=%s from=%d",
                self.folder.path,
                behind[0].base_offset,
            )
            self.segments.remove(behind, self.now)
            # They must not come back once others were written in their place.
            self.folder.files.sync_directory_now(self.folder.path)

    def _find_end(self) -> Slices[int]:
        """The log end offset, with an active segment that is ready."""
        if len(self.segments):
            end = yield from self._end_of(self.segments.active)
            if end >= self.log_start_offset:
                return end
            logger.warning(
                "recovery.start_over path=%s end=%d log_start=%d",
                self.folder.path,
                end,
                self.log_start_offset,
            )
            self.epochs.clear()
            self.producers.clear()
            self.snapshots.remove_outside(0, -1)
        self.segments.start_at(self.log_start_offset, self.now)
        return self.log_start_offset

    def _end_of(self, segment: Segment) -> Slices[int]:
        if not segment.size:
            return segment.base_offset
        try:
            return at_once(_next_offset(segment))
        except CorruptFile as error:
            self._damage(segment, str(error))
        yield from self._recover_segment(segment, is_durable=False)
        return at_once(_next_offset(segment))


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
