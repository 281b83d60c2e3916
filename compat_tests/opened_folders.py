"""A log directory of Apache Kafka's, opened by us: what we read there, and what we add to it."""

from dataclasses import replace
from pathlib import Path
from random import Random

from compat_tests.filled_kafka import SEGMENT_BYTES, Row
from ottla.protocol.record_build import build_batch, build_end_transaction_marker
from ottla.protocol.records import (
    ControlRecordType,
    Record,
    iterate_batches,
    iterate_records,
    read_control,
)
from ottla.storage.clock import Now
from ottla.storage.config import COMPACT, LogConfig
from ottla.storage.disk_files import DiskFiles
from ottla.storage.log import Isolation, Log
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.logs import Logs
from ottla.storage.producers import Origin
from ottla.storage.steps import exhaust
from tests.log_rig import batches

CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=500)
COMPACTED = replace(CONFIG, cleanup_policy=frozenset({COMPACT}))
COMMITTED, ABORTED = 900_001, 900_002
_READ_BYTES = 4_000


class OpenedFolders:
    """All logs of a stopped Kafka, but for that of its quorum."""

    def __init__(self, directory: Path, *, wall_ms: int) -> None:
        self.now = Now(0, wall_ms)
        self._files = DiskFiles()
        self._directories = open_log_directories(self._files, [str(directory)])
        self._logs = Logs(
            self._files,
            self._directories,
            random=Random(1),
            default_config=CONFIG,
            verifies_transactions=False,
        )
        exhaust(self._logs.opening(_config_of, self.now))
        assert not self._logs.refused and not self._logs.offline

    def log(self, topic: str) -> Log:
        return self._logs.current[topic, 0]

    def close(self, *, broker_epoch: int) -> None:
        exhaust(self._logs.closing(broker_epoch=broker_epoch))
        self._files.close()

    def crash(self) -> None:
        """The process is killed: only its lock goes."""
        self._files.close()
        self._directories.release()

    def append(self, log: Log, *, count: int = 30) -> None:
        """As the next leader: plain batches, and transactions that are committed and aborted."""
        epoch = (log.epochs.latest or 0) + 1
        log.assign_epoch(epoch)
        for number in range(8):
            log.append_as_leader(
                build_batch(self.records(count, f"plain {number}")),
                leader_epoch=epoch,
                now=self.now,
            )
        for producer_id, end in (
            (COMMITTED, ControlRecordType.COMMIT),
            (ABORTED, ControlRecordType.ABORT),
        ):
            data = build_batch(
                self.records(count, end.name),
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
            log.append_as_leader(data, leader_epoch=epoch, now=self.now)
            marker = build_end_transaction_marker(
                end,
                coordinator_epoch=0,
                producer_id=producer_id,
                producer_epoch=0,
                timestamp=self.now.wall_ms,
            )
            log.append_as_leader(
                marker, leader_epoch=epoch, now=self.now, origin=Origin.COORDINATOR
            )

    def next_batch(self, log: Log, producer_id: int, text: str) -> bytes:
        """What an idempotent producer would send next."""
        producer = log.producers.producers[producer_id]
        return bytes(
            build_batch(
                self.records(3, text),
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                base_sequence=producer.batches[-1].last_sequence + 1,
            )
        )

    def records(self, count: int, text: str) -> list[Record]:
        return [
            Record(i, self.now.wall_ms, b"key", f"{text} {i}".encode(), (("ottla", b"1"),))
            for i in range(count)
        ]


def _config_of(topic: str) -> LogConfig:
    return COMPACTED if topic == "compacted" else CONFIG


def rows(log: Log) -> list[Row]:
    """What a client is served."""
    return [
        _row(record)
        for header, data in batches(log)
        if not header.is_control
        for record in iterate_records(data, decompressed_max=1 << 24)
        if record.offset >= log.log_start_offset
    ]


def committed_rows(log: Log) -> list[Row]:
    """What is left of it for a client that reads committed data, by the list of aborted."""
    found: list[Row] = []
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        fetched = log.read(offset, _READ_BYTES, isolation=Isolation.TXN_COMMITTED)
        assert fetched is not None and fetched.aborted is not None and fetched.data
        first_offsets = {each.first_offset: each.producer_id for each in fetched.aborted}
        aborted: set[int] = set()
        for position, header in iterate_batches(fetched.data):
            for first, producer_id in list(first_offsets.items()):
                if first <= header.last_offset:
                    aborted.add(producer_id)
                    del first_offsets[first]
            records = list(
                iterate_records(fetched.data, position, header, decompressed_max=1 << 24)
            )
            if header.is_control:
                if read_control(records[0]).type is ControlRecordType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found += [_row(each) for each in records if each.offset >= offset]
            offset = max(offset, header.next_offset)
    return found


def _row(record: Record) -> Row:
    return (record.offset, record.timestamp, record.key, record.value, record.headers)


def producer_states(log: Log) -> dict[int, tuple[int, ...]]:
    """In the form of DescribeProducers."""
    return {
        producer_id: (
            each.epoch,
            each.batches[-1].last_sequence if each.batches else -1,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_txn_first_offset,
        )
        for producer_id, each in log.producers.producers.items()
    }
