"""Reading: what Kafka's own reader accepts, what it refuses, and where an error is seen."""

from time import process_time
from typing import Any

import pytest

from ottla.protocol import decoder
from ottla.protocol.exact import decode_as_java
from ottla.protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.headers import RequestHeader
from ottla.protocol.messages.metadata import DescribeTopicPartitionsRequest, MetadataRequest
from ottla.protocol.messages.metadata_records import PartitionChangeRecord
from ottla.protocol.messages.offsets import OffsetFetchRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.messages.quorum import BeginQuorumEpochRequest
from ottla.protocol.messages.quotas import AlterClientQuotasRequest
from ottla.protocol.messages.sasl import SaslAuthenticateRequest
from ottla.protocol.messages.storage_records import ProducerSnapshot
from ottla.protocol.messages.transactions import InitProducerIdRequest
from ottla.protocol.messages.versions import ApiVersionsRequest
from ottla.protocol.schema import INT64_MAX, ZERO, decode, decode_prefix, schema_of
from ottla.protocol.wire import ProtocolError
from tests.dense_wire import uvarint


def read(cls: type[Any], version: int, text: str) -> Any:
    """Read with all readers, from all kinds of buffer; they must agree, and take every byte."""
    raw = bytes.fromhex(text)
    found, size = decode_prefix(cls, version, raw)
    for data in (raw, memoryview(raw), bytearray(raw)):
        assert decode(cls, version, data) == found
    assert decoder.large_reader_of(schema_of(cls), version)(raw) == found
    assert size == len(raw)
    return found


def refusal(cls: type[Any], version: int, text: str) -> str:
    raw = bytes.fromhex(text)
    told = set()
    for data in (raw, memoryview(raw)):
        with pytest.raises(ProtocolError) as caught:
            decode(cls, version, data)
        told.add(str(caught.value))
    (only,) = told
    return only


# --- null -----------------------------------------------------------------------------------


NULLS = [  # what, message, version, bytes
    ("a string of length -1", InitProducerIdRequest, 0, "ffff 00000000"),
    ("a string of length -32768", InitProducerIdRequest, 0, "8000 00000000"),
    ("a compact string of length 0", InitProducerIdRequest, 2, "00 00000000 00"),
    ("a compact string of length 2^31 + 1", InitProducerIdRequest, 2, "8180808008 00000000 00"),
    ("a compact string of length 2^32 - 1", InitProducerIdRequest, 2, "ffffffff0f 00000000 00"),
    ("a padded zero", InitProducerIdRequest, 2, "808000 00000000 00"),
]


@pytest.mark.parametrize("what, cls, version, text", NULLS, ids=[n[0] for n in NULLS])
def test_every_negative_length_is_null(what: str, cls: Any, version: int, text: str) -> None:
    assert read(cls, version, text).transactional_id is None


NULL_ARRAYS = [
    (1, "ffffffff"),
    (1, "80000000"),
    (9, "00 00 00 00 00"),
    (9, "8180808008 00 00 00 00"),
]


@pytest.mark.parametrize("version, text", NULL_ARRAYS)
def test_every_negative_count_is_null(version: int, text: str) -> None:
    assert read(MetadataRequest, version, text).topics is None


def test_the_greatest_compact_length_is_no_null() -> None:
    # Less one it is 2^31 - 1, and 2^31 less one, in 32 bits, is that as well.
    assert "2147483647 bytes announced" in refusal(SaslAuthenticateRequest, 2, "8080808008 00")
    assert "2147483646 bytes announced" in refusal(SaslAuthenticateRequest, 2, "ffffffff07 00")


NOT_NULL = [  # message, version, bytes, where
    (MetadataRequest, 0, "ffffffff", "MetadataRequest.topics"),
    (MetadataRequest, 1, "00000001 ffff", "MetadataRequest.topics[0].name"),
    (MetadataRequest, 9, "02 00 00 00 00 00", "MetadataRequest.topics[0].name"),
    (ProduceRequest, 3, "ffff 0001 00000000 ffffffff", "ProduceRequest.topic_data"),
    (ProduceRequest, 9, "00 0001 00000000 00 00", "ProduceRequest.topic_data"),
    (SaslAuthenticateRequest, 0, "ffffffff", "SaslAuthenticateRequest.auth_bytes"),
    (SaslAuthenticateRequest, 2, "00 00", "SaslAuthenticateRequest.auth_bytes"),
    (OffsetFetchRequest, 1, "0001 67 ffffffff", "OffsetFetchRequest.topics"),
]


@pytest.mark.parametrize("cls, version, text, path", NOT_NULL)
def test_null_is_refused_where_it_is_not_allowed(
    cls: Any, version: int, text: str, path: str
) -> None:
    assert refusal(cls, version, text) == f"{path}: null, which is not allowed here"


# --- structs that may be null ---------------------------------------------------------------


def test_an_untagged_struct_is_null_below_zero_and_there_otherwise() -> None:
    for sign in ("ff", "80", "fe"):
        assert read(DescribeTopicPartitionsRequest, 0, f"01 00000001 {sign} 00").cursor is None
    for sign in ("01", "00", "7f"):
        cursor = read(
            DescribeTopicPartitionsRequest, 0, f"01 00000001 {sign} 02 74 00000005 00 00"
        ).cursor
        assert (cursor.topic_name, cursor.partition_index) == ("t", 5)


# classic_member_metadata is tag 0; Kafka takes its default, a null that is no string, for none.
CLASSIC = [  # tagged fields, session timeout: None for a struct that is null
    ("00", 0),
    ("01 00 01 00", None),
    ("01 00 06 ffffffff0f", None),
    ("01 00 07 01 00000007 01 00", 7),
    ("01 00 07 7f 00000007 01 00", 7),
]


@pytest.mark.parametrize("tagged, timeout_ms", CLASSIC)
def test_a_tagged_struct_is_null_where_a_varint_is_zero(
    tagged: str, timeout_ms: int | None
) -> None:
    text = f"00 00 01 01 01 00 00000000 00 {tagged}"
    metadata = read(ConsumerGroupMemberMetadataValue, 0, text).classic_member_metadata
    assert (metadata and metadata.session_timeout_ms) == timeout_ms


# --- tagged fields --------------------------------------------------------------------------

# FetchRequest v17 without topics; its tagged fields follow.
FETCH_17 = "00000001 00000001 00000001 00 00000000 ffffffff 01 01 01"


def fetch(tagged: str) -> Any:
    return read(FetchRequest, 17, f"{FETCH_17} {tagged}")


REPLICA = "01 0d 00000005 0000000000000006 00"  # tag 1, 13 bytes: replica 5, epoch 6
CLUSTER = "00 02 02 63"  # tag 0, 2 bytes: "c"

TAGS = [  # what, tagged fields, cluster id, replica id
    ("none", "00", None, None),
    ("both", f"02 {CLUSTER} {REPLICA}", "c", 5),
    ("descending", f"02 {REPLICA} {CLUSTER}", "c", 5),
    ("the last of two duplicates", f"02 {CLUSTER} 00 02 02 64", "d", None),
    ("duplicates among others", f"03 {CLUSTER} {REPLICA} 00 02 02 64", "d", 5),
    ("a size too small", "01 00 00 02 63", "c", None),
    ("a size too large", "01 00 ffffffff07 02 63", "c", None),
    ("unknown ones are skipped", f"03 {CLUSTER} 05 03 aabbcc ffffffff0f 00", "c", None),
    ("a padded count", f"818000 {CLUSTER}", "c", None),
    ("a padded tag", "01 808000 02 02 63", "c", None),
    ("a default that was sent", "01 00 01 00", None, None),
    ("a negative count", "ffffffff0f", None, None),
]


@pytest.mark.parametrize("what, tagged, cluster, replica", TAGS, ids=[t[0] for t in TAGS])
def test_tagged_fields(what: str, tagged: str, cluster: str | None, replica: int | None) -> None:
    request = fetch(tagged)
    assert request.cluster_id == cluster
    assert (request.replica_state and request.replica_state.replica_id) == replica


def test_a_struct_of_defaults_that_was_sent_is_there() -> None:
    request = fetch("01 01 0d ffffffff ffffffffffffffff 00")
    assert request.replica_state is not None


def test_a_default_that_was_sent_is_read() -> None:
    topic = f"02 {ZERO.hex()} 02 00000000 00000000 {0:016x} 00000000 {0:016x} 00000000"
    head = "00000001 00000001 00000001 00 00000000 ffffffff"
    sent = read(FetchRequest, 18, f"{head} {topic} 01 01 08 {INT64_MAX:016x} 00 01 01 00")
    kept = read(FetchRequest, 18, f"{head} {topic} 00 00 01 01 00")
    assert sent == kept and kept.topics[0].partitions[0].high_watermark == INT64_MAX


def test_unknown_tags_are_skipped_at_every_depth() -> None:
    unknown = "02 7e 00 8001 02 aabb"
    text = f"00 0001 00000001 02 02 74 02 00000000 00 {unknown} {unknown} {unknown}"
    request = read(ProduceRequest, 9, text)
    assert request.topic_data[0].partition_data[0].records is None


WRONG_TAGS = [  # what, message, version, bytes, error
    (
        "a tag of a later version",
        FetchRequest,
        14,
        "ffffffff 00000001 00000001 00000001 00 00000000 ffffffff 01 01 01 01 01 00",
        "FetchRequest.replica_state: tag 1 is not valid in this version",
    ),
    ("a size above what is left", FetchRequest, 17, f"{FETCH_17} 01 05 02 00", "FetchRequest: "),
    ("a size that is cut", FetchRequest, 17, f"{FETCH_17} 01 05 80", "FetchRequest: varint"),
    ("a tag that is cut", FetchRequest, 17, f"{FETCH_17} 01", "FetchRequest: varint"),
    ("more tags than bytes", FetchRequest, 17, f"{FETCH_17} ffffffff07 05 00", "FetchRequest: "),
    ("a count of 6 bytes", FetchRequest, 17, f"{FETCH_17} ffffffffff01", "FetchRequest: varint"),
    (
        "more unknown tags than memory",
        ApiVersionsRequest,
        3,
        "02 61 02 62 8080808001" + "05 00" * 10,
        "ApiVersionsRequest: 268435456 unknown tagged fields are too many",
    ),
]


@pytest.mark.parametrize(
    "what, cls, version, text, error", WRONG_TAGS, ids=[w[0] for w in WRONG_TAGS]
)
def test_wrong_tagged_fields_are_refused(
    what: str, cls: Any, version: int, text: str, error: str
) -> None:
    assert refusal(cls, version, text).startswith(error)


def test_tagged_fields_come_in_any_order_whatever_the_schema_says() -> None:
    # In the schema 8 stands before 6 and 7.
    record = read(PartitionChangeRecord, 2, f"{ZERO.hex()} 00000001 03 07 01 00 08 01 00 06 01 00")
    assert (record.eligible_leader_replicas, record.directories) == (None, None)


# --- numbers, strings, bytes ----------------------------------------------------------------


@pytest.mark.parametrize("byte, value", [("00", False), ("01", True), ("02", True), ("ff", True)])
def test_any_byte_but_zero_is_true(byte: str, value: bool) -> None:
    assert read(AlterClientQuotasRequest, 0, f"00000000 {byte}").validate_only is value


VARINTS = [  # bytes of the length of the one string of ApiVersionsRequest v3
    ("02", True),
    ("8200", True),
    ("828000", True),
    ("8280808000", True),
    ("8280808070", True),  # the bits above the 32nd are dropped
    ("828080808000", False),
    ("8280808080", False),
]


@pytest.mark.parametrize("length, accepted", VARINTS)
def test_a_varint_has_at_most_five_bytes(length: str, accepted: bool) -> None:
    text = f"{length} 61 01 00"
    if accepted:
        assert read(ApiVersionsRequest, 3, text).client_software_name == "a"
    else:
        path = "ApiVersionsRequest.client_software_name"
        assert refusal(ApiVersionsRequest, 3, text) == f"{path}: varint is longer than 5 bytes"


def test_the_client_id_keeps_its_old_length_in_a_flexible_header() -> None:
    assert read(RequestHeader, 2, "0003 000c 00000007 0001 61 00").client_id == "a"
    assert read(RequestHeader, 2, "0003 000c 00000007 ffff 00").client_id is None


def test_ports_and_checksums_are_unsigned() -> None:
    text = "00 00000001 01 02 02 4c 02 68 ffff 00 00"
    request = read(BeginQuorumEpochRequest, 1, text)
    assert request.leader_endpoints[0].port == 65535
    assert read(ProducerSnapshot, 1, "ffffffff 00000000").crc == 2**32 - 1


@pytest.mark.parametrize("size", [32766, 32767])
def test_a_string_may_have_32767_bytes(size: int) -> None:
    raw = b"x" * size
    compact = decode(ApiVersionsRequest, 3, uvarint(size + 1) + raw + b"\1\0")
    assert compact.client_software_name == raw.decode()


def test_a_longer_string_is_refused() -> None:
    raw = uvarint(32769) + b"x" * 32768 + b"\1\0"
    assert refusal(ApiVersionsRequest, 3, raw.hex()) == (
        "ApiVersionsRequest.client_software_name: a string of 32768 bytes; 32767 are allowed"
    )


# What Java 17 makes of bytes that are no UTF-8; each U+FFFD stands as a question mark here.
JAVA = [
    ("", ""),
    ("61 c3a9 e697a5 f09fa680", "aé日\U0001f980"),
    ("80", "?"),
    ("bf bf", "??"),
    ("c0 80", "??"),  # an overlong zero
    ("c1 bf", "??"),
    ("c3", "?"),
    ("c3 41", "?A"),
    ("c3 c3 a9", "?é"),
    ("e0 80 80", "???"),
    ("e0 9f bf", "???"),
    ("e0 a0", "?"),
    ("e6 97", "?"),
    ("e6 97 41", "?A"),
    ("e6 41", "?A"),
    ("ed 9f bf", "\ud7ff"),
    ("ed a0 80", "?"),  # encoded surrogates, one or a pair
    ("ed bf bf", "?"),
    ("ed a0 bd ed b8 80", "??"),
    ("ed a0", "?"),
    ("ed a0 41", "?A"),
    ("ed 41", "?A"),
    ("ed ed a0 80", "??"),
    ("ee 80 80", "\ue000"),
    ("f0 80 80 80", "????"),
    ("f0 8f bf bf", "????"),
    ("f0 9f a6", "?"),
    ("f0 9f a6 41", "?A"),
    ("f0 9f", "?"),
    ("f0 41", "?A"),
    ("f4 8f bf bf", "\U0010ffff"),
    ("f4 90 80 80", "????"),
    ("f5 80 80 80", "????"),
    ("f8 88 80 80 80", "?????"),
    ("ff fe", "??"),
    ("61 ff 62 ed a0 80 63", "a?b?c"),
]


@pytest.mark.parametrize("text, expected", JAVA, ids=[j[0] for j in JAVA])
def test_what_is_no_utf8_becomes_what_java_makes_of_it(text: str, expected: str) -> None:
    raw = bytes.fromhex(text)
    expected = expected.replace("?", "\ufffd")
    assert decode_as_java(raw) == expected
    request = decode(ApiVersionsRequest, 3, uvarint(len(raw) + 1) + raw + b"\1\0")
    assert request.client_software_name == expected


def test_a_string_of_nothing_but_faults_takes_no_longer_than_others() -> None:
    """Each fault must not copy what is left of the string."""
    start = process_time()
    for raw in (b"\xff" * 32767, b"\xed\xa0\x80" * 10922, b"\xe6" * 32767):
        decode_as_java(raw)
    assert process_time() - start < 0.05


# --- where an error is seen -----------------------------------------------------------------

PATHS = [  # message, version, bytes, path, reason
    (ProduceRequest, 3, "", "ProduceRequest.transactional_id", "the bytes end here"),
    (
        ProduceRequest,
        3,
        "ffff 0001 00000001 00000001 0001 74 00000001 00000007 00000005 aabb",
        "ProduceRequest.topic_data[0].partition_data[0].records",
        "5 bytes announced, 2 left",
    ),
    (
        ProduceRequest,
        9,
        "00 0001 00000001 02 02 74 03 00000007 00 00 00000008 06 aabb",
        "ProduceRequest.topic_data[0].partition_data[1].records",
        "5 bytes announced, 2 left",
    ),
    (
        ProduceRequest,
        9,
        "00 0001 00000001 ffffffff07",
        "ProduceRequest.topic_data",
        "2147483646 elements announced, 0 bytes left",
    ),
    (
        ProduceRequest,
        3,
        "ffff 0001 00000001 7fffffff 0001 74",
        "ProduceRequest.topic_data",
        "2147483647 elements announced, 3 bytes left",
    ),
    (ProduceRequest, 3, "ffff 00", "ProduceRequest.acks", "the bytes end here"),
    (
        FetchResponse,
        12,
        "00000000 0000 00000000 02 02 74 02 00000000 0000"
        + "00" * 24
        + "00 ffffffff 00 01 00 02 05",
        "FetchResponse.responses[0].partitions[0].diverging_epoch.epoch",
        "the bytes end here",
    ),
    (
        ConsumerGroupMemberMetadataValue,
        0,
        "00 00 01 01 03 02 61 05 62",
        "ConsumerGroupMemberMetadataValue.subscribed_topic_names[1]",
        "4 bytes announced, 1 left",
    ),
]


@pytest.mark.parametrize("cls, version, text, path, reason", PATHS, ids=[p[3] for p in PATHS])
def test_an_error_names_the_field(
    cls: Any, version: int, text: str, path: str, reason: str
) -> None:
    assert refusal(cls, version, text) == f"{path}: {reason}"


# --- what is held, and for how long ---------------------------------------------------------


def test_bytes_behind_a_message_are_ignored() -> None:
    assert decode_prefix(ApiVersionsRequest, 0, b"behind")[1] == 0
    assert decode(ApiVersionsRequest, 3, bytes.fromhex("02 61 02 62 00 ff")).client_software_name


def test_large_records_are_views_of_what_was_received() -> None:
    head = bytes.fromhex("ffff 0001 00000001 00000001 0001 74 00000001 00000007 00100000")
    raw = head + bytes(1 << 20)
    for data in (raw, memoryview(raw)):
        records = decode(ProduceRequest, 3, data).topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview) and records.obj is raw


def test_an_error_does_not_hold_what_was_read_before_it() -> None:
    raw = bytes.fromhex("0001 67 00000001 0001 74 7fffffff")
    with pytest.raises(ProtocolError) as caught:
        decode(OffsetFetchRequest, 1, raw)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
