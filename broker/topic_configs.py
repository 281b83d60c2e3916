"""Configurations of topics, groups and client metrics, and what brokers are told only at run time.

Rows of `ottla.broker.config_key.Key`; constants throughout, so that they cost next to nothing to
load.
"""

from __future__ import annotations

from ottla.broker.config_key import Row

TOPIC_HONOURED: tuple[Row, ...] = (
    ("cleanup.policy", "LIST", ("delete",), "compact delete", "MEDIUM", ""),
    ("compression.gzip.level", "INT", -1, "1..9,-1", "MEDIUM", ""),
    ("compression.lz4.level", "INT", 9, "1..17", "MEDIUM", ""),
    (
        "compression.type",
        "STRING",
        "producer",
        "uncompressed zstd lz4 snappy gzip producer",
        "MEDIUM",
        "",
    ),
    ("compression.zstd.level", "INT", 3, "-131072..22", "MEDIUM", ""),
    ("delete.retention.ms", "LONG", 86400000, "0..", "MEDIUM", ""),
    ("file.delete.delay.ms", "LONG", 60000, "0..", "MEDIUM", ""),
    ("flush.messages", "LONG", 9223372036854775807, "1..", "MEDIUM", ""),
    ("flush.ms", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("index.interval.bytes", "INT", 4096, "0..", "MEDIUM", ""),
    ("internal.segment.bytes", "INT", None, "", "MEDIUM", "", True),
    ("max.compaction.lag.ms", "LONG", 9223372036854775807, "1..", "MEDIUM", ""),
    ("max.message.bytes", "INT", 1048588, "0..", "MEDIUM", ""),
    ("message.timestamp.after.max.ms", "LONG", 3600000, "0..", "MEDIUM", ""),
    ("message.timestamp.before.max.ms", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("message.timestamp.type", "STRING", "CreateTime", "CreateTime LogAppendTime", "MEDIUM", ""),
    ("min.cleanable.dirty.ratio", "DOUBLE", 0.5, "0..1", "MEDIUM", ""),
    ("min.compaction.lag.ms", "LONG", 0, "0..", "MEDIUM", ""),
    ("min.insync.replicas", "INT", 1, "1..", "MEDIUM", ""),
    ("preallocate", "BOOLEAN", False, "", "MEDIUM", ""),
    ("retention.bytes", "LONG", -1, "", "MEDIUM", ""),
    ("retention.ms", "LONG", 604800000, "-1..", "MEDIUM", ""),
    ("segment.bytes", "INT", 1073741824, "1048576..", "MEDIUM", ""),
    ("segment.index.bytes", "INT", 10485760, "4..", "MEDIUM", ""),
    ("segment.jitter.ms", "LONG", 0, "0..", "MEDIUM", ""),
    ("segment.ms", "LONG", 604800000, "1..", "MEDIUM", ""),
    ("unclean.leader.election.enable", "BOOLEAN", False, "", "MEDIUM", ""),
)

TOPIC_ACCEPTED: tuple[Row, ...] = (
    ("follower.replication.throttled.replicas", "LIST", (), "throttled", "MEDIUM", ""),
    ("leader.replication.throttled.replicas", "LIST", (), "throttled", "MEDIUM", ""),
    ("local.retention.bytes", "LONG", -2, "-2..", "MEDIUM", ""),
    ("local.retention.ms", "LONG", -2, "-2..", "MEDIUM", ""),
    ("remote.log.copy.disable", "BOOLEAN", False, "", "MEDIUM", ""),
    ("remote.log.delete.on.disable", "BOOLEAN", False, "", "MEDIUM", ""),
)

TOPIC_REFUSED: tuple[Row, ...] = (("remote.storage.enable", "BOOLEAN", False, "", "MEDIUM", ""),)

GROUP_ACCEPTED: tuple[Row, ...] = (
    ("consumer.assignment.interval.ms", "INT", 1000, "0..", "MEDIUM", ""),
    ("consumer.heartbeat.interval.ms", "INT", 5000, "1..", "MEDIUM", ""),
    ("consumer.session.timeout.ms", "INT", 45000, "1..", "MEDIUM", ""),
    ("share.assignment.interval.ms", "INT", 1000, "0..", "MEDIUM", ""),
    ("share.auto.offset.reset", "STRING", "latest", "offset reset", "MEDIUM", ""),
    ("share.delivery.count.limit", "INT", 5, "2..", "MEDIUM", ""),
    ("share.heartbeat.interval.ms", "INT", 5000, "1..", "MEDIUM", ""),
    (
        "share.isolation.level",
        "STRING",
        "read_uncommitted",
        "read_committed read_uncommitted",
        "MEDIUM",
        "",
    ),
    ("share.partition.max.record.locks", "INT", 2000, "100..", "MEDIUM", ""),
    ("share.record.lock.duration.ms", "INT", 30000, "1000..", "MEDIUM", ""),
    ("share.renew.acknowledge.enable", "BOOLEAN", True, "", "MEDIUM", ""),
    ("share.session.timeout.ms", "INT", 45000, "1..", "MEDIUM", ""),
    ("streams.assignment.interval.ms", "INT", 1000, "0..", "MEDIUM", ""),
    ("streams.heartbeat.interval.ms", "INT", 5000, "1..", "MEDIUM", ""),
    ("streams.initial.rebalance.delay.ms", "INT", 3000, "0..", "MEDIUM", ""),
    ("streams.num.standby.replicas", "INT", 0, "0..", "MEDIUM", ""),
    ("streams.session.timeout.ms", "INT", 45000, "1..", "MEDIUM", ""),
)

CLIENT_METRICS_ACCEPTED: tuple[Row, ...] = (
    ("interval.ms", "INT", 300000, "", "MEDIUM", ""),
    ("match", "LIST", (), "", "MEDIUM", ""),
    ("metrics", "LIST", (), "", "MEDIUM", ""),
)

DYNAMIC_ACCEPTED: tuple[Row, ...] = (
    ("leader.replication.throttled.rate", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("follower.replication.throttled.rate", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    (
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "LONG",
        9223372036854775807,
        "0..",
        "MEDIUM",
        "",
    ),
)
