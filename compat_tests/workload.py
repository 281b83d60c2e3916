"""A random workload on the logs of a data directory, on the real disk.

Every operation is drawn from a seed: batches of all codecs and kinds of producers, rolls,
truncations, DeleteRecords, compaction, new epochs, clean stops, and crashes that tear what was not
flushed. Beside the logs stands what must be in them: each record by its offset.
"""

import asyncio
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch, build_end_transaction_marker
from ottla.protocol.records import (
    INT32_MAX,
    ControlRecordType,
    Headers,
    Record,
    TimestampType,
    iterate_records,
)
from ottla.storage.cleaner import Cleaner
from ottla.storage.clock import Now
from ottla.storage.config import COMPACT, LogConfig
from ottla.storage.disk_files import DiskFiles
from ottla.storage.log import Log
from ottla.storage.log_dirs import LogDirectories, meta_properties_text, open_log_directories
from ottla.storage.logs import Logs
from ottla.storage.long_work import work_now
from ottla.storage.lookup import locate
from ottla.storage.producers import Origin
from ottla.storage.retention import delete_old_segments
from ottla.storage.steps import at_once, exhaust, to_the_end
from tests.log_rig import batches

START_MS = 1_800_000_000_000
BROKER_EPOCH = 7
_IDEMPOTENT, _TRANSACTIONAL = (1, 2, 3), (11, 12, 13)
_HEADERS: tuple[Headers, ...] = ((), (), (("trace", b"\x01\x02"), ("empty", None)))
_OLD_MS = 86_400_000
_SMALL = LogConfig(
    segment_bytes=12_000,
    index_interval_bytes=200,
    segment_index_bytes=1_200,
    retention_ms=-1,
    file_delete_delay_ms=1_000,
)
_CONFIGS = {
    "plain": _SMALL,
    "stamped": LogConfig(
        segment_bytes=20_000,
        index_interval_bytes=500,
        retention_ms=-1,
        message_timestamp_type=TimestampType.LOG_APPEND_TIME,
    ),
    "packed": LogConfig(
        segment_bytes=9_000, segment_ms=20_000, retention_ms=-1, compression_type=Codec.ZSTD
    ),
    "compacted": LogConfig(
        segment_bytes=9_000,
        index_interval_bytes=100,
        segment_index_bytes=4_096,
        cleanup_policy=frozenset({COMPACT}),
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=5_000,
    ),
}


@dataclass(slots=True)
class Workload:
    """`directory` holds the logs; it changes with a crash, as the disk of before stays as it was.
    `images` are what kill -9 would leave at each crash."""

    seed: int
    place: Path
    directory: Path = field(init=False)
    images: list[Path] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    expected: dict[str, dict[int, Record]] = field(default_factory=dict)
    now_ms: int = START_MS
    source: random.Random = field(init=False)
    files: DiskFiles = field(init=False)
    directories: LogDirectories = field(init=False)
    logs: Logs = field(init=False)
    cleaner: Cleaner = field(init=False)

    def __post_init__(self) -> None:
        self.source = random.Random(self.seed)
        self.directory = self.place / "0"
        self.directory.mkdir(parents=True)
        meta = meta_properties_text(
            cluster_id="workload", node_id=1, directory_id=bytes(range(16)), wall_ms=START_MS
        )
        (self.directory / "meta.properties").write_bytes(meta)
        self._start()
        for topic, config in _CONFIGS.items():
            topic_id = self.source.randbytes(16)
            self.logs.create(topic, 0, config, topic_id=topic_id, now=self.now)
            self.expected[topic] = {}

    @property
    def now(self) -> Now:
        return Now(self.now_ms - START_MS, self.now_ms)

    def log(self, topic: str) -> Log:
        return self.logs.current[topic, 0]

    def run(self, count: int) -> None:
        """So many operations, a look at all that is there, and a clean stop."""
        names = [name for name, weight in _WEIGHTS for _ in range(weight)]
        for _ in range(count):
            self.now_ms += self.source.choice((0, 1, 30, 700))
            name = self.source.choice(names)
            if _OPERATIONS[name](self, self.log(self.source.choice(sorted(_CONFIGS)))):
                self.counts[name] = self.counts.get(name, 0) + 1
        for log in self.logs.current.values():
            self.check(log)
        self.stop()

    # starting and stopping

    def _start(self) -> None:
        self.files = DiskFiles()
        self.directories = open_log_directories(
            self.files, [str(self.directory)], cluster_id="workload", node_id=1
        )
        self.logs = Logs(
            self.files,
            self.directories,
            random=random.Random(self.seed),
            default_config=_SMALL,
            verifies_transactions=False,
        )
        exhaust(self.logs.opening(_CONFIGS.__getitem__, self.now))
        assert not self.logs.refused and not self.logs.offline
        self.cleaner = Cleaner(lambda: self.now)

    def stop(self) -> None:
        exhaust(self.logs.closing(broker_epoch=BROKER_EPOCH))
        self.files.close()

    def restart(self, log: Log) -> bool:
        before = {key: batches(each) for key, each in self.logs.current.items()}
        ends = {key: each.log_start_offset for key, each in self.logs.current.items()}
        self.stop()
        self._start()
        assert {key: batches(each) for key, each in self.logs.current.items()} == before
        assert {key: each.log_start_offset for key, each in self.logs.current.items()} == ends
        return True

    def crash(self, log: Log) -> bool:
        """The disk as it is this moment goes on; maybe without what was not flushed."""
        self.directory = self.place / f"{int(self.directory.name) + 1}"
        tears = self.source.randrange(3) > 0
        before = self.logs.current
        shutil.copytree(self.place / f"{int(self.directory.name) - 1}", self.directory)
        image = self.place / f"image-{self.directory.name}"
        shutil.copytree(self.directory, image)
        self.images.append(image)
        for each in before.values():
            if tears:
                self._tear(each)
            each.let_go()
        self.directories.release()
        self.files.close()
        self._start()
        for key, each in self.logs.current.items():
            old = before[key]
            safe = old.recovery_point if tears else old.log_end_offset
            assert each.log_end_offset >= safe, (old, each)
            self._forget(key[0], each.log_end_offset)
            self.check(each)
        return True

    def _tear(self, log: Log) -> None:
        active = log.segments.active
        if log.recovery_point >= log.log_end_offset:
            return
        found = at_once(locate(active, max(log.recovery_point, active.base_offset)))
        safe = found.position if found else active.size
        path = self.directory / log.folder.name / f"{active.base_offset:020d}.log"
        data = path.read_bytes()
        kept = data[: self.source.randrange(safe, len(data) + 1)]
        garbage = self.source.choice((b"", bytes(300), self.source.randbytes(200)))
        path.write_bytes(kept + garbage)

    # what must be there

    def check(self, log: Log) -> None:
        """The log serves the expected records, whatever it dropped at compaction."""
        expected = self.expected[log.topic]
        served = {each.offset: each for each in self.records(log)}
        assert served.keys() <= expected.keys(), log
        assert all(expected[offset] == record for offset, record in served.items()), log
        if not log.config.is_compacted:
            wanted = [offset for offset in expected if offset >= log.log_start_offset]
            assert sorted(served) == sorted(wanted), log

    def records(self, log: Log) -> list[Record]:
        return [
            record
            for _, data in batches(log)
            for record in iterate_records(data, decompressed_max=1 << 24)
            if record.offset >= log.log_start_offset
        ]

    def _forget(self, topic: str, end: int) -> None:
        records = self.expected[topic]
        self.expected[topic] = {at: each for at, each in records.items() if at < end}

    # appending

    def append(self, log: Log) -> bool:
        return self._produce(log, -1)

    def append_idempotent(self, log: Log) -> bool:
        return self._produce(log, self.source.choice(_IDEMPOTENT))

    def append_transactional(self, log: Log) -> bool:
        return self._produce(log, self.source.choice(_TRANSACTIONAL))

    def _produce(self, log: Log, producer_id: int) -> bool:
        data, records = self._batch(log, producer_id)
        sent = bytes(data)
        epoch = max(0, log.epochs.latest or 0)
        appended = log.append_as_leader(data, leader_epoch=epoch, now=self.now)
        self._appended(log, appended.base_offset, records)
        if producer_id >= 0 and self.source.randrange(4) == 0:
            again = log.append_as_leader(bytearray(sent), leader_epoch=epoch, now=self.now)
            assert again.is_duplicate and again.base_offset == appended.base_offset
        return True

    def append_as_follower(self, log: Log) -> bool:
        """As the leader has it; what was compacted there left a hole."""
        hole = self.source.choice((0, 3)) if log.config.is_compacted else 0
        base_offset, epoch = log.log_end_offset + hole, max(0, log.epochs.latest or 0)
        data, records = self._batch(log, -1, base_offset=base_offset, leader_epoch=epoch)
        log.append_as_follower(bytes(data), leader_epoch=epoch, now=self.now)
        for record in records:
            self.expected[log.topic][record.offset] = record
        return True

    def _batch(
        self, log: Log, producer_id: int, *, base_offset: int = 0, leader_epoch: int = -1
    ) -> tuple[bytearray, list[Record]]:
        source = self.source
        epoch, sequence = self._next_sequence(log, producer_id)
        count = source.choice((1, 1, 3, 6, 30))
        time = _OLD_MS if source.randrange(60) == 0 else self.now_ms
        records = [self._record(base_offset + number, time) for number in range(count)]
        data = build_batch(
            records,
            base_offset=base_offset,
            codec=source.choice(tuple(Codec)),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=producer_id in _TRANSACTIONAL,
            leader_epoch=leader_epoch,
        )
        return data, records

    def _next_sequence(self, log: Log, producer_id: int) -> tuple[int, int]:
        if producer_id < 0:
            return -1, -1
        producer = log.producers.producers.get(producer_id)
        if producer is None:
            return 0, self.source.choice((0, 0, INT32_MAX - 4))
        is_open = producer.current_txn_first_offset >= 0
        if not producer.batches or (not is_open and self.source.randrange(12) == 0):
            return producer.epoch + 1, 0
        return producer.epoch, (producer.batches[-1].last_sequence + 1) & INT32_MAX

    def _record(self, offset: int, time: int) -> Record:
        source = self.source
        # Readable, as a dump prints them; null keys are refused where keys count.
        key = f"key-{source.randrange(25)}".encode()
        value = None if source.randrange(8) == 0 else f"{source.random()} ".encode()
        if value is not None:
            value *= source.choice((0, 1, 3, 10))
        lag = source.choice((0, 0, 3, 900))
        return Record(offset, time - lag, key, value, source.choice(_HEADERS))

    def _appended(self, log: Log, base_offset: int, records: list[Record]) -> None:
        is_stamped = log.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        for record in records:
            time = self.now_ms if is_stamped else record.timestamp
            placed = record._replace(offset=base_offset + record.offset, timestamp=time)
            self.expected[log.topic][placed.offset] = placed

    def end_transaction(self, log: Log) -> bool:
        ongoing = sorted(log.producers.ongoing.values())
        if not ongoing:
            return False
        producer_id = self.source.choice(ongoing)
        state = log.producers.producers[producer_id]
        # Since KIP-890 a marker may bring the producer's next epoch.
        epoch = state.epoch + self.source.randrange(2)
        data = build_end_transaction_marker(
            self.source.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT)),
            coordinator_epoch=max(0, state.coordinator_epoch) + (self.source.randrange(6) == 0),
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp=self.now_ms,
        )
        (record,) = iterate_records(data, decompressed_max=100)
        appended = log.append_as_leader(
            data,
            leader_epoch=max(0, log.epochs.latest or 0),
            now=self.now,
            origin=Origin.COORDINATOR,
        )
        self._appended(log, appended.base_offset, [record])
        return True

    # all else

    def roll(self, log: Log) -> bool:
        log.roll(self.now)
        return True

    def assign_epoch(self, log: Log) -> bool:
        log.assign_epoch((log.epochs.latest or 0) + self.source.choice((1, 2)))
        return True

    def advance(self, log: Log) -> bool:
        """Other replicas follow, and what is put off is done."""
        low, high = log.high_watermark, log.log_end_offset
        log.update_high_watermark(self.source.choice((high, self.source.randint(low, high))))
        log.folder.log_dir.chores.flush_now()
        self.logs.expire(self.now)
        return True

    def flush(self, log: Log) -> bool:
        log.flush_now()
        return True

    def checkpoint(self, log: Log) -> bool:
        asyncio.run(self.logs.checkpoint())
        return True

    def truncate(self, log: Log) -> bool:
        low = max(log.log_start_offset, log.log_end_offset - 60)
        at = self.source.randint(low, log.log_end_offset)
        offset = next((h.base_offset for h, _ in batches(log) if h.last_offset >= at), at)
        self.cleaner.truncated(log, offset)
        log.truncate_to(offset, self.now)
        self._forget(log.topic, log.log_end_offset)
        self.check(log)
        return True

    def delete_records(self, log: Log) -> bool:
        if log.config.is_compacted or log.high_watermark - log.log_start_offset < 200:
            return False
        middle = (log.high_watermark + log.log_start_offset) // 2
        log.maybe_increment_log_start_offset(self.source.randint(log.log_start_offset, middle))
        delete_old_segments(log, self.now)
        self.check(log)
        return True

    def clean(self, log: Log) -> bool:
        log = self.log("compacted")
        to_clean = to_the_end(self.cleaner.dirtiest([log], self.now))
        if to_clean is None:
            return False
        cleaned = work_now(self.cleaner.clean(to_clean))
        assert not self.cleaner.uncleanable
        self.check(log)
        return cleaned is not None


_OPERATIONS: dict[str, Callable[[Workload, Log], bool]] = {
    "append": Workload.append,
    "append_idempotent": Workload.append_idempotent,
    "append_transactional": Workload.append_transactional,
    "append_as_follower": Workload.append_as_follower,
    "end_transaction": Workload.end_transaction,
    "roll": Workload.roll,
    "assign_epoch": Workload.assign_epoch,
    "advance": Workload.advance,
    "flush": Workload.flush,
    "checkpoint": Workload.checkpoint,
    "truncate": Workload.truncate,
    "delete_records": Workload.delete_records,
    "clean": Workload.clean,
    "restart": Workload.restart,
    "crash": Workload.crash,
}
_WEIGHTS = (
    ("append", 40),
    ("append_idempotent", 40),
    ("append_transactional", 50),
    ("append_as_follower", 12),
    ("end_transaction", 60),
    ("roll", 5),
    ("assign_epoch", 6),
    ("advance", 25),
    ("flush", 4),
    ("checkpoint", 4),
    ("truncate", 4),
    ("delete_records", 5),
    ("clean", 10),
    ("restart", 1),
    ("crash", 2),
)
