"""The whole batches of a segment, one after the other, each borne out by its CRC.

For those who act upon what is inside: what is taken from a damaged batch, and written anew with a
right CRC, would be damage that nobody finds any more.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ottla.protocol.records import HEADER_SIZE, BatchHeader, check_crc, read_header
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.lookup import DECOMPRESSED_BYTES_MAX, corrupt
from ottla.storage.segment import Segment
from ottla.storage.steps import Read

PIECE_BYTES = 1 << 20


class Batch(NamedTuple):
    header: BatchHeader
    data: Buffer
    at: int
    """Where it begins in `data`."""
    position: int
    """Where it begins in its segment's file."""


class BatchReader:
    __slots__ = ("_at", "_data", "_next_offset", "_segment", "_start", "moved_bytes")

    def __init__(self, segment: Segment, position: int = 0) -> None:
        self._segment = segment
        self._start = position
        self._at = 0
        self._data: Buffer = b""
        self._next_offset = segment.base_offset
        self.moved_bytes = 0
        """How much was read from the file."""

    def next(self) -> Generator[Read, Buffer, Batch | None]:
        """None at the end of the segment."""
        position = self._start + self._at
        if position >= self._segment.size:
            return None
        header = yield from self._header(position)
        yield from self._have(position, header.size)
        batch = Batch(header, self._data, self._at, position)
        try:
            check_crc(self._data, self._at, header)
        except ProtocolError as error:
            raise corrupt(self._segment, position, error.reason) from None
        self._at += header.size
        self._next_offset = header.next_offset
        return batch

    def _header(self, position: int) -> Generator[Read, Buffer, BatchHeader]:
        segment = self._segment
        yield from self._have(position, min(HEADER_SIZE, segment.size - position))
        try:
            header = read_header(self._data, self._at)
        except ProtocolError as error:
            raise corrupt(segment, position, error.reason) from None
        if header.size > segment.size - position:
            raise corrupt(segment, position, "the batch is cut short")
        if header.size > DECOMPRESSED_BYTES_MAX:
            raise corrupt(segment, position, f"the batch is of {header.size} bytes")
        if header.base_offset < self._next_offset or header.last_offset_delta < 0:
            reason = f"offset {header.base_offset} does not follow {self._next_offset - 1}"
            raise corrupt(segment, position, reason)
        if not segment.can_hold(header.last_offset):
            reason = f"offset {header.last_offset} is too far from the segment's beginning"
            raise corrupt(segment, position, reason)
        return header

    def _have(self, position: int, size: int) -> Generator[Read, Buffer, None]:
        """Sees to it that so many bytes from `position` on are in memory."""
        if len(self._data) - self._at >= size:
            return
        wanted = min(max(PIECE_BYTES, size), self._segment.size - position)
        self._data = yield Read(self._segment.file, position, wanted)
        self._start, self._at = position, 0
        self.moved_bytes += len(self._data)
