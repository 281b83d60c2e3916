"""The language of declarations: names, defaults, versions, and the doors to the codecs."""

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.messages.versions import ApiVersionsRequest
from ottla.protocol.schema import (
    ABSENT,
    EMPTY,
    REQUIRED,
    ZERO,
    Field,
    Int16,
    Int32,
    Schema,
    String,
    Uuid,
    decode,
    decode_prefix,
    default_of,
    empty,
    encode,
    encode_chunks,
    generated_source,
    message,
    part,
    reader,
    schema_of,
    since,
    writer,
)
from tests.random_messages import NAMES, parts_of, schema_named

JSON_NAMES = [  # ours, Kafka's in JSON
    ("topic_id", "topicId"),
    ("throttle_time_ms", "throttleTimeMs"),
    ("k_raft_version", "kRaftVersion"),
    ("v3_and_below_topics", "v3AndBelowTopics"),
    ("enable2_pc", "enable2Pc"),
    ("acks", "acks"),
]


@pytest.mark.parametrize("name, expected", JSON_NAMES)
def test_a_name_in_json_lowers_the_first_letter_only(name: str, expected: str) -> None:
    assert Field(name=name).json_name == expected


# A message as they are declared in protocol/messages: annotations are text there.
@part
class Point:
    x: "Int32"
    y: "Int32" = -1


@message(versions=(2, 5), flexible=4, key=7)
class Sample:
    name: "String | None" = since(3, default=None, null_since=4)
    id: "Uuid" = since(until=4, default=ZERO, ignorable=True)
    points: "list[Point]"
    counts: "list[Int16] | None" = since(4, tag=0, default=[])
    origin: "Point" = since(5, default=EMPTY)
    corner: "Point | None" = since(5, tag=1, default=ABSENT)


SAMPLE = schema_of(Sample)


def field(name: str) -> Field:
    (found,) = (each for each in SAMPLE.fields if each.name == name)
    return found


def test_a_declaration_is_read_from_its_annotations() -> None:
    assert (SAMPLE.name, SAMPLE.key, SAMPLE.versions, SAMPLE.flexible) == ("Sample", 7, (2, 5), 4)
    kinds = [(each.name, each.kind, each.array, each.nullable) for each in SAMPLE.fields]
    assert kinds == [
        ("name", "String", False, True),
        ("id", "Uuid", False, False),
        ("points", "Point", True, False),
        ("counts", "Int16", True, True),
        ("origin", "Point", False, False),
        ("corner", "Point", False, True),
    ]
    assert field("points").default is REQUIRED
    assert SAMPLE.part(field("points")).cls is Point


VERSIONS = [  # field, versions with it, versions in which null may be sent
    ("name", {3, 4, 5}, {4, 5}),
    ("id", {2, 3, 4}, set()),
    ("points", {2, 3, 4, 5}, set()),
    ("counts", {4, 5}, {2, 3, 4, 5}),
    ("corner", {5}, set()),
]


@pytest.mark.parametrize("name, exists, nullable", VERSIONS)
def test_a_field_knows_its_versions(name: str, exists: set[int], nullable: set[int]) -> None:
    every = range(2, 6)
    assert {version for version in every if field(name).exists_in(version)} == exists
    assert {version for version in every if field(name).nullable_in(version)} == nullable


def test_a_message_is_flexible_from_one_version_on() -> None:
    assert [SAMPLE.is_flexible(version) for version in range(2, 6)] == [False, False, True, True]
    assert not schema_of(Point).is_flexible(0)


def test_defaults_are_those_of_the_declaration_or_kafkas() -> None:
    assert [default_of(SAMPLE, each) for each in SAMPLE.fields] == [
        None,
        ZERO,
        [],
        [],
        Point(x=0, y=-1),
        None,
    ]
    assert empty(schema_of(Point)) == Point(x=0)


def test_lists_and_structs_of_defaults_are_made_anew() -> None:
    one, other = Sample(points=[]), Sample(points=[])
    assert one == other
    assert one.counts is not other.counts and one.origin is not other.origin
    read, again = (decode(Sample, 2, encode(one, 2)) for _ in range(2))
    assert read.counts is not again.counts and read.origin is not again.origin


def test_an_absent_struct_is_none_and_its_defaults_are_not_sent() -> None:
    absent, present = Sample(points=[]), Sample(points=[], corner=Point(x=0))
    assert absent.corner is None
    assert encode(absent, 5) == encode(present, 5)


def test_the_sample_is_written_in_each_version_as_declared() -> None:
    sample = Sample(points=[Point(x=1, y=2)])
    point = "00000001 00000002"
    assert encode(sample, 2).hex(" ", 4) == f"{ZERO.hex(' ', 4)} 00000001 {point}"
    with pytest.raises(Exception, match=r"Sample.name: null"):
        encode(sample, 3)
    sample.name = "n"
    assert encode(sample, 3).hex() == "00016e" + ZERO.hex() + "00000001" + point.replace(" ", "")
    flexible = encode(sample, 4).hex()
    assert flexible == "026e" + ZERO.hex() + "02" + point.replace(" ", "") + "0000"


@pytest.mark.parametrize("name", NAMES)
def test_a_field_that_a_version_lacks_has_a_default(name: str) -> None:
    first, last = schema_named(name).versions
    for schema in parts_of(schema_named(name)):
        for each in schema.fields:
            if each.tag is not None or not (each.exists_in(first) and each.exists_in(last)):
                assert each.default is not REQUIRED, f"{schema.name}.{each.name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_a_dataclass_with_slots(name: str) -> None:
    for schema in parts_of(schema_named(name)):
        assert is_dataclass(schema.cls) and not hasattr(empty(schema), "__dict__")
        assert [each.name for each in fields(schema.cls)] == [each.name for each in schema.fields]


def test_messages_with_record_batches_are_known() -> None:
    with_records = {name for name in NAMES if schema_named(name).has_records}
    assert with_records == {
        "ProduceRequest",
        "FetchResponse",
        "FetchSnapshotResponse",
        "ShareFetchResponse",
    }


def test_bytes_behind_a_message_are_left() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    raw = encode(request, 4)
    assert decode_prefix(MetadataRequest, 4, raw + b"rest") == (request, len(raw))
    assert decode(MetadataRequest, 4, raw + b"rest") == request


def test_a_message_without_records_is_one_chunk() -> None:
    assert encode_chunks(ApiVersionsRequest(), 0) == [b""]


def test_the_codecs_of_a_version_can_be_kept() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    raw = encode(request, 4)
    assert reader(MetadataRequest, 4)(raw) == request
    assert writer(MetadataRequest, 4)(request) == raw


@pytest.mark.parametrize(
    "cls, version", [(ProduceRequest, 9), (FetchRequest, 17), (FetchResponse, 4)]
)
def test_the_generated_source_can_be_looked_at(cls: type[Any], version: int) -> None:
    source = generated_source(cls, version)
    compile(source, "generated", "exec")
    assert "def read(buf):" in source
    assert "def write(message):" in source


def test_codecs_are_compiled_once() -> None:
    schema = Schema(Sample, SAMPLE.fields, versions=(2, 5), flexible=4)
    assert schema.readers == {} and schema.writers == {}
    raw = encode(Sample(points=[]), 2)
    decode(Sample, 2, raw)
    reader, writer = SAMPLE.readers[2], SAMPLE.writers[2]
    decode(Sample, 2, encode(Sample(points=[]), 2))
    assert SAMPLE.readers[2] is reader and SAMPLE.writers[2] is writer
    assert 2 not in SAMPLE.exact_readers and 2 not in SAMPLE.exact_writers


def test_the_marks_tell_their_names() -> None:
    assert [repr(mark) for mark in (REQUIRED, EMPTY, ABSENT)] == ["REQUIRED", "EMPTY", "ABSENT"]
