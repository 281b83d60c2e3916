"""What the configurations of topics, groups and client metrics are for.

A name, and below it, indented, what it is for.
"""

TOPICS = """
cleanup.policy
    What happens to old records: `delete` removes segments by age and size, `compact` keeps the last
    record of each key, both together do both. Empty: everything stays.
compression.gzip.level
    How hard the broker works when it compresses with gzip itself; -1 is the codec's own choice.
compression.lz4.level
    How hard the broker works when it compresses with lz4 itself.
compression.type
    The codec in which batches are stored. `producer` leaves them as they came, `uncompressed`
    stores plain ones, anything else makes the broker compress again what came otherwise.
compression.zstd.level
    How hard the broker works when it compresses with zstd itself; negative levels are faster.
delete.retention.ms
    How long a compacted topic remembers that a key was deleted, so that a reader who is behind
    learns of it.
file.delete.delay.ms
    How long the files of a deleted segment stay on disk under another name, for reads under way.
flush.messages
    After so many records the log is forced to disk. By default the operating system decides.
flush.ms
    After so many milliseconds the log is forced to disk. By default the operating system decides.
follower.replication.throttled.replicas
    Replicas whose fetching is slowed down, as partition:broker pairs, or * for all.
index.interval.bytes
    Between two entries of the offset index lie about so many bytes: fewer make lookups shorter and
    the index larger.
internal.segment.bytes
    The size of segments, without the lower bound that segment.bytes has. For tests.
leader.replication.throttled.replicas
    Replicas that leaders serve slowly, as partition:broker pairs, or * for all.
local.retention.bytes
    With tiered storage: how much of a partition stays on the broker; -2 means retention.bytes.
local.retention.ms
    With tiered storage: how long records stay on the broker; -2 means retention.ms.
max.compaction.lag.ms
    The latest time after which a record must be open to compaction.
max.message.bytes
    The largest record batch that is taken, in bytes as it arrives.
message.timestamp.after.max.ms
    How far a record's time may lie ahead of the broker's clock.
message.timestamp.before.max.ms
    How far a record's time may lie behind the broker's clock.
message.timestamp.type
    Whose clock a record's time is from: CreateTime the producer's, LogAppendTime the broker's.
min.cleanable.dirty.ratio
    A log is compacted once this share of it has come since the last time.
min.compaction.lag.ms
    So long after its arrival a record is certainly not compacted away.
min.insync.replicas
    So many replicas must be in sync for a write with acks=all to be taken.
preallocate
    Whether a new segment gets its whole size on disk at once.
remote.log.copy.disable
    With tiered storage: nothing more is copied away.
remote.log.delete.on.disable
    With tiered storage: switching it off deletes what was copied away.
remote.storage.enable
    Tiered storage for this topic, which no log here has.
retention.bytes
    The largest size of a partition; beyond it the oldest segments go. -1: no limit.
retention.ms
    How long records are kept; segments whose newest record is older go. -1: no limit.
segment.bytes
    The size at which a segment is closed and the next begins. Retention removes whole segments.
segment.index.bytes
    The largest size of an index file; a full one closes its segment.
segment.jitter.ms
    A random time, up to this, by which segments close earlier, so that not all do at once.
segment.ms
    The age at which a segment is closed even if it is small.
unclean.leader.election.enable
    Whether a replica that is behind may lead when no other is left, at the price of records.
"""

GROUPS = """
consumer.assignment.interval.ms
    The shortest time between two assignments of a group with the consumer protocol.
consumer.heartbeat.interval.ms
    How often members of a group with the consumer protocol report.
consumer.session.timeout.ms
    How long a member of a group with the consumer protocol may be silent before it is removed.
share.assignment.interval.ms
    The shortest time between two assignments of a share group.
share.auto.offset.reset
    Where a share group begins that has no position: earliest, latest, or so long ago.
share.delivery.count.limit
    How often a record is handed out at most before it is given up.
share.heartbeat.interval.ms
    How often members of a share group report.
share.isolation.level
    Whether a share group sees records of transactions that are not committed.
share.partition.max.record.locks
    How many records of a partition may be out with members at once.
share.record.lock.duration.ms
    How long a record is out with one member before others may have it.
share.renew.acknowledge.enable
    Whether a member may keep a record for longer by saying so.
share.session.timeout.ms
    How long a member of a share group may be silent before it is removed.
streams.assignment.interval.ms
    The shortest time between two assignments of a streams group.
streams.heartbeat.interval.ms
    How often members of a streams group report.
streams.initial.rebalance.delay.ms
    How long a new streams group waits for more members before its first assignment.
streams.num.standby.replicas
    How many further copies of its state each task of a streams group has.
streams.session.timeout.ms
    How long a member of a streams group may be silent before it is removed.
"""

CLIENT_METRICS = """
interval.ms
    How often clients send their metrics.
match
    Which clients are meant: pairs of what is known of a client and a regular expression.
metrics
    Which metrics clients send, by how their names begin; empty: none.
"""
