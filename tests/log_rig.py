"""A partition's log on a disk in memory, and the little that tests of storage do with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.record_build import build_batch, build_end_transaction_marker
from ottla.protocol.records import (
    BatchHeader,
    ControlRecordType,
    Record,
    iterate_batches,
    iterate_records,
)
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.folder import Folder, LogDir
from ottla.storage.index_memory import IndexMemory
from ottla.storage.log import Appended, Isolation, Log
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.producers import Origin
from ottla.storage.recovery import create_log, open_log
from ottla.storage.steps import to_the_end

NOW = Now(1_000, 1_800_000_000_000)
TOPIC_ID = bytes(range(16))
DEFAULT = LogConfig(segment_index_bytes=4_800)
SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=200, segment_index_bytes=480)


def batch(
    count: int = 3,
    *,
    timestamp: int = NOW.wall_ms,
    size: int = 50,
    producer: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
    text: str = "",
) -> bytearray:
    """Records one millisecond apart; their values tell them from others."""
    return build_batch(
        [
            Record(base_offset + i, timestamp + i, f"key{i}".encode(), f"{text}{i}".encode() * size)
            for i in range(count)
        ],
        base_offset=base_offset,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence if producer >= 0 else -1,
        transactional=transactional,
        leader_epoch=leader_epoch,
    )


def marker(
    producer: int,
    type_: ControlRecordType,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    return build_end_transaction_marker(
        type_,
        coordinator_epoch=coordinator_epoch,
        producer_id=producer,
        producer_epoch=epoch,
        timestamp=NOW.wall_ms,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
    )


def headers(log: Log, *, max_bytes: int = 700) -> list[BatchHeader]:
    """The headers of everything that can be read, slice by slice."""
    return [header for header, _ in batches(log, max_bytes=max_bytes)]


def batches(log: Log, *, max_bytes: int = 700) -> list[tuple[BatchHeader, bytes]]:
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes)
        assert fetched is not None
        before = offset
        for position, header in iterate_batches(fetched.data):
            assert header.last_offset >= offset, "a batch that was read before"
            found.append((header, bytes(fetched.data[position : position + header.size])))
            offset = header.next_offset
        if offset == before:
            # What lay behind was compacted away.
            break
    return found


def records(log: Log) -> list[Record]:
    return [
        record
        for header, data in batches(log)
        for record in iterate_records(data, decompressed_max=1 << 20)
        if record.offset >= log.log_start_offset
    ]


@dataclass
class Rig:
    """A log directory with the log of t-0."""

    config: LogConfig = DEFAULT
    files: MemoryFiles = field(default_factory=MemoryFiles)
    now: Now = NOW

    def __post_init__(self) -> None:
        if not self.files.exists("logs"):
            self.files.make_directory("logs")
            self.files.sync_directory_now("")
        self.log_dir = LogDir(
            self.files,
            "logs",
            random=Random(7),
            indexes=IndexMemory(),
            # There is no coordinator that could be asked.
            verifies_transactions=False,
        )

    def create(self) -> Log:
        return create_log(self.log_dir, "t", 0, self.config, topic_id=TOPIC_ID, now=self.now)

    def open(self, *, log_start: int = 0, recovery_point: int = 0, clean: bool = False) -> Log:
        return to_the_end(
            open_log(
                Folder(self.log_dir, "t-0", self.config),
                log_start_offset=log_start,
                recovery_point=recovery_point,
                is_clean=clean,
                now=self.now,
            )
        )

    def killed(self) -> "Rig":
        """Another process with the same disk, after this one was killed."""
        return Rig(self.config, self.files.copy(), self.now)

    def names(self) -> list[str]:
        return self.files.list("logs/t-0")

    def path(self, name: str) -> str:
        return f"logs/t-0/{name}"


def append(log: Log, *sizes: int, epoch: int = 0, origin: Origin = Origin.CLIENT) -> list[Appended]:
    """Batches of so many records each, in times that rise."""
    return [
        log.append_as_leader(
            batch(count, timestamp=NOW.wall_ms + log.log_end_offset, text=f"{log.log_end_offset}/"),
            leader_epoch=epoch,
            now=NOW,
            origin=origin,
        )
        for count in sizes
    ]


def committed(log: Log) -> Isolation:
    log.update_high_watermark(log.log_end_offset)
    return Isolation.TXN_COMMITTED


def refused(call: Callable[[], object]) -> ErrorCode:
    """With which code."""
    try:
        call()
    except KafkaError as error:
        return error.code
    raise AssertionError("it was not refused")


def transaction(log: Log, producer: int, end: ControlRecordType | None) -> None:
    data = batch(2, producer=producer, transactional=True, sequence=0, epoch=0)
    log.append_as_leader(data, leader_epoch=0, now=NOW)
    if end is not None:
        data = marker(producer, end)
        log.append_as_leader(data, leader_epoch=0, now=NOW, origin=Origin.COORDINATOR)
