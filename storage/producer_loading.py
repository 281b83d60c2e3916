"""What is known of producers at some offset: read from a snapshot, and from the batches since.

Used when a log is opened, and when it was truncated. Changes nothing on disk, but that it removes
snapshots that cannot be read. Pauses after a few hundred batches.
"""

from __future__ import annotations

import logging

from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.clock import Now
from ottla.storage.errors import CorruptFile
from ottla.storage.lookup import Headers, locate
from ottla.storage.producers import ProducerStates
from ottla.storage.scan import readable_marker
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.snapshots import Snapshots
from ottla.storage.steps import Slices, at_once

logger = logging.getLogger(__name__)

_BATCHES_PER_SLICE = 256


def load_producers(
    producers: ProducerStates, snapshots: Snapshots, segments: Segments, *, end: int, now: Now
) -> Slices[None]:
    """What is known of producers at the offset `end`."""
    start = _load_snapshot(producers, snapshots, segments, end=end, now=now)
    if start < end:
        for segment in segments.between(start, end):
            yield from _replay(segment, producers, start=start, end=end)
        forget_old_batches(producers, offset=end, now=now)
    producers.map_end_offset = end


def _load_snapshot(
    producers: ProducerStates, snapshots: Snapshots, segments: Segments, *, end: int, now: Now
) -> int:
    """Returns up to where it reaches. Batches in front of the first segment are gone: a snapshot
    that knows only older ones would have a producer's next batch refused."""
    first = segments.first.base_offset
    for offset in snapshots.up_to(end):
        if offset < first:
            break
        try:
            producers.load(snapshots.read(offset), offset=offset, wall_ms=now.wall_ms)
            return offset
        except ProtocolError as error:
            logger.warning("recovery.bad_snapshot path=%s reason=%s", snapshots.path(offset), error)
            snapshots.remove(offset)
    producers.clear()
    return min(first, end)


def forget_old_batches(producers: ProducerStates, *, offset: int, now: Now) -> None:
    """As after a clean stop: of each producer the last batch is known, and silent ones are not."""
    producers.load(producers.snapshot(), offset=offset, wall_ms=now.wall_ms)


def _replay(segment: Segment, producers: ProducerStates, *, start: int, end: int) -> Slices[None]:
    """Carries `producers` on over the batches from `start` up to `end`, by their headers."""
    try:
        located = at_once(locate(segment, start))
        headers = Headers(segment, located.position if located else segment.size)
        count = 0
        while (found := at_once(headers.next())) is not None:
            header = found.header
            if header.last_offset >= end:
                return
            if header.producer_id >= 0:
                data: Buffer = b""
                if header.is_control:
                    data = segment.file.read(found.position, header.size)
                completed = producers.update(header, readable_marker(header, data, 0))
                if completed is not None:
                    producers.complete(completed)
            count += 1
            if not count % _BATCHES_PER_SLICE:
                yield
    except CorruptFile as error:
        logger.warning("recovery.producers_incomplete error=%s", error)
