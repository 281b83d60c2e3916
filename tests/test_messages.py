"""Every message of Kafka 4.3.1, in every version: against the facts of its schemas, against bytes
written by hand, and against itself."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ottla.protocol import decoder, encoder
from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.schema import (
    ABSENT,
    PRIMITIVES,
    Field,
    Schema,
    decode,
    decode_prefix,
    default_of,
    encode,
    encode_chunks,
    schema_of,
)
from ottla.protocol.wire import ProtocolError
from tests.random_messages import NAMES, PAIRS, parts_of, random_message, schema_named, versions

REPOSITORY = Path(__file__).parent.parent
FIELDS = (Path(__file__).parent / "data" / "kafka-4.3.1-fields.txt").read_text().splitlines()
VALUES_PER_PAIR = 5


# --- the facts of Kafka's schemas -----------------------------------------------------------


def recorded() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in FIELDS:
        if not line.startswith(" "):
            lines = found.setdefault(line.split(" ")[0], [])
        lines.append(line)
    return found


def described(schema: Schema) -> list[str]:
    """Our declaration, told in the words of the recorded lines."""
    head = f"{schema.name} {schema.versions[0]}-{schema.versions[1]}"
    if schema.key is not None:
        head += f" key={schema.key}"
    if schema.flexible is not None:
        head += f" flexible={max(schema.flexible, schema.versions[0])}"
    return [head, *field_lines(schema, schema.versions, " ")]


def field_lines(schema: Schema, around: tuple[int, int], indent: str) -> Iterator[str]:
    for field in schema.fields:
        first, last = max(around[0], field.first), min(around[1], field.until)
        struct = field.kind not in PRIMITIVES
        parts = [field.json_name, "[]" * field.array + ("struct" if struct else field.kind.lower())]
        parts.append(f"{first}-{last}")
        if field.nullable and field.default is not ABSENT:
            parts.append(f"null={max(first, field.null_since)}")
        if field.tag is not None:
            parts.append(f"tag={field.tag}")
        parts.append(f"default={default_text(schema, field)}")
        if (first, last) != around and field.ignorable:
            parts.append("ignorable")
        if not field.compact:
            parts.append("never-compact")
        yield indent + " ".join(parts)
        if struct:
            yield from field_lines(schema.part(field), (first, last), indent + " ")


def default_text(schema: Schema, field: Field) -> str:
    if field.kind not in PRIMITIVES and not field.array:
        return "null" if field.default is None else "{}"
    value = default_of(schema, field)
    return json.dumps("" if isinstance(value, bytes) and not any(value) else value)


def test_there_are_272_messages_and_728_pairs() -> None:
    assert (len(NAMES), len(set(NAMES)), len(PAIRS)) == (272, 272, 728)
    assert sorted(NAMES) == sorted(recorded())


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_declared_as_kafka_declares_it(name: str) -> None:
    assert described(schema_named(name)) == recorded()[name]


@pytest.mark.parametrize("name", NAMES)
def test_tags_count_from_zero_and_stand_in_flexible_versions_only(name: str) -> None:
    schema = schema_named(name)
    for each in parts_of(schema):
        tagged = [field for field in each.fields if field.tag is not None]
        assert sorted(field.tag or 0 for field in tagged) == list(range(len(tagged)))
        assert all(schema.is_flexible(max(f.first, schema.versions[0])) for f in tagged)


# --- bytes written by hand ------------------------------------------------------------------

VECTORS = [  # message, version, bytes, JSON
    (
        "HeartbeatRequest",
        4,
        "03 6731 00000005 02 6d 00 00",
        {"groupId": "g1", "generationId": 5, "memberId": "m", "groupInstanceId": None},
    ),
    (
        "HeartbeatRequest",
        3,
        "0002 6731 00000005 0001 6d ffff",
        {"groupId": "g1", "generationId": 5, "memberId": "m", "groupInstanceId": None},
    ),
    (
        "HeartbeatRequest",
        0,
        "0002 6731 00000005 0001 6d",
        {"groupId": "g1", "generationId": 5, "memberId": "m"},
    ),
    (
        "OffsetCommitValue",
        1,
        "0000000000000007 0001 6d 0000000000000008 0000000000000009",
        {"offset": 7, "metadata": "m", "commitTimestamp": 8, "expireTimestamp": 9},
    ),
    (
        "OffsetCommitValue",
        3,
        "0000000000000007 00000002 0001 6d 0000000000000008",
        {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 8},
    ),
    (
        "OffsetCommitValue",
        4,
        "0000000000000007 00000002 02 6d 000000000000000801 00 10 000102030405060708090a0b0c0d0e0f",
        {
            "offset": 7,
            "leaderEpoch": 2,
            "metadata": "m",
            "commitTimestamp": 8,
            "topicId": "AAECAwQFBgcICQoLDA0ODw",
        },
    ),
    (
        "RequestHeader",
        2,
        "0003 000c 00000007 0003 6b6166 00",
        {
            "requestApiKey": 3,
            "requestApiVersion": 12,
            "correlationId": 7,
            "clientId": "kaf",
        },
    ),
    (
        "ProduceRequest",
        9,
        "00 ffff 00007530 02 02 74 02 00000001 04 010203 00 00 00",
        {
            "transactionalId": None,
            "acks": -1,
            "timeoutMs": 30000,
            "topicData": [
                {"name": "t", "partitionData": [{"index": 1, "records": "AQID"}]},
            ],
        },
    ),
    (
        "FetchRequest",
        18,
        # The partition says its high watermark, and nothing else that is tagged.
        "000001f4 00000001 03200000 00 00000000 ffffffff"
        "02 000102030405060708090a0b0c0d0e0f"
        "02 00000003 00000004 0000000000000005 ffffffff 0000000000000000 00100000"
        "01 01 08 0000000000000006 00 01 01 00",
        {
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 52428800,
            "isolationLevel": 0,
            "sessionId": 0,
            "sessionEpoch": -1,
            "topics": [
                {
                    "topicId": "AAECAwQFBgcICQoLDA0ODw",
                    "partitions": [
                        {
                            "partition": 3,
                            "currentLeaderEpoch": 4,
                            "fetchOffset": 5,
                            "lastFetchedEpoch": -1,
                            "logStartOffset": 0,
                            "partitionMaxBytes": 1048576,
                            "highWatermark": 6,
                        }
                    ],
                }
            ],
            "forgottenTopicsData": [],
            "rackId": "",
        },
    ),
]


def vector_faults(
    classes: dict[str, type[Any]], vectors: list[tuple[str, int, str, Any]]
) -> list[str]:
    """Which vectors are not read, or not written, as they stand there."""
    faults = []
    for name, version, text, expected in vectors:
        raw = bytes.fromhex(text)
        try:
            read = to_json(decode(classes[name], version, raw), version)
            written = encode(from_json(classes[name], version, expected), version)
        except ProtocolError as error:
            faults.append(f"{name} v{version}: {error}")
            continue
        if read != expected or written != raw:
            faults.append(f"{name} v{version}: {read} {written.hex(' ')}")
    return faults


def test_bytes_written_by_hand_are_read_and_written() -> None:
    classes = {name: schema_named(name).cls for name, *_ in VECTORS}
    assert vector_faults(classes, VECTORS) == []


# --- each pair against itself ---------------------------------------------------------------


def values(name: str) -> Iterator[tuple[int, Any]]:
    for version in versions(name):
        dice = Random(f"{name} {version}")
        for _ in range(VALUES_PER_PAIR):
            yield version, random_message(name, version, dice)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_again(name: str) -> None:
    cls = schema_named(name).cls
    for version, message in values(name):
        raw = encode(message, version)
        assert decode_prefix(cls, version, raw + b"behind") == (message, len(raw))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_as_json_is_told_right(name: str) -> None:
    cls = schema_named(name).cls
    for version, message in values(name):
        told = json.dumps(to_json(message, version), allow_nan=False)
        # Kafka tells floats that are no finite numbers as text, and does not take that back.
        if not re.search('"(NaN|-?Infinity)"', told):
            assert from_json(cls, version, json.loads(told)) == message


def refuses_nothing(codec: Any) -> Any:
    """The codec alone, without the exact one to which it falls back."""
    codec.__globals__.update(read_exact=None, write_exact=None)
    return codec


@pytest.mark.parametrize("name", NAMES)
def test_all_readers_read_the_same(name: str) -> None:
    schema = schema_named(name)
    for version, message in values(name):
        raw = bytes(encode(message, version))
        size, view = len(raw), memoryview(raw)
        assert refuses_nothing(decoder.reader_of(schema, version))(raw) == message
        large = refuses_nothing(decoder.large_reader_of(schema, version))
        assert large(raw) == large(view) == message
        assert decoder.read_exact(schema, version, raw) == (message, size)
        assert decoder.read_exact(schema, version, view) == (message, size)


@pytest.mark.parametrize("name", NAMES)
def test_both_writers_write_the_same(name: str) -> None:
    schema = schema_named(name)
    for version, message in values(name):
        fast = refuses_nothing(encoder.writer_of(schema, version))(message)
        assert encoder.write_exact(schema, version, message) == fast
        assert b"".join(encode_chunks(message, version)) == encode(message, version)


@pytest.mark.parametrize("name", NAMES)
def test_an_encoding_that_is_cut_short_is_refused_with_a_path(name: str) -> None:
    cls = schema_named(name).cls
    for version in versions(name):
        raw = encode(random_message(name, version, Random(f"{name} {version}")), version)
        step = max(1, len(raw) // 100)
        for size in (*range(0, len(raw), step), *range(max(0, len(raw) - 20), len(raw))):
            with pytest.raises(ProtocolError) as caught:
                decode(cls, version, bytes(raw[:size]))
            assert caught.value.path.startswith(name)


@pytest.mark.parametrize("name", NAMES)
def test_other_versions_are_refused(name: str) -> None:
    cls = schema_named(name).cls
    first, last = schema_named(name).versions
    message = random_message(name, last, Random(name))
    for version in (first - 1, last + 1, -1, 32767):
        for attempt in (
            lambda v: decode(cls, v, bytes(1000)),
            lambda v: encode(message, v),
            lambda v: to_json(message, v),
            lambda v: from_json(cls, v, {}),
        ):
            with pytest.raises(ProtocolError, match=f"is not one of {first}-{last}"):
                attempt(version)


# --- planted mistakes -----------------------------------------------------------------------

PLANTED = [  # what, family, the right text, the wrong one, message
    (
        "a swapped pair",
        "group_records",
        "    metadata: String\n    commit_timestamp: Int64\n    expire_timestamp",
        "    commit_timestamp: Int64\n    metadata: String\n    expire_timestamp",
        "OffsetCommitValue",
    ),
    (
        "a wrong default",
        "fetch",
        "since(18, tag=1, ignorable=True, default=INT64_MAX)",
        "since(18, tag=1, ignorable=True, default=6)",
        "FetchRequest",
    ),
    (
        "a wrong first flexible version",
        "groups",
        "versions=(0, 4), flexible=4)\nclass HeartbeatRequest",
        "versions=(0, 4), flexible=3)\nclass HeartbeatRequest",
        "HeartbeatRequest",
    ),
    (
        "a field that comes a version late",
        "produce",
        "class TopicProduceData:\n    name: String = since(",
        "class TopicProduceData:\n    name: String = since(10, ",
        "ProduceRequest",
    ),
]


@pytest.fixture
def planted(request: pytest.FixtureRequest) -> Iterator[type[Any]]:
    """The class of a message out of a family's source with a mistake in it."""
    family, right, wrong, name = request.param
    text = (REPOSITORY / "protocol" / "messages" / f"{family}.py").read_text()
    assert text.count(right) == 1, "the text to be changed is gone: plant it anew"
    module = ModuleType(f"planted_{family}")
    sys.modules[module.__name__] = module
    exec(compile(text.replace(right, wrong), module.__name__, "exec"), module.__dict__)
    yield getattr(module, name)
    del sys.modules[module.__name__]


@pytest.mark.parametrize(
    "planted", [p[1:] for p in PLANTED], ids=[p[0] for p in PLANTED], indirect=True
)
def test_a_planted_mistake_is_seen(planted: type[Any]) -> None:
    name = planted.__name__
    assert described(schema_of(planted)) != recorded()[name]
    vectors = [vector for vector in VECTORS if vector[0] == name]
    assert vectors and vector_faults({name: planted}, vectors) != []
