"""A compacted log on a disk in memory, and the little that tests of its cleaning do with it."""

from collections.abc import Iterable
from dataclasses import replace

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import BatchHeader, ControlRecordType, Record, iterate_records
from ottla.storage.cleaner import Cleaner
from ottla.storage.clock import Now
from ottla.storage.config import COMPACT, LogConfig
from ottla.storage.log import Log
from ottla.storage.long_work import work_now
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.producers import Origin
from ottla.storage.segment_cleaner import Cleaned
from ottla.storage.steps import to_the_end
from tests.log_rig import NOW, Rig, batches, marker

RETENTION_MS = 10_000
COMPACTED = LogConfig(
    segment_bytes=100_000,
    index_interval_bytes=200,
    segment_index_bytes=4_800,
    cleanup_policy=frozenset({COMPACT}),
    delete_retention_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.0,
)
Pair = tuple[str | None, str | None]
COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT


def keyed(
    pairs: Iterable[Pair],
    *,
    codec: Codec = Codec.NONE,
    timestamp: int = NOW.wall_ms,
    producer: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    append_time: int | None = None,
) -> bytearray:
    """A batch of keys with values; None for a value is a tombstone."""
    return build_batch(
        [
            Record(
                number,
                timestamp + number,
                None if key is None else key.encode(),
                None if value is None else value.encode(),
                (("header", b"%d" % number),),
            )
            for number, (key, value) in enumerate(pairs)
        ],
        codec=codec,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence if producer >= 0 else -1,
        transactional=transactional,
        log_append_time_ms=append_time,
    )


class CleaningRig:
    """The log of t-0 and its cleaner, at a time that tests move on."""

    def __init__(
        self, config: LogConfig = COMPACTED, *, files: MemoryFiles | None = None, **changes: object
    ) -> None:
        self.config = replace(config, **changes)  # type: ignore[arg-type]
        self.rig = Rig(self.config, files or MemoryFiles())
        self.now = NOW
        self.cleaner = Cleaner(lambda: self.now)
        self.log = self.rig.create() if files is None else self.rig.open()

    @property
    def files(self) -> MemoryFiles:
        return self.rig.files

    def append(self, *pairs: Pair, roll: bool = False, **how: object) -> int:
        """One batch; returns its first offset."""
        return self.write(keyed(pairs, **how), roll=roll)  # type: ignore[arg-type]

    def end(self, producer: int, type_: ControlRecordType, *, epoch: int = 0) -> int:
        return self.write(marker(producer, type_, epoch=epoch))

    def write(self, data: bytearray, *, roll: bool = False) -> int:
        appended = self.log.append_as_leader(
            data, leader_epoch=0, now=self.now, origin=Origin.COORDINATOR
        )
        if roll:
            self.roll()
        return appended.base_offset

    def roll(self) -> None:
        self.log.roll(self.now)

    def closed(self) -> "CleaningRig":
        """With all of it behind a roll and below the high watermark, so that it can be cleaned."""
        self.roll()
        self.log.update_high_watermark(self.log.log_end_offset)
        return self

    def later(self, ms: int) -> "CleaningRig":
        self.now = Now(self.now.monotonic_ms + ms, self.now.wall_ms + ms)
        return self

    def clean(self) -> Cleaned | None:
        """One round; None where there is nothing to do, or it came to nothing."""
        to_clean = to_the_end(self.cleaner.dirtiest([self.log], self.now))
        return None if to_clean is None else work_now(self.cleaner.clean(to_clean))

    # what is there

    @property
    def kept(self) -> list[tuple[int, str | None, str | None]]:
        """Offset, key and value of each record that is not of a control batch."""
        return kept(self.log)

    @property
    def headers(self) -> list[BatchHeader]:
        return [header for header, _ in batches(self.log)]

    @property
    def controls(self) -> list[int]:
        """Offsets of the control records that are left."""
        return [each.base_offset for each in self.headers if each.is_control and each.record_count]


def kept(log: Log) -> list[tuple[int, str | None, str | None]]:
    return [
        (
            record.offset,
            None if record.key is None else record.key.decode(),
            None if record.value is None else record.value.decode(),
        )
        for header, data in batches(log)
        if not header.is_control
        for record in iterate_records(data, decompressed_max=1 << 24)
    ]
