"""At which offset each leader began to append, by which replicas find where they differ.

Pure. The checkpoint is on disk before the first batch of a new epoch is appended, and before a
truncation is over. That the log's start has risen is not written: what the checkpoint still says of
older batches does no harm, and the start may be farther back after a crash.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Entries with rising epochs and rising start offsets."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[EpochEntry] | None = None) -> None:
        self.entries: list[EpochEntry] = []
        for entry in entries or []:
            self.assign(*entry)

    @property
    def latest(self) -> int | None:
        return self.entries[-1].epoch if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Whether there was anything to change, and so to write."""
        entries = self.entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        return True

    def bear_out(self, epoch: int, offset: int) -> None:
        """A batch of this epoch stands at this offset, whatever a crash has left of the entries."""
        slot = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        if slot and self.entries[slot - 1].epoch == epoch:
            return
        before = [entry for entry in self.entries[:slot] if entry.epoch <= epoch]
        if not before or before[-1].epoch < epoch:
            if before and before[-1].start_offset == offset:
                del before[-1]
            before.append(EpochEntry(epoch, offset))
        self.entries = before + [entry for entry in self.entries[slot:] if entry.epoch > epoch]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and the offset where it ended."""
        entries = self.entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > entries[-1].epoch:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == entries[-1].epoch:
            return epoch, log_end_offset
        higher = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if higher == 0:
            return epoch, entries[0].start_offset
        return entries[higher - 1].epoch, entries[higher].start_offset

    def epoch_for(self, offset: int) -> int | None:
        slot = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[slot - 1].epoch if slot else None

    def truncate_from_end(self, end_offset: int) -> bool:
        count = len(self.entries)
        while self.entries and self.entries[-1].start_offset >= end_offset >= 0:
            self.entries.pop()
        return len(self.entries) != count

    def truncate_from_start(self, start_offset: int) -> bool:
        slot = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if not slot:
            return False
        self.entries[:slot] = [EpochEntry(self.entries[slot - 1].epoch, start_offset)]
        return True

    def clear(self) -> None:
        self.entries.clear()
