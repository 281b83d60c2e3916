"""Messages as JSON: the shape of Kafka's converters, and what is no such JSON."""

import json
import math
from random import Random
from typing import Any

import pytest

from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.metadata_records import TopicRecord, ZkMigrationStateRecord
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.messages.quotas import AlterClientQuotasRequest
from ottla.protocol.messages.raft_records import KRaftVersionRecord
from ottla.protocol.messages.sasl import SaslAuthenticateRequest
from ottla.protocol.messages.transactions import InitProducerIdRequest
from ottla.protocol.messages.versions import ApiVersionsRequest
from ottla.protocol.schema import decode, encode
from ottla.protocol.wire import ProtocolError
from tests.random_messages import NAMES, random_message, schema_named

ID = bytes(range(16))
ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"

SHAPES = [  # message, version, JSON
    (
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=5),
        1,
        {"transactionalId": None, "transactionTimeoutMs": 5},
    ),
    (
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5),
        3,
        {
            "transactionalId": "t",
            "transactionTimeoutMs": 5,
            "producerId": -1,
            "producerEpoch": -1,
        },
    ),
    (TopicRecord(name="t", topic_id=ID), 0, {"name": "t", "topicId": ID_TEXT}),
    (SaslAuthenticateRequest(auth_bytes=b"\xfb\xff"), 0, {"authBytes": "+/8="}),
    (KRaftVersionRecord(version=0, k_raft_version=1), 0, {"version": 0, "kRaftVersion": 1}),
    (ZkMigrationStateRecord(zk_migration_state=2), 0, {"zkMigrationState": 2}),
    (ApiVersionsRequest(), 0, {}),
]


@pytest.mark.parametrize("message, version, told", SHAPES)
def test_the_shape_is_that_of_kafka(message: Any, version: int, told: Any) -> None:
    assert to_json(message, version) == told
    assert from_json(type(message), version, told) == message


FETCH = {
    "maxWaitMs": 0,
    "minBytes": 0,
    "maxBytes": 0,
    "isolationLevel": 0,
    "sessionId": 0,
    "sessionEpoch": 0,
    "topics": [],
    "forgottenTopicsData": [],
    "rackId": "",
}


def test_tagged_fields_that_hold_their_default_are_left_out() -> None:
    request = from_json(FetchRequest, 17, FETCH)
    assert (request.cluster_id, request.replica_state) == (None, None)
    assert to_json(request, 17) == FETCH
    sent = {**FETCH, "clusterId": None, "replicaState": {"replicaId": -1, "replicaEpoch": -1}}
    assert to_json(from_json(FetchRequest, 17, sent), 17) == FETCH
    other = {**FETCH, "clusterId": "c", "replicaState": {"replicaId": 1, "replicaEpoch": -1}}
    assert to_json(from_json(FetchRequest, 17, other), 17) == other


def test_a_null_that_kafka_takes_for_no_default_is_told() -> None:
    text = "00 00 01 01 01 00 00000000 00"
    absent = decode(ConsumerGroupMemberMetadataValue, 0, bytes.fromhex(f"{text} 00"))
    null = decode(ConsumerGroupMemberMetadataValue, 0, bytes.fromhex(f"{text} 01 00 01 00"))
    assert "classicMemberMetadata" not in to_json(absent, 0)
    assert to_json(null, 0)["classicMemberMetadata"] is None


def test_unknown_members_are_ignored() -> None:
    told = {"transactionalId": "t", "transactionTimeoutMs": 5, "produced": {"a": []}, "": 1}
    request = from_json(InitProducerIdRequest, 1, told)
    assert request == InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5)


def test_members_of_other_versions_are_read_and_refused_when_written() -> None:
    told = {"transactionalId": "t", "transactionTimeoutMs": 5, "producerId": 7}
    request = from_json(InitProducerIdRequest, 1, told)
    assert request.producer_id == 7
    with pytest.raises(ProtocolError, match="version 1 cannot carry this field"):
        encode(request, 1)
    with pytest.raises(ProtocolError, match="producer_id"):
        from_json(InitProducerIdRequest, 1, {**told, "producerId": "7"})


UUIDS = [  # text, is it one?
    (ID_TEXT, True),
    (ID_TEXT + "==", True),
    ("_-" * 11, True),
    (ID_TEXT + "=", False),
    (ID_TEXT[:-1], False),
    (ID_TEXT + "A", False),
    ("+/" * 11, False),
    ("é" * 22, False),
    ("", False),
    (" " + ID_TEXT, False),
    (ID_TEXT + "\n", False),
    ("00010203-0405-0607-0809-0a0b0c0d0e0f", False),
]


@pytest.mark.parametrize("text, is_one", UUIDS)
def test_a_uuid_is_url_safe_base64(text: str, is_one: bool) -> None:
    told = {"name": "t", "topicId": text}
    if is_one:
        assert len(from_json(TopicRecord, 0, told).topic_id) == 16
    else:
        assert refusal(TopicRecord, 0, told).startswith("TopicRecord.topic_id: a uuid is")


BASE64 = [("", True), ("AA==", True), ("+/8=", True), ("AA", False), ("-_8=", False), ("é", False)]


@pytest.mark.parametrize("text, is_it", [*BASE64, ("A===", False), ("AA==AA==", False)])
def test_bytes_are_padded_base64(text: str, is_it: bool) -> None:
    if is_it:
        from_json(SaslAuthenticateRequest, 0, {"authBytes": text})
    else:
        told = refusal(SaslAuthenticateRequest, 0, {"authBytes": text})
        assert told.startswith("SaslAuthenticateRequest.auth_bytes: not base64")


def refusal(cls: type[Any], version: int, told: Any) -> str:
    with pytest.raises(ProtocolError) as caught:
        from_json(cls, version, told)
    return str(caught.value)


WRONG: list[tuple[type[Any], int, Any, str]] = [  # message, version, JSON, error
    (ApiVersionsRequest, 0, [], "ApiVersionsRequest: an object is expected, not an array"),
    (ApiVersionsRequest, 0, None, "ApiVersionsRequest: an object is expected, not null"),
    (ApiVersionsRequest, 0, "{}", "ApiVersionsRequest: an object is expected, not a string"),
    (
        InitProducerIdRequest,
        0,
        {"transactionalId": "t"},
        "InitProducerIdRequest: the member transactionTimeoutMs is missing",
    ),
    *(
        (
            InitProducerIdRequest,
            0,
            {"transactionalId": None, "transactionTimeoutMs": wrong},
            f"InitProducerIdRequest.transaction_timeout_ms: {error}",
        )
        for wrong, error in [
            ("5", "an integer is expected, not a string"),
            (5.0, "an integer is expected, not a number"),
            (True, "an integer is expected, not a boolean"),
            (None, "null, which is not allowed here"),
            (2**31, "an integer is not within -2147483648 and 2147483647"),
            (-(2**31) - 1, "an integer is not within -2147483648 and 2147483647"),
            (10**5000, "an integer is not within -2147483648 and 2147483647"),
        ]
    ),
    (
        InitProducerIdRequest,
        0,
        {"transactionalId": 5, "transactionTimeoutMs": 5},
        "InitProducerIdRequest.transactional_id: String is expected, not a number",
    ),
    (
        ProduceRequest,
        9,
        {
            "transactionalId": None,
            "acks": 1,
            "timeoutMs": 1,
            "topicData": [{"name": "t", "partitionData": [{"index": 1, "records": 7}]}],
        },
        "ProduceRequest.topic_data[0].partition_data[0].records: Records is expected, not a number",
    ),
    (
        FetchResponse,
        4,
        {"throttleTimeMs": 0, "responses": [{"topic": "t", "partitions": {}}]},
        "FetchResponse.responses[0].partitions: an array is expected, not an object",
    ),
    (
        FetchResponse,
        4,
        {"throttleTimeMs": 0, "responses": [None]},
        "FetchResponse.responses[0]: an object is expected, not null",
    ),
]


@pytest.mark.parametrize("cls, version, told, error", WRONG)
def test_what_is_wrong_is_told_with_its_path(
    cls: type[Any], version: int, told: Any, error: str
) -> None:
    assert refusal(cls, version, told) == error


@pytest.mark.parametrize("wrong", [1, "1.0", None, True, [1.0]])
def test_floats_refuse_what_is_none(wrong: Any) -> None:
    op = {"key": "k", "value": wrong, "remove": False}
    told = {"entries": [{"entity": [], "ops": [op]}], "validateOnly": False}
    path = "AlterClientQuotasRequest.entries[0].ops[0].value"
    assert refusal(AlterClientQuotasRequest, 0, told).startswith(f"{path}: ")


def test_a_value_that_a_version_cannot_carry_is_refused() -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=5, producer_id=7)
    with pytest.raises(ProtocolError, match=r"^InitProducerIdRequest.producer_id: version 2"):
        to_json(request, 2)


def test_null_is_refused_where_it_is_not_allowed() -> None:
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=None)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match=r"^ProduceRequest.topic_data: null"):
        to_json(request, 9)


# --- whatever comes -------------------------------------------------------------------------

DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]

STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    10**5000,
    1.5,
    math.nan,
    -math.inf,
    "",
    "text",
    "\ud800",
    "AAAA",
    [],
    [None],
    [[]],
    [0, "a", None],
    [{}],
    {},
    {"name": {}},
    DEEP,
    {"\ud800": DEEP},
]


@pytest.mark.parametrize("name", NAMES)
def test_strange_values_are_refused_or_written(name: str) -> None:
    schema = schema_named(name)
    dice = Random(name)
    version = schema.versions[1]
    for _ in range(20):
        told = json.loads(json.dumps(to_json(random_message(name, version, dice), version)))
        told = changed(told, dice)
        try:
            encode(from_json(schema.cls, version, told), version)
        except ProtocolError as error:
            assert error.path.startswith(name)


def changed(told: Any, dice: Random) -> Any:
    """The same JSON with something strange somewhere in it."""
    if isinstance(told, dict) and told and dice.random() < 0.9:
        member = dice.choice(list(told))
        return {**told, member: changed(told[member], dice)}
    if isinstance(told, list) and told and dice.random() < 0.9:
        index = dice.randrange(len(told))
        return [*told[:index], changed(told[index], dice), *told[index + 1 :]]
    return dice.choice(STRANGE)
