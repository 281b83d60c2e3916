"""The law: n bytes of input cost at most 16 n + 1 MiB of memory, or are refused.

It is tried with the densest bytes that every message allows. Run with `-rP` to see the cost of
those that must pass.
"""

from collections.abc import Iterator
from random import Random

import pytest

from ottla.protocol import decoder, memory
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.metadata_records import BrokerRegistrationChangeRecord
from ottla.protocol.messages.offsets import OffsetFetchRequest
from ottla.protocol.schema import ZERO, Schema, encode, reader
from tests.dense_wire import Path, array_paths, blown_up, random_style, uvarint
from tests.hostile_messages import hostile_messages
from tests.large_requests import MUST_PASS, Make
from tests.memory_law import attempt, cost_of
from tests.random_messages import NAMES, schema_named, versions

SHAPE_BYTES = 4000


def shapes(name: str) -> Iterator[tuple[int, str, bytes]]:
    """Version, what it is, and bytes that want to become as much as they can."""
    schema = schema_named(name)
    for version in versions(name):
        for path in array_paths(schema, version):
            yield version, *shape(schema, version, path)


def shape(schema: Schema, version: int, path: Path, size: int = SHAPE_BYTES) -> tuple[str, bytes]:
    steps = ".".join(field.name for field in path)
    style = random_style(Random(f"{schema.name} {version} {steps}"))
    one, two = (len(blown_up(schema, version, path, count, style)) for count in (1, 2))
    count = max(2, size // (two - one))
    return f"{steps} v{version} {style}", blown_up(schema, version, path, count, style)


@pytest.mark.parametrize("name", NAMES)
def test_no_array_of_any_message_breaks_the_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the 1 MiB that is free small inputs show what large ones would.
    monkeypatch.setattr(memory, "FREE_BYTES", 0)
    schema = schema_named(name)
    for version, what, data in shapes(name):
        cost = cost_of(schema.cls, version, memoryview(data), decoder.large_reader_of)
        assert cost.within_law, f"{what}: {cost}"


@pytest.mark.parametrize("name", NAMES)
def test_no_small_message_breaks_the_law(name: str) -> None:
    """One array of each message, as large as the fast reader takes; `make fuzz` tries them all."""
    schema = schema_named(name)
    largest = decoder.FAST_WITH_RECORDS_MAX if schema.has_records else decoder.FAST_MAX
    version = schema.versions[1]
    paths = list(array_paths(schema, version))
    for path in Random(name).sample(paths, min(1, len(paths))):
        what, data = shape(schema, version, path, largest * 9 // 10)
        cost = cost_of(schema.cls, version, data)
        assert cost.size <= largest and cost.within_law, f"{what}: {cost}"


def test_shapes_are_valid_where_memory_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes that are refused for other faults would show nothing."""
    monkeypatch.setattr(memory, "FREE_BYTES", 1 << 30)
    for name in NAMES:
        for version, what, data in shapes(name):
            assert attempt(reader(schema_named(name).cls, version), data) == "", what


# --- what must pass -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what, name, version, make, count",
    MUST_PASS,
    ids=[f"{name} v{version}, {what}" for what, name, version, *_ in MUST_PASS],
)
def test_large_requests_that_clients_do_send_pass(
    what: str, name: str, version: int, make: Make, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make fuzz` looks at the memory of all of it; here the dearest are looked at by a tenth."""
    cls = schema_named(name).cls
    assert attempt(reader(cls, version), memoryview(make(version, count))) == ""
    if "partition" in what:
        monkeypatch.setattr(memory, "FREE_BYTES", memory.FREE_BYTES // 10)
        count //= 10
    cost = cost_of(cls, version, memoryview(make(version, count)))
    print(f"{name} v{version}, {count} {what}: {cost}")
    assert not cost.refusal and cost.within_law


# --- large messages are refused -------------------------------------------------------------


def test_large_hostile_messages_are_refused() -> None:
    """How soon is what `make fuzz` measures."""
    for hostile in hostile_messages():
        cls = schema_named(hostile.name).cls
        cost = cost_of(cls, hostile.version, memoryview(hostile.data))
        print(f"{hostile.name}, {hostile.what}: {cost}")
        assert cost.refusal and cost.within_law, hostile.what


def test_a_large_answer_to_a_follower_passes() -> None:
    """20 MB for 10,000 partitions: large because of its records, but not only."""
    partitions = [
        PartitionData(
            partition_index=index,
            error_code=0,
            high_watermark=2**40,
            aborted_transactions=None,
            records=bytes(2000),
        )
        for index in range(10_000)
    ]
    topics = [FetchableTopicResponse(topic="topic", partitions=partitions)]
    for version in (4, 12):
        data = encode(FetchResponse(throttle_time_ms=0, responses=topics), version)
        cost = cost_of(FetchResponse, version, memoryview(data))
        print(f"FetchResponse v{version}: {cost}")
        assert not cost.refusal and cost.within_law


def test_what_the_fast_reader_read_is_gone_before_the_exact_one_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last string ends behind the message: all was read once, and all is read again."""
    monkeypatch.setattr(memory, "FREE_BYTES", 0)
    topics = b"\0\x0c" + b"topic-000000" + bytes.fromhex("00000001 000003e8")
    body = b"\0\0" + (1000).to_bytes(4, "big") + topics * 1000
    whole = cost_of(OffsetFetchRequest, 1, memoryview(body))
    request = b"\0\0" + (1001).to_bytes(4, "big") + topics * 1000 + b"\0\x0ctopic"
    cut = cost_of(OffsetFetchRequest, 1, memoryview(request))
    assert not whole.refusal and cut.refusal
    assert cut.peak_bytes < 1.5 * whole.peak_bytes


@pytest.mark.parametrize("count", [60_000, 2**31 - 2])
def test_a_small_message_with_a_large_count_of_uuids_costs_little(count: int) -> None:
    """Slices of bytes that end do not fail, so nothing would stop the reader but the count."""
    record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, log_dirs=[ZERO])
    data = encode(record, 2).replace(b"\x02" + ZERO, uvarint(count + 1) + ZERO)
    cost = cost_of(BrokerRegistrationChangeRecord, 2, data)
    assert cost.refusal and cost.peak_bytes < 20_000
