"""What a log holds and how far readers may see: offsets, watermarks, fetches, lookups.

Changes nothing on disk; log.py does. What may be cold is a `Reading`: the caller picks its driver,
so that a lookup never holds up the event loop.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.wire import Buffer
from ottla.storage.clock import Now
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.folder import Folder
from ottla.storage.lookup import (
    Headers,
    Located,
    Slice,
    TimestampAndOffset,
    doubt_aborted,
    find_by_timestamp,
    find_max_timestamp,
    locate,
    read_slice,
    slice_at,
)
from ottla.storage.plain_reads import newest_slice, plain_slice
from ottla.storage.producers import ProducerStates
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.snapshots import Snapshots
from ottla.storage.steps import Reading, from_memory, when_read
from ottla.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)


class Isolation(IntEnum):
    """How far a reader may see."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


_LOG_END = Isolation.LOG_END
_HIGH_WATERMARK = Isolation.HIGH_WATERMARK
_TXN_COMMITTED = Isolation.TXN_COMMITTED
# What the classes themselves do, in a fifth of the time.
_new_tuple = tuple.__new__


class LogOffset(NamedTuple):
    """An offset, and where it is; the position is -1 while nobody has looked."""

    offset: int
    segment_base_offset: int = -1
    position: int = -1


class Fetched(NamedTuple):
    """The answer to a read: batches as they are stored, from that of the offset on."""

    data: Buffer
    start: LogOffset
    is_first_incomplete: bool = False
    aborted: list[AbortedTransaction] | None = None


class LogParts(NamedTuple):
    """What a log is made of, once its folder was read."""

    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: Snapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class LogView:
    """The state of a log, and its readers' side."""

    __slots__ = (
        "_epochs_behind",
        "_first_unstable",
        "_high_watermark",
        "_newest",
        "_rules",
        "_truncations",
        "epochs",
        "failure",
        "folder",
        "is_settled",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producers",
        "recovery_point",
        "segments",
        "snapshots",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        folder: Folder,
        parts: LogParts,
        *,
        topic: str,
        partition: int,
        topic_id: bytes | None,
        now: Now,
    ) -> None:
        self.folder = folder
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.is_settled = True
        """Nothing has to be written before the next append can be."""
        self._truncations = 0
        self._take(parts)
        self.last_flush_ms = now.monotonic_ms
        self._high_watermark = LogOffset(self.log_start_offset)
        self._update_first_unstable()

    def _take(self, parts: LogParts) -> None:
        self.segments = parts.segments
        self.epochs = parts.epochs
        self.producers = parts.producers
        self.snapshots = parts.snapshots
        self.log_start_offset = parts.log_start_offset
        self.log_end_offset = parts.log_end_offset
        self.recovery_point = max(parts.recovery_point, parts.log_start_offset)
        """All below is safe on disk."""
        self._first_unstable: LogOffset | None = None
        # The last batch, if it was appended to the active segment since that became active: most
        # readers are there, and need not search.
        self._newest: Located | None = None
        self._epochs_behind = False
        self.failure: str | None = None
        """A change that was left half-way: only opening the log again can tell what is there."""

    def begin_again(self, parts: LogParts) -> None:
        """Goes on with what recovery has found in the folder, after a change that failed."""
        self._truncations += 1
        self._take(parts)
        self.update_high_watermark(self._high_watermark.offset)

    def __repr__(self) -> str:
        return (
            f"Log({self.folder.path}, start={self.log_start_offset},"
            f" high_watermark={self.high_watermark}, end={self.log_end_offset})"
        )

    def check(self) -> None:
        self.folder.log_dir.check()
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    # offsets

    @property
    def end(self) -> LogOffset:
        active = self.segments.active
        return LogOffset(self.log_end_offset, active.base_offset, active.size)

    @property
    def local_log_start_offset(self) -> int:
        return max(self.log_start_offset, self.segments.first.base_offset)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """Below it all transactions are decided, and their markers below the high watermark."""
        unstable = self._first_unstable
        high_watermark = self._high_watermark.offset
        if unstable is not None and unstable.offset < high_watermark:
            return unstable.offset
        return high_watermark

    def update_high_watermark(self, offset: int) -> int:
        """Sets it, within the log's bounds; it may fall."""
        if offset >= self.log_end_offset:
            self._set_high_watermark(self.end)
        else:
            self._set_high_watermark(LogOffset(max(offset, self.log_start_offset)))
        return self._high_watermark.offset

    def maybe_increment_high_watermark(self, new: LogOffset) -> bool:
        """Whether it rose, or is now known to be in a newer segment."""
        if new.offset > self.log_end_offset:
            raise ValueError(f"high watermark {new.offset} is behind the end of {self}")
        old = self._high_watermark
        if new.offset < old.offset or (
            new.offset == old.offset and not 0 <= old.segment_base_offset < new.segment_base_offset
        ):
            return False
        self._set_high_watermark(self.end if new.offset == self.log_end_offset else new)
        return True

    def _set_high_watermark(self, offset: LogOffset) -> None:
        self._high_watermark = offset
        self.producers.on_high_watermark(offset.offset)
        self._update_first_unstable()

    def _update_first_unstable(self) -> None:
        first = self.producers.first_unstable_offset
        if first is None:
            self._first_unstable = None
            return
        first = max(first, self.log_start_offset)
        if self._first_unstable is None or self._first_unstable.offset != first:
            self._first_unstable = LogOffset(first)

    def _position_of(self, offset: LogOffset) -> Reading[LogOffset]:
        """The same offset with its position: that of the batch that holds it, or comes next."""
        if offset.position >= 0 or offset.offset >= self.log_end_offset:
            return offset if offset.position >= 0 else self.end
        for segment in self._segments_from(offset.offset):
            found = yield from locate(segment, offset.offset)
            if found is not None:
                return LogOffset(offset.offset, segment.base_offset, found.position)
        return self.end

    def _segments_from(self, offset: int) -> list[Segment]:
        return self.segments.between(offset, self.log_end_offset + 1)

    def _bound(self, isolation: Isolation) -> Reading[LogOffset]:
        """How far this reader may see."""
        if isolation is Isolation.LOG_END:
            return self.end
        bound = self._high_watermark
        unstable = self._first_unstable
        if (
            isolation is Isolation.TXN_COMMITTED
            and unstable is not None
            and unstable.offset < bound.offset
        ):
            bound = yield from self._position_of(unstable)
            if self._first_unstable is unstable:
                self._first_unstable = bound
        elif bound.position < 0:
            known = yield from self._position_of(bound)
            if self._high_watermark is bound:
                self._high_watermark = known
            bound = known
        return bound

    # fetching

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        minimum_one: bool = True,
    ) -> Fetched | None:
        """Batches as they are stored, of one segment. None where the disk would have to be waited
        for: then await `read_cold`. With `minimum_one` the first batch may be above `max_bytes`."""
        if self.folder.log_dir.failure is not None or self.failure is not None:
            self.check()
        try:
            fetched = self._plain(offset, max_bytes, isolation, minimum_one)
            if fetched is not None:
                return fetched
            return from_memory(self._reading(offset, max_bytes, isolation, minimum_one))
        except StorageError as error:
            raise self.refused(error) from error

    async def read_cold(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        minimum_one: bool = True,
    ) -> Fetched:
        """The same, awaited."""
        self.check()
        try:
            return await when_read(self._reading(offset, max_bytes, isolation, minimum_one))
        except StorageError as error:
            raise self.refused(error) from error

    def _plain(
        self, offset: int, max_bytes: int, isolation: Isolation, minimum_one: bool
    ) -> Fetched | None:
        """The answer where it needs no more than one look into memory; else None."""
        active = self.segments.active
        if isolation is _LOG_END:
            bound_offset, bound_base, bound = self.log_end_offset, active.base_offset, active.size
        else:
            bound_offset, bound_base, bound = self._high_watermark
            if bound < 0:
                return None
        committed = isolation is _TXN_COMMITTED
        if committed and not self._all_committed_from(offset):
            return None
        if not self.log_start_offset <= offset < bound_offset or max_bytes <= 0:
            return None
        newest = self._newest
        if newest is not None and offset >= newest[1][0]:
            segment = active
        else:
            newest = None
            segment = self.segments.holding(offset)
        if segment.base_offset == bound_base:
            limit = bound
        elif segment.base_offset < bound_base:
            limit = segment.size
        else:
            return None
        if newest is not None:
            found = newest_slice(
                segment, newest, max_bytes=max_bytes, limit=limit, minimum_one=minimum_one
            )
        else:
            found = plain_slice(
                segment, offset, max_bytes=max_bytes, limit=limit, minimum_one=minimum_one
            )
        if found is None:
            return None
        data, base_offset, position, is_first_incomplete = found
        start = _new_tuple(LogOffset, (base_offset, segment.base_offset, position))
        aborted: list[AbortedTransaction] | None = [] if committed else None
        return _new_tuple(Fetched, (data, start, is_first_incomplete, aborted))

    def _all_committed_from(self, offset: int) -> bool:
        """Whether memory can tell that no transaction behind is open, or was aborted."""
        active = self.segments.active
        return (
            self._first_unstable is None
            and offset >= active.base_offset
            and active.transaction_index.is_known_to_be_empty
        )

    def _reading(
        self, offset: int, max_bytes: int, isolation: Isolation, minimum_one: bool
    ) -> Reading[Fetched]:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} of {self.topic}-{self.partition} is not within"
                f" {self.log_start_offset} and {self.log_end_offset}.",
            )
        committed = isolation is Isolation.TXN_COMMITTED
        bound = yield from self._bound(isolation)
        if offset >= bound.offset:
            known = bound if offset == bound.offset else LogOffset(offset)
            start = yield from self._position_of(known)
            return Fetched(b"", start, aborted=[] if committed else None)
        newest = self._newest
        if newest is not None and offset >= newest.header[0]:
            segment = self.segments.active
            found = yield from slice_at(
                newest,
                Headers(segment, newest.position),
                max_bytes=max_bytes,
                limit=self._limit(segment, bound),
                minimum_one=minimum_one,
            )
            return (yield from self._fetched(segment, offset, found, committed))
        for segment in self._segments_from(offset):
            sliced = yield from read_slice(
                segment,
                offset,
                max_bytes,
                limit=self._limit(segment, bound),
                minimum_one=minimum_one,
            )
            if sliced is not None:
                return (yield from self._fetched(segment, offset, sliced, committed))
        # All behind the offset was compacted away.
        return Fetched(b"", self.end)

    @staticmethod
    def _limit(segment: Segment, bound: LogOffset) -> int | None:
        """Up to where in this segment a reader may see; None if the bound is in front of it."""
        if segment.base_offset < bound.segment_base_offset:
            return segment.size
        return bound.position if segment.base_offset == bound.segment_base_offset else None

    def _fetched(
        self, segment: Segment, offset: int, found: Slice, committed: bool
    ) -> Reading[Fetched]:
        aborted = (yield from self._aborted(segment, offset, found)) if committed else None
        start = LogOffset(found.base_offset, segment.base_offset, found.position)
        return Fetched(found.data, start, found.is_first_incomplete, aborted)

    def _aborted(
        self, segment: Segment, offset: int, found: Slice
    ) -> Reading[list[AbortedTransaction]]:
        """As Kafka names them: up to the next index entry, maybe behind the bytes."""
        end = found.position + len(found.data)
        upper = yield from segment.offset_index.offset_from_position(end)
        if upper is None:
            after = self.segments.floor(segment.base_offset) + 1
            is_last = after == len(self.segments)
            upper = self.log_end_offset if is_last else self.segments[after].base_offset
        return (yield from self.aborted_transactions(offset, upper))

    def aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> Reading[list[AbortedTransaction]]:
        """Those that overlap the range."""
        aborted: list[AbortedTransaction] = []
        for segment in self._segments_from(start_offset):
            found, is_complete = yield from segment.transaction_index.collect(
                start_offset, upper_bound_offset
            )
            yield from self._check_aborted(segment, found)
            aborted += found
            if is_complete:
                break
        return aborted

    def _check_aborted(self, segment: Segment, found: list[AbortedTransaction]) -> Reading[None]:
        """An index that lies would make readers leave out what is committed."""
        index = segment.transaction_index
        for entry in found:
            if entry.last_offset in index.borne_out:
                continue
            begun_in = self.segments.holding(entry.first_offset)
            reason = yield from doubt_aborted(segment, entry, begun_in)
            if reason is not None:
                index.is_wrong = True
                error = CorruptFile(index.path, where=f"{entry}", reason=reason)
                self.failure = f"{self.folder.path} has to be opened again: {error}"
                logger.error("log.failed reason=%s", self.failure)
                raise error
            index.borne_out.add(entry.last_offset)

    # lookups

    def offset_for_timestamp(self, timestamp: int) -> Reading[TimestampAndOffset | None]:
        """The first record that is not earlier."""
        segment = yield from self.segments.first_with_time(timestamp)
        if segment is None:
            return None
        return (yield from find_by_timestamp(segment, timestamp, self.log_start_offset))

    def offset_of_max_timestamp(self) -> Reading[TimestampAndOffset | None]:
        """The first record with the latest time; it may be one below the log start offset."""
        latest = self.segments.first
        for segment in self.segments:
            if segment.max_timestamp > latest.max_timestamp:
                latest = segment
        return (yield from find_max_timestamp(latest))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and where it ends; (-1, -1) if none is known."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def refused(self, error: StorageError) -> KafkaError:
        """What a client is told; a damaged file is no failed disk."""
        if isinstance(error, CorruptFile):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error))
        return self.folder.log_dir.refused(error)
