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
from ottla.storage.log_view import LogView
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
            files.sync_directory_now(folder.path)
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
                await files.sync_directory(folder.path)
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
                self._roll(self.log_end_offset, now)
            except StorageError as error:
                raise self.folder.log_dir.refused(error) from error

    def _roll(self, next_offset: int, now: Now) -> Segment:
        base_offset = max(next_offset, self.log_end_offset)
        self._newest = None
        segment = self.segments.roll(base_offset, now)
        self._take_snapshot(base_offset, sync=False)
        if self._high_watermark.offset >= self.log_end_offset:
            self._set_high_watermark(self.end)
        self.folder.log_dir.chores.flush(self, offset=base_offset)
        logger.info("log.rolled path=%s offset=%d", self.folder.path, base_offset)
        return segment

    def _take_snapshot(self, offset: int, *, sync: bool) -> None:
        """It spares work after a crash and is worth no failure."""
        if self.snapshots.latest == offset:
            return
        try:
            self.snapshots.write(offset, self.producers.snapshot(), sync=sync)
        except (DiskFull, OutOfResources) as error:
            logger.warning("log.no_snapshot reason=%s", error)

    def flush_now(self, offset: int | None = None) -> None:
        """Blocks until the disk has everything below `offset`, or all."""
        target = self._flush_target(offset)
        if target < self.recovery_point:
            return
        self.check()
        try:
            segments = self._unflushed(target)
            for segment in segments:
                segment.flush_now()
            if self._has_new_names(segments):
                self.folder.files.sync_directory_now(self.folder.path)
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
            segments = self._unflushed(target)
            for segment in segments:
                await segment.flush()
            if self._has_new_names(segments):
                await self.folder.files.sync_directory(self.folder.path)
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error
        self._flushed(target, truncations)

    def _flush_target(self, offset: int | None) -> int:
        """Not behind the end: a truncation may have come before a flush that a roll has left."""
        end = self.log_end_offset
        return end if offset is None else min(offset, end)

    def _unflushed(self, target: int) -> list[Segment]:
        """One that was flushed before it was rolled has indexes that are not on disk yet."""
        return self.segments.between(self.recovery_point - 1, target)

    def _has_new_names(self, segments: list[Segment]) -> bool:
        """A segment that begins at the recovery point or behind it was made since."""
        return bool(segments) and segments[-1].base_offset >= self.recovery_point

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
        except StorageError as error:
            self.failure = f"{self.folder.path} has to be opened again: {error}"
            logger.error("log.failed reason=%s", self.failure)
            raise self.folder.log_dir.refused(error) from error

    def _truncate(self, offset: int, now: Now) -> Slices[None]:
        if offset < self.high_watermark:
            logger.warning("log.truncated_below_high_watermark log=%s offset=%d", self, offset)
        behind = [segment for segment in self.segments if segment.base_offset > offset]
        if behind:
            # From the last on, so that a crash leaves no hole. And they must not come back in one,
            # beside what is appended in their place.
            self._remove_segments(behind[::-1], now)
            self.folder.files.sync_directory_now(self.folder.path)
        active = self.segments.active
        active.become_active()
        active.truncate_to(offset)
        active.flush_truncation_now()
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self._lower_recovery_point(offset)
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
        self.segments.start_at(offset, now)
        self.snapshots.remove_outside(0, -1)
        self.epochs.clear()
        self._try_to_write_epochs()
        self.log_start_offset = log_start_offset
        self.log_end_offset = offset
        self._lower_recovery_point(offset)
        yield from self._reload_producers(now)
        self._set_high_watermark(self.end)

    def _lower_recovery_point(self, offset: int) -> None:
        if offset < self.recovery_point:
            self.recovery_point = offset
            on_truncation = self.folder.log_dir.on_truncation
            if on_truncation is not None:
                on_truncation()

    def _reload_producers(self, now: Now) -> Slices[None]:
        yield from load_producers(
            self.producers,
            self.snapshots,
            self.segments,
            start=self.log_start_offset,
            end=self.log_end_offset,
            now=now,
        )
        self._update_first_unstable()

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
        if self.epochs.truncate_from_start(offset):
            try:
                self._try_to_write_epochs()
            except StorageError as error:
                raise self.folder.log_dir.refused(error) from error
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
                    self._roll(self.log_end_offset, now)
            if not segments:
                return
            first_kept = self.segments[len(segments)]
            self.maybe_increment_log_start_offset(first_kept.base_offset)
            self._remove_segments(segments, now)
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error

    def replace_segments(self, new: list[Segment], old: list[Segment], now: Now) -> None:
        """Puts what compaction has made, and synced, in the place of what it was made from."""
        self.check()
        to_the_end(self._changing(self._replace(new, old, now)))

    def _replace(self, new: list[Segment], old: list[Segment], now: Now) -> Slices[None]:
        yield
        self._remove_snapshots(self.segments.replace(new, old, now), now)

    def _remove_segments(self, segments: list[Segment], now: Now) -> None:
        self.segments.remove(segments, now)
        self._remove_snapshots(segments, now)

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
            segments = self._unflushed(self.log_end_offset + 1)
            dirty = [segment for segment in segments if segment.is_dirty]
            for segment in dirty:
                segment.flush_now()
            if self.snapshots.latest != self.log_end_offset:
                self._take_snapshot(self.log_end_offset, sync=True)
            if dirty:
                self.folder.files.sync_directory_now(self.folder.path)
            self.recovery_point = self.log_end_offset
        except StorageError as error:
            raise self.folder.log_dir.refused(error) from error
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Gives the files free as they are."""
        self.folder.log_dir.chores.forget(self)
        self.segments.close()

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
