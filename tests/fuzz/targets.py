"""What is fed: messages, connections, record batches, JSON lines. Each says what must not happen.

A target takes dice and makes inputs; `try_...` feeds one and returns what it did. Anything but a
refusal that is known to the caller leaves it: the round is then run again with its seed.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import perf_counter
from typing import Any

from ottla.protocol import memory
from ottla.protocol.__main__ import answer
from ottla.protocol.apis import APIS
from ottla.protocol.compression import Codec
from ottla.protocol.frames import FrameReader, encode_request, read_request
from ottla.protocol.jsonform import to_json
from ottla.protocol.record_build import build_batch
from ottla.protocol.record_validate import InvalidBatch, ProduceRules, validate_produced
from ottla.protocol.records import (
    HEADER_SIZE,
    Record,
    check_crc,
    crc_of,
    iterate_batches,
    iterate_records,
    read_control,
    whole_batches_end,
)
from ottla.protocol.schema import decode, decode_prefix, encode, schema_of
from ottla.protocol.wire import ProtocolError
from tests.dense_wire import array_paths, blown_up, random_style
from tests.fuzz.mutation import mutated
from tests.fuzz.odd_wire import OddWriter
from tests.random_messages import PAIRS, random_message, schema_named

FRAME_SIZE_MAX = 1 << 20
DECOMPRESSED_MAX = 1 << 20
FREE_BYTES = memory.FREE_BYTES + 4096
NOW_MS = 1_700_000_000_000


class Fault(Exception):
    """Two ways to read the same bytes that did not agree."""


@dataclass(slots=True)
class Input:
    """One input: what it is, how it is fed, and the part of that which is measured."""

    what: str
    data: bytes
    feed: Callable[[], bool]
    read: Callable[[], object]
    free_bytes: int = FREE_BYTES  # what reading may cost besides 16 bytes for each byte

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(slots=True)
class Tally:
    """What became of inputs, and the slowest of them."""

    inputs: int = 0
    accepted: int = 0
    slowest: list[tuple[float, Input]] = field(default_factory=list)
    kept: int = 5

    def feed(self, each: Input) -> None:
        start = perf_counter()
        self.accepted += each.feed()
        seconds = perf_counter() - start
        self.inputs += 1
        if len(self.slowest) < self.kept or seconds > self.slowest[-1][0]:
            self.slowest.append((seconds, each))
            self.slowest.sort(key=lambda pair: -pair[0])
            del self.slowest[self.kept :]


# --- messages -------------------------------------------------------------------------------


def messages(number: int, count: int, dice: Random) -> Iterator[Input]:
    """Inputs for eight pairs of message and version: mutated, odd, or dense."""
    for index in range(8):
        name, version = PAIRS[(number * 8 + index) % len(PAIRS)]
        schema = schema_named(name)
        bases = [bytes(encode(random_message(name, version, dice), version)) for _ in range(6)]
        paths = list(array_paths(schema, version))
        for _ in range(count // 8):
            kind = dice.random()
            if kind < 0.5:
                data = mutated(dice.choice(bases), dice.choice(bases), dice)
            elif kind < 0.95 or not paths:
                data = OddWriter(schema, version, dice, dice.choice((0, 0.02, 0.1))).message()
            else:
                elements = dice.choice((1, 5, 50, 500))
                style = random_style(dice)
                data = blown_up(schema, version, dice.choice(paths), elements, style)
                data = mutated(data, b"", dice) if dice.random() < 0.5 else data
            yield message_input(name, version, data, dice)


def message_input(name: str, version: int, data: bytes, dice: Random) -> Input:
    kind: Any = dice.choice((bytes, bytearray, memoryview))
    cls = schema_named(name).cls
    feed = partial(try_message, cls, version, kind(data))
    return Input(f"{name} v{version}", data, feed, partial(decode, cls, version, kind(data)))


def try_message(cls: type[Any], version: int, data: Any) -> bool:
    """The way of all requests and the exact one must agree; what is read is written again."""
    found = read(lambda: decode(cls, version, data), cls)
    exact = read(lambda: decode_prefix(cls, version, data)[0], cls)
    if (found is None) != (exact is None):
        raise Fault("only one of two readers refuses")
    if found is None:
        return False
    written = write(found, version)
    if written != write(exact, version):
        raise Fault("two readers read different messages")
    if written is not None and write(decode(cls, version, written), version) != written:
        raise Fault("what is written is not what is read")
    return True


def read(attempt: Callable[[], Any], cls: type[Any]) -> Any:
    try:
        return attempt()
    except ProtocolError as error:
        if not error.path.startswith(schema_of(cls).name):
            raise Fault(f"an error without a path: {error}") from None
        return None


def write(message: Any, version: int) -> bytes | None:
    """None for what cannot be written: U+FFFD takes three bytes, which may be too many."""
    try:
        return bytes(encode(message, version))
    except ProtocolError as error:
        if "32767 are allowed" in error.reason:
            return None
        raise


# --- connections ----------------------------------------------------------------------------


def connections(number: int, count: int, dice: Random) -> Iterator[Input]:
    """Streams of requests, mutated, in pieces."""
    apis = list(APIS.values())
    for _ in range(count):
        stream = bytearray()
        for _ in range(dice.choice((1, 2, 5))):
            api = dice.choice(apis)
            version = dice.randint(api.first, api.last)
            request = random_message(f"{api.name}Request", version, dice)
            client_id = dice.choice((None, "", "client", "é"))
            stream += b"".join(
                encode_request(api, version, dice.getrandbits(31), client_id, request)
            )
        data = bytes(stream)
        if dice.random() < 0.85:
            # Not all of it: a fault in the first bytes hides all that follow.
            at = dice.choice((0, 0, 4, dice.randrange(len(data))))
            data = data[:at] + mutated(data[at:], data, dice)
        pieces = dice.choice((1, 3, 100, 70_000) if len(data) < 1000 else (1000, 70_000))
        feed = partial(try_connection, data, pieces)
        yield Input("connection", data, feed, feed)


def try_connection(data: bytes, piece: int) -> bool:
    shared = bytearray(4096)
    reader = FrameReader(memoryview(shared), size_max=FRAME_SIZE_MAX)
    at = 0
    try:
        while at < len(data):
            buffer = reader.buffer()
            count = min(piece, len(buffer), len(data) - at)
            buffer[:count] = data[at : at + count]
            at += count
            for frame in reader.received(count):
                request = read_request(frame)
                decode(request.api.request(), request.version, request.body)
            if reader.held_bytes > 2 * at + (1 << 16):
                raise Fault("a frame holds more than arrived")
    except ProtocolError:
        return False
    return True


# --- record batches -------------------------------------------------------------------------


def batches(number: int, count: int, dice: Random) -> Iterator[Input]:
    """Batches of all codecs, mutated outside or inside, most with a checksum that is right."""
    for _ in range(count // 20):
        base = [random_batch(dice) for _ in range(4)]
        for _ in range(20):
            data = bytearray(dice.choice(base))
            if dice.random() < 0.9:
                at = dice.choice((0, HEADER_SIZE, HEADER_SIZE, dice.randrange(len(data))))
                data[at:] = mutated(bytes(data[at:]), bytes(dice.choice(base)), dice)
            if dice.random() < 0.9 and len(data) > HEADER_SIZE:
                repair(data)
            if dice.random() < 0.2:
                data += dice.choice(base)
            found = bytes(data)
            feed = partial(try_batches, found)
            yield Input("batch", found, feed, feed, FREE_BYTES + 4 * DECOMPRESSED_MAX)


def random_batch(dice: Random) -> bytes:
    sizes = (0, 1, 10, 200)
    records = [
        Record(
            offset,
            NOW_MS + dice.randint(-5, 5),
            dice.choice((None, dice.randbytes(dice.choice(sizes)))),
            dice.choice((None, b"x" * dice.choice(sizes))),
            tuple(("h", dice.choice((None, b"v"))) for _ in range(dice.choice((0, 0, 2)))),
        )
        for offset in range(dice.choice((1, 2, 10)))
    ]
    codec = dice.choice(list(Codec))
    return bytes(build_batch(records, codec=codec, control=dice.random() < 0.1))


def repair(data: bytearray) -> None:
    """The length and the checksum of one batch, made right."""
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[16] = 2
    data[17:21] = crc_of(data, 0, len(data)).to_bytes(4, "big")


RULES = ProduceRules(message_size_max=1 << 20, decompressed_max=DECOMPRESSED_MAX)


def try_batches(data: bytes) -> bool:
    with suppress(InvalidBatch, ProtocolError):
        validate_produced(data, RULES, now_ms=NOW_MS)
    try:
        whole_batches_end(data)
        for position, header in iterate_batches(data):
            check_crc(data, position, header)
            for record in iterate_records(
                data, position, header, decompressed_max=DECOMPRESSED_MAX
            ):
                if header.is_control:
                    read_control(record)
    except ProtocolError:
        return False
    return True


# --- lines ----------------------------------------------------------------------------------


def lines(number: int, count: int, dice: Random) -> Iterator[Input]:
    """Lines of the filter."""
    for index in range(count):
        name, version = PAIRS[(number * count + index) % len(PAIRS)]
        message = random_message(name, version, dice)
        query: dict[str, Any] = {"message": name, "version": version}
        if dice.random() < 0.5:
            query["json"] = to_json(message, version)
        else:
            query["hex"] = encode(message, version).hex()
        data = mutated(json.dumps(query).encode(), b"[{}]", dice)
        feed = partial(try_line, data)
        yield Input("line", data, feed, feed)


def try_line(data: bytes) -> bool:
    told = answer(data.decode("utf-8", "surrogateescape"))
    json.dumps(told).encode()
    return "error" not in told


TARGETS: dict[str, Callable[[int, int, Random], Iterator[Input]]] = {
    "messages": messages,
    "connections": connections,
    "batches": batches,
    "lines": lines,
}
