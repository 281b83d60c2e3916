"""Deciding configs: what a resource is to hold, checked as a whole, written key by key.

Pure. Which values are right is asked of the ConfigRules. Each resource of a request changes wholly
or not at all; what concerns one node only (loggers) has been answered by that node before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from ottla.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord
from ottla.replication.config_rules import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ottla.replication.controller_state import ControllerState, Failure, Outcome, failure
from ottla.replication.metadata_records import Versioned
from ottla.replication.topic_names import check_topic_name

# A resource is its type and its name. Changes are new values by key; None removes one.
Resource = tuple[int, str]
Changes = Mapping[str, str | None]

VALUE_LENGTH_MAX = 32_767
MIN_ISR = "min.insync.replicas"
_TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(
    state: ControllerState, request: IncrementalAlterConfigsRequest
) -> Outcome[IncrementalAlterConfigsResponse]:
    def changes(resource: Resource, items: Any) -> Changes:
        return {
            # A key that is named twice takes the last operation.
            name: _result(state, resource, item)
            for name, item in {item.name: item for item in items}.items()
        }

    answers, records = _decide_each(state, request.resources, changes)
    answer = IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    response = IncrementalAlterConfigsResponse(
        throttle_time_ms=0, responses=[answer(**fields) for fields in answers]
    )
    return Outcome(response, [] if request.validate_only else records)


def alter_configs(
    state: ControllerState, request: AlterConfigsRequest
) -> Outcome[AlterConfigsResponse]:
    """The old way: what is not named is removed."""

    def changes(resource: Resource, items: Any) -> Changes:
        named = {item.name: item.value for item in items}
        gone = {name: None for name in state.image.config(*resource) if name not in named}
        return named | gone

    answers, records = _decide_each(state, request.resources, changes)
    answer = AlterConfigsResponseAlterConfigsResourceResponse
    response = AlterConfigsResponse(
        throttle_time_ms=0, responses=[answer(**fields) for fields in answers]
    )
    return Outcome(response, [] if request.validate_only else records)


def creation_records(
    state: ControllerState, topic: str, settings: Mapping[str, str]
) -> list[Versioned]:
    """The configs with which a topic begins."""
    if not settings:
        return []
    _check_values((TOPIC, topic), settings, state)
    state.rules.validate_topic(settings, {})
    records = [_record((TOPIC, topic), name, value) for name, value in settings.items()]
    return records + _elr_records(state, records)


# ---- the resources of one request


def _decide_each(
    state: ControllerState, resources: Iterable[Any], changes: Callable[[Resource, Any], Changes]
) -> tuple[list[dict[str, Any]], list[Versioned]]:
    """The fields of each answer, and the records of all resources that may change."""
    answers: list[dict[str, Any]] = []
    records: list[Versioned] = []

    def answer(kind: int, name: str, found: Failure) -> None:
        answers.append(
            {
                "error_code": found.code,
                "error_message": found.message,
                "resource_type": kind,
                "resource_name": name,
            }
        )

    wanted: dict[Resource, Any] = {}
    repeated: set[Resource] = set()
    for asked in resources:
        resource = (asked.resource_type, asked.resource_name)
        if asked.resource_type not in _TYPES:
            reason = f"Unknown resource type {asked.resource_type}."
            answer(*resource, Failure(ErrorCode.UNSUPPORTED_VERSION, reason))
        elif resource in wanted and resource not in repeated:
            repeated.add(resource)
            answer(*resource, Failure(ErrorCode.INVALID_REQUEST, "Duplicate resource."))
        wanted[resource] = asked.configs
    for resource, items in wanted.items():
        if resource in repeated or resource[0] not in _TYPES:
            continue
        try:
            made = _resource_records(state, resource, changes(resource, items))
        except KafkaError as error:
            answer(*resource, failure(error))
            continue
        records += made
        answer(*resource, Failure(ErrorCode.NONE))
    return answers, records + _elr_records(state, records)


def _resource_records(
    state: ControllerState, resource: Resource, changes: Changes
) -> list[Versioned]:
    current = state.image.config(*resource)
    # A broker is to read its files again, so what it is told is written even if it is the same.
    written = {
        name: value
        for name, value in changes.items()
        if resource[0] == BROKER or current.get(name) != value
    }
    _check_values(resource, written, state)
    after = dict(current)
    for name, value in written.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = value
    _validate(state, resource, after, current)
    _check_existence(state, resource)
    return [_record(resource, name, value) for name, value in written.items()]


def _result(state: ControllerState, resource: Resource, item: Any) -> str | None:
    """The value of a key after one operation."""
    current = state.image.config(*resource).get(item.name)
    operation = item.config_operation
    if operation == Operation.SET:
        return item.value  # type: ignore[no-any-return]
    if operation == Operation.DELETE:
        return None
    if operation not in (Operation.APPEND, Operation.SUBTRACT) or item.value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    kind = resource[0]
    if not state.rules.is_list(kind, item.name):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {Operation(operation).name} to key {item.name} because its type is not LIST.",
        )
    if current is None:
        current = state.rules.default(kind, item.name)
    values = [value for value in (current or "").split(",") if value]
    for value in item.value.split(","):
        if operation == Operation.SUBTRACT:
            if value in values:
                values.remove(value)
        elif value not in values:
            values.append(value)
    return ",".join(values)


# ---- checks


def _check_values(resource: Resource, changes: Changes, state: ControllerState) -> None:
    for name, value in changes.items():
        if name == MIN_ISR and resource[0] == BROKER and state.has_elr:
            if resource[1]:
                reason = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
                raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
            if value is None:
                reason = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
                raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        if value is not None and len(value) > VALUE_LENGTH_MAX:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size"
                f" of {VALUE_LENGTH_MAX} bytes.",
            )


def _validate(
    state: ControllerState,
    resource: Resource,
    after: Mapping[str, str],
    before: Mapping[str, str],
) -> None:
    kind, name = resource
    if kind == TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_topic_name(name)
        state.rules.validate_topic(after, before)
    elif kind == BROKER:
        _check_broker_name(name)
        state.rules.validate_broker(after, before)
    elif kind == CLIENT_METRICS:
        state.rules.validate_client_metrics(name, after)
    elif kind == GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        state.rules.validate_group(after)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown resource type BROKER_LOGGER")


def _check_broker_name(name: str) -> None:
    if not name:
        return
    if not name.removeprefix("-").isdecimal():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
        )
    if int(name) < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _check_existence(state: ControllerState, resource: Resource) -> None:
    kind, name = resource
    if kind == TOPIC and state.topic(name) is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    if kind == BROKER and name:
        node_id = int(name)
        image = state.image
        known = node_id in image.brokers or node_id in image.controllers
        if not known and node_id != state.node_id:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found."
            )


# ---- records


def _record(resource: Resource, name: str, value: str | None) -> Versioned:
    kind, resource_name = resource
    return Versioned(
        ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=value)
    )


def _elr_records(state: ControllerState, configs: Iterable[Versioned]) -> list[Versioned]:
    """Another min.insync.replicas makes what is known of eligible leaders void."""
    if not state.has_elr:
        return []
    return [
        Versioned(ClearElrRecord(topic_name=record.resource_name if is_topic else ""))
        for record, is_topic in (
            (versioned.message, versioned.message.resource_type == TOPIC) for versioned in configs
        )
        if record.name == MIN_ISR
    ]
