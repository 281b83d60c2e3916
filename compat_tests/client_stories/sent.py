"""The records that every client sends and must read back as they were."""

import time
from collections.abc import Iterator
from typing import NamedTuple

Headers = tuple[tuple[str, bytes], ...]
# In the past, a second apart; topics of the stories keep records for ever.
TIME_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEPT = {"retention.ms": "-1"}
BIG_BYTES = 900_000


class Sent(NamedTuple):
    """One record, in the words of no client."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int = TIME_MS


def records(count: int = 20) -> list[Sent]:
    """Keys, tombstones, headers (the same name twice, an empty value) and long values."""
    made = []
    for at in range(count):
        headers = (("n", b"%d" % at), ("n", b""), ("ключ", b"\x00\xff")) if at % 3 == 0 else ()
        # Not every client sends a record without both.
        key = b"key-%d" % at if at % 2 or at % 7 == 6 else None
        value = None if at % 7 == 6 else b"value-%d " % at * (1 + at % 5 * 40)
        made.append(Sent(value, key, headers, TIME_MS + 1000 * at))
    return made


def big() -> list[Sent]:
    return [Sent(bytes([at]) * BIG_BYTES, b"big", (), TIME_MS + at) for at in range(3)]


def tries(seconds: float = 20) -> Iterator[None]:
    """For what takes a moment to be seen: Kafka answers a change before it shows it."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        yield
        time.sleep(0.05)
