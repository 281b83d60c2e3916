"""A plain socket to a broker, with our own messages on it; no client that mends or hides anything.

An answer is a message, NOTHING (the broker answers the next request first) or CLOSED.
"""

import socket
import struct
from typing import Any

from ottla.protocol.apis import APIS, Api
from ottla.protocol.frames import encode_request, read_response
from ottla.protocol.messages.versions import ApiVersionsRequest
from ottla.protocol.schema import decode

ANSWER_TIMEOUT_S = 30
CLIENT_ID = "story"
NOTHING = "no answer"
CLOSED = "the connection is closed"
_BY_NAME = {api.name: api for api in APIS.values()}


def api_of(request: object) -> Api:
    return _BY_NAME[type(request).__name__.removesuffix("Request")]


class ConnectionClosed(Exception):
    """The broker has closed the connection, or reset it."""


class Wire:
    """One connection, opened anew after the broker has closed it."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self._socket: socket.socket | None = None
        self._correlation_id = 0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, request: Any, version: int) -> Any:
        """The answer to one request; a broker that gives none is an error here."""
        correlation_id = self.send(request, version)
        return self.read_answer(request, version, correlation_id)

    def send(self, request: Any, version: int) -> int:
        """Sends without waiting; the correlation id by which its answer is known."""
        self._correlation_id += 1
        pieces = encode_request(api_of(request), version, self._correlation_id, CLIENT_ID, request)
        self.send_bytes(b"".join(pieces))
        return self._correlation_id

    def read_answer(self, request: Any, version: int, correlation_id: int) -> Any:
        api = api_of(request)
        found, body = read_response(api, version, self.read_frame())
        if found != correlation_id:
            raise AssertionError(f"{api.name}: answer {found} came for request {correlation_id}")
        return decode(api.response(), version, body)

    def sent_without_answer(self, request: Any, version: int) -> str:
        """NOTHING where the next request on the connection is answered first, or CLOSED."""
        try:
            self.send(request, version)
            self.ask(ApiVersionsRequest(), 0)
        except ConnectionClosed:
            return CLOSED
        return NOTHING

    def send_bytes(self, data: bytes) -> None:
        try:
            self._opened().sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self.close()
            raise ConnectionClosed from error

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._opened().recv(size - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                self.close()
                raise ConnectionClosed
            data += part
        return bytes(data)

    def _opened(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self.address, timeout=ANSWER_TIMEOUT_S)
        return self._socket
