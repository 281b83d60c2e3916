"""Which transactions a cleaner is in the midst of, as it goes through a log.

Knows no log: batches' headers in, judgements out. Records of an aborted transaction may go at once;
a marker may go when no batch of its transaction was met on the way, since none is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from ottla.protocol.records import BatchHeader, ControlRecordType
from ottla.storage.transaction_index import AbortedTransaction


class _Ongoing:
    """An aborted transaction whose marker was not met yet."""

    __slots__ = ("has_batches", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.has_batches = False


class CleanedTransactions:
    """`keep` is called for each aborted transaction of which something stays."""

    __slots__ = ("_aborted", "_coming", "_committed", "keep")

    def __init__(self, keep: Callable[[AbortedTransaction], None] | None = None) -> None:
        self.keep = keep
        self._coming: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, _Ongoing] = {}
        self._committed: set[int] = set()

    def add(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Aborted transactions that batches to come may belong to; the same ones may come again."""
        for transaction in aborted:
            heapq.heappush(self._coming, (transaction.first_offset, transaction))

    def on_batch(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def on_control_batch(self, header: BatchHeader, type: ControlRecordType | None) -> bool:
        """Whether nothing is left that needs it. `type` is None where it was emptied before."""
        self._begin_up_to(header.last_offset)
        if type is None:
            return True
        if type is ControlRecordType.COMMIT:
            had_batches = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_batches
        if type is not ControlRecordType.ABORT:
            return False
        ongoing = self._aborted.pop(header.producer_id, None)
        if ongoing is None or not ongoing.has_batches:
            return True
        if self.keep is not None:
            self.keep(ongoing.transaction)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            transaction = heapq.heappop(self._coming)[1]
            self._aborted.setdefault(transaction.producer_id, _Ongoing(transaction))
