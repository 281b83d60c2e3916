"""What reading a message costs, and the law: 16 bytes for each byte received, and 1 MiB."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

from ottla.protocol import memory
from ottla.protocol.decoder import FAST_MAX
from ottla.protocol.schema import Schema, reader, schema_of
from ottla.protocol.wire import Buffer, ProtocolError

BYTES_PER_BYTE = 16


@dataclass(slots=True)
class Cost:
    """Of one attempt to read; `refusal` is empty if the message was read."""

    size: int
    peak_bytes: int
    seconds: float
    refusal: str

    @property
    def within_law(self) -> bool:
        # The last term is what any call takes: frames, buffers, the message itself.
        return self.peak_bytes <= BYTES_PER_BYTE * self.size + memory.FREE_BYTES + 4096

    def __str__(self) -> str:
        return (
            f"{self.size / 1e6:7.2f} MB, {self.seconds * 1e3:6.1f} ms, "
            f"{self.peak_bytes / 1e6:6.1f} MB at most, {self.peak_bytes / self.size:5.2f} per byte"
            + (f", refused: {self.refusal[:80]}" if self.refusal else "")
        )


def attempt(read: Callable[[Buffer], Any], data: Buffer) -> str:
    """Read, and drop what was read; the refusal, or nothing."""
    try:
        read(data)
    except ProtocolError as error:
        return str(error)
    return ""


def cost_of(
    cls: type[Any],
    version: int,
    data: Buffer,
    reader_of: Callable[[Schema, int], Callable[[Buffer], Any]] | None = None,
) -> Cost:
    """The peak of memory; the time of another call, for looking at memory takes time."""
    read = reader_of(schema_of(cls), version) if reader_of else reader(cls, version)
    attempt(read, data[:0])  # compiles the exact reader
    if len(data) > FAST_MAX:
        attempt(read, bytes(FAST_MAX + 1))  # and the one for what is large
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        refusal = attempt(read, data)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    start = process_time()
    attempt(read, data)
    return Cost(len(data), peak, process_time() - start, refusal)
