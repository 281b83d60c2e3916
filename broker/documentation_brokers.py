"""What the configurations of a broker are for, but for those of coordinators and security.

A name, and below it, indented, what it is for. Those that give topics their defaults are not here:
what the topic's configuration is for says it.
"""

BROKERS = """
advertised.listeners
    The addresses that clients are told, one for each listener. Without it a client is told the
    address at which it has found this broker.
alter.config.policy.class.name
    A Java class that judges changes of configurations.
alter.log.dirs.replication.quota.window.num
    Over how many samples the speed of moves between log directories is measured.
alter.log.dirs.replication.quota.window.size.seconds
    How long each sample of the speed of moves between log directories is.
auto.create.topics.enable
    Whether a topic comes into being when a client first asks for it.
auto.leader.rebalance.enable
    Whether leadership goes back to preferred replicas by itself.
background.threads
    How many threads Kafka has for odd jobs.
broker.heartbeat.interval.ms
    How often a broker reports to the controller.
broker.id
    The old name of node.id.
broker.rack
    Where this broker stands; replicas of a partition are spread over racks.
broker.session.timeout.ms
    How long a broker may be silent before the controller takes it for gone.
config.providers
    Java classes that fetch values from elsewhere.
connections.max.idle.ms
    A connection on which nothing happens for so long is closed.
controlled.shutdown.enable
    Whether a broker hands over its leaderships before it stops.
controller.listener.names
    Which of the listeners belong to the controller.
controller.performance.always.log.threshold.ms
    A controller's event that takes longer is logged.
controller.performance.sample.period.ms
    How often the controller's slowest events are logged.
controller.quorum.append.linger.ms
    How long the leader of the quorum gathers records before it writes them.
controller.quorum.auto.join.enable
    Whether a controller joins the voters by itself.
controller.quorum.bootstrap.servers
    Where to find the quorum, for those who are not among its voters.
controller.quorum.election.backoff.max.ms
    The longest pause before another try at an election.
controller.quorum.election.timeout.ms
    How long a voter without a leader waits before it stands for election.
controller.quorum.fetch.max.bytes
    The most that one fetch of the metadata log brings.
controller.quorum.fetch.snapshot.max.bytes
    The most that one fetch of a metadata snapshot brings.
controller.quorum.fetch.timeout.ms
    How long a follower goes without hearing from the leader before it stands for election.
controller.quorum.request.timeout.ms
    How long a request between voters may take.
controller.quorum.retry.backoff.ms
    How long a voter waits before it repeats a request that has failed.
controller.quorum.voters
    The voters of a quorum that never changes, as id@host:port.
controller.quota.window.num
    Over how many samples the rate of changes to topics is measured.
controller.quota.window.size.seconds
    How long each sample of the rate of changes to topics is.
controller.socket.timeout.ms
    How long a request to the controller may take.
cordoned.log.dirs
    Log directories in which no new replica is placed.
create.topic.policy.class.name
    A Java class that judges new topics.
default.replication.factor
    How many replicas a topic gets that is created without saying.
delete.records.purgatory.purge.interval.requests
    After how many requests Kafka tidies up waiting deletions.
delete.topic.enable
    Whether topics can be deleted.
early.start.listeners
    Listeners that open before the broker knows whom it may let in.
fetch.max.bytes
    The most that a fetch answers with, whatever the client would take.
fetch.purgatory.purge.interval.requests
    After how many requests Kafka tidies up waiting fetches.
follower.fetch.last.tiered.offset.enable
    With tiered storage: an empty follower begins where the copied part ends.
initial.broker.registration.timeout.ms
    How long a broker tries to register before it gives up.
inter.broker.listener.name
    The listener through which brokers talk to each other.
internal.metadata.delete.delay.millis
    How long deleted files of the metadata log stay on disk.
internal.metadata.log.segment.bytes
    The size of the metadata log's segments, without a lower bound. For tests.
internal.metadata.max.batch.size.in.bytes
    The largest batch of the metadata log.
kafka.metrics.polling.interval.secs
    How often reporters of Yammer's metrics report.
kafka.metrics.reporters
    Java classes that report Yammer's metrics.
leader.imbalance.check.interval.seconds
    How often it is checked whether leaders are their partitions' preferred replicas.
leader.replication.throttled.rate
    How many bytes a second a leader sends to throttled replicas.
follower.replication.throttled.rate
    How many bytes a second throttled replicas fetch.
replica.alter.log.dirs.io.max.bytes.per.second
    How many bytes a second moves between log directories may take.
listener.security.protocol.map
    Which security protocol each listener has, as name:protocol pairs.
listeners
    Where the broker listens, as name://host:port. No host: on all addresses. Port 0: any free one.
log.cleaner.backoff.ms
    How long the cleaner rests when no log needs it.
log.cleaner.dedupe.buffer.size
    How much memory the cleaner takes to remember keys.
log.cleaner.enable
    Whether compacted topics are compacted at all.
log.cleaner.io.buffer.load.factor
    How full the cleaner's memory of keys may get.
log.cleaner.io.buffer.size
    How much memory Kafka's cleaner has for reading and writing.
log.cleaner.io.max.bytes.per.second
    How many bytes a second the cleaner may read and write.
log.cleaner.threads
    How many threads Kafka's cleaner has.
log.dir
    The log directories, where log.dirs does not name them.
log.dir.failure.timeout.ms
    How long a broker that cannot tell the controller of a failed directory goes on.
log.dirs
    The directories that hold all data, separated by commas.
log.flush.offset.checkpoint.interval.ms
    How often it is noted up to where logs are on disk.
log.flush.scheduler.interval.ms
    How often it is checked whether a log must be forced to disk.
log.flush.start.offset.checkpoint.interval.ms
    How often it is noted where logs begin.
log.initial.task.delay.ms
    How long after the start the first of all recurring tasks runs. For tests.
log.retention.check.interval.ms
    How often it is checked which segments are too old or too many.
log.retention.hours
    How long records are kept, in hours; log.retention.minutes and log.retention.ms count before it.
log.retention.minutes
    How long records are kept, in minutes; log.retention.ms counts before it.
log.roll.hours
    The age at which a segment is closed, in hours; log.roll.ms counts before it.
log.roll.jitter.hours
    By how many hours segments close earlier at random; log.roll.jitter.ms counts before it.
max.connection.creation.rate
    How many connections a second are accepted.
max.connections
    How many connections are open at most.
max.connections.per.ip
    How many connections from one address are open at most.
max.connections.per.ip.overrides
    Other limits for some addresses, as address:count pairs.
max.incremental.fetch.session.cache.slots
    How many fetch sessions are remembered.
max.request.partition.size.limit
    How many partitions one DescribeTopicPartitions answers with at most.
metadata.log.dir
    Where the metadata log lives; without it, in the first of log.dirs.
metadata.log.max.record.bytes.between.snapshots
    After so many bytes of records the metadata is written as a snapshot.
metadata.log.max.snapshot.interval.ms
    After so long the metadata is written as a snapshot, if anything has changed. 0: never by time.
metadata.log.segment.bytes
    The size at which a segment of the metadata log is closed.
metadata.log.segment.ms
    The age at which a segment of the metadata log is closed.
metadata.max.idle.interval.ms
    How often the leader of a quorum writes a record that says nothing, to show that it is alive.
metadata.max.retention.bytes
    How large the metadata log and its snapshots may grow before old ones go.
metadata.max.retention.ms
    How old the metadata log's snapshots may grow before they go.
metric.reporters
    Java classes that report metrics.
metrics.num.samples
    Over how many samples metrics are computed.
metrics.recording.level
    How much detail metrics have.
metrics.sample.window.ms
    How long each sample of a metric is.
node.id
    The number of this node in its cluster.
num.io.threads
    How many threads Kafka has to carry out requests.
num.network.threads
    How many threads Kafka has for a listener's connections.
num.partitions
    How many partitions a topic gets that is created without saying.
num.recovery.threads.per.data.dir
    How many threads Kafka has to open the logs of a directory.
num.replica.alter.log.dirs.threads
    How many threads Kafka has to move logs between directories.
num.replica.fetchers
    How many threads Kafka has to follow each other broker.
ottla.ack.after.fsync
    Data counts only once it is on disk: an acknowledged record survives the loss of power.
ottla.bytes.in.flight.max
    How many bytes all requests and answers under way may take together.
ottla.log.level
    How much this process tells on stderr: debug, info, warn or error.
ottla.validate.records
    Whether every record of every produced batch is read, however large the batch is.
process.roles
    What this node is: a broker, a controller, or both.
producer.purgatory.purge.interval.requests
    After how many requests Kafka tidies up waiting acknowledgements.
queued.max.request.bytes
    How many bytes of requests Kafka queues before it stops reading.
queued.max.requests
    How many requests Kafka queues before it stops reading.
quota.window.num
    Over how many samples the use of client quotas is measured.
quota.window.size.seconds
    How long each sample of the use of client quotas is.
remote.fetch.max.wait.ms
    With tiered storage: how long a fetch waits for remote data.
remote.list.offsets.request.timeout.ms
    With tiered storage: how long looking up a remote offset may take.
remote.log.index.file.cache.total.size.bytes
    With tiered storage: how much disk the copies of remote indexes take.
remote.log.index.file.cache.ttl.ms
    With tiered storage: how long an unused copy of a remote index stays.
remote.log.manager.copier.thread.pool.size
    With tiered storage: how many threads copy segments away.
remote.log.manager.copy.max.bytes.per.second
    With tiered storage: how many bytes a second are copied away.
remote.log.manager.copy.quota.window.num
    With tiered storage: over how many samples the speed of copying is measured.
remote.log.manager.copy.quota.window.size.seconds
    With tiered storage: how long each sample of the speed of copying is.
remote.log.manager.expiration.thread.pool.size
    With tiered storage: how many threads remove old remote segments.
remote.log.manager.fetch.max.bytes.per.second
    With tiered storage: how many bytes a second are fetched back.
remote.log.manager.fetch.quota.window.num
    With tiered storage: over how many samples the speed of fetching is measured.
remote.log.manager.fetch.quota.window.size.seconds
    With tiered storage: how long each sample of the speed of fetching is.
remote.log.manager.follower.thread.pool.size
    With tiered storage: how many threads do what followers have to.
remote.log.manager.task.interval.ms
    With tiered storage: how often it is checked what is to be copied or removed.
remote.log.manager.task.retry.backoff.max.ms
    With tiered storage: the longest pause after a failure.
remote.log.manager.task.retry.backoff.ms
    With tiered storage: the first pause after a failure.
remote.log.manager.task.retry.jitter
    With tiered storage: how much pauses after failures vary.
remote.log.manager.thread.pool.size
    With tiered storage: how many threads there are for its tasks.
remote.log.metadata.custom.metadata.max.bytes
    With tiered storage: the largest note that a plugin may keep with a segment.
remote.log.metadata.manager.class.name
    With tiered storage: the Java class that remembers what was copied away.
remote.log.metadata.manager.class.path
    With tiered storage: where that Java class is found.
remote.log.metadata.manager.impl.prefix
    With tiered storage: how names of that Java class's own configurations begin.
remote.log.metadata.manager.listener.name
    With tiered storage: the listener that this Java class uses.
remote.log.reader.max.pending.tasks
    With tiered storage: how many remote reads may wait.
remote.log.reader.threads
    With tiered storage: how many threads read remote segments.
remote.log.storage.manager.class.name
    With tiered storage: the Java class that stores segments elsewhere.
remote.log.storage.manager.class.path
    With tiered storage: where the Java class that stores segments is found.
remote.log.storage.manager.impl.prefix
    With tiered storage: how names of the storing class's own configurations begin.
remote.log.storage.system.enable
    Whether there is tiered storage at all.
replica.fetch.backoff.ms
    How long a follower rests after a failed fetch.
replica.fetch.max.bytes
    How much a follower asks for of each partition.
replica.fetch.min.bytes
    How much a follower's fetch waits for.
replica.fetch.response.max.bytes
    How much a follower's fetch answers with at most.
replica.fetch.wait.max.ms
    How long a follower's fetch waits.
replica.high.watermark.checkpoint.interval.ms
    How often the high watermarks are noted on disk.
replica.lag.time.max.ms
    A follower that has not caught up for so long is out of sync.
replica.selector.class
    A Java class that chooses the replica from which a consumer reads.
replica.socket.receive.buffer.bytes
    The receive buffer of a follower's connection.
replica.socket.timeout.ms
    How long a follower's request may take.
replication.quota.window.num
    Over how many samples the speed of replication is measured.
replication.quota.window.size.seconds
    How long each sample of the speed of replication is.
request.timeout.ms
    How long a request that the broker itself makes may take.
server.max.startup.time.ms
    How long the start may take before Kafka gives up.
socket.connection.setup.timeout.max.ms
    The longest time in which a connection of the broker's own must come about.
socket.connection.setup.timeout.ms
    The time in which a connection of the broker's own must come about at first.
socket.listen.backlog.size
    How many connections may wait to be accepted.
socket.receive.buffer.bytes
    The receive buffer of each connection; -1: the operating system's choice.
socket.request.max.bytes
    The largest request that is read; a larger one closes its connection.
socket.send.buffer.bytes
    The send buffer of each connection; -1: the operating system's choice.
unclean.leader.election.interval.ms
    How often the controller looks for partitions that may elect a leader who is behind.
unstable.api.versions.enable
    Whether versions of requests are served that are still being worked on.
unstable.feature.versions.enable
    Whether features are offered that are still being worked on.
"""
