"""What is on its way to being committed: who waits for it, and who hears of it when it is.

Knows no disk. The listener hears of everything once and in the order of the log; whoever waits for
an offset goes on after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
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

    def advance(self, high_watermark: int) -> None:
        """All below is committed."""
        while self._appended and self._appended[0].last_offset < high_watermark:
            self._hand_on(self._appended.popleft())
        self._wake(self.applied.offset, None)

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
        """All of it is committed. Small batches are handed on together: each call has its price."""
        gathered: list[Batch] = []
        records: list[Versioned] = []
        for batch in batches:
            is_full = len(records) >= _SLICE_RECORDS or len(gathered) >= _SLICE_BATCHES
            if gathered and (batch is None or is_full or _epoch(batch) != _epoch(gathered[0])):
                self._hand_on(_joined(gathered, records))
                gathered, records = [], []
                yield
            if batch is not None:
                gathered.append(batch)
                if not batch.header.is_control:
                    records += batch.metadata()
        if gathered:
            self._hand_on(_joined(gathered, records))


def _epoch(batch: Batch) -> int:
    return batch.header.partition_leader_epoch


def _joined(batches: list[Batch], records: list[Versioned]) -> Appended:
    last = batches[-1].header
    return Appended(
        batches[0].header.base_offset,
        last.last_offset,
        last.partition_leader_epoch,
        last.max_timestamp,
        sum(batch.header.size for batch in batches),
        records,
    )
