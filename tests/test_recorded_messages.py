"""What Apache Kafka 4.3.1's own classes said, replayed without Java.

`python -m compat_tests.record` made the recordings; `make compat` compares far more.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.apis import message_class, message_names
from ottla.protocol.errors import ErrorCode
from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.records import iterate_batches
from ottla.protocol.schema import decode_prefix, encode, schema_of
from tests.answers import (
    REFUSED,
    batches_or_refused,
    batches_read,
    built_again,
    canonical,
    converted_or_refused,
    decided_bytes,
    kafkas,
    read_or_refused,
    written_or_refused,
)

PAIRS = 728


def recorded(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).parent / "data" / f"kafka-4.3.1-{name}.jsonl.gz"
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def messages() -> list[dict[str, Any]]:
    return recorded("messages")


def test_every_message_and_version_is_recorded(messages: list[dict[str, Any]]) -> None:
    ours = set()
    for name in message_names():
        first, last = schema_of(message_class(name)).versions
        ours |= {(name, version) for version in range(first, last + 1)}
    assert {(line["message"], line["version"]) for line in messages} == ours
    assert len(messages) == PAIRS


def test_recorded_messages_are_read_and_written_as_kafka_did(
    messages: list[dict[str, Any]],
) -> None:
    for line in messages:
        cls, version = message_class(line["message"]), line["version"]
        for value in line["values"]:
            where = (line["message"], version, value["wire"])
            for form in ("wire", "hex"):
                message, size = decode_prefix(cls, version, bytes.fromhex(value[form]))
                assert size == len(value[form]) // 2, where
                assert canonical(to_json(message, version)) == canonical(value["json"]), where
                assert encode(message, version).hex() == value["hex"], where
            message = from_json(cls, version, value["json"])
            assert encode(message, version).hex() == value["hex"], where


def test_recorded_messages_go_to_another_version_as_in_kafka(
    messages: list[dict[str, Any]],
) -> None:
    for line in messages:
        pair, to = (line["message"], line["version"]), line["converted"]["to"]
        data = bytes.fromhex(line["values"][-1]["hex"])
        hex_ = line["converted"]["hex"]
        wanted = REFUSED if hex_ is None else hex_
        assert converted_or_refused(pair, to, data) == wanted, (pair, to, data.hex())


def test_recorded_harmed_messages_are_read_or_refused_as_in_kafka(
    messages: list[dict[str, Any]],
) -> None:
    for line in messages:
        for harmed in line["harmed"]:
            pair = (line["message"], line["version"])
            ours = read_or_refused(pair, bytes.fromhex(harmed["bytes"]))
            assert ours == kafkas(harmed["answer"]), (pair, harmed)


HOSTILE = recorded("hostile-input")


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: f"{case['message']}-{case['name']}")
def test_hostile_input_is_taken_or_refused_as_in_kafka(case: dict[str, Any]) -> None:
    pair = (case["message"], case["version"])
    if case["op"] == "decode":
        ours = read_or_refused(pair, bytes.fromhex(case["hex"]))
        wanted = kafkas(case["answer"])
    else:
        ours = written_or_refused(pair, case["json"])
        wanted = case["answer"].get("hex", REFUSED)
    assert ours == wanted


def test_recorded_batches_are_read_and_built_as_kafka_did() -> None:
    lines = recorded("record-batches")
    assert len(lines) > 300
    for line in lines:
        data = bytes.fromhex(line.pop("hex"))
        assert batches_or_refused(batches_read(data)) == batches_or_refused(line), data.hex()
        for position, header in iterate_batches(data):
            codec = header.compression
            again = built_again(data, position, header, codec)
            batch = data[position : position + header.size]
            assert decided_bytes(again, codec) == decided_bytes(batch, codec), data.hex()


def test_every_recorded_error_is_ours() -> None:
    ours = [
        {
            "code": int(error),
            "name": error.name,
            "message": error.message,
            "retriable": error.retriable,
            "invalid_metadata": error.invalid_metadata,
        }
        for error in sorted(ErrorCode)
    ]
    assert ours == recorded("errors")
