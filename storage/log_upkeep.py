"""What a log does besides appending: epochs, rolling, flushing, truncating, going away.

What the disk refuses is KAFKA_STORAGE_ERROR; a failed disk takes the log directory offline. Work
that may wait is left to the `Chores` of the log directory.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.checkpoints import epochs_text, partition_metadata_text
from ottla.storage.clock import Now
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.errors import DiskFull, OutOfResources, StorageError
from ottla.storage.folder import Promise
from ottla.storage.log_view import LogView
from ottla.storage.lookup import RELATIVE_OFFSET_MAX
from ottla.storage.names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from ottla.storage.producer_loading import load_producers
from ottla.storage.segment import Segment
from ottla.storage.steps import Slices, to_the_end

logger = logging.getLogger(__name__)


class LogUpkeep(LogView):
    """A log as those see it who keep it in order."""

    __slots__ = ()

    # coming to be

    def settle(self) -> None:
        """Brings a new folder and its topic's id to disk, as the first append would."""
        self.check()
        try:
            if not self.is_settled:
                self._settle()
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error

    def _settle(self) -> None:
        files, folder = self.folder.files, self.folder
        if self.topic_id is not None:
            text = partition_metadata_text(self.topic_id)
            files.write_atomically_now(folder.file(PARTITION_METADATA), text)
        else:
            folder.sync_names_now()
        files.sync_directory_now(folder.log_dir.path)
        if self._epochs_behind:
            self._write_epochs()
        self.is_settled = True

    async def settle_aside(self) -> None:
        """The same without holding up the event loop, for topics of many partitions."""
        self.check()
        files, folder = self.folder.files, self.folder
        try:
            if self.topic_id is not None:
                text = partition_metadata_text(self.topic_id)
                await files.write_atomically(folder.file(PARTITION_METADATA), text)
            else:
                await folder.sync_names()
            await files.sync_directory(folder.log_dir.path)
        except StorageError as error:
            raise folder.log_dir.refused(error) from error
        self.is_settled = not self._epochs_behind

    # epochs

    def assign_epoch(self, epoch: int) -> None:
        """A leader begins to append here. On disk before it returns."""
        self.check()
        try:
            self._assign_epoch(epoch, self.log_end_offset)
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error

    async def assign_epoch_aside(self, epoch: int) -> None:
        """The same without holding up the event loop; nobody may append meanwhile."""
        self.check()
        before = self.epochs.entries.copy()
        later = LeaderEpochs(before)
        if not later.assign(epoch, self.log_end_offset):
            return
        path = self.folder.file(LEADER_EPOCH_CHECKPOINT)
        try:
            await self.folder.files.write_atomically(path, epochs_text(later.entries))
            is_overtaken = self.epochs.entries != before
            self.epochs.assign(epoch, self.log_end_offset)
            if is_overtaken:
                # By a truncation: what was written knows too much.
                self._write_epochs()
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        before = self.epochs.entries.copy()
        if epoch >= 0 and self.epochs.assign(epoch, start_offset):
            try:
                self._write_epochs()
            except StorageError:
                self.epochs.entries = before
                raise

    def _write_epochs(self) -> None:
        path = self.folder.file(LEADER_EPOCH_CHECKPOINT)
        self.folder.files.write_atomically_now(path, epochs_text(self.epochs.entries))
        self._epochs_behind = False

    def _try_to_write_epochs(self) -> None:
        """Entries were cut off. On a full disk the next append has to write first."""
        try:
            self._write_epochs()
        except (DiskFull, OutOfResources) as error:
            logger.warning("log.epochs_behind reason=%s", error)
            self._epochs_behind = True
            self.is_settled = False

    # rolling and flushing

    def roll(self, now: Now) -> None:
        """Begins a new segment at the end of the log, unless the last one is empty."""
        self.check()
        if self.segments.active.size:
            try:
                self._roll(self.log_end_offset, now, last_offset=self.log_end_offset)
            except StorageError as error:
                raise self.folder.log_dir.refused(error) from error

    def _roll(self, next_offset: int, now: Now, *, last_offset: int) -> Segment:
        """For batches from `next_offset` to `last_offset`. It begins where the log ends, also where
        a leader's offsets go on farther behind: a start takes what is missing between two segments
        for lost in a crash."""
        base_offset = self.log_end_offset
        if last_offset - base_offset > RELATIVE_OFFSET_MAX:
            # There is nothing in between that could be lost.
            self.flush_now()
            promise = Promise(recovery_point=next_offset)
            self.folder.log_dir.promise((self.topic, self.partition), promise)
            self.recovery_point = base_offset = next_offset
        self._newest = None
        is_flushed = self.recovery_point >= self.log_end_offset
        segment = self.segments.roll(base_offset, now, is_flushed=is_flushed)
        self._take_snapshot(base_offset)
        if self._high_watermark.offset >= self.log_end_offset:
            self._set_high_watermark(self.end)
        self.folder.log_dir.chores.flush(self, offset=base_offset)
        logger.info("log.rolled path=%s offset=%d", self.folder.path, base_offset)
        return segment

    def _take_snapshot(self, offset: int) -> None:
        """It spares work after a crash and is worth no failure."""
        if self.snapshots.latest == offset:
            return
        try:
            self.snapshots.write(offset, self.producers.snapshot())
        except (DiskFull, OutOfResources) as error:
            logger.warning("log.no_snapshot reason=%s", error)

    def flush_now(self, offset: int | None = None) -> None:
        """Blocks until the disk has everything below `offset`, or all."""
        target = self._flush_target(offset)
        if target < self.recovery_point:
            return
        self.check()
        try:
            for segment in self._unflushed(target):
                segment.flush_now()
            self.snapshots.sync_now(target)
            self.folder.sync_names_now()
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error
        self._flushed(target, self._truncations)

    async def flush(self, offset: int | None = None) -> None:
        """Returns when the disk has everything below `offset`, or all that is there now.

        Writers that come meanwhile share the next fsync: where data counts only once it is on disk,
        each awaits this for its own offset.
        """
        target = self._flush_target(offset)
        if target < self.recovery_point:
            return
        self.check()
        truncations = self._truncations
        try:
            for segment in self._unflushed(target):
                await segment.flush()
                while segment.is_dirty and not segment.is_active:
                    # It was rolled meanwhile: its indexes are its own now.
                    await segment.flush()
            await self.snapshots.sync(target)
            await self.folder.sync_names()
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error
        self._flushed(target, truncations)

    def _flush_target(self, offset: int | None) -> int:
        """Not behind the end: a truncation may have come before a flush that a roll has left."""
        end = self.log_end_offset
        return end if offset is None else min(offset, end)

    def _unflushed(self, target: int) -> list[Segment]:
        return self.segments.between(self.recovery_point, target)

    def _flushed(self, offset: int, truncations: int) -> None:
        # What was cut off and appended anew meanwhile is not what was flushed.
        if truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, offset)

    # truncating

    def truncate_to(self, offset: int, now: Now) -> bool:
        """Drops this offset and all behind it. Whether there was anything to drop."""
        return to_the_end(self.truncating_to(offset, now))

    def truncating_to(self, offset: int, now: Now) -> Slices[bool]:
        """The same in slices, between which nobody may append."""
        if offset < 0:
            raise ValueError(f"cannot truncate {self} to {offset}")
        self.check()
        if offset >= self.log_end_offset:
            if self.epochs.truncate_from_end(self.log_end_offset):
                self._try_to_write_epochs()
            return False
        if offset < self.segments.first.base_offset:
            yield from self._changing(self._start_over(offset, offset, now))
        else:
            yield from self._changing(self._truncate(offset, now))
        return True

    def _changing(self, slices: Slices[None]) -> Slices[None]:
        """A change of several steps: where one fails the log is not to be used any more."""
        self._truncations += 1
        self._newest = None
        try:
            yield from slices
        except (StorageError, KafkaError) as error:
            self.failure = f"{self.folder.path} has to be opened again: {error}"
            logger.error("log.failed reason=%s", self.failure)
            if isinstance(error, KafkaError):
                # A promise that could not be made may be on disk all the same.
                raise
            raise self.folder.log_dir.refused(error) from error

    def _truncate(self, offset: int, now: Now) -> Slices[None]:
        if offset < self.high_watermark:
            logger.warning("log.truncated_below_high_watermark log=%s offset=%d", self, offset)
        self._promise(recovery_point=offset, log_start_offset=min(self.log_start_offset, offset))
        removed = self.segments.remove_behind(offset, now)
        self._remove_snapshots(removed, now)
        active = self.segments.active
        active.become_active()
        active.truncate_to(offset)
        active.flush_truncation_now()
        self.log_end_offset = offset
        if self.epochs.truncate_from_end(offset):
            self._try_to_write_epochs()
        yield from self._reload_producers(now)
        if self.high_watermark >= offset:
            self._set_high_watermark(self.end)

    def truncate_fully_and_start_at(
        self, offset: int, now: Now, *, log_start_offset: int | None = None
    ) -> None:
        """Throws everything away; the next batch gets `offset`."""
        self.check()
        start = offset if log_start_offset is None else log_start_offset
        to_the_end(self._changing(self._start_over(offset, start, now)))

    def _start_over(self, offset: int, log_start_offset: int, now: Now) -> Slices[None]:
        self._promise(recovery_point=offset, log_start_offset=log_start_offset)
        is_behind_all = log_start_offset >= self.log_end_offset
        self.snapshots.remove_behind(-1)
        self.segments.start_at(offset, now, one_by_one=not is_behind_all)
        self.epochs.clear()
        self._try_to_write_epochs()
        self.log_end_offset = offset
        yield from self._reload_producers(now)
        self._set_high_watermark(self.end)

    def _reload_producers(self, now: Now) -> Slices[None]:
        """The disk has the names at the end of it: neither a segment nor a snapshot may come back
        in a crash, beside what is appended in its place."""
        end = self.log_end_offset
        self.snapshots.remove_behind(end)
        self.folder.sync_names_now()
        yield from load_producers(self.producers, self.snapshots, self.segments, end=end, now=now)
        self._take_snapshot(end)
        self._update_first_unstable()

    def _promise(self, *, recovery_point: int, log_start_offset: int) -> None:
        """Lowers the recovery point to what is left, and moves the log's start. The disk has both
        before any file changes: so a start looks at all that a crash leaves half-way."""
        is_lower = recovery_point < self.recovery_point
        promise = Promise(
            recovery_point=recovery_point if is_lower else None,
            log_start_offset=None
            if log_start_offset == self.log_start_offset
            else log_start_offset,
        )
        self.folder.log_dir.promise((self.topic, self.partition), promise)
        self.recovery_point = min(self.recovery_point, recovery_point)
        self.log_start_offset = log_start_offset

    # the log's beginning

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Records below are gone for readers; segments wholly below may be deleted."""
        self.check()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The log of {self.topic}-{self.partition} cannot start at {offset}, behind the"
                f" high watermark {self.high_watermark}.",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.producers.on_log_start_offset(offset)
        self.epochs.truncate_from_start(offset)
        self._update_first_unstable()
        return True

    # segments going and coming

    def delete_segments(self, segments: list[Segment], now: Now) -> None:
        """Deletes the log's first segments; if these are all, it goes on in a new one."""
        self.check()
        try:
            if len(segments) == len(self.segments):
                if not self.segments.active.size:
                    segments = segments[:-1]
                else:
                    self._roll(self.log_end_offset, now, last_offset=self.log_end_offset)
            if not segments:
                return
            first_kept = self.segments[len(segments)]
            self.maybe_increment_log_start_offset(first_kept.base_offset)
            # Else a crash that leaves some of them would show a hole behind these.
            promise = Promise(log_start_offset=self.log_start_offset)
            self.folder.log_dir.promise((self.topic, self.partition), promise)
            self.segments.remove(segments, now)
            self._remove_snapshots(segments, now)
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error

    def replace_segments(self, new: list[Segment], old: list[Segment], now: Now) -> None:
        """Puts what compaction has made, and synced, in the place of what it was made from.

        What is replaced is flushed, and no start will look at it again: there a hole would pass for
        one that a crash has left. Nor may the log begin farther in front after a crash: below the
        log start the cleaner has taken aborted records for others.
        """
        self.check()
        self.flush_now(self._end_of(old[-1]))
        promise = Promise(self.recovery_point, self.log_start_offset)
        self.folder.log_dir.promise((self.topic, self.partition), promise)
        to_the_end(self._changing(self._replace(new, old, now)))

    def _end_of(self, segment: Segment) -> int:
        after = self.segments.floor(segment.base_offset) + 1
        return self.segments[after].base_offset

    def _replace(self, new: list[Segment], old: list[Segment], now: Now) -> Slices[None]:
        yield
        self._remove_snapshots(self.segments.replace(new, old, now), now)

    def _remove_snapshots(self, segments: list[Segment], now: Now) -> None:
        due_ms = now.monotonic_ms + self.folder.config.file_delete_delay_ms
        for segment in segments:
            self.snapshots.remove_later(segment.base_offset, due_ms=due_ms)

    # the end

    def close(self) -> None:
        """Brings all to disk, in the form that a clean stop leaves, and gives the files free."""
        self.check()
        try:
            if not self.is_settled:
                self._settle()
            if self.segments.active.is_active:
                self.segments.active.become_inactive()
            for segment in self.segments:
                segment.flush_now()
            self._take_snapshot(self.log_end_offset)
            self.snapshots.sync_now(self.log_end_offset)
            self.folder.sync_names_now()
            self.recovery_point = self.log_end_offset
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Gives the files free as they are."""
        self.folder.log_dir.chores.forget(self)
        self.segments.close()
        self.snapshots.close()

    def rename(self, name: str) -> None:
        """Moves the log to another folder of its log directory, with all that is open."""
        self.check()
        files, path = self.folder.files, self.folder.path
        try:
            if not self.is_settled:
                self._settle()
            files.rename(path, f"{self.folder.log_dir.path}/{name}")
            self.folder.name = name
            files.sync_directory_now(self.folder.log_dir.path)
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error

    def delete(self) -> None:
        """Removes the folder with everything in it."""
        self.let_go()
        try:
            self.folder.files.remove_tree(self.folder.path)
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error
