"""What the configurations of groups, offsets, transactions and share state are for.

A name, and below it, indented, what it is for. Bounds that a broker sets to the configurations of
groups are not here: `config_documentation` makes a sentence of their names.
"""

COORDINATORS = """
add.partitions.to.txn.retry.backoff.max.ms
    The longest pause before a partition is added to a transaction again.
add.partitions.to.txn.retry.backoff.ms
    The first pause before a partition is added to a transaction again.
group.consumer.assignors
    How partitions are shared out in groups with the consumer protocol; the first is the default.
group.consumer.max.size
    How many members a group with the consumer protocol has at most.
group.consumer.migration.policy
    Whether groups change between the classic and the consumer protocol, and in which direction.
group.consumer.regex.refresh.interval.ms
    How often the topics are sought anew that a regular expression means.
group.coordinator.append.linger.ms
    How long the group coordinator gathers records before it writes them; -1: it decides itself.
group.coordinator.background.threads
    How many threads Kafka's group coordinator has for long work.
group.coordinator.cached.buffer.max.bytes
    The largest buffer that the group coordinator keeps for its next write.
group.coordinator.rebalance.protocols
    Which kinds of groups there are.
group.coordinator.threads
    How many threads Kafka's group coordinator has.
group.initial.rebalance.delay.ms
    How long a new classic group waits for more members before its first assignment.
group.max.session.timeout.ms
    The longest session timeout that a member of a classic group may choose.
group.max.size
    How many members a classic group has at most.
group.min.session.timeout.ms
    The shortest session timeout that a member of a classic group may choose.
group.share.assignors
    How partitions are shared out in share groups.
group.share.initialize.retry.interval.ms
    How long to wait before a share partition's state is set up again.
group.share.max.share.sessions
    How many share sessions are remembered.
group.share.max.size
    How many members a share group has at most.
group.share.persister.class.name
    The Java class that keeps the state of share groups.
group.streams.max.size
    How many members a streams group has at most.
offset.metadata.max.bytes
    The longest note that may be committed with an offset.
offsets.commit.timeout.ms
    How long a commit waits for the replicas of the offsets topic.
offsets.load.buffer.size
    How much is read at once when committed offsets are loaded.
offsets.retention.check.interval.ms
    How often old committed offsets are sought.
offsets.retention.minutes
    How long the offsets of a group without members are kept.
offsets.topic.compression.codec
    The codec of the offsets topic, by its number; 0: none.
offsets.topic.num.partitions
    How many partitions the offsets topic gets. It must not change once the topic is there.
offsets.topic.replication.factor
    How many replicas the offsets topic gets.
offsets.topic.segment.bytes
    The size of the offsets topic's segments.
producer.id.expiration.check.interval.ms
    How often forgotten producers are sought.
producer.id.expiration.ms
    How long a partition remembers a producer that is silent.
share.coordinator.append.linger.ms
    How long the share coordinator gathers records before it writes them; -1: it decides itself.
share.coordinator.cached.buffer.max.bytes
    The largest buffer that the share coordinator keeps for its next write.
share.coordinator.cold.partition.snapshot.interval.ms
    How often the state of quiet share partitions is written as a whole.
share.coordinator.load.buffer.size
    How much is read at once when the state of share groups is loaded.
share.coordinator.snapshot.update.records.per.snapshot
    After how many changes a share partition's state is written as a whole.
share.coordinator.state.topic.compression.codec
    The codec of the share state topic, by its number; 0: none.
share.coordinator.state.topic.min.isr
    How many replicas of the share state topic must be in sync.
share.coordinator.state.topic.num.partitions
    How many partitions the share state topic gets.
share.coordinator.state.topic.prune.interval.ms
    How often what is no longer needed is deleted from the share state topic.
share.coordinator.state.topic.replication.factor
    How many replicas the share state topic gets.
share.coordinator.state.topic.segment.bytes
    The size of the share state topic's segments.
share.coordinator.threads
    How many threads Kafka's share coordinator has.
share.coordinator.write.timeout.ms
    How long a write of the share coordinator waits for replicas.
share.fetch.purgatory.purge.interval.requests
    After how many requests Kafka tidies up waiting share fetches.
telemetry.max.bytes
    The largest report of metrics that a client may send.
transaction.abort.timed.out.transaction.cleanup.interval.ms
    How often transactions are sought that have taken too long.
transaction.max.timeout.ms
    The longest time that a producer may choose for its transactions.
transaction.partition.verification.enable
    Whether a partition asks the coordinator before a transaction begins on it.
transaction.remove.expired.transaction.cleanup.interval.ms
    How often forgotten transactional ids are sought.
transaction.state.log.load.buffer.size
    How much is read at once when transactions are loaded.
transaction.state.log.min.isr
    How many replicas of the transactions topic must be in sync.
transaction.state.log.num.partitions
    How many partitions the transactions topic gets. It must not change once the topic is there.
transaction.state.log.replication.factor
    How many replicas the transactions topic gets.
transaction.state.log.segment.bytes
    The size of the transactions topic's segments.
transaction.two.phase.commit.enable
    Whether transactions may be prepared by somebody else's coordinator and never time out.
transactional.id.expiration.ms
    How long a transactional id that is not used is remembered.
"""
