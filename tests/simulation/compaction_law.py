"""What a cleaning may take away, told by records alone.

Knows no segment and no cleaner: two lists of batches, before and behind, and up to where the log
is clean now.
"""

from collections.abc import Iterable

from ottla.protocol.records import Record
from tests.simulation.history import Batch, records_of, replayed


def check_compaction(before: list[Batch], after: list[Batch], *, end: int, wall_ms: int) -> None:
    """Of each key the last record stays; a tombstone until its horizon has passed."""
    old, new = _by_offset(before), _by_offset(after)
    for offset, record in new.items():
        if old.get(offset) != record:
            raise AssertionError(f"the cleaner made {record} of {old.get(offset)}")
    for record in _must_stay(before, end, wall_ms):
        if record.offset not in new:
            raise AssertionError(f"the cleaner has lost {record}")


def _by_offset(batches: Iterable[Batch]) -> dict[int, Record]:
    return {record.offset: record for batch in batches for record in records_of(batch)}


def _must_stay(before: list[Batch], end: int, wall_ms: int) -> list[Record]:
    _, aborted = replayed(tuple(before), 1 << 62)
    staying: list[Record] = []
    latest: dict[bytes, tuple[Record, Batch]] = {}
    for batch in before:
        header = batch.header
        is_aborted = header.is_transactional and any(
            producer_id == header.producer_id and first <= header.base_offset <= last
            for producer_id, first, last in aborted
        )
        for record in records_of(batch):
            if record.offset >= end:
                staying.append(record)
            elif not header.is_control and not is_aborted and record.key is not None:
                latest[record.key] = record, batch
    for record, batch in latest.values():
        horizon_ms = batch.header.delete_horizon_ms
        if record.value is not None or horizon_ms is None or horizon_ms > wall_ms:
            staying.append(record)
    return staying
