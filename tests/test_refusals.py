"""A whole request that failed is answered in the words of its API, whatever was asked."""

from random import Random
from typing import Any

import pytest

from ottla.broker.context import Context
from ottla.broker.dispatch import HANDLERS, served
from ottla.broker.refusals import refusal
from ottla.protocol.apis import APIS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.frames import encode_response, read_response
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.schema import ZERO, decode, schema_of
from tests.data_rig import FakeConnection
from tests.random_messages import random_struct

REFUSED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "for a reason")
PAIRS = [
    (key, version)
    for key in HANDLERS
    for version in range((served(key) or (0, 0))[0], (served(key) or (0, 0))[1] + 1)
]


def refused(key: int, version: int, request: Any) -> tuple[Any, FakeConnection]:
    """The refusal as a client reads it; None where nothing is sent."""
    connection: Any = FakeConnection()
    context = Context(APIS[key], version, 7, "a client", connection)
    response = refusal(context, request, REFUSED)
    if response is None:
        return None, connection
    sent = b"".join(encode_response(APIS[key], version, 7, response))
    _, body = read_response(APIS[key], version, sent[4:])
    return decode(APIS[key].response(), version, body), connection


@pytest.mark.parametrize(("key", "version"), PAIRS)
def test_every_request_can_be_refused(key: int, version: int) -> None:
    schema = schema_of(APIS[key].request())
    for seed in range(10):
        answer, connection = refused(key, version, random_struct(schema, version, Random(seed)))
        assert (answer is None) == connection.is_closed


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_a_topic_without_a_name_can_be_refused(version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=ZERO, name=None)])
    answer, _ = refused(3, version, request)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_refusal_names_each_partition_and_knows_no_offset() -> None:
    data = PartitionProduceData(index=3, records=None)
    topic = TopicProduceData(name="a", topic_id=ZERO, partition_data=[data])
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=1, topic_data=[topic])
    answer, _ = refused(0, 9, request)
    (found,) = answer.responses
    (partition,) = found.partition_responses
    assert (found.name, partition.index, partition.base_offset) == ("a", 3, -1)
    assert partition.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_who_waits_for_no_answer_is_cut_off() -> None:
    request = ProduceRequest(transactional_id=None, acks=0, timeout_ms=1, topic_data=[])
    answer, connection = refused(0, 9, request)
    assert answer is None
    assert connection.reason == "Produce without acks failed: UNKNOWN_SERVER_ERROR"
