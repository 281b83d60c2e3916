"""Messages of 20 MB that nobody sends in earnest, each refused only after some work."""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.protocol.schema import Schema
from tests.dense_wire import Style, array_paths, blown_up, uvarint
from tests.random_messages import schema_named

LARGE_BYTES = 20 << 20
FETCH_HEAD = bytes(25) + b"\1\1\1"  # FetchRequest v12 up to its tagged fields


class Hostile(NamedTuple):
    """What it is, and how it is read."""

    what: str
    name: str
    version: int
    data: bytes


def filled(head: bytes, pattern: bytes, end: bytes = b"") -> bytes:
    """`head`, the pattern again and again up to 20 MB, and an end that is wrong."""
    count = (LARGE_BYTES - len(head) - len(end)) // len(pattern)
    return head + pattern * count + end


def refused_late(schema: Schema, version: int, steps: str, count: int, style: Style) -> bytes:
    """So many valid elements of an array, and then bytes that cannot be one."""
    paths = array_paths(schema, version)
    path = next(p for p in paths if ".".join(field.name for field in p) == steps)
    whole, shorter = (blown_up(schema, version, path, n, style) for n in (count, count - 1))
    kept = len(whole) - (len(whole) - len(shorter)) - 20
    return filled(whole[:kept], b"\xff")


# Arrays whose elements take long for the memory that they are charged: message, version, path,
# count, style. The counts are about what a message of this size may become.
LATE = [
    ("ProduceRequest", 9, "topic_data", 12_000, Style(text=b"ab", inner=1)),
    ("FetchRequest", 12, "topics", 11_000, Style(text=b"\xc4\x80", number=0x7F, inner=1)),
    ("FetchRequest", 18, "topics.partitions", 15_000, Style(number=0x7F, known_tags=True)),
    ("MetadataRequest", 9, "topics", 40_000, Style(text=b"abc")),
    ("OffsetFetchRequest", 1, "topics", 20_000, Style(text=b"ab", number=0x7F, inner=2)),
    ("OffsetFetchRequest", 9, "groups.topics", 20_000, Style(text=b"ab", number=0x7F, inner=2)),
    ("OffsetFetchRequest", 9, "groups.topics.partition_indexes", 100_000, Style(number=0x7F)),
    ("DescribeGroupsRequest", 5, "groups", 60_000, Style(text=b"abc")),
    ("DeleteGroupsRequest", 2, "groups_names", 60_000, Style()),
    ("WriteTxnMarkersRequest", 1, "markers", 12_000, Style(inner=1)),
    ("StreamsGroupHeartbeatRequest", 0, "active_tasks", 20_000, Style(inner=2)),
    ("DescribeLogDirsRequest", 4, "topics", 20_000, Style(text=b"\xff", inner=2)),
]


def hostile_messages() -> Iterator[Hostile]:
    yield Hostile("zeros", "ProduceRequest", 9, bytes(LARGE_BYTES))
    yield Hostile("ones", "FetchRequest", 12, b"\xff" * LARGE_BYTES)
    topics = b"\0\2ab"
    yield Hostile("a count of 2^31 - 1", "MetadataRequest", 4, filled(b"\x7f\xff\xff\xff", topics))
    count = (LARGE_BYTES // 4 - 2).to_bytes(4, "big")
    yield Hostile("as many topics as fit", "MetadataRequest", 4, filled(count, topics))
    for tag, what in ((b"\5\0", "unknown"), (b"\0\1\0", "known")):
        head = FETCH_HEAD + uvarint(2**31 - 1)
        yield Hostile(f"a flood of {what} tags", "FetchRequest", 12, filled(head, tag))
        head = FETCH_HEAD + uvarint(20_000) + tag * 19_000
        yield Hostile(f"many {what} tags", "FetchRequest", 12, filled(head, b"\xff"))
    text = b"\x40\0" + b"\xff" * 16384 + bytes(4)
    head = b"\0\0" + (1280).to_bytes(4, "big")
    yield Hostile("strings of no UTF-8", "OffsetFetchRequest", 1, filled(head, text))
    text = b"\x40\x01" + "é".encode() * 8191 + "\U0001f980".encode()[:3] + bytes(4)
    yield Hostile("strings of UTF-8, but for the end", "OffsetFetchRequest", 1, filled(head, text))
    for name, version, steps, number, style in LATE:
        data = refused_late(schema_named(name), version, steps, number, style)
        yield Hostile(f"{number} {steps}, then garbage", name, version, data)
