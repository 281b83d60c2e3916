"""What is on its way to being committed: who waits for it, and who hears of it when it is.

Knows no disk. The listener hears of everything once and in the order of the log; whoever waits for
an offset goes on after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum_batches import Batch
from ottla.replication.raft_messages import Position
from ottla.storage.steps import Slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future

_SLICE_RECORDS = 250
_SLICE_BATCHES = 100


class MetadataListener(Protocol):
    def load(self, records: Sequence[Versioned], *, offset: int, epoch: int) -> None:
        """A part of a snapshot that stands for all up to `offset`."""

    def commit(
        self,
        base_offset: int,
        last_offset: int,
        epoch: int,
        append_timestamp_ms: int,
        records: Sequence[Versioned],
    ) -> None:
        """What is committed; no records where the quorum had something to note."""


class Appended(NamedTuple):
    """Batches of one epoch."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size_bytes: int
    records: Sequence[Versioned]


class Commits:
    __slots__ = ("_appended", "_listener", "_waiters", "applied", "applied_bytes", "applied_ms")

    def __init__(self, listener: MetadataListener) -> None:
        self._listener = listener
        self._appended: deque[Appended] = deque()
        self._waiters: list[tuple[int, Future[None]]] = []
        self.applied = Position(0, 0)
        """What the listener has: the offset behind that, and the epoch in front of it."""
        self.applied_ms = -1
        """When the last of it was appended."""
        self.applied_bytes = 0

    @property
    def has_uncommitted(self) -> bool:
        return bool(self._appended)

    # live

    def append(self, appended: Appended) -> None:
        self._appended.append(appended)

    def advancing(self, high_watermark: int) -> Slices[None]:
        """All below is committed. What came in small batches is handed on together, as each call
        has its price; a batch is never cut, as it may have to be seen whole."""
        while self._appended and self._appended[0].last_offset < high_watermark:
            joined = [self._appended.popleft()]
            count = len(joined[0].records)
            while self._appended and self._appended[0].last_offset < high_watermark:
                count += len(self._appended[0].records)
                if count > _SLICE_RECORDS or self._appended[0].epoch != joined[0].epoch:
                    break
                joined.append(self._appended.popleft())
            self._hand_on(joined[0] if len(joined) == 1 else _joined(joined))
            self._wake(self.applied.offset, None)
            yield

    def _hand_on(self, appended: Appended) -> None:
        base_offset, last_offset, epoch, timestamp_ms, size_bytes, records = appended
        self._listener.commit(base_offset, last_offset, epoch, timestamp_ms, records)
        self.applied = Position(epoch, last_offset + 1)
        self.applied_ms = timestamp_ms
        self.applied_bytes += size_bytes

    # those who wait

    def wait(self, offset: int, waiter: Future[None]) -> None:
        """It has a result once the listener has the record at this offset."""
        self._waiters.append((offset, waiter))

    def fail(self, error: BaseException) -> None:
        """Nothing more will be committed here."""
        self._wake(1 << 63, error)

    def _wake(self, end_offset: int, error: BaseException | None) -> None:
        waiters, self._waiters = self._waiters, []
        for offset, waiter in waiters:
            if offset >= end_offset:
                self._waiters.append((offset, waiter))
            elif waiter.done():
                continue
            elif error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    # loading

    def loading_snapshot(
        self, parts: Iterator[Sequence[Versioned]], end: Position, timestamp_ms: int
    ) -> Slices[None]:
        """One that stands for all below `end`."""
        for records in parts:
            self._listener.load(records, offset=end.offset - 1, epoch=end.epoch)
            yield
        self.applied, self.applied_ms = end, timestamp_ms

    def loading_log(self, batches: Iterator[Batch | None]) -> Slices[None]:
        """All of it is committed. Small batches are handed on together, large ones in parts: nobody
        looks before the end."""
        gathered: list[Appended] = []
        count = 0
        for batch in batches:
            for part in [] if batch is None else _parts(batch):
                if gathered and part.epoch != gathered[0].epoch:
                    self._hand_on(_joined(gathered))
                    gathered, count = [], 0
                gathered.append(part)
                count += len(part.records)
                if count >= _SLICE_RECORDS or len(gathered) >= _SLICE_BATCHES:
                    self._hand_on(_joined(gathered))
                    gathered, count = [], 0
                    yield
            if batch is None:
                yield
        if gathered:
            self._hand_on(_joined(gathered))


def _parts(batch: Batch) -> Iterator[Appended]:
    """A batch, a few records at a time."""
    header = batch.header
    offset, size = header.base_offset, header.size
    epoch, timestamp_ms = header.partition_leader_epoch, header.max_timestamp
    if not header.is_control:
        records = batch.metadata()
        while len(part := list(islice(records, _SLICE_RECORDS))) == _SLICE_RECORDS:
            yield Appended(offset, offset + len(part) - 1, epoch, timestamp_ms, size, part)
            offset, size = offset + len(part), 0
        if part:
            yield Appended(offset, header.last_offset, epoch, timestamp_ms, size, part)
        return
    yield Appended(offset, header.last_offset, epoch, timestamp_ms, size, [])


def _joined(appended: list[Appended]) -> Appended:
    last = appended[-1]
    return Appended(
        appended[0].base_offset,
        last.last_offset,
        last.epoch,
        last.timestamp_ms,
        sum(each.size_bytes for each in appended),
        [record for each in appended for record in each.records],
    )
