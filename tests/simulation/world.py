"""One log directory with the log of t-0, as a process finds it: opened, read, fingerprinted."""

from random import Random

from ottla.protocol.records import crc_of, iterate_batches
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.logs import Logs
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.steps import at_once, exhaust
from tests.simulation.history import Aborted, Batch, Known

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


def stored_in(log: Log) -> tuple[Batch, ...]:
    """All that a reader finds, from the log start on."""
    found: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, 1 << 20)
        if fetched is None or not fetched.data:
            break
        for position, header in iterate_batches(fetched.data):
            if header.last_offset < offset:
                if found and crc_of(found[-1].data, 0, len(found[-1].data)) != found[-1].header.crc:
                    # A bit of it is wrong, and it lies about its end.
                    return tuple(found)
                raise AssertionError(f"a batch at {header.base_offset} for offset {offset}")
            data = bytes(fetched.data[position : position + header.size])
            found.append(Batch(header, data))
            offset = header.next_offset
            if offset > log.log_end_offset:
                return tuple(found)
    return tuple(found)


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


def fingerprint(log: Log) -> tuple[object, ...]:
    """What must be the same when the same disk is opened once more."""
    return (
        log.log_start_offset,
        log.log_end_offset,
        [batch.data for batch in stored_in(log)],
        list(log.epochs.entries),
        # Markers that were deleted are known of a snapshot alone, and any snapshot may go.
        sorted((key, known[:3]) for key, known in known_in(log).items()),
        aborted_in(log),
    )
