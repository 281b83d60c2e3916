"""A connection without IO: received bytes in, requests out; responses in, bytes to send out.

A frame is a 4-byte size and that many bytes. While no frame is unfinished a connection owns no
buffer: its bytes are received into one that all connections share, and frames are views of that,
good until the next receive. An unfinished frame gets a buffer that grows with what arrives, never
with what was announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from ottla.protocol.apis import APIS, Api
from ottla.protocol.exact import decode_as_java
from ottla.protocol.reading import skip_tags
from ottla.protocol.schema import TYPE_CHECKING, encode_chunks
from ottla.protocol.wire import Buffer, ProtocolError

if TYPE_CHECKING:
    from typing import Any

# Kafka's defaults: socket.request.max.bytes, sasl.server.max.receive.size.
REQUEST_SIZE_MAX = 100 << 20
UNAUTHENTICATED_SIZE_MAX = 512 << 10

_FIRST_BYTES = 64 << 10
_REUSED_BYTES = (1 << 20) + (64 << 10)
_REUSED_COUNT = 4
_SIZE = Struct(">i")
_REQUEST_HEADER = Struct(">hhih")
_RESPONSE_HEADER = Struct(">ii")
# What unknown tagged fields of a header may be charged (see memory.UNKNOWN_TAG_BYTES).
_HEADER_TAG_ALLOWANCE = 1 << 16


class FrameBuffers:
    """Memory for frames of about a mebibyte, as producers send them, used again and again: a new
    bytearray is filled with zeros first, and one that grows is copied.

    It is given to peers that have sent a good part already; others pay with each byte."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def take(self, size: int) -> memoryview | None:
        """No other's as long as a view of it lives; None if there is none."""
        if size > _REUSED_BYTES:
            return None
        for buffer in self._buffers:
            if _is_idle(buffer):
                return memoryview(buffer)[:size]
        if len(self._buffers) == _REUSED_COUNT:
            return None
        buffer = bytearray(_REUSED_BYTES)
        self._buffers.append(buffer)
        return memoryview(buffer)[:size]


def _is_idle(buffer: bytearray) -> bool:
    try:
        # Refused while a view is left; else it changes nothing.
        buffer.append(0)
        buffer.pop()
    except BufferError:
        return False
    return True


class FrameReader:
    """Cuts what one connection receives into frames.

    Ask `buffer` where to receive, then say how many bytes came with `received`.
    """

    __slots__ = ("_buffers", "_filled", "_prefix", "_shared", "_size", "_unfinished", "size_max")

    def __init__(
        self,
        shared: memoryview,
        *,
        size_max: int = REQUEST_SIZE_MAX,
        buffers: FrameBuffers | None = None,
    ) -> None:
        self.size_max = size_max
        self._buffers = buffers
        self._shared = shared
        self._prefix = b""  # of a size that has not come whole
        self._unfinished: bytearray | memoryview | None = None
        self._size = 0  # of the unfinished frame
        self._filled = 0

    @property
    def waits_for_more(self) -> bool:
        """Whether a frame has begun and is not whole: a peer that stalls here holds memory."""
        return self._unfinished is not None or bool(self._prefix)

    @property
    def held_bytes(self) -> int:
        return 0 if self._unfinished is None else len(self._unfinished)

    def buffer(self) -> memoryview:
        """Where the next bytes are to be received."""
        if self._unfinished is None:
            return self._shared
        if self._filled == len(self._unfinished):
            grown = bytearray(min(self._size, 2 * self._filled))
            grown[: self._filled] = self._unfinished
            self._unfinished = grown
        return memoryview(self._unfinished)[self._filled :]

    def received(self, count: int) -> list[memoryview]:
        """The frames that became whole with `count` bytes more, without their sizes."""
        if self._unfinished is None:
            return self._cut(self._shared[:count])
        self._filled += count
        if self._filled < self._size:
            return []
        frame = memoryview(self._unfinished)
        self._unfinished = None
        return [frame]

    def _cut(self, data: memoryview) -> list[memoryview]:
        frames: list[memoryview] = []
        if self._prefix:
            # Rare: the size itself was cut, so the few bytes of it are put before the rest.
            data = memoryview(self._prefix + bytes(data))
            self._prefix = b""
        pos, end = 0, len(data)
        while end - pos >= 4:
            (size,) = _SIZE.unpack_from(data, pos)
            if not 0 <= size <= self.size_max:
                raise ProtocolError(f"a frame of {size} bytes; {self.size_max} are allowed")
            pos += 4
            if end - pos < size:
                self._begin(size, data[pos:])
                return frames
            frames.append(data[pos : pos + size])
            pos += size
        self._prefix = bytes(data[pos:])
        return frames

    def _begin(self, size: int, start: memoryview) -> None:
        self._size, self._filled = size, len(start)
        if len(start) >= _FIRST_BYTES and self._buffers is not None:
            reused = self._buffers.take(size)
            if reused is not None:
                reused[: len(start)] = start
                self._unfinished = reused
                return
        self._unfinished = bytearray(min(size, max(2 * len(start), _FIRST_BYTES)))
        self._unfinished[: len(start)] = start


@dataclass(slots=True)
class Request:
    """A request whose header was read; `body` are the bytes of the message."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    body: Buffer


def read_request(frame: Buffer) -> Request:
    """Read the header of a request. A key that Kafka does not know is a ProtocolError."""
    if len(frame) < 8:
        raise ProtocolError("the bytes end here", "RequestHeader")
    key = int.from_bytes(frame[:2], "big", signed=True)
    api = APIS.get(key)
    if api is None:
        raise ProtocolError(f"no API has the key {key}", "RequestHeader.request_api_key")
    if len(frame) < _REQUEST_HEADER.size:
        raise ProtocolError("the bytes end here", "RequestHeader.client_id")
    _, version, correlation_id, size = _REQUEST_HEADER.unpack_from(frame)
    pos = _REQUEST_HEADER.size
    client_id = None
    if size >= 0:
        raw = bytes(frame[pos : pos + size])
        if len(raw) < size:
            raise ProtocolError(
                f"{size} bytes announced, {len(raw)} left", "RequestHeader.client_id"
            )
        pos += size
        client_id = _text(raw)
    if api.is_flexible(version):
        pos = _skip_header_tags(frame, pos)
    return Request(api, version, correlation_id, client_id, frame[pos:])


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return decode_as_java(raw)


def _skip_header_tags(frame: Buffer, pos: int) -> int:
    if pos == len(frame):
        raise ProtocolError("the bytes end here", "RequestHeader")
    count = frame[pos]
    if not count:
        return pos + 1
    try:
        return skip_tags(count, frame, pos + 1, len(frame), _HEADER_TAG_ALLOWANCE)[0]
    except ProtocolError as exception:
        raise ProtocolError(exception.reason, "RequestHeader") from None


def encode_response(api: Api, version: int, correlation_id: int, response: Any) -> list[Buffer]:
    """The frame of one response, in pieces to be sent in order."""
    tags = b"\0" if api.response_header_version(version) else b""
    chunks = encode_chunks(response, version)
    if len(chunks) == 1:
        # The usual case, made short: every small answer comes this way.
        body = chunks[0]
        size = 4 + len(tags) + len(body)
        return [_RESPONSE_HEADER.pack(size, correlation_id) + tags + body]
    size = 4 + len(tags) + sum(map(len, chunks))
    chunks[0] = b"".join((_RESPONSE_HEADER.pack(size, correlation_id), tags, chunks[0]))
    return chunks


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, request: Any
) -> list[Buffer]:
    """The frame of one request, in pieces to be sent in order."""
    raw = b"" if client_id is None else client_id.encode("utf-8", "replace")
    length = -1 if client_id is None else len(raw)
    header = _REQUEST_HEADER.pack(api.key, version, correlation_id, length) + raw
    if api.is_flexible(version):
        header += b"\0"
    chunks = encode_chunks(request, version)
    size = len(header) + sum(map(len, chunks))
    chunks[0] = b"".join((_SIZE.pack(size), header, chunks[0]))
    return chunks


def read_response(api: Api, version: int, frame: Buffer) -> tuple[int, Buffer]:
    """The correlation id and the body of a response."""
    if len(frame) < 4:
        raise ProtocolError("the bytes end here", "ResponseHeader")
    (correlation_id,) = _SIZE.unpack_from(frame)
    pos = 4
    if api.response_header_version(version):
        pos = _skip_header_tags(frame, pos)
    return correlation_id, frame[pos:]
