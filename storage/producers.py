"""What a log knows of the producers that write to it: epochs, sequences, open transactions.

Pure: headers and bytes in, answers and bytes out.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from ottla.protocol.checksum import crc32c
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import (
    CONTROL_FLAG,
    INT32_MAX,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    ControlRecordType,
    increment_sequence,
)
from ottla.protocol.wire import ProtocolError
from ottla.storage.verification import Guards, VerificationGuard

_BATCHES_KEPT = 5


class Origin(IntEnum):
    CLIENT = 0
    COORDINATOR = 1
    REPLICATION = 2
    RECOVERY = 3


_CLIENT = Origin.CLIENT
_REPLICATION = Origin.REPLICATION


class Duplicate(NamedTuple):
    first_offset: int
    last_offset: int
    timestamp: int


class Marker(NamedTuple):
    type: ControlRecordType
    coordinator_epoch: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class SentBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """What is known of one; the batches are its last five of this epoch."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "last_timestamp",
    )

    def __init__(self) -> None:
        self.epoch = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = -1
        self.last_timestamp = -1
        self.batches: list[SentBatch] = []


_SNAPSHOT_HEAD = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
# What the class itself does, in a fifth of the time.
_new_batch = tuple.__new__


def _expected_sequence(producer: Producer, epoch: int) -> int:
    """The first sequence of the next batch: a new epoch begins at 0."""
    if epoch != producer.epoch or not producer.batches:
        return 0
    return (producer.batches[-1].last_sequence + 1) & INT32_MAX


def _out_of_order(header: BatchHeader, expected: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} where {expected} is"
        " expected.",
    )


class ProducerStates:
    """By producer id. `check` judges a batch, `update` takes note of one that was appended."""

    __slots__ = (
        "expiration_ms",
        "guards",
        "map_end_offset",
        "ongoing",
        "producers",
        "unreplicated",
    )

    def __init__(self, expiration_ms: int = 86_400_000) -> None:
        self.expiration_ms = expiration_ms
        self.producers: dict[int, Producer] = {}
        self.guards = Guards()
        self.ongoing: dict[int, int] = {}
        """Producer ids of open transactions, by first offset."""
        self.unreplicated: dict[int, int] = {}
        """Last offsets of those that ended above the high watermark, by first offset."""
        self.map_end_offset = 0

    # verification

    def start_verification(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        supports_epoch_bump: bool,
        wall_ms: int,
    ) -> VerificationGuard | None:
        """What the first batch of a transaction must be appended with, once its coordinator has
        said that it is open. None if it has a batch here."""
        producer = self.producers.get(producer_id)
        if producer is not None:
            self._check_epoch(producer, producer_id, producer_epoch)
            if self._is_ongoing(producer, producer_epoch):
                return None
        return self.guards.start(
            producer_id,
            producer_epoch=producer_epoch,
            sequence=sequence,
            supports_epoch_bump=supports_epoch_bump,
            wall_ms=wall_ms,
        )

    def check_verification(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """Raises unless this batch belongs to a transaction that the coordinator knows of."""
        producer_id = header.producer_id
        producer = self.producers.get(producer_id)
        if producer is not None:
            if self._is_ongoing(producer, header.producer_epoch):
                return
            self._check_epoch(producer, producer_id, header.producer_epoch)
        self.guards.check(producer_id, guard)

    @staticmethod
    def _is_ongoing(producer: Producer, epoch: int) -> bool:
        return producer.current_txn_first_offset >= 0 and producer.epoch == epoch

    @staticmethod
    def _check_epoch(producer: Producer, producer_id: int, epoch: int) -> None:
        if epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {producer_id} was last seen with epoch {producer.epoch}, not {epoch}.",
            )

    # batches

    def check(
        self,
        header: BatchHeader,
        *,
        origin: Origin,
        guard: VerificationGuard | None = None,
        verifies: bool = False,
    ) -> Duplicate | None:
        """Whether a batch with records may follow; one that was sent before is a duplicate."""
        if origin >= _REPLICATION:
            return None
        producer = self.producers.get(header[9])
        if origin is _CLIENT and producer is not None:
            sequence, batches = header[11], producer.batches
            if (
                batches
                and header[10] == producer.epoch
                and batches[-1][0] < sequence == batches[-1][1] + 1
                and (producer.current_txn_first_offset >= 0)
                is (header[5] & TRANSACTIONAL_FLAG != 0)
                and header[9] not in self.guards
            ):
                # The next one, of a producer that does nothing special.
                return None
            duplicate = self._duplicate(producer, header)
            if duplicate is not None:
                return duplicate
        if verifies and header.is_transactional:
            self.check_verification(header, guard)
        if producer is not None:
            self._check_epoch(producer, header.producer_id, header.producer_epoch)
        if origin is _CLIENT:
            self._check_sequence(producer, header)
        if producer is not None:
            self._check_open_transaction(producer, header)
        return None

    @staticmethod
    def _duplicate(producer: Producer, header: BatchHeader) -> Duplicate | None:
        if header.producer_epoch == producer.epoch:
            sequences = header.base_sequence, header.last_sequence
            for batch in producer.batches:
                if batch[:2] == sequences:
                    return Duplicate(batch.first_offset, batch.last_offset, batch.timestamp)
        return None

    def _check_sequence(self, producer: Producer | None, header: BatchHeader) -> None:
        sequence = header.base_sequence
        guard = self.guards.get(header.producer_id)
        if guard is not None:
            if guard.supports_epoch_bump and sequence and not (producer and producer.batches):
                raise _out_of_order(header, 0)
            if sequence > guard.lowest_sequence:
                # A lower one waits for its verification, and could not be appended any more.
                raise _out_of_order(header, guard.lowest_sequence)
        if producer is not None:
            expected = _expected_sequence(producer, header.producer_epoch)
            if sequence != expected:
                raise _out_of_order(header, expected)

    @staticmethod
    def _check_open_transaction(producer: Producer, header: BatchHeader) -> None:
        if producer.current_txn_first_offset >= 0 and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} sent a batch beside its open transaction.",
            )

    def check_marker(
        self, header: BatchHeader, marker: Marker, *, origin: Origin, transaction_version: int
    ) -> None:
        """Whether a transaction may be ended so. A producer of version 2 gets a new epoch with each
        transaction, so that a marker of the epoch at hand is a late one."""
        producer = self.producers.get(header.producer_id)
        if producer is None or origin >= _REPLICATION:
            return
        is_late = transaction_version >= 2 and header.producer_epoch == producer.epoch
        if header.producer_epoch < producer.epoch or is_late:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {header.producer_id} is at epoch {producer.epoch}, its marker of version"
                f" {transaction_version} at {header.producer_epoch}.",
            )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"The coordinator of producer {header.producer_id} is at epoch"
                f" {producer.coordinator_epoch}, not {marker.coordinator_epoch}.",
            )

    def update(
        self, header: BatchHeader, marker: Marker | None = None
    ) -> CompletedTransaction | None:
        """Takes note of a batch with its place in the log; a marker completes a transaction."""
        (
            base_offset,
            _,
            _,
            _,
            _,
            attributes,
            delta,
            _,
            timestamp,
            producer_id,
            epoch,
            sequence,
            _,
        ) = header
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer()
        if epoch != producer.epoch:
            producer.epoch = epoch
            producer.batches = []
        producer.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_FLAG and self.guards:
            self.guards.take_away(header)
        if attributes & CONTROL_FLAG:
            return None if marker is None else self._end(producer, header, marker)
        batches = producer.batches
        if len(batches) >= _BATCHES_KEPT:
            del batches[0]
        last_sequence = (sequence + delta) & INT32_MAX if sequence >= 0 else NO_SEQUENCE
        sent = (sequence, last_sequence, base_offset, base_offset + delta, timestamp)
        batches.append(_new_batch(SentBatch, sent))
        if attributes & TRANSACTIONAL_FLAG and producer.current_txn_first_offset < 0:
            producer.current_txn_first_offset = base_offset
            self.ongoing[base_offset] = producer_id
        return None

    def _end(
        self, producer: Producer, header: BatchHeader, marker: Marker
    ) -> CompletedTransaction | None:
        producer.coordinator_epoch = marker.coordinator_epoch
        first = producer.current_txn_first_offset
        producer.current_txn_first_offset = -1
        if first < 0:
            return None
        aborted = marker.type is ControlRecordType.ABORT
        return CompletedTransaction(header.producer_id, first, header.base_offset, aborted)

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        others = [first for first, each in self.ongoing.items() if each != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        del self.ongoing[completed.first_offset]
        self.unreplicated[completed.first_offset] = completed.last_offset

    @property
    def first_unstable_offset(self) -> int | None:
        return min((*self.ongoing, *self.unreplicated), default=None)

    def on_high_watermark(self, offset: int) -> None:
        if self.unreplicated:
            self.unreplicated = {f: last for f, last in self.unreplicated.items() if last >= offset}

    def on_log_start_offset(self, offset: int) -> None:
        self.on_high_watermark(offset)

    def clear(self) -> None:
        self.producers.clear()
        self.ongoing.clear()
        self.unreplicated.clear()

    def remove_expired(self, wall_ms: int) -> None:
        for producer_id, producer in list(self.producers.items()):
            if self._is_expired(producer, wall_ms):
                del self.producers[producer_id]
        self.guards.remove_expired(self.expiration_ms, wall_ms)

    def _is_expired(self, producer: Producer, wall_ms: int) -> bool:
        idle_ms = wall_ms - producer.last_timestamp
        return producer.current_txn_first_offset < 0 and idle_ms >= self.expiration_ms

    def snapshot(self) -> bytes:
        entries = bytearray()
        for producer_id, producer in self.producers.items():
            last = producer.batches[-1] if producer.batches else SentBatch(-1, -1, -1, -1, -1)
            entries += _SNAPSHOT_ENTRY.pack(
                producer_id,
                producer.epoch,
                last.last_sequence,
                last.last_offset,
                last.last_offset - last.first_offset,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.current_txn_first_offset,
            )
        covered = len(self.producers).to_bytes(4) + entries
        return b"\0\1" + crc32c(covered).to_bytes(4) + covered

    def load(self, data: bytes, *, offset: int, wall_ms: int) -> None:
        if len(data) < _SNAPSHOT_HEAD.size:
            raise ProtocolError("the snapshot is cut short")
        version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
        if version != 1 or len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
            raise ProtocolError("the snapshot is of another version or size")
        if crc32c(memoryview(data)[6:]) != crc:
            raise ProtocolError("the snapshot's crc is wrong")
        self.clear()
        for entry in _SNAPSHOT_ENTRY.iter_unpack(memoryview(data)[_SNAPSHOT_HEAD.size :]):
            producer = Producer()
            producer_id, producer.epoch, last_sequence, last_offset, delta = entry[:5]
            producer.last_timestamp, producer.coordinator_epoch = entry[5:7]
            producer.current_txn_first_offset = entry[7]
            if self._is_expired(producer, wall_ms):
                continue
            if last_offset >= 0:
                first_sequence = increment_sequence(last_sequence, -delta)
                first_offset = last_offset - delta
                producer.batches.append(
                    SentBatch(first_sequence, last_sequence, first_offset, last_offset, entry[5])
                )
            self.producers[producer_id] = producer
            if producer.current_txn_first_offset >= 0:
                self.ongoing[producer.current_txn_first_offset] = producer_id
        self.map_end_offset = offset
