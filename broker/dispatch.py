"""Requests to their handlers, and what handlers return to bytes.

One table says what this broker speaks; ApiVersions is made from it. A handler's module is loaded
when its API is first asked for. A handler answers `response`, an awaitable of one, or None to send
nothing. It may raise KafkaError before its first change: the API's own error response is sent.
"""

from __future__ import annotations

import logging
from importlib import import_module

from ottla.broker.context import Context
from ottla.protocol.apis import API_VERSIONS, APIS, Api
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.frames import Request, encode_response, read_request
from ottla.protocol.schema import reader
from ottla.protocol.wire import Buffer, ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from ottla.broker.broker import Broker
    from ottla.broker.connection import Connection

    Handler = Callable[[Broker, Context, Any], Any]
    Answer = list[Buffer] | Awaitable["list[Buffer] | None"] | None

logger = logging.getLogger(__name__)

HANDLERS: dict[int, str] = {
    0: "produce.produce",
    1: "fetch.fetch",
    2: "offsets.list_offsets",
    3: "metadata.metadata",
    8: "commits.offset_commit",
    9: "commits.offset_fetch",
    10: "groups.find_coordinator",
    11: "groups.join_group",
    12: "groups.heartbeat",
    13: "groups.leave_group",
    14: "groups.sync_group",
    15: "groups.describe_groups",
    16: "groups.list_groups",
    18: "versions.api_versions",
    19: "topics.create_topics",
    20: "topics.delete_topics",
    21: "records.delete_records",
    22: "transactions.init_producer_id",
    23: "offsets.offset_for_leader_epoch",
    32: "configs.describe_configs",
    33: "configs.alter_configs",
    34: "replicas.alter_replica_log_dirs",
    35: "replicas.describe_log_dirs",
    37: "topics.create_partitions",
    42: "groups.delete_groups",
    43: "replicas.elect_leaders",
    44: "configs.incremental_alter_configs",
    45: "replicas.alter_partition_reassignments",
    46: "replicas.list_partition_reassignments",
    47: "commits.offset_delete",
    55: "quorum.describe_quorum",
    57: "versions.update_features",
    60: "cluster.describe_cluster",
    61: "transactions.describe_producers",
    64: "cluster.unregister_broker",
    74: "configs.list_config_resources",
    75: "metadata.describe_topic_partitions",
}

# Where the range of a Kafka 4.3.1 broker is not that of the messages: Produce is listed from 0 on
# for old librdkafka, and version 6 of InitProducerId belongs to a feature that is off (KIP-939).
LISTED_FIRST = {0: 0}
SERVED_LAST = {22: 5}


def served(key: int) -> tuple[int, int] | None:
    """The first and the last version that are served; None where the API is not."""
    if key not in HANDLERS:
        return None
    api = APIS[key]
    return api.first, SERVED_LAST.get(key, api.last)


class Route:
    """One API in one version: how its request is read, and who answers it."""

    __slots__ = ("api", "handler", "read", "response", "version")

    def __init__(self, api: Api, version: int) -> None:
        module, name = HANDLERS[api.key].split(".")
        loaded = import_module(f"ottla.broker.handlers.{module}")
        self.api = api
        self.version = version
        self.handler: Handler = getattr(loaded, name)
        self.response = api.response()
        self.read: Callable[[Buffer], Any] = reader(api.request(), version)


class Dispatch:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._routes: dict[tuple[int, int], Route] = {}

    def serve(self, connection: Connection, frame: Buffer) -> Answer:
        """What to send for one request; None if nothing, or if the connection is closed."""
        try:
            request = read_request(frame)
            api, version = request.api, request.version
            route = self._routes.get((api.key, version)) or self._route(request)
            if route is None:
                return self._unsupported(connection, request)
            message = route.read(request.body)
        except ProtocolError as error:
            connection.close(f"a request that cannot be read: {error}")
            return None
        context = Context(api, version, request.correlation_id, request.client_id, connection)
        try:
            answer = route.handler(self._broker, context, message)
            if type(answer) is not route.response and hasattr(answer, "__await__"):
                return self._when_answered(context, message, answer)
            return self._encode(context, answer)
        except KafkaError as error:
            return self._refuse(context, message, error)
        except Exception as error:
            return self._failed(context, message, error)

    def _route(self, request: Request) -> Route | None:
        api, version = request.api, request.version
        versions = served(api.key)
        if versions is None or not versions[0] <= version <= versions[1]:
            return None
        route = self._routes[api.key, version] = Route(api, version)
        return route

    def _unsupported(self, connection: Connection, request: Request) -> Answer:
        """A client that asks for versions must learn them, whatever it speaks itself."""
        if request.api.key != API_VERSIONS:
            name, version = request.api.name, request.version
            connection.close(f"{name} version {version} is not served")
            return None
        from ottla.broker.handlers.versions import unsupported

        return encode_response(request.api, 0, request.correlation_id, unsupported())

    def _encode(self, context: Context, answer: Any) -> list[Buffer] | None:
        if answer is None:
            return None
        return encode_response(context.api, context.version, context.correlation_id, answer)

    async def _when_answered(
        self, context: Context, message: Any, answer: Awaitable[Any]
    ) -> list[Buffer] | None:
        try:
            return self._encode(context, await answer)
        except KafkaError as error:
            return self._refuse(context, message, error)
        except Exception as error:
            return self._failed(context, message, error)

    def _refuse(self, context: Context, message: Any, error: KafkaError) -> list[Buffer] | None:
        if self._broker.is_changing:
            # The log has what its machine has refused: that is no answer to a client.
            raise error
        from ottla.broker.refusals import refusal

        try:
            return self._encode(context, refusal(context, message, error))
        except Exception:
            logger.exception("request.not_refused api=%s error=%s", context.api.name, error)
            context.connection.close(f"{context.api.name} failed, and cannot be told so")
            return None

    def _failed(self, context: Context, message: Any, error: Exception) -> list[Buffer] | None:
        """A handler's own fault. Nothing was changed: what fails within a change stops us."""
        if self._broker.is_changing:
            raise error
        logger.exception(
            "request.failed api=%s version=%d client_id=%s",
            context.api.name,
            context.version,
            context.client_id,
        )
        return self._refuse(context, message, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
