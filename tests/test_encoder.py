"""Writing: the bytes that Kafka writes, and the values that cannot be written."""

import math
from array import array
from random import Random
from typing import Any

import pytest

from ottla.protocol import encoder
from ottla.protocol.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from ottla.protocol.messages.control_records import EndTxnMarker
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.messages.headers import RequestHeader
from ottla.protocol.messages.metadata import DescribeTopicPartitionsRequest, MetadataRequest
from ottla.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    OpData,
)
from ottla.protocol.messages.quotas import (
    AlterClientQuotasRequestEntryData as EntryData,
)
from ottla.protocol.messages.sasl import SaslAuthenticateRequest
from ottla.protocol.messages.share_group_records import ShareGroupMetadataKey
from ottla.protocol.messages.storage_records import ProducerSnapshot
from ottla.protocol.messages.transaction_records import TransactionLogValue
from ottla.protocol.messages.transactions import InitProducerIdRequest
from ottla.protocol.messages.versions import ApiVersionsRequest
from ottla.protocol.schema import (
    PRIMITIVES,
    Field,
    Schema,
    decode,
    encode,
    encode_chunks,
    schema_of,
)
from ottla.protocol.wire import ProtocolError
from tests.random_messages import NAMES, random_message, schema_named, versions


def both(message: Any, version: int) -> str:
    """What both writers write; they must agree."""
    written = encode(message, version)
    exact = encoder.write_exact(schema_of(type(message)), version, message)
    assert (exact if isinstance(exact, bytes) else b"".join(exact)) == written
    return written.hex()


def same(message: Any, version: int, text: str) -> None:
    assert both(message, version) == text.replace(" ", "")


def refusal(message: Any, version: int) -> str:
    with pytest.raises(ProtocolError) as caught:
        encode(message, version)
    return str(caught.value)


# --- null and defaults ----------------------------------------------------------------------


def test_null_is_written_as_minus_one_or_zero() -> None:
    same(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 1, "ffff 00000001")
    same(
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 2, "00 00000001 00"
    )
    same(MetadataRequest(topics=None), 1, "ffffffff")
    same(MetadataRequest(topics=None), 9, "00 01 00 00 00")


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 16382, 16383, 32767])
def test_a_compact_length_is_one_more(size: int) -> None:
    request = ApiVersionsRequest(client_software_name="x" * size)
    head = both(request, 3)[: -2 * (size + 2)]
    assert decode(ApiVersionsRequest, 3, encode(request, 3)) == request
    assert len(head) // 2 == (1 if size < 127 else 2 if size < 16383 else 3)


def test_a_struct_that_may_be_null_has_two_forms() -> None:
    request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1, cursor=None)
    same(request, 0, "01 00000001 ff 00")
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        rebalance_timeout_ms=0,
        server_assignor=None,
    )
    head = "00 00 01 01 01 00 00000000 00"
    same(value, 0, f"{head} 00")  # the default is a struct, not null
    value.classic_member_metadata = None
    same(value, 0, f"{head} 01 00 01 00")
    value.classic_member_metadata = ClassicMemberMetadata(
        session_timeout_ms=7, supported_protocols=[]
    )
    same(value, 0, f"{head} 01 00 07 01 00000007 01 00")


def test_the_client_id_keeps_its_old_length_in_a_flexible_header() -> None:
    header = RequestHeader(
        request_api_key=3, request_api_version=12, correlation_id=7, client_id="a"
    )
    same(header, 2, "0003 000c 00000007 0001 61 00")
    header.client_id = None
    same(header, 2, "0003 000c 00000007 ffff 00")


# --- tagged fields --------------------------------------------------------------------------


def fetched(**tagged: Any) -> FetchResponse:
    partition = PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=0,
        last_stable_offset=0,
        log_start_offset=0,
        aborted_transactions=None,
        preferred_read_replica=0,
        records=None,
        **tagged,
    )
    topics = [FetchableTopicResponse(topic="", partitions=[partition])]
    return FetchResponse(throttle_time_ms=0, responses=topics)


FETCHED = "00000000 0000 00000000 02 01 02 00000000 0000" + "00" * 24 + "00 00000000 00"
TAGGED = [  # tagged fields of a partition, how they are written
    ({}, "00"),
    ({"diverging_epoch": EpochEndOffset()}, "00"),
    ({"diverging_epoch": EpochEndOffset(epoch=-1, end_offset=-1)}, "00"),
    ({"diverging_epoch": EpochEndOffset(epoch=1)}, "01 00 0d 00000001 ffffffffffffffff 00"),
    (
        {
            "current_leader": LeaderIdAndEpoch(leader_id=2, leader_epoch=3),
            "diverging_epoch": EpochEndOffset(epoch=1, end_offset=4),
        },
        "02 00 0d 00000001 0000000000000004 00 01 09 00000002 00000003 00",
    ),
]


@pytest.mark.parametrize("tagged, text", TAGGED)
def test_a_tagged_field_that_equals_its_default_is_not_written(tagged: Any, text: str) -> None:
    same(fetched(**tagged), 12, f"{FETCHED} {text} 00 00")


def test_tags_go_by_their_numbers_and_last() -> None:
    # In the schema 3 stands before 2, and both before fields without a tag.
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=2,
        next_producer_epoch=3,
        transaction_timeout_ms=4,
        transaction_status=5,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=6,
        transaction_start_timestamp_ms=7,
        client_transaction_version=2,
    )
    plain = "0000000000000001 0002 00000004 05 00 0000000000000006 0000000000000007"
    same(value, 1, f"{plain} 02 02 02 0002 03 02 0003")


def test_a_large_tagged_field_has_its_size_before_it() -> None:
    request = FetchRequest(
        cluster_id="c" * 1000, max_wait_ms=0, min_bytes=0, topics=[], session_epoch=0, max_bytes=0
    )
    written = both(request, 12)
    assert written.endswith("0101 01 01 00 ea07 e907".replace(" ", "") + "63" * 1000)


# --- what a version cannot carry ------------------------------------------------------------

KEPT, DROPPED = True, False
LACKING = [  # message, version, the field that it lacks, or nothing if it is ignorable
    (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 0, ""),
    (
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1, producer_id=5),
        2,
        "InitProducerIdRequest.producer_id",
    ),
    (
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1, enable2_pc=True),
        5,
        "InitProducerIdRequest.enable2_pc",
    ),
    (
        FetchRequest(replica_id=3, max_wait_ms=0, min_bytes=0, topics=[]),
        15,
        "FetchRequest.replica_id",
    ),
    (
        FetchRequest(
            replica_state=ReplicaState(replica_id=3), max_wait_ms=0, min_bytes=0, topics=[]
        ),
        14,
        "FetchRequest.replica_state",
    ),
    (FetchRequest(rack_id="r", max_wait_ms=0, min_bytes=0, topics=[]), 10, ""),
    (
        OffsetFetchRequest(
            group_id="g",
            topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[])],
            require_stable=True,
        ),
        6,
        "OffsetFetchRequest.require_stable",
    ),
    (
        MetadataRequest(topics=[], allow_auto_topic_creation=False),
        3,
        "MetadataRequest.allow_auto_topic_creation",
    ),
    (ApiVersionsRequest(client_software_name="ottla", client_software_version="1"), 0, ""),
    (fetched(), 10, "FetchResponse.responses[0].partitions[0].preferred_read_replica"),
]


@pytest.mark.parametrize(
    "message, version, path", LACKING, ids=[f"{x[2]} v{x[1]}" for x in LACKING]
)
def test_a_value_without_a_place_is_an_error_unless_it_is_ignorable(
    message: Any, version: int, path: str
) -> None:
    if path:
        assert refusal(message, version) == f"{path}: version {version} cannot carry this field"
    else:
        both(message, version)


def lacking(schema: Schema, version: int) -> list[Field]:
    return [
        field
        for field in schema.fields
        if not field.exists_in(version) and field.kind in PRIMITIVES and not field.array
    ]


@pytest.mark.parametrize("name", NAMES)
def test_each_field_that_a_version_lacks_is_dropped_or_refused(name: str) -> None:
    schema = schema_named(name)
    for version in versions(name):
        for field in lacking(schema, version):
            message = random_message(name, version, Random(name))
            plain = encode(message, version)
            setattr(message, field.name, other_value(field))
            if field.ignorable:
                assert encode(message, version) == plain
            else:
                path = f"{name}.{field.name}"
                expected = f"{path}: version {version} cannot carry this field"
                assert refusal(message, version) == expected


def other_value(field: Field) -> Any:
    """A value that is no default."""
    if field.kind == "String":
        return "other"
    if field.kind in ("Bytes", "Records"):
        return b"other"
    if field.kind == "Uuid":
        return b"o" * 16
    return not field.default if field.kind == "Bool" else 42


# --- numbers, strings, bytes ----------------------------------------------------------------


def test_a_lone_surrogate_is_written_as_a_question_mark() -> None:
    same(ApiVersionsRequest(client_software_name="a\ud800b"), 3, "04 613f62 01 00")
    same(ApiVersionsRequest(client_software_name="\udfff\ud800"), 3, "03 3f3f 01 00")


def test_strings_are_measured_in_utf8() -> None:
    name = "é" * 16383  # 32,766 bytes
    assert decode(ApiVersionsRequest, 3, encode(ApiVersionsRequest(client_software_name=name), 3))
    for compact, wrong in ((3, "é" * 16384), (3, "x" * 32768)):
        request = ApiVersionsRequest(client_software_name=wrong)
        assert refusal(request, compact) == (
            "ApiVersionsRequest.client_software_name: a string of 32768 bytes; 32767 are allowed"
        )
    for version in (0, 5):
        key = InitProducerIdRequest(transactional_id="x" * 32768, transaction_timeout_ms=0)
        assert "a string of 32768 bytes; 32767 are allowed" in refusal(key, version)


def test_ports_and_checksums_are_unsigned() -> None:
    same(ProducerSnapshot(crc=2**32 - 1, producer_entries=[]), 1, "ffffffff 00000000")


def test_records_of_the_log_are_never_flexible() -> None:
    same(EndTxnMarker(coordinator_epoch=5), 0, "00000005")
    same(ShareGroupMetadataKey(group_id="g"), 0, "0001 67")


# --- pieces ---------------------------------------------------------------------------------


def produced(*records: Any) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=each) for index, each in enumerate(records)]
    topics = [TopicProduceData(name="t", partition_data=data)]
    return ProduceRequest(acks=1, timeout_ms=1, topic_data=topics)


LARGE = bytes(range(256)) * 16


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("version", [3, 9])
def test_large_records_are_not_copied(kind: Any, version: int) -> None:
    records = kind(LARGE)
    chunks = encode_chunks(produced(b"small", records, None, records), version)
    views = [chunk for chunk in chunks if isinstance(chunk, memoryview)]
    owner = records.obj if isinstance(records, memoryview) else records
    assert [view.obj is owner for view in views] == [True, True]
    read = decode(ProduceRequest, version, b"".join(chunks))
    assert [p.records for p in read.topic_data[0].partition_data] == [b"small", LARGE, None, LARGE]


def test_small_records_are_copied_into_one_piece() -> None:
    (chunk,) = encode_chunks(produced(LARGE[:-1]), 9)
    assert decode(ProduceRequest, 9, chunk).topic_data[0].partition_data[0].records == LARGE[:-1]


# --- values of wrong types ------------------------------------------------------------------


class Strange:
    """Of no type that a message holds."""


WRONG: list[Any] = [
    None,
    Strange(),
    "text",
    "\ud800",
    b"bytes",
    bytearray(b"bytes"),
    5,
    -1,
    10**5000,
    2**63,
    1.5,
    math.nan,
    math.inf,
    True,
    [],
    [None],
    [[]],
    [300],
    [10**30],
    ["text", b"bytes", 5],
    [Strange()],
    {"a": 1},
    {1},
    (),
    array("i", range(3000)),
    "x" * 40000,
    ["x" * 40000],
    [0] * 5000,
    object,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_of_a_wrong_type_is_a_protocol_error_at_worst(name: str) -> None:
    """Some are written all the same (True for 1): types are mypy's matter, not the writer's."""
    dice = Random(name)
    last = schema_named(name).versions[1]
    for field in schema_named(name).fields:
        for wrong in WRONG:
            message = random_message(name, last, dice)
            setattr(message, field.name, wrong)
            try:
                encode(message, last)
            except ProtocolError as error:
                assert error.path.startswith(name)


# A value of no type that a field may have; of any for mypy.
MISFIT: Any = object()


PATHS = [  # a message that cannot be written, and where that is seen
    (produced(b"a", 5), 9, "ProduceRequest.topic_data[0].partition_data[1].records"),
    (produced([300] * 5000), 9, "ProduceRequest.topic_data[0].partition_data[0].records"),
    (
        OffsetFetchRequest(
            group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[1, 2**31])]
        ),
        7,
        "OffsetFetchRequest.topics[0].partition_indexes[1]",
    ),
    (SaslAuthenticateRequest(auth_bytes=MISFIT), 2, "SaslAuthenticateRequest.auth_bytes"),
    (
        FetchRequest(replica_state=MISFIT, max_wait_ms=0, min_bytes=0, topics=[]),
        15,
        "FetchRequest.replica_state.replica_id",
    ),
    (
        AlterClientQuotasRequest(
            entries=[EntryData(entity=[], ops=[OpData(key="k", value=MISFIT, remove=False)])],
            validate_only=False,
        ),
        0,
        "AlterClientQuotasRequest.entries[0].ops[0].value",
    ),
    (
        DescribeTopicPartitionsRequest(topics=MISFIT, response_partition_limit=1, cursor=None),
        0,
        "DescribeTopicPartitionsRequest.topics",
    ),
]


@pytest.mark.parametrize("message, version, path", PATHS, ids=[p[2] for p in PATHS])
def test_an_error_names_the_field(message: Any, version: int, path: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        encode_chunks(message, version)
    assert caught.value.path == path
    assert caught.value.__context__ is None
