"""Large requests that clients do send, and that must pass whatever the limits are."""

from collections.abc import Callable, Iterator
from functools import partial

from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.schema import encode
from tests.dense_wire import Style, array_paths, blown_up
from tests.random_messages import schema_named

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
RECORDS_BYTES = 100 << 20


def metadata(version: int, count: int) -> bytes:
    """So many topics of two characters."""
    pairs = [one + two for one in LETTERS for two in LETTERS]
    topics = [MetadataRequestTopic(name=pairs[number % len(pairs)]) for number in range(count)]
    return bytes(encode(MetadataRequest(topics=topics), version))


def produce(version: int, count: int) -> bytes:
    """So many bytes of records for one partition."""
    partition = PartitionProduceData(index=0, records=bytes(count))
    topic = TopicProduceData(partition_data=[partition])
    return bytes(encode(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), version))


def partitions(name: str, of_one_topic: bool, version: int, count: int) -> bytes:
    """So many partitions with large numbers; names have 12 characters."""
    style = Style(text=b"topic-000000", number=0x7F, inner=1, known_tags=version >= 17)
    schema = schema_named(name)
    steps = ["topics", "partitions" if name == "FetchRequest" else "partition_indexes"]
    if name == "OffsetFetchRequest" and version >= 8:
        steps.insert(0, "groups")
    if not of_one_topic:
        steps.pop()
    paths = array_paths(schema, version)
    path = next(path for path in paths if [field.name for field in path] == steps)
    return blown_up(schema, version, path, count, style)


Make = Callable[[int, int], bytes]  # from a version and a count


def _fetches() -> Iterator[tuple[str, str, int, Make, int]]:
    for name, versions in {"FetchRequest": (4, 12, 18), "OffsetFetchRequest": (1, 9, 10)}.items():
        for version in versions:
            for of_one_topic in (True, False):
                what = "partitions of one topic" if of_one_topic else "topics of one partition"
                yield what, name, version, partial(partitions, name, of_one_topic), 100_000


MUST_PASS: list[tuple[str, str, int, Make, int]] = [
    *(("topics of 2 characters", "MetadataRequest", v, metadata, 50_000) for v in (4, 9, 12)),
    *(("bytes of records", "ProduceRequest", v, produce, RECORDS_BYTES) for v in (3, 9, 13)),
    *_fetches(),
]
