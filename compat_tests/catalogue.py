"""Kafka's messages and versions, as the Java program lists them, and questions about them."""

import zlib
from collections.abc import Iterator
from typing import Any

Pair = tuple[str, int]


def pairs(catalogue: dict[str, dict[str, Any]]) -> Iterator[Pair]:
    """Every message in every version."""
    for name, each in sorted(catalogue.items()):
        for version in range(each["lowest"], each["highest"] + 1):
            yield name, version


def seed_of(pair: Pair) -> int:
    """The same for the same pair, in every run and on every machine."""
    return zlib.crc32(f"{pair[0]} {pair[1]}".encode())


def question(op: str, pair: Pair, **more: object) -> dict[str, object]:
    return {"op": op, "message": pair[0], "version": pair[1], **more}
