"""Going through the batches of a segment: to check them and index them anew, or to learn from them
what is known of producers.

Knows one segment at a time. Pauses after each piece, and never takes more than a piece into memory,
whatever a batch says of its size.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable

from ottla.protocol.checksum import crc32c
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    BatchHeader,
    crc_of,
    read_header,
)
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.errors import CorruptFile
from ottla.storage.files import File
from ottla.storage.incoming import marker_of
from ottla.storage.lookup import corrupt
from ottla.storage.names import LOG
from ottla.storage.producers import Marker, ProducerStates
from ottla.storage.segment import Segment
from ottla.storage.steps import Slices
from ottla.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

PIECE_BYTES = 1 << 20
_BATCHES_PER_SLICE = 256
_OLD_MAGIC_MAX = 1
_OLD_SIZE_MAX = 64 << 20
_continued_crc32c: Callable[[Buffer, int], int] = crc32c  # type: ignore[assignment]


class _Bad(Exception):
    """The batch at hand cannot be kept."""


class Scan:
    """Checks every batch of a segment, and makes its indexes anew.

    `producers` is what is known where the segment begins, and is carried on, as are `epochs`, where
    the checkpoint may know too little or too much. Batches that were safe on disk once
    (`is_durable`) stay even if their CRC is wrong: a reader sees that, and those that follow are
    good. `finish` cuts the file behind the last good batch.
    """

    def __init__(
        self,
        segment: Segment,
        producers: ProducerStates,
        epochs: LeaderEpochs | None,
        *,
        is_durable: bool,
    ) -> None:
        self._segment = segment
        self._producers = producers
        self._epochs = epochs
        self._is_durable = is_durable
        self._position = 0
        self._reason: str | None = None
        self.next_offset = segment.base_offset
        segment.reset_indexes()
        segment.transaction_index.reset()

    @property
    def is_bad(self) -> bool:
        return self._reason is not None

    def run(self) -> Slices[None]:
        segment = self._segment
        file = segment.file
        size = file.size
        data: Buffer = b""
        start = count = 0
        while self._position < size:
            position = self._position
            at = position - start
            if len(data) - at < min(HEADER_SIZE, size - position):
                data, start, at = file.read(position, PIECE_BYTES), position, 0
                yield
            try:
                header = _header_at(data, at, segment, self.next_offset, size - position)
                if header.size > len(data) - at:
                    data, start, at = file.read(position, PIECE_BYTES), position, 0
                    yield
                if header.size > PIECE_BYTES:
                    crc = yield from _crc_of_large(file, position, header.size)
                else:
                    crc = crc_of(data, at, header.size)
                self._keep(header, data, at, crc)
            except _Bad as bad:
                self._reason = str(bad)
                _refuse_old_format(segment, position, self.next_offset)
                return
            count += 1
            if not count % _BATCHES_PER_SLICE:
                yield

    def _keep(self, header: BatchHeader, data: Buffer, at: int, crc: int) -> None:
        segment = self._segment
        if crc == header.crc:
            segment.index((header,), self._position)
            _learn(header, data, at, self._producers, self._epochs, segment)
        elif self._is_durable:
            segment.index((header,), self._position)
            logger.warning("recovery.kept error=%s", corrupt(segment, self._position, "wrong crc"))
        else:
            raise _Bad("the crc is wrong")
        self._position += header.size
        self.next_offset = header.next_offset

    def finish(self) -> None:
        file, position = self._segment.file, self._position
        if file.size != position:
            logger.warning(
                "recovery.cut path=%s position=%d bytes=%d reason=%s",
                file.path,
                position,
                file.size - position,
                self._reason,
            )
            file.truncate(position)
        self._segment.size = position
        self._segment.settle_indexes()
        self._producers.map_end_offset = self.next_offset


def _header_at(data: Buffer, at: int, segment: Segment, next_offset: int, left: int) -> BatchHeader:
    try:
        header = read_header(data, at)
    except ProtocolError as error:
        raise _Bad(error.reason) from None
    if header.size > left:
        raise _Bad(f"{left} bytes are left of a batch of {header.size}")
    if header.base_offset < next_offset or header.last_offset_delta < 0:
        raise _Bad(f"offset {header.base_offset} does not follow {next_offset - 1}")
    if not segment.can_hold(header.last_offset):
        raise _Bad(f"offset {header.last_offset} is too far from the segment's beginning")
    return header


def _crc_of_large(file: File, position: int, size: int) -> Slices[int]:
    crc = 0
    end = position + size
    position += ATTRIBUTES_POSITION
    while position < end:
        piece = file.read(position, min(PIECE_BYTES, end - position))
        crc = _continued_crc32c(piece, crc)
        position += len(piece)
        yield
    return crc


def _learn(
    header: BatchHeader,
    data: Buffer,
    at: int,
    producers: ProducerStates,
    epochs: LeaderEpochs | None,
    segment: Segment,
) -> None:
    if epochs is not None and header.partition_leader_epoch >= 0:
        epochs.bear_out(header.partition_leader_epoch, header.base_offset)
    if header.producer_id < 0:
        return
    completed = producers.update(header, readable_marker(header, data, at))
    if completed is not None:
        if completed.aborted:
            segment.transaction_index.append(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset(completed),
                )
            )
        producers.complete(completed)


def readable_marker(header: BatchHeader, data: Buffer, at: int) -> Marker | None:
    if not header.is_control:
        return None
    try:
        return marker_of(data, at, header)
    except ProtocolError as error:
        logger.warning("recovery.unreadable_marker offset=%d %s", header.base_offset, error)
        return None


def _refuse_old_format(segment: Segment, position: int, next_offset: int) -> None:
    """A whole message of an old format is data, and must not be cut off as if it were torn."""
    left = segment.file.size - position
    head = segment.file.read(position, HEADER_SIZE)
    if len(head) <= MAGIC_POSITION or head[MAGIC_POSITION] > _OLD_MAGIC_MAX:
        return
    size = int.from_bytes(head[8:LOG_OVERHEAD], signed=True) + LOG_OVERHEAD
    if not MAGIC_POSITION < size <= min(left, _OLD_SIZE_MAX):
        return
    message = segment.file.read(position, size)
    if zlib.crc32(message[MAGIC_POSITION:]) == int.from_bytes(message[LOG_OVERHEAD:MAGIC_POSITION]):
        raise CorruptFile(
            segment.file_path(LOG),
            where=f"position {position}, offset {next_offset}",
            reason=f"messages of format {head[MAGIC_POSITION]} are not supported",
        )
