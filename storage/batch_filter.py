"""Record batches with some of their records taken out, everything else as it was.

Pure, and knows no log: what is kept is for others to say. Records are looked at only as far as that
takes, and are copied as they are; only the time of each, which is counted from the batch's own, may
have to be written anew.
"""

from __future__ import annotations

from struct import Struct

from ottla.protocol.compression import compress
from ottla.protocol.records import (
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_POSITION,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    INT64_MAX,
    INT64_MIN,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    crc_of,
    wrap_int64,
)
from ottla.protocol.wire import (
    ProtocolError,
    finish_uvarint,
    finish_uvarlong,
    write_varint,
    write_varlong,
)

_CRC = Struct(">I")
_KEPT_FLAGS = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG

Scanned = tuple[int, bytes | None, bool, int, int, int]
"""Offset, key, whether there is a value; time less that of the batch, where the record begins and
where it ends."""


class RecordScanner:
    """Goes through the records of one batch, uncompressed before."""

    __slots__ = ("_at", "_data", "_header", "_left")

    def __init__(self, data: bytes, header: BatchHeader) -> None:
        self._data = data
        self._header = header
        self._left = header.record_count
        self._at = 0

    # One long loop, as the one that decodes records whole, and for the same reason.
    def next(self, count_max: int) -> list[Scanned]:  # noqa: C901
        """The next records, an empty list at the end; ProtocolError where they cannot be read."""
        data, at, length = self._data, self._at, len(self._data)
        base_offset = self._header.base_offset
        records: list[Scanned] = []
        try:
            for _ in range(min(count_max, self._left)):
                start = at
                size = data[at]
                at += 1
                if size > 127:
                    more = data[at]
                    if more > 127:
                        size, at = finish_uvarint(data, at)
                    else:
                        size += (more << 7) - 128
                        at += 1
                end = at + (size >> 1)
                if size & 1 or end > length:
                    raise ProtocolError("size is negative or above what is left")
                time = data[at + 1]
                at += 2
                if time > 127:
                    time, at = finish_uvarlong(data, at)
                offset = data[at]
                at += 1
                if offset > 127:
                    offset, at = finish_uvarint(data, at)
                size = data[at]
                at += 1
                if size > 127:
                    size, at = finish_uvarint(data, at)
                key = None
                if not size & 1:
                    key = data[at : at + (size >> 1)]
                    at += size >> 1
                if at >= end:
                    raise ProtocolError("is longer than its size")
                records.append(
                    (
                        base_offset + ((offset >> 1) ^ -(offset & 1)),
                        key,
                        # The sign of its size: what it and the headers are, nobody asks here.
                        not data[at] & 1,
                        (time >> 1) ^ -(time & 1),
                        start,
                        end,
                    )
                )
                at = end
        except (IndexError, ProtocolError) as error:
            reason = error.reason if isinstance(error, ProtocolError) else "is cut short"
            number = self._header.record_count - self._left + len(records)
            raise ProtocolError(reason, f"records[{number}]") from None
        self._at = at
        self._left -= len(records)
        if not records and at != length:
            raise ProtocolError(f"{length - at} bytes are left behind the last record", "records")
        return records


class BatchRebuild:
    """Makes a batch anew, of records that `RecordScanner` found in the old one."""

    __slots__ = ("_base", "_data", "_delete_horizon_ms", "_header", "_max", "_records", "count")

    def __init__(self, data: bytes, header: BatchHeader, delete_horizon_ms: int | None) -> None:
        self._data = data
        self._header = header
        self._delete_horizon_ms = delete_horizon_ms
        self._base = NO_TIMESTAMP if delete_horizon_ms is None else delete_horizon_ms
        self._max = NO_TIMESTAMP
        self._records = bytearray()
        self.count = 0

    def add(self, records: list[Scanned]) -> None:
        data, header, out = self._data, self._header, self._records
        for _, _, _, old_delta, start, end in records:
            if header.is_log_append_time:
                timestamp = header.max_timestamp
            else:
                timestamp = _wrapped(header.base_timestamp + old_delta)
            if not self.count and self._delete_horizon_ms is None:
                self._base = timestamp
            self._max = max(self._max, timestamp)
            self.count += 1
            delta = _wrapped(timestamp - self._base)
            if delta == old_delta:
                out += data[start:end]
            else:
                _write_with_delta(out, data, start, end, delta)

    def finish(self) -> bytearray:
        """Offsets, producer and sequences stay those of the old batch, whatever was taken out."""
        header = self._header
        records: bytes | bytearray = self._records
        if header.attributes & CODEC_MASK:
            records = compress(header.compression, records)
        horizon_flag = 0 if self._delete_horizon_ms is None else DELETE_HORIZON_FLAG
        new = header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
            attributes=header.attributes & _KEPT_FLAGS | horizon_flag,
            base_timestamp=self._base,
            max_timestamp=header.max_timestamp if header.is_log_append_time else self._max,
            record_count=self.count,
        )
        batch = bytearray(HEADER.pack(*new))
        batch += records
        _CRC.pack_into(batch, CRC_POSITION, crc_of(batch, 0, len(batch)))
        return batch


def _wrapped(value: int) -> int:
    return value if INT64_MIN <= value <= INT64_MAX else wrap_int64(value)


def _write_with_delta(out: bytearray, data: bytes, start: int, end: int, delta: int) -> None:
    """The record with another time, which stands behind its size and its attributes."""
    at = start
    while data[at] > 127:
        at += 1
    attributes_at = at = at + 1
    at += 1
    while data[at] > 127:
        at += 1
    body = bytearray(data[attributes_at : attributes_at + 1])
    write_varlong(body, delta)
    body += data[at + 1 : end]
    write_varint(out, len(body))
    out += body
