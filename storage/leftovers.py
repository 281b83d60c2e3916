"""Files that a crash has left on their way in or out of a partition's folder.

Worthless ones are removed; a swap that compaction had begun is completed. Any of it may have been
cut short before, and may be again.
"""

from __future__ import annotations

import logging

from ottla.storage.clock import Now
from ottla.storage.errors import CorruptFile
from ottla.storage.folder import Folder
from ottla.storage.lookup import Headers
from ottla.storage.names import (
    CLEANED,
    DELETED,
    LOG,
    SNAPSHOT,
    SWAP,
    OffsetName,
    offset_name,
    parse_offset_name,
)
from ottla.storage.segment import Segment
from ottla.storage.steps import at_once

logger = logging.getLogger(__name__)


def remove_leftovers(folder: Folder, now: Now) -> None:
    """Leaves only files that are in use, or that nobody here knows."""
    names = folder.files.list(folder.path)
    found = [name for name in map(parse_offset_name, names) if name is not None]
    for text in names:
        if text.endswith(".tmp"):
            _remove(folder, text)
    cleaned = [name for name in found if name.state == CLEANED]
    # New segments are renamed from the last to the first: as long as the first ones are not, the
    # old segments are all there.
    unfinished = min((name.offset for name in cleaned), default=1 << 63)
    swaps = [name for name in found if name.state == SWAP]
    worthless = [name for name in found if name.state == DELETED]
    worthless += [name for name in swaps if name.offset >= unfinished] + cleaned
    for name in worthless:
        _remove(folder, offset_name(*name))
    swaps = [name for name in swaps if name.offset < unfinished]
    if swaps:
        _finish_swap(folder, swaps, now)


def _remove(folder: Folder, name: str) -> None:
    logger.info("recovery.remove path=%s", folder.file(name))
    folder.files.remove(folder.file(name))
    folder.names_changed()


def _finish_swap(folder: Folder, swaps: list[OffsetName], now: Now) -> None:
    """Puts the new segments in the place of those that they were made from.

    But not their indexes: which of them have their names already, and whether one that has is the
    new one or the old one, cannot be told. Those that wait still tell that all have to be made
    again.
    """
    files = folder.files
    logs = [name.offset for name in swaps if name.suffix == LOG]
    if not logs:
        return
    end = max(_next_offset(folder, offset, now) for offset in logs)
    for found in map(parse_offset_name, files.list(folder.path)):
        if found is None or found.state or found.suffix == SNAPSHOT:
            continue
        if min(logs) <= found.offset < end or found.offset in logs:
            _remove(folder, offset_name(*found))
    # What is renamed must not outlive, in a crash, what was removed for it.
    folder.sync_names_now()
    for offset in logs:
        path = folder.file(offset_name(offset, LOG, SWAP))
        logger.info("recovery.finish_swap path=%s", path)
        files.rename(path, folder.file(offset_name(offset, LOG)))
        folder.names_changed()
    folder.sync_names_now()


def _next_offset(folder: Folder, base_offset: int, now: Now) -> int:
    """Behind the last whole batch of a segment that waits to be swapped in."""
    path = folder.file(offset_name(base_offset, LOG, SWAP))
    segment = Segment(folder, base_offset, size=folder.files.size(path), now=now, state=SWAP)
    end = base_offset
    headers = Headers(segment, 0)
    try:
        while (found := at_once(headers.next())) is not None:
            end = found.header.next_offset
    except CorruptFile as error:
        logger.warning("recovery.damaged_swap error=%s", error)
    finally:
        segment.close()
    return end
