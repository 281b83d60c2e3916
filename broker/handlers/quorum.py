"""The metadata quorum: DescribeQuorum."""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseListener,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Node,
    ReplicaState,
)
from ottla.replication.voters import UNKNOWN_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.replication.quorum import Description
    from ottla.replication.raft_progress import Replica

_TOPIC, _PARTITION = "__cluster_metadata", 0


def describe_quorum(
    broker: Broker, context: Context, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    """There is one quorum. Whoever asks for more than that hears that none of it is here."""
    asked = [
        (each.topic_name, part.partition_index)
        for each in request.topics
        for part in each.partitions
    ]
    if len(request.topics) != 1 or asked != [(_TOPIC, _PARTITION)]:
        return _refused(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        described = broker.quorum.describe(broker.world.now())
    except KafkaError as error:
        return _refused(request, error.code)
    partition = DescribeQuorumResponsePartitionData(
        partition_index=_PARTITION,
        error_code=0,
        leader_id=described.leader_id,
        leader_epoch=described.leader_epoch,
        high_watermark=described.high_watermark,
        current_voters=[_state(each, context.version) for each in described.voters],
        observers=[_state(each, context.version) for each in described.observers],
    )
    return DescribeQuorumResponse(
        error_code=0,
        topics=[DescribeQuorumResponseTopicData(topic_name=_TOPIC, partitions=[partition])],
        nodes=_nodes(described) if context.version >= 2 else [],
    )


def _state(replica: Replica, version: int) -> ReplicaState:
    return ReplicaState(
        replica_id=replica.key.id,
        replica_directory_id=replica.key.directory_id if version >= 2 else UNKNOWN_DIRECTORY,
        log_end_offset=replica.end_offset,
        last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )


def _nodes(described: Description) -> list[Node]:
    return [
        Node(
            node_id=id,
            listeners=[
                DescribeQuorumResponseListener(name=name, host=host, port=port)
                for name, host, port in listeners
            ],
        )
        for id, listeners in described.listeners.items()
    ]


def _refused(request: DescribeQuorumRequest, error: ErrorCode) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=0,
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=int(error),
                        error_message=error.message,
                        leader_id=0,
                        leader_epoch=0,
                        high_watermark=0,
                        current_voters=[],
                        observers=[],
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
