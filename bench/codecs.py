"""Compiled codecs beside codecs written by hand and those of kafka-python.

Each row is one message, read or written. Before anything is measured, all three must agree on the
bytes. kafka-python does not have every message.
"""

from collections.abc import Iterator
from typing import Any

from kafka.protocol import consumer, metadata, producer

from bench.codecs_by_hand import BY_HAND, READ_VIEWS
from bench.measure import calls
from bench.samples import SAMPLES
from bench.tables import Cell, Goal, Table
from ottla.protocol.schema import decode, encode, reader, writer

OURS, HAND, KAFKA_PYTHON = "ottla", "by hand", "kafka-python"

TO_HAND = Goal(1.25)
TO_KAFKA_PYTHON = Goal(1.0, strictly=True)

MARGIN = bytes(512)

KAFKA_PYTHON_TYPES = {
    name: getattr(module, name)
    for module in (consumer, metadata, producer)
    for name in dir(module)
    if name.endswith(("Request", "Response"))
}


def run() -> list[Table]:
    table = Table(
        "codecs",
        [
            "message, version",
            f"{OURS} us",
            f"{HAND} us",
            f"{KAFKA_PYTHON} us",
            f"{OURS} / {HAND} ({TO_HAND})",
            f"{OURS} / {KAFKA_PYTHON} ({TO_KAFKA_PYTHON})",
        ],
    )
    for name, contenders in rows():
        _measure(table, name, contenders)
    return [table]


def rows() -> Iterator[tuple[str, dict[str, tuple[Any, ...]]]]:
    """What is measured: (function, its arguments) of each contender, checked to agree."""
    for name, version, make in SAMPLES:
        message = make()
        data = bytes(encode(message, version))
        message = decode(type(message), version, data)
        yield f"{name}, v{version}: read", readers(type(message), version, data)
        if isinstance(message, READ_VIEWS):
            buffer = memoryview(bytearray(MARGIN + data + MARGIN))[len(MARGIN) : -len(MARGIN)]
            yield f"{name}, v{version}: read in a buffer", readers(type(message), version, buffer)
        yield f"{name}, v{version}: write", writers(message, version, data)


def readers(cls: type[Any], version: int, data: bytes | memoryview) -> dict[str, tuple[Any, ...]]:
    by_hand = BY_HAND[cls, version].read
    if by_hand(data) != decode(cls, version, data):
        raise AssertionError(f"{cls.__name__} v{version} is read otherwise by hand")
    found: dict[str, tuple[Any, ...]] = {
        OURS: (reader(cls, version), data),
        HAND: (by_hand, data),
    }
    if theirs := KAFKA_PYTHON_TYPES.get(cls.__name__):
        found[KAFKA_PYTHON] = (theirs.decode, data, version)
    return found


def writers(message: Any, version: int, data: bytes) -> dict[str, tuple[Any, ...]]:
    cls = type(message)
    by_hand = BY_HAND[cls, version].write
    found: dict[str, tuple[Any, ...]] = {
        OURS: (writer(cls, version), message),
        HAND: (by_hand, message),
    }
    if theirs := KAFKA_PYTHON_TYPES.get(cls.__name__):
        found[KAFKA_PYTHON] = (theirs.decode(data, version).encode,)
    for name, (function, *arguments) in found.items():
        written = function(*arguments)
        if (b"".join(written) if isinstance(written, list) else written) != data:
            raise AssertionError(f"{cls.__name__} v{version} is written otherwise by {name}")
    return found


def _measure(table: Table, name: str, contenders: dict[str, tuple[Any, ...]]) -> None:
    times = calls(contenders)
    compared = KAFKA_PYTHON in contenders
    table.add(
        name,
        Cell(times.median(OURS) * 1e6),
        Cell(times.median(HAND) * 1e6),
        Cell(times.median(KAFKA_PYTHON) * 1e6 if compared else None),
        Cell(times.ratio(OURS, HAND), TO_HAND),
        Cell(times.ratio(OURS, KAFKA_PYTHON) if compared else None, TO_KAFKA_PYTHON),
    )
