"""The settings of a topic that its logs obey, by Kafka's names and with Kafka's defaults.

Knows neither files nor how settings are read. Frozen: a change is a new `LogConfig`, which the log
gets whole, so that nobody sees half of a change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.protocol.compression import Codec
from ottla.protocol.records import INT64_MAX, TimestampType

_DAY_MS = 24 * 60 * 60 * 1000
DELETE, COMPACT = "delete", "compact"


@dataclass(slots=True, frozen=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False

    cleanup_policy: frozenset[str] = frozenset({DELETE})
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX

    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX

    max_message_bytes: int = (1 << 20) + 12
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    compression_type: Codec | None = None
    """None is Kafka's `producer`: batches stay as they were compressed."""
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    segment_age_max_ms: int = field(init=False, repr=False, compare=False, default=0)
    """When a segment is rolled however small it is: compaction must get at its records."""

    def __post_init__(self) -> None:
        # Every append asks for it.
        age_max_ms = self.segment_ms
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            age_max_ms = min(self.max_compaction_lag_ms, age_max_ms)
        object.__setattr__(self, "segment_age_max_ms", age_max_ms)

    @property
    def is_compacted(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return DELETE in self.cleanup_policy

    def compression_level(self, codec: Codec) -> int | None:
        """None where the codec has no levels."""
        return {
            Codec.GZIP: self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }.get(codec)
