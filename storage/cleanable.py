"""Which part of a compacted log may be cleaned, and how badly that is needed.

Changes nothing. A log is clean up to some offset, dirty behind it, and never cleaned from some
later offset on: that of its active segment, of a transaction that is not decided yet, of a record
that not all replicas have, or that is too young.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ottla.protocol.records import INT64_MAX, NO_TIMESTAMP
from ottla.storage.clock import Now
from ottla.storage.log import Log
from ottla.storage.lookup import first_timestamp
from ottla.storage.segment import Segment
from ottla.storage.steps import at_once

logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class LogToClean:
    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of a segment."""
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool
    """Something dirty is older than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        """The part of the log that is dirty, without what cannot be cleaned."""
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_worth_it(self) -> bool:
        if not self.cleanable_bytes:
            return False
        return self.is_overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio


def log_to_clean(log: Log, checkpoint: int | None, now: Now) -> LogToClean:
    """`checkpoint` is the offset up to which the log was cleaned before."""
    first_dirty = first_dirty_offset(log, checkpoint)
    dirty = _closed_from(log, first_dirty)
    uncleanable = max(first_dirty, _first_uncleanable_offset(log, dirty, now))
    closed = _closed_from(log, uncleanable)
    uncleanable_segment = closed[0] if closed else log.segments.active
    end = uncleanable_segment.base_offset
    return LogToClean(
        log,
        first_dirty,
        end,
        clean_bytes=_bytes(log.segments.between(0, first_dirty)),
        cleanable_bytes=_bytes(log.segments.between(min(first_dirty, end), end)),
        is_overdue=_is_overdue(log, dirty, now),
    )


def first_dirty_offset(log: Log, checkpoint: int | None) -> int:
    """Where the log has not been cleaned yet; a checkpoint outside the log says nothing."""
    if checkpoint is None or checkpoint == log.log_start_offset:
        return log.log_start_offset
    if checkpoint > log.log_end_offset or (
        checkpoint < log.log_start_offset and not log.config.is_deleted
    ):
        logger.warning("cleaner.bad_checkpoint log=%s checkpoint=%d", log, checkpoint)
    if log.log_start_offset <= checkpoint <= log.log_end_offset:
        return checkpoint
    return log.log_start_offset


def _closed_from(log: Log, offset: int) -> list[Segment]:
    """The segments from that of the offset on, but the active one."""
    active = log.segments.active.base_offset
    return [] if offset > active else log.segments.between(offset, active)


def _first_uncleanable_offset(log: Log, dirty: list[Segment], now: Now) -> int:
    first = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp() > now.wall_ms - lag_ms:
                return min(first, segment.base_offset)
    return first


def _is_overdue(log: Log, dirty: list[Segment], now: Now) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == INT64_MAX:
        return False
    return any(0 < _first_timestamp(segment) < now.wall_ms - lag_ms for segment in dirty)


def _first_timestamp(segment: Segment) -> int:
    if segment.first_timestamp < NO_TIMESTAMP:
        segment.first_timestamp = at_once(first_timestamp(segment))
    return segment.first_timestamp


def _bytes(segments: list[Segment]) -> int:
    return sum(segment.size for segment in segments)
