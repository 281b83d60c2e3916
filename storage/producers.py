"""What a log knows of the producers that write to it: epochs, sequences, open transactions.

Pure: headers and bytes in, answers and bytes out.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from ottla.protocol.checksum import crc32c
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import INT32_MAX, BatchHeader, ControlRecordType, increment_sequence
from ottla.protocol.wire import ProtocolError

_BATCHES_KEPT = 5


class Origin(IntEnum):
    CLIENT = 0
    COORDINATOR = 1
    REPLICATION = 2
    RECOVERY = 3


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


def _expected_sequence(producer: Producer, epoch: int) -> int:
    """The first sequence of the next batch: a new epoch begins at 0."""
    if epoch != producer.epoch or not producer.batches:
        return 0
    return (producer.batches[-1].last_sequence + 1) & INT32_MAX


class ProducerStates:
    __slots__ = ("expiration_ms", "map_end_offset", "ongoing", "producers", "unreplicated")

    def __init__(self, expiration_ms: int = 86_400_000) -> None:
        self.expiration_ms = expiration_ms
        self.producers: dict[int, Producer] = {}
        self.ongoing: dict[int, int] = {}
        self.unreplicated: dict[int, int] = {}
        self.map_end_offset = 0

    def check(
        self, header: BatchHeader, *, origin: Origin, marker: Marker | None = None
    ) -> Duplicate | None:
        producer = self.producers.get(header.producer_id)
        if producer is None or origin >= Origin.REPLICATION:
            return None
        epoch = header.producer_epoch
        if origin is Origin.CLIENT:
            last = header.last_sequence
            for batch in producer.batches:
                if (
                    epoch == producer.epoch
                    and batch.last_sequence == last
                    and batch.first_sequence == header.base_sequence
                ):
                    return Duplicate(batch.first_offset, batch.last_offset, batch.timestamp)
        if epoch < producer.epoch:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if marker is not None and marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        if origin is Origin.CLIENT and header.base_sequence != _expected_sequence(producer, epoch):
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return None

    def update(
        self, header: BatchHeader, marker: Marker | None = None
    ) -> CompletedTransaction | None:
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer()
        if header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches = []
        producer.last_timestamp = header.max_timestamp
        if header.is_control:
            return None if marker is None else self._end(producer, header, marker)
        producer.batches = producer.batches[1 - _BATCHES_KEPT :]
        producer.batches.append(
            SentBatch(
                header.base_sequence,
                header.last_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
            )
        )
        if header.is_transactional and producer.current_txn_first_offset < 0:
            producer.current_txn_first_offset = header.base_offset
            self.ongoing[header.base_offset] = header.producer_id
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
