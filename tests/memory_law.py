"""What reading a message costs, and the law: 16 bytes for each byte received, and 1 MiB."""

import tracemalloc
from dataclasses import dataclass
from time import process_time
from typing import Any

from ottla.protocol import memory
from ottla.protocol.schema import decode_prefix
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


def attempt(cls: type[Any], version: int, data: Buffer) -> str:
    """Read, and drop what was read; the refusal, or nothing."""
    try:
        decode_prefix(cls, version, data)
    except ProtocolError as error:
        return str(error)
    return ""


def cost_of(cls: type[Any], version: int, data: Buffer) -> Cost:
    """The peak of memory; the time of another call, for looking at memory takes time."""
    attempt(cls, version, data[:1])  # compiles the readers
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        refusal = attempt(cls, version, data)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    start = process_time()
    attempt(cls, version, data)
    return Cost(len(data), peak, process_time() - start, refusal)
