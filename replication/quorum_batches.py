"""The batches of the metadata log and of its snapshots: how they are built, and read from a file.

Knows no quorum. A batch holds records of metadata, or control records, which are KRaft's own notes;
what a control batch says comes out as messages of raft_records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.raft_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.protocol.record_build import build_batch, control_key
from ottla.protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    ControlRecordType,
    Record,
    check_crc,
    iterate_records,
    read_control,
    read_header,
)
from ottla.protocol.schema import decode, encode
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.replication.metadata_records import Versioned, decode_record, encode_record
from ottla.storage.errors import CorruptFile
from ottla.storage.files import File

BATCH_BYTES_MAX = 8 << 20
"""Kafka's limit for a batch of the metadata log."""
_RECORDS_MAX = 10_000
_DECOMPRESSED_BYTES_MAX = 1 << 28
_PIECE_BYTES = 1 << 18

_TYPES: dict[type, ControlRecordType] = {
    LeaderChangeMessage: ControlRecordType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlRecordType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlRecordType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlRecordType.KRAFT_VERSION,
    VotersRecord: ControlRecordType.KRAFT_VOTERS,
}
# Who led when is told by the epochs of batches.
_CLASSES = {type_: cls for cls, type_ in _TYPES.items() if cls is not LeaderChangeMessage}
_VERSION = 0


# --- building -----------------------------------------------------------------------------


def metadata_batch(
    records: Iterable[Versioned], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    offset = base_offset - 1
    listed = [
        Record(offset := offset + 1, timestamp_ms, None, encode_record(each)) for each in records
    ]
    batch = build_batch(listed, base_offset=base_offset, leader_epoch=epoch)
    if len(batch) > BATCH_BYTES_MAX:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"The metadata records take {len(batch)} bytes, a batch {BATCH_BYTES_MAX}.",
        )
    return batch


def metadata_batches(
    records: Sequence[Versioned], *, is_atomic: bool
) -> Iterator[Sequence[Versioned]]:
    """What stands in one batch each: all that must be there whole or not at all."""
    step = len(records) if is_atomic else _RECORDS_MAX
    for start in range(0, len(records), max(1, step)):
        yield records[start : start + step]


def control_batch(
    messages: Sequence[Any], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """Messages of raft_records, in one batch."""
    return build_batch(
        [
            Record(
                base_offset + number,
                timestamp_ms,
                control_key(_TYPES[type(message)]),
                encode(message, _VERSION),
            )
            for number, message in enumerate(messages)
        ],
        base_offset=base_offset,
        leader_epoch=epoch,
        control=True,
    )


# --- reading ------------------------------------------------------------------------------


class Batch(NamedTuple):
    """A whole batch whose CRC is right; it begins at `at` in `data`."""

    header: BatchHeader
    data: Buffer
    at: int
    path: str

    def metadata(self) -> Iterator[Versioned]:
        for record in self._records():
            if record.value is None:
                raise self._corrupt(f"offset {record.offset} has no value")
            try:
                yield decode_record(record.value)
            except ProtocolError as error:
                raise self._corrupt(f"offset {record.offset}: {error}") from None

    def controls(self) -> list[Any]:
        """Those of a type that is known; others are of a later version, and passed over."""
        messages: list[Any] = []
        for record in self._records():
            try:
                cls = _CLASSES.get(read_control(record).type)
                if cls is not None and record.value is not None:
                    messages.append(decode(cls, _VERSION, record.value))
            except ProtocolError as error:
                raise self._corrupt(f"offset {record.offset}: {error}") from None
        return messages

    def _records(self) -> Iterator[Record]:
        try:
            yield from iterate_records(
                self.data, self.at, self.header, decompressed_max=_DECOMPRESSED_BYTES_MAX
            )
        except ProtocolError as error:
            raise self._corrupt(str(error)) from None

    def _corrupt(self, reason: str) -> CorruptFile:
        return CorruptFile(self.path, where=f"batch {self.header.base_offset}", reason=reason)


def read_batches(file: File, end: int) -> Iterator[Batch]:
    """All up to the position `end`, which is the end of a batch. Blocks for the disk."""
    start = at = 0
    data: Buffer = b""
    while start + at < end:
        position = start + at
        size = _whole_size(file, data, at, position, end)
        if len(data) - at < size:
            data = file.read(position, min(max(size, _PIECE_BYTES), end - position))
            start, at = position, 0
            if len(data) < size:
                raise _corrupt(file, position, "a batch is cut short")
            continue
        header = read_header(data, at)
        try:
            check_crc(data, at, header)
        except ProtocolError as error:
            raise _corrupt(file, position, error.reason) from None
        yield Batch(header, data, at, file.path)
        at += header.size


def _whole_size(file: File, data: Buffer, at: int, position: int, end: int) -> int:
    """How many bytes from here on have to be in memory."""
    if end - position < HEADER_SIZE:
        raise _corrupt(file, position, "a batch is cut short")
    if len(data) - at < HEADER_SIZE:
        return HEADER_SIZE
    try:
        size = read_header(data, at).size
    except ProtocolError as error:
        raise _corrupt(file, position, error.reason) from None
    if size > end - position:
        raise _corrupt(file, position, "a batch is cut short")
    return size


def _corrupt(file: File, position: int, reason: str) -> CorruptFile:
    return CorruptFile(file.path, where=f"position {position}", reason=reason)
