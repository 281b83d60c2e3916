"""Requests to their handlers: what is served, what is refused, and what must end the process."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.dispatch import HANDLERS, Dispatch, served
from ottla.protocol.apis import APIS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.frames import encode_request, read_response
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from ottla.protocol.messages.versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.schema import decode
from tests.data_rig import Broker, FakeConnection

METADATA, API_VERSIONS = 3, 18
Handler = Callable[[Any, Any, Any], Any]


class Rig:
    """A dispatch whose Metadata is answered by `handler`."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.dispatch = Dispatch(self.broker)  # type: ignore[arg-type]
        self.connection = FakeConnection()

    def answers(self, handler: Handler) -> None:
        for version in range(14):
            self.ask(MetadataRequest(topics=[]), version, serves=False)
            self.dispatch._routes[METADATA, version].handler = handler

    def ask(self, request: Any, version: int, *, key: int = METADATA, serves: bool = True) -> Any:
        """The response; None where nothing is sent. With `serves=False` only the way is found."""
        frame = b"".join(encode_request(APIS[key], version, 7, "a client", request))[4:]
        if not serves:
            self.dispatch._route(read(frame))
            return None
        connection: Any = self.connection
        answer: Any = self.dispatch.serve(connection, memoryview(frame))
        if hasattr(answer, "__await__"):
            answer = asyncio.run(answer)
        return None if answer is None else b"".join(answer)

    def response(self, request: Any, version: int, *, key: int = METADATA) -> Any:
        sent = self.ask(request, version, key=key)
        _, body = read_response(APIS[key], version, sent[4:])
        return decode(APIS[key].response(), version, body)


def read(frame: bytes) -> Any:
    from ottla.protocol.frames import read_request

    return read_request(memoryview(frame))


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.broker.loop.close()


def error_codes(response: MetadataResponse) -> list[str]:
    return [ErrorCode(topic.error_code).name for topic in response.topics]


def named(name: str | None) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


def raising(error: Exception) -> Handler:
    def handler(broker: Any, context: Any, request: Any) -> Any:
        raise error

    return handler


def raising_later(error: Exception) -> Handler:
    async def handler(broker: Any, context: Any, request: Any) -> Any:
        raise error

    return handler


@pytest.mark.parametrize("how", [raising, raising_later])
def test_what_a_handler_refuses_is_an_answer(rig: Rig, how: Callable[[Exception], Handler]) -> None:
    rig.answers(how(KafkaError(ErrorCode.INVALID_REQUEST)))
    assert error_codes(rig.response(named("a"), 9)) == ["INVALID_REQUEST"]


@pytest.mark.parametrize("how", [raising, raising_later])
def test_a_handler_s_own_fault_is_an_answer_and_its_traceback_stays_here(
    rig: Rig, how: Callable[[Exception], Handler], caplog: pytest.LogCaptureFixture
) -> None:
    rig.answers(how(ZeroDivisionError("secret")))
    assert error_codes(rig.response(named("a"), 9)) == ["UNKNOWN_SERVER_ERROR"]
    assert "request.failed api=Metadata version=9 client_id=a client" in caplog.text


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.INVALID_RECORD), ZeroDivisionError()])
@pytest.mark.parametrize("how", [raising, raising_later])
def test_what_fails_within_a_change_is_no_answer(
    rig: Rig, how: Callable[[Exception], Handler], error: Exception
) -> None:
    rig.answers(how(error))
    rig.broker.is_changing = True
    with pytest.raises(type(error)):
        rig.ask(named("a"), 9)


def test_an_answer_that_cannot_be_written_is_the_handler_s_fault(rig: Rig) -> None:
    brokers: Any = None
    rig.answers(lambda *_: MetadataResponse(brokers=brokers, topics=[]))
    assert error_codes(rig.response(named("a"), 9)) == ["UNKNOWN_SERVER_ERROR"]


def test_a_refusal_that_cannot_be_written_ends_the_connection_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.refusals.refusal", lambda *_: object())
    rig.answers(raising(KafkaError(ErrorCode.INVALID_REQUEST)))
    assert rig.ask(named("a"), 9) is None
    assert rig.connection.reason == "Metadata failed, and cannot be told so"


def test_a_request_that_cannot_be_read_ends_the_connection(rig: Rig) -> None:
    frame = b"".join(encode_request(APIS[METADATA], 1, 7, "me", MetadataRequest(topics=[])))[4:-1]
    assert rig.dispatch.serve(rig.connection, memoryview(frame)) is None  # type: ignore[arg-type]
    assert "cannot be read" in (rig.connection.reason or "")


@pytest.mark.parametrize(("key", "version"), [(METADATA, 99), (0, 2), (22, 6), (24, 5)])
def test_what_is_not_served_ends_the_connection(rig: Rig, key: int, version: int) -> None:
    """Of Produce, versions are listed from 0 on and served from 3 on, as Kafka's."""
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7\xff\xff\0\0\0\0\0"
    assert rig.dispatch.serve(rig.connection, memoryview(frame)) is None  # type: ignore[arg-type]
    assert "is not served" in (rig.connection.reason or "")


def test_whoever_asks_for_versions_in_an_unknown_one_learns_them(rig: Rig) -> None:
    frame = b"\0\x12\0\x63\0\0\0\7\0\2me\0\0\0\0"
    sent: Any = rig.dispatch.serve(rig.connection, memoryview(frame))  # type: ignore[arg-type]
    _, body = read_response(APIS[API_VERSIONS], 0, b"".join(sent)[4:])
    answer: ApiVersionsResponse = decode(ApiVersionsResponse, 0, body)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    (only,) = answer.api_keys
    assert (only.api_key, only.min_version, only.max_version) == (API_VERSIONS, 0, 4)
    assert not rig.connection.is_closed


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("-a", "1"), ("a", ""), ("a", "1 2"), ("a.", "1"), ("a\n", "1")],
)
def test_software_without_a_proper_name_is_told_so(rig: Rig, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    answer = rig.response(request, 3, key=API_VERSIONS)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert not rig.connection.is_closed


@pytest.mark.parametrize("key", HANDLERS)
def test_every_api_in_the_table_has_a_handler_and_versions(rig: Rig, key: int) -> None:
    first, last = served(key) or (1, 0)
    assert APIS[key].first <= first <= last <= APIS[key].last
    frame = key.to_bytes(2, "big") + last.to_bytes(2, "big") + b"\0\0\0\7\xff\xff\0"
    route = rig.dispatch._route(read(frame))
    assert route is not None
    assert callable(route.handler)


def test_what_is_not_in_the_table_has_no_versions() -> None:
    assert served(24) is None
