"""A client of one connection that speaks the wire itself, in whatever version a test wants."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from ottla.protocol.apis import APIS
from ottla.protocol.frames import encode_request, read_response
from ottla.protocol.schema import decode, schema_of

# What a broken connection raises, to whoever waits for an answer.
BROKEN = (OSError, EOFError)
PATIENCE_S = 30.0


class WireClient:
    """Asks one question after the other."""

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self._address = (host, port)
        self._client_id = client_id
        self._ids = count(1)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Any, version: int) -> Any:
        """The answer; one of BROKEN where there is none, and the next question connects anew."""
        try:
            return await asyncio.wait_for(self._ask(request, version), PATIENCE_S)
        except BROKEN:
            self.close()
            raise

    async def _ask(self, request: Any, version: int) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=1 << 20)
        reader, writer = self._streams
        api = APIS[schema_of(type(request)).key or 0]
        asked = next(self._ids)
        writer.writelines(encode_request(api, version, asked, self._client_id, request))
        await writer.drain()
        size = int.from_bytes(await reader.readexactly(4), "big")
        correlation_id, body = read_response(api, version, await reader.readexactly(size))
        if correlation_id != asked:
            raise AssertionError(f"an answer to {correlation_id}, not to {asked}")
        return decode(api.response(), version, body)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
