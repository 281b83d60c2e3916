"""Which segments of a log go because they are too old, too many, or below the log's start.

Only the first segments ever go, one after the other, and never one that not all replicas have. By
time the active segment goes as well: the log then goes on in a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.storage.clock import Now
from ottla.storage.errors import StorageError
from ottla.storage.log import Log
from ottla.storage.segment import Segment

logger = logging.getLogger(__name__)


def delete_old_segments(log: Log, now: Now) -> int:
    """Returns how many went. Not to be called while the log is being cleaned."""
    count = _delete(log, _is_below(log.log_start_offset), "log_start_offset", now)
    config = log.config
    if not config.is_deleted:
        return count
    if config.retention_bytes >= 0:
        surplus_bytes = log.size_bytes - config.retention_bytes
        count += _delete(log, _is_surplus(surplus_bytes), "retention.bytes", now)
    if config.retention_ms >= 0:
        oldest_ms = now.wall_ms - config.retention_ms
        count += _delete(log, _is_older(oldest_ms), "retention.ms", now)
    return count


_Condition = Callable[[Segment, Segment | None], bool]


def _is_below(offset: int) -> _Condition:
    return lambda segment, after: after is not None and after.base_offset <= offset


def _is_surplus(surplus_bytes: int) -> _Condition:
    left_bytes = surplus_bytes

    def is_surplus(segment: Segment, after: Segment | None) -> bool:
        nonlocal left_bytes
        left_bytes -= segment.size
        return left_bytes >= 0

    return is_surplus


def _is_older(oldest_ms: int) -> _Condition:
    return lambda segment, after: segment.largest_timestamp() < oldest_ms


def _delete(log: Log, goes: _Condition, reason: str, now: Now) -> int:
    log.folder.log_dir.check()
    try:
        old = _first_that_go(log, goes)
    except StorageError as error:
        raise log.refused(error) from error
    if not old:
        return 0
    logger.info(
        "retention.delete log=%s count=%d reason=%s last=%d",
        log,
        len(old),
        reason,
        old[-1].base_offset,
    )
    log.delete_segments(old, now)
    return len(old)


def _first_that_go(log: Log, goes: _Condition) -> list[Segment]:
    segments = list(log.segments)
    going: list[Segment] = []
    for segment, after in zip(segments, [*segments[1:], None], strict=True):
        end = log.log_end_offset if after is None else after.base_offset
        is_empty_end = after is None and not segment.size
        if is_empty_end or log.high_watermark < end or not goes(segment, after):
            break
        going.append(segment)
    return going
