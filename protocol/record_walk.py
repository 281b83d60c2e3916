"""Going through the records of a produced batch, to know whether they are what they say.

Knows no topic. `walk_plain` is fast, and knows only records as most producers write most of them;
`walk` knows all of them, and says what is wrong. Each record takes a fraction of a microsecond, and
a broker does this for every small batch.
"""

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.protocol.records import (
    INT64_MAX,
    INT64_MIN,
    NO_TIMESTAMP,
    BatchHeader,
    decode_records,
)
from ottla.protocol.wire import (
    Buffer,
    ProtocolError,
    finish_uvarint,
    finish_uvarlong,
    read_uvarint,
)

_PLAIN_COUNT_MAX = 64
_Unpack = Callable[[Buffer, int], tuple[int, ...]]
_NOT_PLAIN = -100_000


class Walked(NamedTuple):
    """What only the records tell about a batch; a header that is trusted says it, too."""

    min_timestamp: int
    max_timestamp: int
    has_null_key: bool = False
    offsets_in_order: bool = True


class Plain(NamedTuple):
    """What `walk_plain` tells."""

    highest_delta: int
    """The last record's time after the base timestamp; the least one is not below zero."""
    has_null_key: bool


_new_plain = tuple.__new__


def walk_plain(buf: Buffer, start: int, count: int) -> Plain | None:
    """Through the records from `start` to the end of `buf`. None if `walk` has to look: something
    is wrong, or rare.

    Plain records are in order, by offset and by time, at most 64 and within 63 ms, without headers,
    with keys of one length below 64 bytes, and all of less than 64 bytes, or all of less than 8 KiB
    with values of 64 bytes and more.
    """
    if count > _PLAIN_COUNT_MAX:
        return None
    try:
        is_long = buf[start] > 127
        key = buf[start + 5 if is_long else start + 4]
        if key > 127:
            return None
        walk_each = _walk_long if is_long else _walk_short
        highest = walk_each(buf, start - 1, count, key)
    except (IndexError, StructError):
        return None
    if highest < 0 or highest > 127:
        return None
    return _new_plain(Plain, (highest >> 1, key & 1 == 1))


# Byte by byte: the last one of the record before (no headers), size, attributes, time, offset,
# size of the key, the key, size of the value. The long ones have two bytes for each of both sizes.
_long: dict[int, _Unpack] = {}
_short: dict[int, _Unpack] = {}
# By what the two bytes of a varint are as a little-endian number: the size that it says.
_sizes: list[int] = []


def _fill_sizes() -> None:
    """What is no size, or not one of two bytes, is so far off that no sum with it is ever right."""
    _sizes.extend([_NOT_PLAIN] * 65_536)
    for high in range(128):
        low = high << 8 | 128
        _sizes[low : low + 128 : 2] = range(high << 6, (high << 6) + 64)


def _walk_long(buf: Buffer, at: int, count: int, key: int) -> int:
    """The highest time as a zigzag varint; -1 if a record is not plain."""
    key_size = 0 if key & 1 else key >> 1
    unpack = _long.get(key)
    if unpack is None:
        if not _sizes:
            _fill_sizes()
        unpack = _long[key] = Struct(f"<BH4B{key_size}xH").unpack_from
    sizes = _sizes
    around_value = 7 + key_size  # what the record's size counts beside the value
    highest = odd = 0
    for number in range(0, count * 2, 2):
        before, size, _, time, delta, its_key, value = unpack(buf, at)
        size = sizes[size]
        if (
            delta != number
            or its_key != key
            or time < highest
            or size - sizes[value] != around_value
            or (before and number)
        ):
            return -1
        highest = time
        odd |= time
        at += size + 2
    if odd & 1 or buf[at] or at + 1 != len(buf):
        return -1
    return highest


def _walk_short(buf: Buffer, at: int, count: int, key: int) -> int:
    """The same."""
    key_size = 0 if key & 1 else key >> 1
    unpack = _short.get(key)
    if unpack is None:
        unpack = _short[key] = Struct(f"6B{key_size}xB").unpack_from
    around_value = 12 + 2 * key_size  # doubled, as varints of sizes are
    highest = odd = high = 0
    for number in range(0, count * 2, 2):
        before, size, _, time, delta, its_key, value = unpack(buf, at)
        if (
            delta != number
            or its_key != key
            or time < highest
            or size - value != around_value
            or (before and number)
        ):
            return -1
        highest = time
        odd |= size | time
        high |= size | value
        at += size + 2 >> 1
    if odd & 1 or high > 127 or buf[at] or at + 1 != len(buf):
        return -1
    return highest


# Runs for every record that is produced, so varints of one and two bytes are read in place: calls
# would take half the time again.
def walk(data: bytes, header: BatchHeader) -> Walked:  # noqa: C901
    """Go through the records in `data`; ProtocolError if they are not what they say."""
    far, longer = finish_uvarint, finish_uvarlong
    at = index = number = 0
    lowest, highest = INT64_MAX, INT64_MIN
    null_key, in_order = False, True
    try:
        for index in range(header.record_count):  # noqa: B007
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                size, at = (size - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            end = at + (size >> 1)
            if size & 1 or end > len(data):
                raise ProtocolError("size is negative or above what is left")
            delta = data[at + 1]
            at += 2
            if delta > 127:
                more = data[at]
                delta, at = (delta - 128 + (more << 7), at + 1) if more < 128 else longer(data, at)
            delta = (delta >> 1) ^ -(delta & 1)
            if delta < lowest:
                lowest = delta
            if delta > highest:
                highest = delta
            delta = data[at]
            at += 1
            if delta > 127:
                more = data[at]
                delta, at = (delta - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            if delta != number:  # as zigzag varints
                in_order = False
            number += 2
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                size, at = (size - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            if size & 1:
                null_key = True
            else:
                at += size >> 1
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                size, at = (size - 128 + (more << 7), at + 1) if more < 128 else far(data, at)
            if not size & 1:
                at += size >> 1
            at = _skip_headers(data, at) if data[at] else at + 1
            if at != end:
                raise ProtocolError(f"ends {abs(at - end)} bytes off its size")
    except (IndexError, ProtocolError) as error:
        reason = error.reason if isinstance(error, ProtocolError) else "is cut short"
        raise ProtocolError(reason, f"records[{index}]") from None
    if at != len(data):
        raise ProtocolError(f"{len(data) - at} bytes are left behind the last record", "records")
    lowest, highest = _timestamps(data, header, lowest, highest)
    return Walked(lowest, highest, null_key, in_order)


def _skip_headers(data: bytes, at: int) -> int:
    count, at = read_uvarint(data, at)
    if count & 1 or count >> 1 > len(data) - at:
        raise ProtocolError("header count is negative or above what is left")
    for _ in range(count >> 1):
        size, at = read_uvarint(data, at)
        if size & 1:
            raise ProtocolError("header key is null")
        size, at = read_uvarint(data, at + (size >> 1))
        if not size & 1:
            at += size >> 1
    return at


def _timestamps(data: bytes, header: BatchHeader, lowest: int, highest: int) -> tuple[int, int]:
    """The least and the greatest timestamp, from the least and the greatest delta."""
    if header.is_log_append_time:
        lowest = highest = header.max_timestamp
    else:
        lowest += header.base_timestamp
        highest += header.base_timestamp
        if lowest < INT64_MIN or highest > INT64_MAX:
            # Java's arithmetic wraps, so the order of the deltas is not that of the timestamps.
            timestamps = [record.timestamp for record in decode_records(data, header)]
            lowest, highest = min(timestamps), max(timestamps)
    return lowest, max(NO_TIMESTAMP, highest)
