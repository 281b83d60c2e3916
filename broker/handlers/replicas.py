"""Elections, reassignments, and the log directories in which replicas are.

The controller decides about the first two. Log directories are this node's own affair: it moves
replicas between them, and tells the controller afterwards.
"""

from __future__ import annotations

from ottla.broker.deadlines import decided_within
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionResult,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from ottla.replication.controller_state import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.storage.log import Log

_LOGS_PER_SLICE = 256
_UNKNOWN_LAG = -1


async def elect_leaders(
    broker: Broker, context: Context, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    try:
        return await decided_within(
            broker,
            request.timeout_ms,
            lambda controller, now: controller.elect_leaders(request, now),
        )
    except KafkaError as error:
        code, reason = failure(error)
        results = [
            ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=reason)
                    for index in asked.partitions
                ],
            )
            for asked in request.topic_partitions or ()
        ]
        return ElectLeadersResponse(
            throttle_time_ms=0, error_code=code, replica_election_results=results
        )


async def alter_partition_reassignments(
    broker: Broker, context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    try:
        return await decided_within(
            broker,
            request.timeout_ms,
            lambda controller, now: controller.alter_partition_reassignments(request, now),
        )
    except KafkaError as error:
        code, reason = failure(error)
        responses = [
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=wanted.partition_index,
                        error_code=code,
                        error_message=reason,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=code, error_message=reason, responses=responses
        )


async def list_partition_reassignments(
    broker: Broker, context: Context, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return await broker.controllers.decide(
        lambda controller, now: controller.list_partition_reassignments(request, now)
    )


# ---- log directories


async def alter_replica_log_dirs(
    broker: Broker, context: Context, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begins to move replicas; nobody waits for the end. The last directory named counts."""
    wanted = {
        (topic.name, index): asked.path
        for asked in request.dirs
        for topic in asked.topics
        for index in topic.partitions
    }
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for number, ((name, index), path) in enumerate(wanted.items(), 1):
        try:
            broker.replica_directories.move((name, index), path)
            code = ErrorCode.NONE
        except KafkaError as error:
            code = error.code
        result = results.setdefault(
            name, AlterReplicaLogDirTopicResult(topic_name=name, partitions=[])
        )
        result.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        )
        if number % _LOGS_PER_SLICE == 0:
            await broker.pause()
    return AlterReplicaLogDirsResponse(throttle_time_ms=0, results=list(results.values()))


async def describe_log_dirs(
    broker: Broker, context: Context, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(asked.topic, index) for asked in request.topics for index in asked.partitions}
    found = await _partitions_by_directory(broker, wanted)
    results = []
    for path in dict.fromkeys(broker.config.log_dirs):
        if path not in found:
            code = ErrorCode.KAFKA_STORAGE_ERROR
            results.append(DescribeLogDirsResult(error_code=code, log_dir=path, topics=[]))
            continue
        total_bytes, usable_bytes = _space(broker, path)
        results.append(
            DescribeLogDirsResult(
                error_code=0,
                log_dir=path,
                topics=[
                    DescribeLogDirsTopic(name=name, partitions=partitions)
                    for name, partitions in found[path].items()
                ],
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
            )
        )
    return DescribeLogDirsResponse(throttle_time_ms=0, results=results)


async def _partitions_by_directory(
    broker: Broker, wanted: set[tuple[str, int]] | None
) -> dict[str, dict[str, list[DescribeLogDirsPartition]]]:
    """What is in each directory that is well: by its path, by topic."""
    logs = broker.logs
    found: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {
        log_dir.path: {} for log_dir in logs.online
    }
    everything = [*logs.current.items(), *logs.future.items()]
    for number, (key, log) in enumerate(everything, 1):
        path = log.folder.log_dir.path
        if path in found and (wanted is None or key in wanted):
            is_future = logs.future.get(key) is log
            described = _described(log, logs.current.get(key), is_future=is_future)
            found[path].setdefault(key[0], []).append(described)
        if number % _LOGS_PER_SLICE == 0:
            await broker.pause()
    return found


def _space(broker: Broker, path: str) -> tuple[int, int]:
    """The bytes of the disk and those that are free; Kafka's -1 for one that has no size."""
    from ottla.storage.disk_files import DiskFiles

    if not isinstance(broker.world.files, DiskFiles):
        return -1, -1
    from os import statvfs

    try:
        found = statvfs(path)
    except OSError:
        return -1, -1
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def _described(log: Log, current: Log | None, *, is_future: bool) -> DescribeLogDirsPartition:
    lag = _UNKNOWN_LAG
    if current is not None:
        ahead = current.log_end_offset if is_future else current.high_watermark
        lag = max(ahead - log.log_end_offset, 0)
    return DescribeLogDirsPartition(
        partition_index=log.partition,
        partition_size=log.size_bytes,
        offset_lag=lag,
        is_future_key=is_future,
    )
