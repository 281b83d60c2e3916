"""A whole request that failed, in the words of its own response.

Most responses have one place for an error. Some have one for each topic, partition or resource that
was asked for: they name them all, as a client looks for its own.
"""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.schema import default_of, empty, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ottla.broker.context import Context
    from ottla.protocol.schema import Schema

# API: the list in the request, that in the response, and what an item of both is called in each.
_Level = tuple[str, str, dict[str, str]]
_NAMED = {"name": "name"}
_PARTITIONS: _Level = ("partitions", "partitions", {"partition_index": "partition_index"})
_RESOURCE = {"resource_type": "resource_type", "resource_name": "resource_name"}
_LEVELS: dict[str, list[_Level]] = {
    "Produce": [
        ("topic_data", "responses", {"name": "name", "topic_id": "topic_id"}),
        ("partition_data", "partition_responses", {"index": "index"}),
    ],
    "ListOffsets": [("topics", "topics", _NAMED), _PARTITIONS],
    "Metadata": [("topics", "topics", {"name": "name", "topic_id": "topic_id"})],
    "CreateTopics": [("topics", "topics", _NAMED)],
    "DeleteTopics": [("topics", "responses", {"name": "name", "topic_id": "topic_id"})],
    "DeleteRecords": [("topics", "topics", _NAMED), _PARTITIONS],
    "OffsetForLeaderEpoch": [
        ("topics", "topics", {"topic": "topic"}),
        ("partitions", "partitions", {"partition": "partition"}),
    ],
    "DescribeConfigs": [("resources", "results", _RESOURCE)],
    "AlterConfigs": [("resources", "responses", _RESOURCE)],
    "IncrementalAlterConfigs": [("resources", "responses", _RESOURCE)],
    "CreatePartitions": [("topics", "results", _NAMED)],
    "DescribeTopicPartitions": [("topics", "topics", _NAMED)],
}

_GROUP_MODULES = ("groups", "offsets")


def refusal(context: Context, request: Any, error: KafkaError) -> Any:
    """The error response to a request. None where the client waits for none: it is cut off."""
    api = context.api
    if api.name == "Produce" and request.acks == 0:
        context.connection.close(f"Produce without acks failed: {error.code.name}")
        return None
    if api.module in _GROUP_MODULES:
        from ottla.broker.group_refusals import REFUSALS

        if api.name in REFUSALS:
            return REFUSALS[api.name](request, context.version, error)
    schema = schema_of(api.response())
    response = empty(schema)
    levels = _LEVELS.get(api.name)
    if levels is None:
        _put(response, error)
    else:
        if hasattr(response, "error_code"):
            response.error_code = int(error.code)
        _answer_items(schema, response, request, levels, error)
    _suit_version(api.name, context.version, schema, response, request, error)
    return response


def _suit_version(
    api: str, version: int, schema: Schema, response: Any, request: Any, error: KafkaError
) -> None:
    """What some versions say in another way."""
    if api == "DeleteTopics" and version < 6:
        part = schema.part(_field(schema, "responses"))
        response.responses = [_item(part, {"name": name}, error) for name in request.topic_names]
    if api == "Metadata":
        for topic in response.topics:
            # A request may lack a name before a response may: then Kafka says an empty one.
            topic.name = topic.name or ""
    if api == "ElectLeaders" and version == 0:
        # It has no place yet for an error of the whole.
        response.error_code = 0
        response.replica_election_results = _elections(schema, request, error)


def _elections(schema: Schema, request: Any, error: KafkaError) -> list[Any]:
    topic_part = schema.part(_field(schema, "replica_election_results"))
    result_part = topic_part.part(_field(topic_part, "partition_result"))
    return [
        topic_part.cls(
            topic=asked.topic,
            partition_result=[
                _item(result_part, {"partition_id": partition}, error)
                for partition in asked.partitions
            ],
        )
        for asked in request.topic_partitions or ()
    ]


def _answer_items(
    schema: Schema, response: Any, request: Any, levels: list[_Level], error: KafkaError
) -> None:
    (source, target, names), deeper = levels[0], levels[1:]
    part = schema.part(_field(schema, target))
    items = []
    for asked in getattr(request, source) or ():
        values = {theirs: getattr(asked, ours) for ours, theirs in names.items()}
        item = _item(part, values, error)
        if deeper:
            _answer_items(part, item, asked, deeper, error)
        items.append(item)
    setattr(response, target, items)


def _item(part: Schema, values: dict[str, Any], error: KafkaError) -> Any:
    found = {field.name: default_of(part, field) for field in part.fields}
    item = part.cls(**found | values)
    _put(item, error)
    return item


def _put(holder: Any, error: KafkaError) -> None:
    if hasattr(holder, "error_code"):
        holder.error_code = int(error.code)
    if hasattr(holder, "error_message"):
        holder.error_message = error.message
    for name, value in _UNKNOWN.items():
        if hasattr(holder, name):
            setattr(holder, name, value)


# What Kafka says where there is nothing to say.
_UNKNOWN = {
    "base_offset": -1,
    "log_append_time_ms": -1,
    "log_start_offset": -1,
    "offset": -1,
    "timestamp": -1,
    "end_offset": -1,
    "leader_epoch": -1,
    "low_watermark": -1,
    "producer_id": -1,
    "producer_epoch": -1,
}


def _field(schema: Schema, name: str) -> Any:
    return next(field for field in schema.fields if field.name == name)
