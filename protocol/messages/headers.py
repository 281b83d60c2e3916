"""Request and response headers."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, String, message, since


@message(versions=(1, 2), flexible=2)
class RequestHeader:
    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: String | None = since(compact=False)


@message(versions=(0, 1), flexible=1)
class ResponseHeader:
    correlation_id: Int32
