"""The fetches that nearly all readers send, served in one read from memory.

The same as `lookup.read_slice`, without its steps. Whatever is rare (an index that was unloaded, a
cold page, anything that looks damaged) is None: then the long way is gone, which knows what to do.
"""

from __future__ import annotations

from struct import error as StructError

from ottla.protocol.records import HEADER, LOG_OVERHEAD, MAGIC, BatchHeader
from ottla.storage.lookup import RELATIVE_OFFSET_MAX, Located, Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.storage.segment import Segment

# Two index entries that are farther apart have a gap between them, or very large batches.
_GAP_BYTES_MAX = 64 << 10
_HEADER_BYTES_MIN = HEADER.size - LOG_OVERHEAD
_unpack_header = HEADER.unpack_from
# What the classes themselves do, in a fifth of the time.
_new_tuple = tuple.__new__


def plain_slice(
    segment: Segment, offset: int, *, max_bytes: int, limit: int, minimum_one: bool
) -> Slice | None:
    """Batches from that of `offset` on, in front of the position `limit`."""
    around = segment.offset_index.around(offset)
    if around is None:
        return None
    last_offset, start, next_start = around
    gap = next_start - start if next_start > start else _GAP_BYTES_MAX
    file = segment.file
    if gap > _GAP_BYTES_MAX or not 0 <= start < limit:
        return None
    # The batch is before the next entry, so this is enough wherever it begins.
    asked = min(limit - start, gap + max_bytes)
    data = file.read_cached(start, asked)
    if data is None:
        return None
    found = _find(data, offset, last_offset)
    if found is None:
        return None
    at, header = found
    if not 0 <= header[0] - segment.base_offset <= RELATIVE_OFFSET_MAX:
        return None
    first_size = header[1] + LOG_OVERHEAD
    wanted = max(max_bytes, first_size) if minimum_one else max_bytes
    position = start + at
    size = min(limit - position, wanted)
    left = len(data) - at
    # Fewer bytes than wanted are all there is in memory, or the next entry lied.
    if size <= 0 or left < min(size, first_size) or (left < size and len(data) == asked):
        return None
    slice_ = (data[at : at + size], header[0], position, wanted < first_size)
    return _new_tuple(Slice, slice_)


def _find(data: memoryview, offset: int, last_offset: int) -> tuple[int, BatchHeader] | None:
    """The first batch that ends at this offset or behind it. That at the beginning of `data` must
    end at `last_offset`, as the index says, unless it begins the segment (-1)."""
    at = 0
    try:
        header = _unpack_header(data, 0)
        if header[0] + header[6] != last_offset and last_offset >= 0:
            return None
        while True:
            if header[3] != MAGIC or header[1] < _HEADER_BYTES_MIN:
                return None
            if header[0] + header[6] >= offset:
                return at, _new_tuple(BatchHeader, header)
            at += header[1] + LOG_OVERHEAD
            header = _unpack_header(data, at)
    except StructError:
        return None


def newest_slice(
    segment: Segment, newest: Located, *, max_bytes: int, limit: int, minimum_one: bool
) -> Slice | None:
    """The segment's last batch, for readers who wait at the end of the log."""
    position, header = newest
    first_size = header[1] + LOG_OVERHEAD
    wanted = max(max_bytes, first_size) if minimum_one else max_bytes
    size = min(limit - position, wanted)
    if size <= 0:
        return None
    data = segment.file.read_cached(position, size)
    if data is None or len(data) < min(size, first_size):
        return None
    return _new_tuple(Slice, (data, header[0], position, wanted < first_size))
