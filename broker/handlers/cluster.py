"""The cluster as a whole: DescribeCluster, UnregisterBroker."""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from ottla.protocol.schema import INT32_MIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

BROKERS, CONTROLLERS = 1, 2

# ALTER, CREATE, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE and
# CREATE_TOKENS and DESCRIBE_TOKENS belong to users: what anybody may do without an authorizer.
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))


def describe_cluster(
    broker: Broker, context: Context, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        if request.endpoint_type == CONTROLLERS:
            raise KafkaError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of"
                " type CONTROLLER",
            )
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    brokers = [
        DescribeClusterBroker(
            broker_id=node.node_id,
            host=node.host,
            port=node.port,
            rack=node.rack,
            is_fenced=node.is_fenced,
        )
        for node in broker.nodes(context, with_fenced=request.include_fenced_brokers)
    ]
    operations = INT32_MIN
    if request.include_cluster_authorized_operations:
        operations = CLUSTER_OPERATIONS
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        cluster_id=broker.cluster_id,
        controller_id=broker.any_node_id(context),
        brokers=brokers,
        cluster_authorized_operations=operations,
    )


async def unregister_broker(
    broker: Broker, context: Context, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    return await broker.controllers.decide(
        lambda controller, now: controller.unregister_broker(request, now)
    )
