"""What is known of producers at some offset: read from a snapshot, and from the batches since.

Used when a log is opened, and when it was truncated. Pauses after a few hundred batches.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.clock import Now
from ottla.storage.errors import CorruptFile, DiskFull
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
    producers: ProducerStates,
    snapshots: Snapshots,
    segments: Segments,
    *,
    start: int,
    end: int,
    now: Now,
) -> Slices[None]:
    """What is known of producers at the offset `end`: from a snapshot, and the batches since."""
    producers.clear()
    snapshots.remove_outside(start, end)
    position = start
    while (latest := snapshots.latest) is not None:
        try:
            producers.load(snapshots.read(latest), offset=latest, wall_ms=now.wall_ms)
            position = latest
            break
        except ProtocolError as error:
            logger.warning("recovery.bad_snapshot path=%s reason=%s", snapshots.path(latest), error)
            snapshots.remove(latest)
    if position < end:
        for segment in segments.between(position, end):
            yield from _replay(segment, producers, start=position, end=end)
        data = producers.snapshot()
        # On a full disk the next start has to read these batches once more.
        with suppress(DiskFull):
            snapshots.write(end, data, sync=True)
        # As after a clean stop: of each producer the last batch is known, and old ones are not.
        producers.load(data, offset=end, wall_ms=now.wall_ms)
    producers.map_end_offset = end


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
