"""Which log is cleaned next, and what is remembered of those that were.

Up to where a log is clean stands in its log directory's `cleaner-offset-checkpoint`. A log that
cannot be cleaned is set aside, with one line that says why. Whoever truncates, moves or deletes a
log says so here first: its cleaning ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ottla.protocol.errors import KafkaError
from ottla.storage.checkpoints import CLEANER_OFFSET_CHECKPOINT, offsets_text, parse_offsets
from ottla.storage.cleanable import LogToClean, log_to_clean
from ottla.storage.clock import Now
from ottla.storage.compaction import CleaningAborted, clean
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.folder import LogDir
from ottla.storage.log import Log
from ottla.storage.long_work import Work, settled
from ottla.storage.offset_map import BYTES_MAX, OffsetMap
from ottla.storage.segment_cleaner import Cleaned
from ottla.storage.steps import Slices

logger = logging.getLogger(__name__)

_LOGS_PER_SLICE = 64

_Offsets = dict[tuple[str, int], int]


class Cleaner:
    __slots__ = ("_checkpoints", "_clock", "_in_progress", "_map_bytes_max", "uncleanable")

    def __init__(self, clock: Callable[[], Now], *, map_bytes_max: int = BYTES_MAX) -> None:
        self._clock = clock
        self._map_bytes_max = map_bytes_max
        self._checkpoints: dict[LogDir, _Offsets] = {}
        self._in_progress: dict[Log, Work[Cleaned | None]] = {}
        self.uncleanable: dict[Log, str] = {}
        """The reason for each log that is left as it is."""

    # choosing

    def dirtiest(self, logs: Iterable[Log], now: Now) -> Slices[LogToClean | None]:
        """The log to be cleaned next, None if there is none that is worth it."""
        found: LogToClean | None = None
        for number, log in enumerate(logs, 1):
            if number % _LOGS_PER_SLICE == 0:
                yield
            if not log.config.is_compacted or log in self._in_progress or log in self.uncleanable:
                continue
            if log.folder.log_dir.failure is not None:
                continue
            to_clean = self._judged(log, now)
            if (
                to_clean is not None
                and to_clean.is_worth_it
                and (found is None or to_clean.ratio > found.ratio)
            ):
                found = to_clean
        return found

    def _judged(self, log: Log, now: Now) -> LogToClean | None:
        checkpoint = self.checkpoint(log)
        try:
            to_clean = log_to_clean(log, checkpoint, now)
            if checkpoint is not None and checkpoint != to_clean.first_dirty_offset:
                self._set_checkpoint(log, to_clean.first_dirty_offset)
            return to_clean
        except CorruptFile as error:
            self._set_aside(log, error)
        except StorageError as error:
            log.folder.log_dir.refused(error)
        return None

    # cleaning

    def clean(self, to_clean: LogToClean) -> Work[Cleaned | None]:
        """One round over one log; None where it came to nothing, and the log is as it was."""
        log = to_clean.log
        key_count_max = to_clean.first_uncleanable_offset - to_clean.first_dirty_offset
        offsets = OffsetMap(key_count_max, bytes_max=self._map_bytes_max)
        work = self._in_progress[log] = clean(to_clean, offsets, self._clock)
        try:
            cleaned = yield from work
            if cleaned is not None:
                log_dir = log.folder.log_dir
                yield settled(log_dir.files, log_dir.path)
                self._set_checkpoint(log, cleaned.end_offset)
                logger.info("cleaner.cleaned log=%s %s", log, cleaned)
            return cleaned
        except CorruptFile as error:
            self._set_aside(log, error)
        except CleaningAborted as error:
            logger.info("cleaner.aborted %s", error)
        except StorageError as error:
            log.folder.log_dir.refused(error)
        except KafkaError as error:
            logger.info("cleaner.refused log=%s error=%s", log, error)
        finally:
            offsets.close()
            if self._in_progress.get(log) is work:
                del self._in_progress[log]
        return None

    def abort(self, log: Log) -> None:
        """Ends the log's cleaning, if there is one: whoever drives it then gets None."""
        work = self._in_progress.pop(log, None)
        if work is not None:
            work.close()

    def is_cleaning(self, log: Log) -> bool:
        return log in self._in_progress

    def _set_aside(self, log: Log, error: CorruptFile) -> None:
        logger.warning("cleaner.uncleanable log=%s error=%s", log, error)
        self.uncleanable[log] = str(error)

    # checkpoints

    def checkpoint(self, log: Log) -> int | None:
        """Up to where the log was cleaned; None if never."""
        return self._offsets(log.folder.log_dir).get((log.topic, log.partition))

    def truncated(self, log: Log, offset: int) -> None:
        """The log is about to end at this offset: what comes behind it then is dirty."""
        self.abort(log)
        checkpoint = self.checkpoint(log)
        if checkpoint is not None and checkpoint > offset:
            self._set_checkpoint(log, offset)

    def moved(self, log: Log, to: Log) -> None:
        """`to`, in another log directory, takes the place of `log`."""
        checkpoint = self.checkpoint(log)
        reason = self.uncleanable.get(log)
        self.forget(log)
        if checkpoint is not None:
            self._set_checkpoint(to, checkpoint)
        if reason is not None:
            self.uncleanable[to] = reason

    def forget(self, log: Log) -> None:
        """The log is about to be deleted."""
        self.abort(log)
        self.uncleanable.pop(log, None)
        log_dir = log.folder.log_dir
        if self._offsets(log_dir).pop((log.topic, log.partition), None) is not None:
            self._write(log_dir)

    def _set_checkpoint(self, log: Log, offset: int) -> None:
        log_dir = log.folder.log_dir
        self._offsets(log_dir)[log.topic, log.partition] = offset
        self._write(log_dir)

    def _offsets(self, log_dir: LogDir) -> _Offsets:
        offsets = self._checkpoints.get(log_dir)
        if offsets is None:
            offsets = self._checkpoints[log_dir] = _read(log_dir)
        return offsets

    def _write(self, log_dir: LogDir) -> None:
        """It spares work after a start: a full disk may keep it from being written."""
        if log_dir.failure is not None:
            return
        try:
            text = offsets_text(self._checkpoints[log_dir])
            log_dir.files.write_atomically_now(_path(log_dir), text)
        except StorageError as error:
            log_dir.refused(error)


def _path(log_dir: LogDir) -> str:
    return f"{log_dir.path}/{CLEANER_OFFSET_CHECKPOINT}"


def _read(log_dir: LogDir) -> _Offsets:
    """Where it cannot be read all logs are dirty from their beginning, which only costs work."""
    path = _path(log_dir)
    try:
        return parse_offsets(path, log_dir.files.read_whole(path))
    except FileNotFoundError:
        pass
    except CorruptFile as error:
        logger.warning("cleaner.bad_checkpoints error=%s", error)
    except StorageError as error:
        log_dir.refused(error)
    return {}
