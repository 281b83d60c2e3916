"""Record batches of format v2, ours against those that Apache Kafka's classes build and read."""

import collections
import random
from typing import Any

import pytest

from compat_tests.differences import Differences
from compat_tests.oracle import Oracle
from compat_tests.random_batches import random_batch
from compat_tests.random_messages import mutated
from ottla.protocol.compression import Codec
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    crc_of,
    iterate_batches,
)
from tests.answers import (
    batches_or_refused,
    batches_read,
    built_again,
    canonical,
    decided_bytes,
)

QUESTIONS = 120
BATCHES_PER_QUESTION = 100

# Kafka unpacks as far as the records go; we unpack all, and refuse a stream that is not whole.
STRICTER = ("lz4: truncated frame", "snappy chunk is cut short", "snappy stream of version")


@pytest.fixture(scope="session")
def made_by_kafka(oracle: Oracle) -> list[dict[str, Any]]:
    questions = [
        {"op": "random batches", "seed": seed, "count": BATCHES_PER_QUESTION}
        for seed in range(QUESTIONS)
    ]
    return [value for values in oracle.made(questions) for value in values]


def test_we_read_the_batches_that_kafka_builds(
    made_by_kafka: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    differences = Differences()
    codecs: collections.Counter[str] = collections.Counter()
    for value in made_by_kafka:
        ours = batches_read(bytes.fromhex(value["hex"]))
        differences.expect(canonical(ours["batches"]), canonical(value["batches"]), value["hex"])
        differences.expect(ours.get("error"), None, value["hex"])
        codecs.update(batch["codec"] for batch in ours["batches"])
    with capsys.disabled():
        print(f"\n{codecs.total()} batches of Kafka's: {dict(codecs)}")
    differences.must_be_none()
    assert codecs.total() >= 10_000
    assert set(codecs) == {codec.name.lower() for codec in Codec}


def test_we_build_the_very_bytes_of_kafka(
    made_by_kafka: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Snappy's and zstd's payloads are decided by the compressor's version, all else is not."""
    differences = Differences()
    equal: collections.Counter[str] = collections.Counter()
    total: collections.Counter[str] = collections.Counter()
    for value in made_by_kafka:
        data = bytes.fromhex(value["hex"])
        for position, header in iterate_batches(data):
            batch = data[position : position + header.size]
            codec = header.compression
            again = built_again(data, position, header, codec)
            total[codec.name] += 1
            equal[codec.name] += again == batch
            differences.expect(
                decided_bytes(again, codec).hex(), decided_bytes(batch, codec).hex(), header
            )
    with capsys.disabled():
        print(f"\nbatches built byte for byte as Kafka built them: {dict(equal)} of {dict(total)}")
    differences.must_be_none()


def test_kafka_reads_the_batches_that_we_build(
    oracle: Oracle, made_by_kafka: list[dict[str, Any]]
) -> None:
    """Ours, and Kafka's own batches after we gave each another codec."""
    source = random.Random(3)
    built = [random_batch(source) for _ in range(QUESTIONS * BATCHES_PER_QUESTION)]
    for value in made_by_kafka:
        data = bytes.fromhex(value["hex"])
        for position, header in iterate_batches(data):
            if header.record_count:
                codec = source.choice(list(Codec))
                built.append(built_again(data, position, header, codec))
    questions = [{"op": "read batches", "hex": data.hex()} for data in built]
    differences = Differences()
    for data, kafkas in zip(built, oracle.ask_all(questions), strict=True):
        differences.expect(canonical(batches_read(data)), canonical(kafkas), data.hex())
        differences.expect(kafkas.get("error"), None, data.hex())
    differences.must_be_none()


def test_harmed_batches_are_read_or_refused_as_in_kafka(
    oracle: Oracle, made_by_kafka: list[dict[str, Any]]
) -> None:
    source = random.Random(4)
    harmed = []
    for value in made_by_kafka:
        data = bytes.fromhex(value["hex"])
        size = next(header.size for _, header in iterate_batches(data))
        harmed.append(mutated(data[:size], source))
        harmed.append(with_right_crc(mutated(data[:size], source)))
    questions = [{"op": "read batches", "hex": data.hex()} for data in harmed]
    differences = Differences()
    stricter = 0
    for data, kafkas in zip(harmed, oracle.ask_all(questions), strict=True):
        ours = batches_read(data)
        if is_cut(data):
            # Which of its lies are seen before the end of the bytes is a matter of the reader.
            differences.expect(ours["batches"], kafkas["batches"], data.hex(), kafkas)
        elif "error" not in kafkas and ours.get("error", "").startswith(STRICTER):
            stricter += 1
        else:
            where = (data.hex(), ours.get("error"), kafkas.get("error"))
            differences.expect(batches_or_refused(ours), batches_or_refused(kafkas), *where)
    differences.must_be_none()
    assert stricter < len(harmed) / 1000


def with_right_crc(data: bytes) -> bytes:
    """A liar who can count: what is behind the CRC was harmed, and it was computed anew."""
    batch = bytearray(data)
    if len(batch) >= HEADER_SIZE:
        batch[8:LOG_OVERHEAD] = (len(batch) - LOG_OVERHEAD).to_bytes(4, "big")
        batch[MAGIC_POSITION] = MAGIC
        batch[CRC_POSITION:ATTRIBUTES_POSITION] = crc_of(batch, 0, len(batch)).to_bytes(4, "big")
    return bytes(batch)


def is_cut(data: bytes) -> bool:
    length = int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    return len(data) < HEADER_SIZE or len(data) < LOG_OVERHEAD + length
