"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources.

What concerns this broker alone (its own values, its loggers) is answered here; everything else is
the controller's to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ottla.broker import config_entries, config_updates, loggers
from ottla.broker.broker import SLICE_MS, Broker
from ottla.broker.config_entries import Asked, Entries
from ottla.broker.context import Context
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.replication.config_rules import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ottla.replication.topic_names import check_topic_name

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_LISTED = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)

Incremental = IncrementalAlterConfigsRequestAlterConfigsResource
Legacy = AlterConfigsRequestAlterConfigsResource


# ---- describing


async def describe_configs(
    broker: Broker, context: Context, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    _check_types(request.resources)
    describer = _Describer(broker, request)
    results = []
    started_ms = broker.world.now().monotonic_ms
    for resource in request.resources:
        results.append(describer.result(resource))
        if broker.world.now().monotonic_ms - started_ms >= SLICE_MS:
            await broker.pause()
            started_ms = broker.world.now().monotonic_ms
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


def _check_types(resources: Iterable[DescribeConfigsResource]) -> None:
    for resource in resources:
        if resource.resource_type not in _LISTED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)


class _Describer:
    """The answers to one request; thousands of topics mostly have the same configurations."""

    def __init__(self, broker: Broker, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._with_synonyms = request.include_synonyms
        self._with_documentation = request.include_documentation
        self._topics: dict[tuple[Asked, tuple[tuple[str, str], ...]], Entries] = {}

    def result(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        code, message, configs = ErrorCode.NONE, "", []
        names = frozenset(resource.configuration_keys or ()) or None
        asked = Asked(names, self._with_synonyms, self._with_documentation)
        try:
            configs = self._entries(resource.resource_type, resource.resource_name, asked)
        except KafkaError as error:
            code, message = error.code, error.message
        return DescribeConfigsResult(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    def _entries(self, kind: int, name: str, asked: Asked) -> Entries:
        broker = self._broker
        if kind == TOPIC:
            return self._topic_entries(name, asked)
        if kind == BROKER and not name:
            return config_entries.cluster_entries(broker.config, asked)
        if kind == BROKER:
            expected = f"{broker.node_id} or empty string,"
            _check_broker_id(broker, name, expected)
            return config_entries.broker_entries(broker.config, asked)
        if kind == BROKER_LOGGER:
            if not name:
                raise _malformed("Broker id must not be empty")
            _check_broker_id(broker, name, str(broker.node_id))
            return config_entries.logger_entries(loggers.logger_levels(), asked)
        own = broker.image.config(kind, name)
        if kind == CLIENT_METRICS:
            if not name:
                raise _malformed("Client metrics subscription name must not be empty")
            return config_entries.client_metrics_entries(own, asked)
        if not name:
            raise _malformed("Group name must not be empty")
        return config_entries.group_entries(broker.config, own, asked)

    def _topic_entries(self, name: str, asked: Asked) -> Entries:
        check_topic_name(name)
        if name not in self._broker.image.topics.by_name:
            # The one error that Kafka sends without its sentence.
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        own = self._broker.image.topic_config(name)
        key = (asked, tuple(own.items()))
        if key not in self._topics:
            self._topics[key] = config_entries.topic_entries(self._broker.config, own, asked)
        return self._topics[key]


def _check_broker_id(broker: Broker, name: str, expected: str) -> None:
    if not _INTEGER.fullmatch(name):
        raise _malformed(f"Broker id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        raise _malformed(f"Unexpected broker id, expected {expected} but received {name}")


# ---- altering


async def incremental_alter_configs(
    broker: Broker, context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    def prepare(resource: Incremental) -> bool:
        return _prepare_incremental(broker, resource, validate_only=request.validate_only)

    answered = _prepared(request.resources, prepare)
    rest = [each for each in request.resources if id(each) not in answered]
    decided: Sequence[Any] = ()
    if rest:
        remaining = IncrementalAlterConfigsRequest(
            resources=rest, validate_only=request.validate_only
        )
        response = await broker.controllers.decide(
            lambda controller, now: controller.incremental_alter_configs(remaining, now)
        )
        decided = response.responses
    answer = IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=0,
        responses=[answer(**each) for each in _in_order(request.resources, answered, decided)],
    )


async def alter_configs(
    broker: Broker, context: Context, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    def prepare(resource: Legacy) -> bool:
        return _prepare_legacy(broker, resource)

    answered = _prepared(request.resources, prepare)
    rest = [each for each in request.resources if id(each) not in answered]
    decided: Sequence[Any] = ()
    if rest:
        remaining = AlterConfigsRequest(resources=rest, validate_only=request.validate_only)
        response = await broker.controllers.decide(
            lambda controller, now: controller.alter_configs(remaining, now)
        )
        decided = response.responses
    answer = AlterConfigsResponseAlterConfigsResourceResponse
    return AlterConfigsResponse(
        throttle_time_ms=0,
        responses=[answer(**each) for each in _in_order(request.resources, answered, decided)],
    )


Answer = tuple[int, str | None]
"""An error code and its message."""


def _prepared(resources: Sequence[Any], prepare: Any) -> dict[int, Answer]:
    """What needs no controller, by the identity of the resource: refused, or done here."""
    seen: dict[tuple[int, str], Any] = {}
    answered: dict[int, Answer] = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        if key in seen:
            twice = (int(ErrorCode.INVALID_REQUEST), "Each resource must appear at most once.")
            answered[id(seen[key])] = answered[id(resource)] = twice
        seen[key] = resource
    for resource in resources:
        if id(resource) in answered:
            continue
        try:
            if prepare(resource):
                answered[id(resource)] = (ErrorCode.NONE, None)
        except KafkaError as error:
            is_unknown = error.code is ErrorCode.UNKNOWN_SERVER_ERROR
            answered[id(resource)] = (error.code, None if is_unknown else error.message)
    return answered


def _prepare_incremental(broker: Broker, resource: Incremental, *, validate_only: bool) -> bool:
    """Whether nothing is left to do for the controller."""
    kind, name = resource.resource_type, resource.resource_name
    _check_distinct([each.name for each in resource.configs])
    _check_given(
        each.name
        for each in resource.configs
        if each.value is None and each.config_operation != config_updates.DELETE
    )
    changes = [(each.name, each.config_operation, each.value or "") for each in resource.configs]
    if kind == BROKER_LOGGER:
        _check_own_loggers(broker, name)
        for change in changes:
            loggers.check_change(*change)
        if not validate_only:
            for change in changes:
                loggers.change(*change)
        return True
    if kind == BROKER:
        _check_own_name(broker, name)
        before = broker.config.dynamic if name else broker.config.dynamic_default
        settings = config_updates.operated(before, changes)
        config_updates.check_update(broker.config, settings, of_one=bool(name))
    elif kind not in (TOPIC, CLIENT_METRICS, GROUP):
        raise _malformed(f"Unknown resource type {kind}")
    elif any(not 0 <= operation <= config_updates.SUBTRACT for _, operation, _ in changes):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return False


def _prepare_legacy(broker: Broker, resource: Legacy) -> bool:
    kind, name = resource.resource_type, resource.resource_name
    _check_distinct([each.name for each in resource.configs])
    _check_given(each.name for each in resource.configs if each.value is None)
    if kind == BROKER:
        _check_own_name(broker, name)
        settings = {each.name: each.value or "" for each in resource.configs}
        config_updates.check_update(broker.config, settings, of_one=bool(name))
    elif kind not in (TOPIC, CLIENT_METRICS, GROUP):
        raise _malformed(f"Unknown resource type {kind}")
    return False


def _check_distinct(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise _malformed("Error due to duplicate config keys")


def _check_given(names: Iterable[str]) -> None:
    without_value = list(names)
    if without_value:
        raise _malformed(f"Null value not supported for : {', '.join(without_value)}")


def _check_own_name(broker: Broker, name: str) -> None:
    """Empty for all brokers, or this one's id: nobody else knows what that one can take."""
    if not name:
        return
    if not _INTEGER.fullmatch(name):
        raise _malformed(f"Node id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        raise _malformed(f"Unexpected broker id, expected {broker.node_id}, but received {name}")


def _check_own_loggers(broker: Broker, name: str) -> None:
    if not _INTEGER.fullmatch(name):
        raise _malformed(f"Node id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        raise _malformed(f"Unexpected node id. Expected {broker.node_id}, but received {name}")


def _in_order(
    resources: Iterable[Any], answered: Mapping[int, Answer], decided: Iterable[Any]
) -> Iterator[dict[str, Any]]:
    """The fields of each answer, as the request names the resources."""
    by_name = {
        (each.resource_type, each.resource_name): (each.error_code, each.error_message)
        for each in decided
    }
    for each in resources:
        kind, name = each.resource_type, each.resource_name
        code, message = answered.get(id(each)) or by_name[kind, name]
        yield {
            "error_code": code,
            "error_message": message,
            "resource_type": kind,
            "resource_name": name,
        }


# ---- listing


def list_config_resources(
    broker: Broker, context: Context, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    wanted = request.resource_types
    if context.version == 0:
        # It was made for the subscriptions of client metrics, and tells no types.
        wanted = [CLIENT_METRICS]
    elif not wanted:
        wanted = list(_LISTED)
    if any(kind not in _LISTED for kind in wanted):
        return ListConfigResourcesResponse(
            throttle_time_ms=0, error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[]
        )
    resources = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in _LISTED
        if kind in wanted
        for name in _names(broker, context, kind)
    ]
    return ListConfigResourcesResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, config_resources=resources
    )


def _names(broker: Broker, context: Context, kind: int) -> Iterable[str]:
    if kind == TOPIC:
        return broker.image.topics.by_name
    if kind in (BROKER, BROKER_LOGGER):
        return [str(node.node_id) for node in broker.nodes(context)]
    return [name for of_kind, name in broker.image.configs if of_kind == kind]


def _malformed(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
