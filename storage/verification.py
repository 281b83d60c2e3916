"""Whether a transaction's coordinator was asked before the transaction's first batch is appended.

Pure. A leader takes a transaction's first batch only with a guard that it gave out before the
coordinator was asked. So a batch that arrives when its transaction has ended begins none that
nobody would ever end.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import BatchHeader

_GUARDS_MAX = 10_000


class VerificationGuard:
    """Good for the transaction that comes next: its first batch, or a marker, takes it away."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(
        self, *, epoch: int, lowest_sequence: int, supports_epoch_bump: bool, started_ms: int
    ) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        """Of the batches that wait: one behind it would shut it out of the log."""
        self.supports_epoch_bump = supports_epoch_bump
        """The producer gets a new epoch with each transaction."""
        self.started_ms = started_ms


class UnverifiedTransaction(KafkaError):
    """The coordinator was not asked, or the transaction has ended since. Newer clients are told
    TRANSACTION_ABORTABLE instead, which is for the caller to say: it knows their version."""

    def __init__(self, producer_id: int) -> None:
        message = f"Producer {producer_id} has no transaction here that its coordinator knows of."
        super().__init__(ErrorCode.INVALID_TXN_STATE, message)


class Guards(dict[int, VerificationGuard]):
    """By producer id, the oldest first."""

    def start(
        self,
        producer_id: int,
        *,
        producer_epoch: int,
        sequence: int,
        supports_epoch_bump: bool,
        wall_ms: int,
    ) -> VerificationGuard:
        """The one that is there, or a new one."""
        guard = self.get(producer_id)
        if guard is None:
            if len(self) >= _GUARDS_MAX:
                # Its holder has to ask once more.
                del self[next(iter(self))]
            guard = self[producer_id] = VerificationGuard(
                epoch=producer_epoch,
                lowest_sequence=sequence,
                supports_epoch_bump=supports_epoch_bump,
                started_ms=wall_ms,
            )
        elif producer_epoch > guard.epoch:
            guard.epoch, guard.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == guard.epoch:
            guard.lowest_sequence = min(guard.lowest_sequence, sequence)
        return guard

    def check(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """Raises unless it is the one that is there."""
        if guard is None or self.get(producer_id) is not guard:
            raise UnverifiedTransaction(producer_id)

    def take_away(self, header: BatchHeader) -> None:
        """A transaction has begun with this batch, or ended with this marker."""
        guard = self.get(header.producer_id)
        if guard is None:
            return
        is_next = guard.supports_epoch_bump and header.producer_epoch == guard.epoch
        if not (header.is_control and is_next):
            # It is left where the marker brings a new epoch, with which the producer has asked for
            # its next transaction already.
            del self[header.producer_id]

    def remove_expired(self, expiration_ms: int, wall_ms: int) -> None:
        for producer_id, guard in list(self.items()):
            if wall_ms - guard.started_ms >= expiration_ms:
                del self[producer_id]
