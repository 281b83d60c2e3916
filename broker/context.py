"""What a handler is told of a request besides its message."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.connection import Connection
    from ottla.protocol.apis import Api

ANONYMOUS = "User:ANONYMOUS"


class Context:
    """One request: which API in which version, and from whom."""

    __slots__ = ("api", "client_id", "connection", "correlation_id", "version")

    def __init__(
        self,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str | None,
        connection: Connection,
    ) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def principal(self) -> str:
        return ANONYMOUS
