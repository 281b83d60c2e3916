"""One log directory with the log of t-0, as a process finds it: opened, read, fingerprinted."""

from functools import lru_cache
from random import Random
from typing import NamedTuple

from ottla.protocol.records import crc_of, iterate_batches
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.epochs import EpochEntry
from ottla.storage.log import Log
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.logs import Logs
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.steps import at_once, exhaust
from tests.simulation.history import Aborted, Batch, Known, Replayed, replayed

TOPIC, PARTITION = "t", 0
DIRECTORY = "d"


def opened(files: MemoryFiles, config: LogConfig, now: Now) -> Logs:
    directories = open_log_directories(files, (DIRECTORY,), cluster_id="C", node_id=1)
    logs = Logs(
        files,
        directories,
        random=Random(3),
        default_config=config,
        verifies_transactions=False,
    )
    exhaust(logs.opening(lambda topic: config, now))
    return logs


def log_in(logs: Logs) -> Log | None:
    return logs.current.get((TOPIC, PARTITION))


class Lookup(NamedTuple):
    """What was found for the offset of a batch, and for its latest time."""

    batch: Batch
    data: bytes
    offset: int | None


class Recovered(NamedTuple):
    """All that was found in a log when it had been opened."""

    text: str
    start: int
    end: int
    first_base: int
    """Where the first segment begins."""
    is_compacted: bool
    found: tuple[Batch, ...]
    epochs: list[EpochEntry]
    known: dict[int, Known]
    aborted: list[Aborted]
    lookups: list[Lookup]
    replayed: Replayed
    """What the found batches say."""

    def __str__(self) -> str:
        return self.text

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """What must be the same when the same disk is opened once more."""
        return (
            self.start,
            self.end,
            [batch.data for batch in self.found],
            self.epochs,
            # Markers that were deleted are known of a snapshot alone, and any snapshot may go.
            sorted((key, known[:3]) for key, known in self.known.items()),
            self.aborted,
        )


def recovered_in(log: Log) -> Recovered:
    found = stored_in(log)
    end = log.log_end_offset
    return Recovered(
        str(log),
        log.log_start_offset,
        end,
        log.segments.first.base_offset,
        log.config.is_compacted,
        found,
        list(log.epochs.entries),
        known_in(log),
        aborted_in(log),
        [_looked_up(log, found[i]) for i in sorted({0, len(found) // 2, len(found) - 1})]
        if found
        else [],
        replayed(found, end),
    )


def _looked_up(log: Log, batch: Batch) -> Lookup:
    fetched = log.read(max(batch.base, log.log_start_offset), 1)
    at = None
    if not log.config.is_compacted and log.log_start_offset == log.segments.first.base_offset:
        at = at_once(log.offset_for_timestamp(batch.header.max_timestamp))
    data = b"" if fetched is None else bytes(fetched.data[: len(batch.data)])
    return Lookup(batch, data, None if at is None else at.offset)


def stored_in(log: Log) -> tuple[Batch, ...]:
    """All that a reader finds, from the log start on."""
    found: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, 1 << 20)
        if fetched is None or not fetched.data:
            break
        for batch in _batches_in(bytes(fetched.data)):
            if batch.last < offset:
                if found and crc_of(found[-1].data, 0, len(found[-1].data)) != found[-1].header.crc:
                    # A bit of it is wrong, and it lies about its end.
                    return tuple(found)
                raise AssertionError(f"a batch at {batch.base} for offset {offset}")
            found.append(batch)
            offset = batch.header.next_offset
            if offset > log.log_end_offset:
                return tuple(found)
    return tuple(found)


@lru_cache(maxsize=1024)
def _batches_in(data: bytes) -> tuple[Batch, ...]:
    """Most segments are the same in most crashes."""
    return tuple(
        Batch(header, data[position : position + header.size])
        for position, header in iterate_batches(data)
    )


def known_in(log: Log) -> dict[int, Known]:
    return {
        producer_id: Known(
            producer.epoch,
            producer.batches[-1].last_sequence if producer.batches else -1,
            producer.batches[-1].last_offset if producer.batches else -1,
            producer.coordinator_epoch,
            producer.current_txn_first_offset,
        )
        for producer_id, producer in log.producers.producers.items()
    }


def aborted_in(log: Log) -> list[Aborted]:
    found = at_once(log.aborted_transactions(log.log_start_offset, log.log_end_offset))
    return sorted((each.producer_id, each.first_offset, each.last_offset) for each in found)
