"""What a log directory says of its logs at a start: how far they are safe on disk, where they
begin, their high watermarks, and whether the last stop was clean.

A checkpoint that cannot be read is as good as none: more is recovered then. Each is written only
when it has changed, whole, and in the order in which it was asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from ottla.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    UNKNOWN_BROKER_EPOCH,
    clean_shutdown_text,
    offsets_text,
    parse_clean_shutdown,
    parse_offsets,
)
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.folder import LogDir, Partition, Promise
from ottla.storage.log import Log

logger = logging.getLogger(__name__)

Offsets = dict[Partition, int]

_WRITTEN = (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT)
_LOGS_PER_SLICE = 1000


class LogCheckpoints:
    """The checkpoints of one log directory."""

    def __init__(self, log_dir: LogDir, logs_in: Callable[[LogDir], list[Log]]) -> None:
        self._log_dir = log_dir
        self._logs_in = logs_in
        # What was last handed to the disk, and what it is known to have.
        self._written: dict[str, Offsets] = {}
        self._on_disk: dict[str, Offsets] = {}
        self._writes = 0
        self._kept: set[Partition] = set()
        self.recovery_points: Offsets = {}
        self.log_starts: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.was_clean = False
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        """That of the last process, if it stopped cleanly."""
        self.is_loaded = False
        log_dir.on_promise = self.promise

    # reading

    def read(self) -> None:
        """From now on the next start is unclean, until this one has stopped cleanly."""
        files, path = self._log_dir.files, f"{self._log_dir.path}/{CLEAN_SHUTDOWN}"
        self.recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
        self.log_starts = self._read(LOG_START_OFFSET_CHECKPOINT)
        self.high_watermarks = self._read(REPLICATION_OFFSET_CHECKPOINT)
        if files.exists(path):
            self.was_clean = True
            self.broker_epoch = parse_clean_shutdown(files.read_whole(path))
            files.remove(path)
            # It must not come back in a crash, and vouch for what was written since.
            files.sync_directory_now(self._log_dir.path)

    def _read(self, name: str) -> Offsets:
        path = f"{self._log_dir.path}/{name}"
        try:
            offsets = parse_offsets(path, self._log_dir.files.read_whole(path))
        except FileNotFoundError:
            return {}
        except CorruptFile as error:
            logger.warning("checkpoint.unreadable error=%s", error)
            return {}
        self._written[name] = self._on_disk[name] = offsets
        return offsets.copy()

    def keep(self, partition: Partition) -> None:
        """The log could not be opened: what was said of it holds for when it can."""
        self._kept.add(partition)

    # writing

    def _offsets(self, name: str) -> Iterator[tuple[Partition, int]]:
        read = (self.recovery_points, self.log_starts, self.high_watermarks)[_WRITTEN.index(name)]
        for partition in sorted(self._kept & read.keys()):
            yield partition, read[partition]
        for log in self._logs_in(self._log_dir):
            partition = log.topic, log.partition
            if name == RECOVERY_POINT_CHECKPOINT:
                yield partition, log.recovery_point
            elif name == REPLICATION_OFFSET_CHECKPOINT:
                yield partition, log.high_watermark
            elif log.log_start_offset > 0:
                # Also where a segment begins there: a crash may bring older ones back.
                yield partition, log.log_start_offset

    async def write(self) -> None:
        """Pauses now and then: there may be ten thousand logs."""
        from asyncio import sleep

        for name in _WRITTEN:
            offsets: Offsets = {}
            writes = self._writes
            for count, (partition, offset) in enumerate(self._offsets(name), 1):
                offsets[partition] = offset
                if count % _LOGS_PER_SLICE == 0:
                    await sleep(0)
            if writes != self._writes:
                # A log was truncated or deleted meanwhile: what is known of it would be too much.
                offsets = dict(self._offsets(name))
            if self._written.get(name) == offsets:
                continue
            self._written[name] = offsets
            try:
                path = f"{self._log_dir.path}/{name}"
                await self._log_dir.files.write_atomically(path, offsets_text(offsets))
            except StorageError as error:
                self._not_written(name, error)
            else:
                if self._written.get(name) is offsets:
                    self._on_disk[name] = offsets

    def write_now(self) -> None:
        for name in _WRITTEN:
            self._write_now(name, dict(self._offsets(name)))

    def promise(self, partition: Partition, promise: Promise) -> None:
        """What a log is about to rely on; of the others, what holds now."""
        for name, offset in zip(_WRITTEN, promise, strict=False):
            if offset is not None and not self._says(name, partition, offset):
                self._write_now(name, {**dict(self._offsets(name)), partition: offset})

    def _says(self, name: str, partition: Partition, offset: int) -> bool:
        """Whether the disk has it, and no other is on the way there."""
        states = self._written.get(name), self._on_disk.get(name)
        return all(each is not None and each.get(partition, 0) == offset for each in states)

    def _write_now(self, name: str, offsets: Offsets) -> None:
        self._writes += 1
        if self._written.get(name) == self._on_disk.get(name) == offsets:
            return
        self._written[name] = offsets
        try:
            path = f"{self._log_dir.path}/{name}"
            self._log_dir.files.write_atomically_now(path, offsets_text(offsets))
        except StorageError as error:
            self._not_written(name, error)
            raise self._log_dir.refused(error) from error
        self._on_disk[name] = offsets

    def _not_written(self, name: str, error: StorageError) -> None:
        """Which of the two the disk has is not known."""
        self._written.pop(name, None)
        self._on_disk.pop(name, None)
        self._log_dir.refused(error)

    def forget(self, partition: Partition) -> None:
        """Nothing on disk speaks of this partition any more."""
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            if offsets.pop(partition, None) is not None:
                self.write_now()

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """Not where a log was never looked at: it may need a recovery still."""
        if not (self.is_loaded or self.was_clean):
            return
        path = f"{self._log_dir.path}/{CLEAN_SHUTDOWN}"
        try:
            self._log_dir.files.write_atomically_now(path, clean_shutdown_text(broker_epoch))
        except StorageError as error:
            raise self._log_dir.refused(error) from error

    def make_missing(self) -> None:
        """Kafka keeps these files from its first start on."""
        files = self._log_dir.files
        for name in (*_WRITTEN, CLEANER_OFFSET_CHECKPOINT):
            path = f"{self._log_dir.path}/{name}"
            if not files.exists(path):
                files.create(path).close()
