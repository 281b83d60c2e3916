"""What reading a message costs, and the law: 16 bytes for each byte received, and 1 MiB."""

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from time import process_time
from typing import Any

import pytest

from ottla.protocol import decoder, memory
from ottla.protocol.schema import Schema, schema_of
from ottla.protocol.source import Source
from ottla.protocol.wire import Buffer, ProtocolError

BYTES_PER_BYTE = 16

Read = Callable[[Buffer], Any]


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


def attempt(read: Read, data: Buffer) -> str:
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
    reader_of: Callable[[Schema, int], Read] | None = None,
) -> Cost:
    """The peak of memory; the time of another call, for looking at memory takes time."""
    schema = schema_of(cls)
    read, exact = without_line_numbers(schema, version, reader_of or decoder.reader_of)
    # As a broker does once it is loaded: what was there before is not searched for garbage.
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(schema.exact_readers, version, exact)
        patch.setattr(decoder, "failed_at", lambda source, exception: "")
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            refusal = attempt(read, data)
            peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
        start = process_time()
        attempt(read, data)
        seconds = process_time() - start
    gc.unfreeze()
    return Cost(len(data), peak, seconds, refusal)


@cache
def without_line_numbers(
    schema: Schema, version: int, reader_of: Callable[[Schema, int], Read]
) -> tuple[Read, Any]:
    """Readers that know no lines: one of the flavour that is wanted, and the exact one.

    Whoever looks at memory asks for the line of each allocation, and it is searched for from the
    start of the function: in the longest readers that takes a hundred times as long as reading.
    """
    function = Source.function

    def without_lines(source: Source) -> Any:
        made = function(source)
        made.__code__ = made.__code__.replace(co_linetable=b"")
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "function", without_lines)
        patch.setattr(decoder, "failed_at", lambda source, exception: "")
        patch.setattr(schema, "exact_readers", {})
        read = reader_of(schema, version)
        # These compile what is behind it.
        attempt(read, bytes(decoder.FAST_MAX + 1))
        attempt(partial(decoder.read_exact, schema, version), b"")
        return read, schema.exact_readers[version]
