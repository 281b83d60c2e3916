"""What lies beside a segment: its three indexes, and the snapshot of producers at its beginning.

Part of the specification that format.py begins. All four are entries of a fixed size, so they are
walked entry by entry, whatever their size. Index entries hold offsets relative to the segment's
base offset (the number in the file's name), so that four bytes suffice; here they are absolute.
"""

from collections.abc import Iterable, Iterator, Mapping

from construct import (  # type: ignore[import-untyped]
    Const,
    ConstructError,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Struct,
)
from crc32c import crc32c

from ottla.storage.format import (
    PIECE_SIZE,
    Fields,
    FormatError,
    Read,
    plain,
    reader_of,
    reason_of,
)

# --- NNN.index: offset -> position ----------------------------------------------------------------
# Sparse: about one entry for each 4,096 bytes of log (index.interval.bytes).

OffsetIndexEntry = Struct(
    "relative_offset" / Int32sb * "of the batch's last record",
    "position" / Int32sb * "where the batch begins in the segment",
)


def walk_offset_index(read: Read, size: int, base_offset: int) -> Iterator[Fields]:
    """Entries as {"offset", "position"}, both rising."""
    before = {"offset": base_offset - 1, "position": 0}
    for at, entry in _walk(read, entries_size(read, size, OffsetIndexEntry), OffsetIndexEntry):
        now = {"offset": base_offset + entry["relative_offset"], "position": entry["position"]}
        _check_rising(at, "offset", before, now)
        _check_rising(at, "position", before, now)
        yield now
        before = now
    _check_whole(size, OffsetIndexEntry)


# --- NNN.timeindex: timestamp -> offset -----------------------------------------------------------
# An entry says: up to this offset no record of the segment is later than this timestamp. One is
# added with each entry of the offset index if the time has risen, and a last one on closing.

TimeIndexEntry = Struct(
    "timestamp" / Int64sb * "the latest so far",
    "relative_offset" / Int32sb * "of the record that has it, or of its batch's last one",
)


def walk_time_index(read: Read, size: int, base_offset: int) -> Iterator[Fields]:
    """Entries as {"timestamp", "offset"}; times rise, offsets do not fall."""
    before = {"timestamp": -1, "offset": base_offset}
    for at, entry in _walk(read, entries_size(read, size, TimeIndexEntry), TimeIndexEntry):
        now = {"timestamp": entry["timestamp"], "offset": base_offset + entry["relative_offset"]}
        _check_rising(at, "timestamp", before, now)
        if now["offset"] < before["offset"]:
            raise FormatError(at, f"offset {now['offset']} comes after {before['offset']}")
        yield now
        before = now
    _check_whole(size, TimeIndexEntry)


# --- NNN.txnindex: the aborted transactions -------------------------------------------------------
# One entry for each abort marker in the segment; the file appears with the first. It tells a reader
# of committed data what to leave out.

AbortedTransaction = Struct(
    "version" / Const(0, Int16sb),
    "producer_id" / Int64sb,
    "first_offset" / Int64sb * "of the transaction's first record; maybe in an earlier segment",
    "last_offset" / Int64sb * "of the abort marker",
    "last_stable_offset" / Int64sb * "up to where all was decided once this transaction was over",
)


def walk_transaction_index(read: Read, size: int) -> Iterator[Fields]:
    before = {"last_offset": -1}
    for at, entry in _walk(read, size, AbortedTransaction):
        _check_rising(at, "last_offset", before, entry)
        yield entry
        before = entry
    _check_whole(size, AbortedTransaction)


# --- NNN.snapshot: what is known of each producer -------------------------------------------------
# Written when a segment is rolled and at a clean stop; NNN is the offset of the next record. It
# spares a start the reading of the whole log. Of each producer it holds the last batch only.

ProducerSnapshotHeader = Struct(
    "version" / Const(1, Int16sb),
    "crc" / Int32ub * "CRC-32C of all that follows this field",
    "entry_count" / Int32sb,
)

ProducerEntry = Struct(
    "producer_id" / Int64sb,
    "epoch" / Int16sb,
    "last_sequence" / Int32sb * "of the last batch's last record; -1: no batch, only a marker",
    "last_offset" / Int64sb * "of the last batch's last record; -1: no batch, only a marker",
    "offset_delta" / Int32sb * "last offset - base offset of that batch",
    "timestamp" / Int64sb * "of the last batch or marker; the producer expires by it",
    "coordinator_epoch" / Int32sb * "of the last marker; -1: none",
    "current_txn_first_offset" / Int64sb * "of the open transaction; -1: none",
)

CRC_END = 6


def walk_snapshot(read: Read, size: int) -> Iterator[Fields]:
    head = read(0, ProducerSnapshotHeader.sizeof())
    if len(head) < ProducerSnapshotHeader.sizeof():
        raise FormatError(0, f"{size} bytes are too few for a snapshot")
    if head[:2] != b"\0\1":
        raise FormatError(0, f"version {int.from_bytes(head[:2])} is unknown")
    header = plain(ProducerSnapshotHeader.parse(head))
    expected_size = len(head) + header["entry_count"] * ProducerEntry.sizeof()
    if header["entry_count"] < 0 or size != expected_size:
        raise FormatError(CRC_END, f"{header['entry_count']} entries do not make {size} bytes")
    crc = 0
    for piece in range(CRC_END, size, PIECE_SIZE):
        crc = crc32c(read(piece, PIECE_SIZE), crc)
    if crc != header["crc"]:
        raise FormatError(2, f"the CRC is {crc:#010x}, the file says {header['crc']:#010x}")
    for _, entry in _walk(read, size, ProducerEntry, start=len(head)):
        yield entry


# --- Whole files in memory ------------------------------------------------------------------------


def parse_offset_index(data: bytes, base_offset: int) -> Fields:
    """{"entries": [...], "preallocated_bytes": the zeros behind them}."""
    entries = list(walk_offset_index(reader_of(data), len(data), base_offset))
    return _index(entries, data, OffsetIndexEntry)


def parse_time_index(data: bytes, base_offset: int) -> Fields:
    """{"entries": [...], "preallocated_bytes": the zeros behind them}."""
    entries = list(walk_time_index(reader_of(data), len(data), base_offset))
    return _index(entries, data, TimeIndexEntry)


def parse_transaction_index(data: bytes) -> list[Fields]:
    return list(walk_transaction_index(reader_of(data), len(data)))


def parse_snapshot(data: bytes) -> list[Fields]:
    return list(walk_snapshot(reader_of(data), len(data)))


def build_offset_index(
    entries: Iterable[Mapping[str, int]], base_offset: int, preallocated_bytes: int = 0
) -> bytes:
    return _build_relative(OffsetIndexEntry, entries, base_offset) + bytes(preallocated_bytes)


def build_time_index(
    entries: Iterable[Mapping[str, int]], base_offset: int, preallocated_bytes: int = 0
) -> bytes:
    return _build_relative(TimeIndexEntry, entries, base_offset) + bytes(preallocated_bytes)


def build_transaction_index(entries: Iterable[Mapping[str, int]]) -> bytes:
    return b"".join(AbortedTransaction.build({"version": 0, **entry}) for entry in entries)


def build_snapshot(entries: Iterable[Mapping[str, int]]) -> bytes:
    content: list[bytes] = [ProducerEntry.build(entry) for entry in entries]
    header = {"version": 1, "crc": 0, "entry_count": len(content)}
    covered: bytes = ProducerSnapshotHeader.build(header)[CRC_END:] + b"".join(content)
    head: bytes = ProducerSnapshotHeader.build({**header, "crc": crc32c(covered)})
    return head[:CRC_END] + covered


def _index(entries: list[Fields], data: bytes, entry: Struct) -> Fields:
    return {"entries": entries, "preallocated_bytes": len(data) - len(entries) * entry.sizeof()}


def _build_relative(entry: Struct, entries: Iterable[Mapping[str, int]], base_offset: int) -> bytes:
    relative = ({**each, "relative_offset": each["offset"] - base_offset} for each in entries)
    return b"".join(map(entry.build, relative))


# --- Entries of a fixed size ----------------------------------------------------------------------


def entries_size(read: Read, size: int, entry: Struct) -> int:
    """The size of an index without the zeros behind its last entry.

    The index of the active segment is preallocated (segment.index.bytes, 10 MiB) and cut to its
    entries when the segment is rolled or the broker stops; after a crash the zeros are still there.
    They cannot be an entry: in it an offset or a time would have to rise. A file of one zero entry
    has been cut, and means it (a time index whose latest record is of 1970).
    """
    entry_size: int = entry.sizeof()
    if size == entry_size:
        return size
    end = size
    while end > 0:
        start = max(0, end - PIECE_SIZE)
        used = len(read(start, end - start).rstrip(b"\0"))
        if used:
            return -(-(start + used) // entry_size) * entry_size
        end = start
    return 0


def _walk(read: Read, size: int, entry: Struct, start: int = 0) -> Iterator[tuple[int, Fields]]:
    entry_size = entry.sizeof()
    pieces_size = PIECE_SIZE // entry_size * entry_size
    for piece in range(start, size, pieces_size):
        data = read(piece, min(pieces_size, size - piece))
        for within in range(0, len(data) - entry_size + 1, entry_size):
            yield piece + within, _parse(entry, piece + within, data[within : within + entry_size])


def _parse(entry: Struct, position: int, data: bytes) -> Fields:
    try:
        return plain(entry.parse(data))  # type: ignore[no-any-return]
    except ConstructError as error:
        raise FormatError(position, reason_of(error)) from None


def _check_rising(position: int, name: str, before: Fields, now: Fields) -> None:
    if now[name] <= before[name]:
        raise FormatError(position, f"{name} {now[name]} comes after {before[name]}")


def _check_whole(size: int, entry: Struct) -> None:
    if rest := size % entry.sizeof():
        reason = f"{rest} bytes are left, an entry takes {entry.sizeof()}"
        raise FormatError(size - rest, reason)
