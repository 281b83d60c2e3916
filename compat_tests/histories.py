"""Random histories of a compacted topic: one partition's folder, and when its cleaner comes round.

The folder is written by Ottla's own log. Keys are few, so that most records are overwritten;
producers are idempotent, transactional or plain; transactions are committed, aborted or open.
"""

import random
from dataclasses import dataclass, field, replace

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch, build_end_transaction_marker
from ottla.protocol.records import INT64_MAX, ControlRecordType, Headers, Record, TimestampType
from ottla.storage.clock import Now
from ottla.storage.config import COMPACT, DELETE, LogConfig
from ottla.storage.log import Log
from ottla.storage.producers import Origin
from tests.log_rig import Rig

START_MS = 1_700_000_000_000
_PLAIN, _IDEMPOTENT, _TRANSACTIONAL = (-1,), (1, 2, 3), (11, 12, 13, 14)
_LARGE_BYTES = 200_000
_HEADERS: tuple[Headers, ...] = ((), (), (), (("trace", b"\x01\x02"), ("empty", None)))


@dataclass(slots=True)
class Round:
    """One visit of the cleaner."""

    high_watermark: int
    wall_ms: int


@dataclass(slots=True)
class _Producer:
    epoch: int = 0
    sequence: int = 0
    is_in_transaction: bool = False


@dataclass(slots=True)
class History:
    """`rig` has the folder, closed cleanly."""

    seed: int
    source: random.Random = field(init=False)
    config: LogConfig = field(init=False)
    rig: Rig = field(init=False)
    codecs: tuple[Codec, ...] = field(init=False)
    keys: list[bytes] = field(init=False)
    now_ms: int = START_MS
    log_start: int = 0
    log_end: int = 0
    map_slots: int = 100_000
    rounds: list[Round] = field(default_factory=list)
    producers: dict[int, _Producer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source = self.source = random.Random(self.seed)
        self.codecs = (Codec.NONE,) if self.seed % 2 else tuple(Codec)
        self.config = _random_config(source)
        if len(self.codecs) > 1:
            # Two libraries compress to other sizes, so that other segments would go.
            self.config = replace(self.config, retention_bytes=-1)
        self.rig = Rig(self.config, now=self.now)
        self.keys = [
            source.randbytes(source.randrange(40)) for _ in range(source.choice((4, 12, 60)))
        ]
        self.map_slots = source.choice((100_000, 100_000, 4, 30))
        log = self.rig.create()
        for _ in range(source.choice((60, 200))):
            self.now_ms += source.choice((0, 1, 50, 400))
            self._append(log)
        self.log_end = log.log_end_offset
        log.update_high_watermark(self.log_end)
        if source.randrange(4) == 0:
            self.log_start = source.randrange(self.log_end // 3)
            log.maybe_increment_log_start_offset(self.log_start)
        log.close()
        self._plan_rounds()

    @property
    def now(self) -> Now:
        return Now(self.now_ms - START_MS, self.now_ms)

    def _plan_rounds(self) -> None:
        source, wall_ms = self.source, self.now_ms
        reached = self.log_start
        for _ in range(3):
            reached = source.randrange(reached, self.log_end + 1)
            self.rounds.append(Round(reached, wall_ms))
            wall_ms += source.choice((10, 2_000, 12_000))
        for _ in range(3):
            self.rounds.append(Round(self.log_end, wall_ms))
            wall_ms += source.choice((2_000, 12_000))

    # writing

    def _append(self, log: Log) -> None:
        source = self.source
        if source.randrange(40) == 0:
            log.roll(self.now)
        ongoing = [id_ for id_, each in self.producers.items() if each.is_in_transaction]
        if ongoing and source.randrange(3) == 0:
            self._end_transaction(log, source.choice(ongoing))
            return
        producer_id = source.choice(source.choice((_PLAIN, _IDEMPOTENT, _TRANSACTIONAL)))
        self._write(log, self._batch(producer_id))

    def _write(self, log: Log, data: bytearray, origin: Origin = Origin.COORDINATOR) -> None:
        epoch = log.epochs.latest or 0
        epoch += self.source.randrange(30) == 0
        log.append_as_leader(data, leader_epoch=epoch, now=self.now, origin=origin)

    def _batch(self, producer_id: int) -> bytearray:
        source = self.source
        is_large = self.config.segment_bytes == _LARGE_BYTES and source.randrange(40) == 0
        count = 1_500 if is_large else source.randrange(1, 7)
        producer = self.producers.setdefault(producer_id, _Producer())
        if producer_id in _IDEMPOTENT and source.randrange(15) == 0:
            producer.epoch += 1
            producer.sequence = 0
        has_producer = producer_id >= 0
        records = [self._record(offset) for offset in range(count)]
        data = build_batch(
            records,
            codec=source.choice(self.codecs),
            producer_id=producer_id,
            producer_epoch=producer.epoch if has_producer else -1,
            base_sequence=producer.sequence if has_producer else -1,
            transactional=producer_id in _TRANSACTIONAL,
        )
        producer.sequence += count
        producer.is_in_transaction = producer_id in _TRANSACTIONAL
        return data

    def _record(self, offset: int) -> Record:
        source = self.source
        key = None if source.randrange(60) == 0 else source.choice(self.keys)
        value = None if source.randrange(4) == 0 else source.randbytes(source.choice((0, 8, 90)))
        time = self.now_ms - source.choice((0, 0, 3, 900))
        return Record(offset, time, key, value, source.choice(_HEADERS))

    def _end_transaction(self, log: Log, producer_id: int) -> None:
        producer = self.producers[producer_id]
        # Since KIP-890 a marker may bring the producer's next epoch.
        if self.source.randrange(2):
            producer.epoch += 1
            producer.sequence = 0
        producer.is_in_transaction = False
        marker = build_end_transaction_marker(
            self.source.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT)),
            coordinator_epoch=0,
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            timestamp=self.now_ms,
        )
        self._write(log, marker)


def _random_config(source: random.Random) -> LogConfig:
    deleted = source.randrange(3) == 0
    min_lag_ms = source.choice((0, 0, 3_000))
    return LogConfig(
        segment_bytes=source.choice((1_200, 3_000, 20_000, _LARGE_BYTES)),
        segment_index_bytes=4_096,
        index_interval_bytes=source.choice((200, 4_096)),
        cleanup_policy=frozenset({COMPACT, DELETE}) if deleted else frozenset({COMPACT}),
        retention_ms=source.choice((-1, 9_000, 20_000)),
        retention_bytes=source.choice((-1, 15_000)),
        delete_retention_ms=source.choice((0, 5_000, 10_000)),
        min_cleanable_dirty_ratio=source.choice((0.0, 0.01, 0.3)),
        min_compaction_lag_ms=min_lag_ms,
        max_compaction_lag_ms=source.choice((INT64_MAX, 5_000)),
        max_message_bytes=1 << 20,
        message_timestamp_type=source.choice(
            (
                TimestampType.CREATE_TIME,
                TimestampType.CREATE_TIME,
                TimestampType.LOG_APPEND_TIME,
            )
        ),
    )


def kafka_config(config: LogConfig) -> dict[str, str]:
    """The same settings by Kafka's names."""
    return {
        "internal.segment.bytes": str(config.segment_bytes),
        "segment.index.bytes": str(config.segment_index_bytes),
        "index.interval.bytes": str(config.index_interval_bytes),
        "cleanup.policy": ",".join(sorted(config.cleanup_policy)),
        "retention.ms": str(config.retention_ms),
        "retention.bytes": str(config.retention_bytes),
        "delete.retention.ms": str(config.delete_retention_ms),
        "min.cleanable.dirty.ratio": str(config.min_cleanable_dirty_ratio),
        "min.compaction.lag.ms": str(config.min_compaction_lag_ms),
        "max.compaction.lag.ms": str(config.max_compaction_lag_ms),
        "max.message.bytes": str(config.max_message_bytes),
    }
