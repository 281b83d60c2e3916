"""What a log must be: the model that a simulation keeps beside it.

Knows batches as bytes with offsets, and nothing of files. A `Mark` is the log between two
operations of a workload; what a crash leaves is judged by the marks around it.
"""

from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from ottla.protocol.records import (
    BatchHeader,
    ControlRecordType,
    Record,
    iterate_records,
    read_control,
    read_coordinator_epoch,
    read_header,
)


class Batch(NamedTuple):
    header: BatchHeader
    data: bytes

    @property
    def base(self) -> int:
        return self.header.base_offset

    @property
    def last(self) -> int:
        return self.header.last_offset


def batch_of(data: bytes) -> Batch:
    return Batch(read_header(data), data)


def records_of(batch: Batch) -> list[Record]:
    return list(iterate_records(batch.data, decompressed_max=1 << 20))


class Known(NamedTuple):
    """What is known of a producer by its last batch and its markers."""

    epoch: int
    last_sequence: int
    last_offset: int
    coordinator_epoch: int
    transaction_start: int


Aborted = tuple[int, int, int]
NOTHING = Known(-1, -1, -1, -1, -1)


class Replayed(NamedTuple):
    known: dict[int, Known]
    aborted: list[Aborted]
    """Of each transaction the producer, the first offset and that of the marker."""


def replayed(batches: tuple[Batch, ...], end: int) -> Replayed:
    """Producers at the offset `end`, and the transactions that were aborted below it."""
    known: dict[int, Known] = {}
    aborted: list[Aborted] = []
    for batch in batches:
        header = batch.header
        producer_id = header.producer_id
        if producer_id < 0 or batch.last >= end:
            continue
        epoch, sequence, offset, coordinator_epoch, start = known.get(producer_id, NOTHING)
        if epoch != header.producer_epoch:
            epoch, sequence, offset = header.producer_epoch, -1, -1
        if not header.is_control:
            sequence, offset = header.last_sequence, batch.last
            if header.is_transactional and start < 0:
                start = header.base_offset
        elif header.record_count:
            type, coordinator_epoch = marker_in(batch.data)
            if type is ControlRecordType.ABORT and start >= 0:
                aborted.append((producer_id, start, header.base_offset))
            start = -1
        known[producer_id] = Known(epoch, sequence, offset, coordinator_epoch, start)
    return Replayed(known, aborted)


@lru_cache(maxsize=1024)
def marker_in(data: bytes) -> tuple[ControlRecordType, int]:
    (record,) = iterate_records(data, decompressed_max=1 << 20)
    return read_control(record).type, read_coordinator_epoch(record)


class Mark(NamedTuple):
    """A log between two operations. `stored` is what it holds, `appended` all that ever came
    before its end and was not truncated; `safe` is how far it says that the disk has it."""

    operation_count: int
    name: str
    stored: tuple[Batch, ...]
    appended: tuple[Batch, ...]
    start: int
    end: int
    safe: int
    is_there: bool = True
    """Whether the log's folder is safe on disk."""


class History:
    """All marks of a run, and every batch that ever stood in the log, by its first offset."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.versions: dict[int, set[bytes]] = {}
        self._counts: list[int] = []
        self._first_cleaned = 1 << 62
        self.checkpoints: list[int] = [0]
        """Numbers of the marks behind which the log start was on disk."""

    def add(self, mark: Mark) -> None:
        for batch in mark.stored:
            self.versions.setdefault(batch.base, set()).add(batch.data)
        if mark.name == "compact":
            self._first_cleaned = min(self._first_cleaned, len(self.marks))
        self.marks.append(mark)
        self._counts.append(mark.operation_count)

    def was_cleaned(self, number: int) -> bool:
        """Whether a cleaner may have been at the log of this mark."""
        return self._first_cleaned <= number

    def around(self, count: int) -> tuple[int, int]:
        """The numbers of the marks before and behind this count of operations."""
        before = bisect_right(self._counts, count) - 1
        exact = self._counts[before] == count or before == len(self.marks) - 1
        return before, before if exact else before + 1

    def since_flush(self, number: int) -> int:
        """The mark at which the log last became safe up to where it is, or farther."""
        while number and self.marks[number].safe <= self.marks[number - 1].safe:
            number -= 1
        return number

    def since_checkpoint(self, number: int) -> int:
        return self.checkpoints[bisect_right(self.checkpoints, number) - 1]
