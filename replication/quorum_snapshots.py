"""Snapshots of the metadata log: `OFFSET-EPOCH.checkpoint`, which stands for all below OFFSET.

A snapshot has its name only once it is whole and on disk. It begins with a header, and the voters
where they are not configured, and ends with a footer; a log may begin no later than its newest
snapshot. Reading and writing are in slices.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ottla.protocol.messages.raft_records import SnapshotFooterRecord, SnapshotHeaderRecord
from ottla.protocol.wire import Buffer
from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum_batches import Batch, control_batch, metadata_batch, read_batches
from ottla.replication.raft_messages import Position
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.files import File, Files
from ottla.storage.long_work import Wait, Work

logger = logging.getLogger(__name__)

PART, DELETED = ".part", ".deleted"
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_UNFINISHED = re.compile(r"[0-9]{20}-[0-9]{10}.*\.checkpoint(\.part|\.deleted)")
_SLICE_RECORDS = 250


def snapshot_name(position: Position) -> str:
    return f"{position.offset:020d}-{position.epoch:010d}.checkpoint"


def find_snapshots(files: Files, path: str) -> list[Position]:
    """The oldest first. What was not finished, or was on its way out, is removed."""
    found = []
    for name in files.list(path):
        if match := _NAME.fullmatch(name):
            found.append(Position(offset=int(match[1]), epoch=int(match[2])))
        elif _UNFINISHED.fullmatch(name):
            logger.info("quorum.remove_snapshot path=%s/%s", path, name)
            files.remove(f"{path}/{name}")
    return sorted(found)


# --- writing ------------------------------------------------------------------------------


def snapshot_batches(
    records: Iterable[Versioned],
    controls: Sequence[Any],
    *,
    epoch: int,
    wall_ms: int,
    last_contained_log_timestamp: int,
) -> Iterator[bytearray]:
    """A whole snapshot, a few records at a time. `controls` tell the voters."""
    header = SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=last_contained_log_timestamp
    )
    offset = 1 + len(controls)
    yield control_batch([header, *controls], base_offset=0, epoch=epoch, timestamp_ms=wall_ms)
    left = iter(records)
    while part := list(islice(left, _SLICE_RECORDS)):
        yield metadata_batch(part, base_offset=offset, epoch=epoch, timestamp_ms=wall_ms)
        offset += len(part)
    footer = SnapshotFooterRecord(version=0)
    yield control_batch([footer], base_offset=offset, epoch=epoch, timestamp_ms=wall_ms)


def writing(files: Files, path: str, name: str, batches: Iterable[Buffer]) -> Work[int]:
    """Returns the size in bytes. Where it fails nothing of it stays."""
    part = f"{path}/{name}{PART}"
    if files.exists(part):
        files.remove(part)
    file = files.create(part)
    is_done = False
    try:
        for batch in batches:
            file.append(batch)
            yield len(batch)
        yield Wait(file.sync_now, file.sync)
        is_done = True
    finally:
        size = file.size
        file.close()
        if not is_done:
            _remove_part(files, part)
    files.rename(part, f"{path}/{name}")
    yield Wait(
        lambda: files.sync_directory_now(path),
        lambda: files.sync_directory(path),
    )
    return size


def _remove_part(files: Files, part: str) -> None:
    try:
        files.remove(part)
    except StorageError as error:
        # The next start does it.
        logger.warning("quorum.part_left error=%s", error)


# --- reading ------------------------------------------------------------------------------


class Snapshot:
    """One that is read: its header first, then its records, then it must end with its footer."""

    def __init__(self, files: Files, path: str) -> None:
        self._file: File = files.open(path, read_only=True)
        self._batches = read_batches(self._file, self._file.size)
        try:
            head = self._next_controls()
        except CorruptFile:
            self.close()
            raise
        if not head or not isinstance(head[0], SnapshotHeaderRecord):
            self.close()
            raise self._corrupt("the header is missing")
        self.last_contained_log_timestamp = head[0].last_contained_log_timestamp
        self.controls = head[1:]

    @property
    def size(self) -> int:
        return self._file.size

    def records(self) -> Iterator[list[Versioned]]:
        """A few at a time."""
        for batch in self._batches:
            if not batch.header.is_control:
                records = batch.metadata()
                while part := list(islice(records, _SLICE_RECORDS)):
                    yield part
            elif _is_footer(batch):
                return
        raise self._corrupt("the footer is missing")

    def _next_controls(self) -> list[Any]:
        batch = next(self._batches, None)
        return [] if batch is None or not batch.header.is_control else batch.controls()

    def _corrupt(self, reason: str) -> CorruptFile:
        return CorruptFile(self._file.path, where="", reason=reason)

    def close(self) -> None:
        self._file.close()


def _is_footer(batch: Batch) -> bool:
    return any(isinstance(each, SnapshotFooterRecord) for each in batch.controls())
