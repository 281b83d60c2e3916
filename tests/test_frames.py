"""A connection without IO: frames out of what is received, headers, and what is sent."""

import tracemalloc
from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import Any

import pytest

from ottla.protocol.apis import APIS, Api
from ottla.protocol.frames import (
    REQUEST_SIZE_MAX,
    UNAUTHENTICATED_SIZE_MAX,
    FrameBuffers,
    FrameReader,
    encode_request,
    encode_response,
    read_request,
    read_response,
)
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.schema import decode
from ottla.protocol.wire import ProtocolError

PRODUCE, FETCH, HEARTBEAT, API_VERSIONS = (APIS[key] for key in (0, 1, 12, 18))
SHARED_BYTES = 256


class Connection:
    """A FrameReader and the socket before it, which delivers what it is told to."""

    def __init__(self, *, shared_bytes: int = SHARED_BYTES, size_max: int = REQUEST_SIZE_MAX):
        self.shared = bytearray(shared_bytes)
        self.reader = FrameReader(memoryview(self.shared), size_max=size_max)

    def receive(self, data: bytes) -> list[memoryview]:
        """One receive; what does not fit into the buffer must not come."""
        buffer = self.reader.buffer()
        buffer[: len(data)] = data
        return self.reader.received(len(data))

    def stream(self, data: bytes, sizes: Iterator[int]) -> list[bytes]:
        """Receive after receive, each of the next size or as much as fits."""
        frames = []
        at = 0
        while at < len(data):
            count = min(next(sizes), len(self.reader.buffer()), len(data) - at)
            frames += [bytes(frame) for frame in self.receive(data[at : at + count])]
            at += count
        return frames


def framed(*contents: bytes) -> bytes:
    return b"".join(len(content).to_bytes(4, "big") + content for content in contents)


def constantly(size: int) -> Iterator[int]:
    while True:
        yield size


# --- cutting --------------------------------------------------------------------------------


def test_a_whole_frame_is_a_view_of_the_shared_buffer() -> None:
    connection = Connection()
    (frame,) = connection.receive(framed(b"one"))
    assert (bytes(frame), frame.obj) == (b"one", connection.shared)
    assert not connection.reader.waits_for_more and connection.reader.held_bytes == 0


def test_many_frames_may_come_at_once() -> None:
    contents = [b"", b"a", b"bb", b"", b"c" * 100, b"d"]
    assert [bytes(frame) for frame in Connection().receive(framed(*contents))] == contents


@pytest.mark.parametrize("size", range(1, 45))
def test_frames_may_be_cut_anywhere(size: int) -> None:
    contents = [b"0123456789", b"", b"a", b"xyz" * 5]
    assert Connection().stream(framed(*contents), constantly(size)) == contents


@pytest.mark.parametrize("at", range(1, 30))
def test_two_receives_give_what_one_gives(at: int) -> None:
    contents = [b"0123456789", b"", b"abcdefgh"]
    assert Connection().stream(framed(*contents), chain([at], constantly(99))) == contents


@pytest.mark.parametrize("seed", range(30))
def test_any_stream_in_any_pieces_gives_its_frames(seed: int) -> None:
    dice = Random(seed)
    sizes = [0, 1, 3, 4, 250, 251, 252, 253, 256, 300, 1000, 70_000, 200_000]
    contents = [dice.randbytes(dice.choice(sizes)) for _ in range(30)]
    pieces = iter(lambda: dice.choice([1, 2, 3, 4, 5, 100, 256, 100_000]), None)
    assert Connection().stream(framed(*contents), pieces) == contents


def test_a_size_that_is_cut_is_waited_for() -> None:
    connection = Connection()
    data = framed(b"abc")
    for count in range(1, 4):
        assert connection.receive(data[count - 1 : count]) == []
        assert connection.reader.waits_for_more
    assert connection.receive(data[3:4]) == []
    assert connection.reader.waits_for_more
    (frame,) = connection.receive(b"abc")
    assert bytes(frame) == b"abc" and not connection.reader.waits_for_more


def test_nothing_received_gives_nothing() -> None:
    connection = Connection()
    assert connection.receive(b"") == []
    connection.receive(framed(b"abc")[:5])
    assert connection.receive(b"") == [] and connection.reader.waits_for_more


def test_a_frame_from_a_buffer_of_its_own_stays_as_it_is() -> None:
    connection = Connection()
    content = bytes(range(256)) * 4
    frames = []
    for at in range(0, len(framed(content)), 100):
        frames += connection.receive(framed(content)[at : at + 100])
    (kept,) = frames
    assert kept.obj is not connection.shared
    connection.stream(framed(b"x" * 200, b"y" * 5000, b"z"), constantly(200))
    assert bytes(kept) == content


def test_a_frame_from_the_shared_buffer_is_good_until_the_next_receive() -> None:
    connection = Connection()
    (frame,) = connection.receive(framed(b"first"))
    connection.receive(framed(b"other"))
    assert bytes(frame) == b"other"


def test_an_unfinished_frame_takes_no_byte_of_the_next() -> None:
    connection = Connection()
    connection.receive(framed(b"x" * 1000)[:200])
    assert len(connection.reader.buffer()) == 1000 - 196
    assert connection.reader.held_bytes == 1000


# --- limits ---------------------------------------------------------------------------------

SIZES = [  # bytes of a size, is it allowed where 1000 are?
    ("00000000", True),
    ("000003e8", True),
    ("000003e9", False),
    ("7fffffff", False),
    ("ffffffff", False),
    ("80000000", False),
]


@pytest.mark.parametrize("text, allowed", SIZES)
def test_a_size_has_limits(text: str, allowed: bool) -> None:
    connection = Connection(size_max=1000)
    if allowed:
        connection.receive(bytes.fromhex(text))
        return
    size = int.from_bytes(bytes.fromhex(text), "big", signed=True)
    with pytest.raises(ProtocolError, match=f"a frame of {size} bytes; 1000 are allowed"):
        connection.receive(bytes.fromhex(text))


@pytest.mark.parametrize("pieces", [(4,), (1, 3), (3, 1), (1, 1, 1, 1)])
def test_a_limit_holds_however_the_size_comes(pieces: tuple[int, ...]) -> None:
    connection = Connection(size_max=1000)
    data = bytes.fromhex("000003e9")
    for count in pieces[:-1]:
        assert connection.receive(data[:count]) == []
        data = data[count:]
    with pytest.raises(ProtocolError):
        connection.receive(data)


def test_the_limit_rises_when_the_peer_is_known() -> None:
    assert UNAUTHENTICATED_SIZE_MAX < REQUEST_SIZE_MAX
    connection = Connection(size_max=UNAUTHENTICATED_SIZE_MAX)
    over = (UNAUTHENTICATED_SIZE_MAX + 1).to_bytes(4, "big")
    with pytest.raises(ProtocolError):
        connection.receive(over)
    connection = Connection(size_max=UNAUTHENTICATED_SIZE_MAX)
    connection.receive(framed(b"sasl"))
    connection.reader.size_max = REQUEST_SIZE_MAX
    connection.receive(over)
    assert connection.reader.waits_for_more


def peak_bytes(connection: Connection, data: bytes) -> int:
    tracemalloc.start()
    try:
        connection.receive(data)
        connection.reader.buffer()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_announced_costs_nothing() -> None:
    connection = Connection()
    announced = REQUEST_SIZE_MAX.to_bytes(4, "big")
    assert peak_bytes(connection, announced + b"x") < 100_000
    assert connection.reader.held_bytes < 100_000


def test_a_buffer_grows_with_what_arrives() -> None:
    connection = Connection()
    connection.receive((10 << 20).to_bytes(4, "big") + b"x")
    arrived = 1
    while arrived < 2_000_000:
        count = min(len(connection.reader.buffer()), 50_000)
        assert connection.receive(b"x" * count) == []
        arrived += count
        assert connection.reader.held_bytes <= max(2 * arrived, 1 << 16)
    for _ in range(1000):
        count = len(connection.reader.buffer())
        frames = connection.receive(b"x" * count)
        if frames:
            break
    assert bytes(frames[0]) == b"x" * (10 << 20)
    assert connection.reader.held_bytes == 0


# --- requests -------------------------------------------------------------------------------


def header(key: int, version: int, client_id: str = "ffff", tags: str = "") -> str:
    return f"{key & 0xFFFF:04x} {version & 0xFFFF:04x} 00000007 {client_id} {tags}"


HEADERS = [  # header, client id, the bytes behind it
    (header(12, 3, "0003 6b6166"), "kaf", "aabb"),
    (header(12, 3), None, "aabb"),
    (header(12, 3, "8000"), None, "aabb"),
    (header(12, 3, "0000"), "", "aabb"),
    (header(12, 3, "0002 c3a9"), "é", "aabb"),
    (header(12, 3, "0003 eda080"), "\ufffd", "aabb"),
    (header(12, 3, "0003 61ff62"), "a\ufffdb", ""),
    (header(12, 4, "0001 61", "00"), "a", "aabb"),
    (header(12, 4, "0001 61", "01 05 02 ccdd"), "a", "aabb"),
    (header(12, 4, "0001 61", "02 05 00 06 01 ff"), "a", ""),
    (header(18, 99, "0001 61", "00"), "a", "aabb"),  # flexible, whatever else it may be
    (header(18, -1, "0001 61"), "a", "aabb"),
    (header(12, 99, "ffff", "00"), None, "aabb"),
    (header(17, 99, "ffff"), None, "aabb"),  # never flexible
]


@pytest.mark.parametrize("text, client_id, body", HEADERS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_request_has_a_header(kind: Any, text: str, client_id: str | None, body: str) -> None:
    raw = bytes.fromhex(text)
    request = read_request(kind(raw + bytes.fromhex(body)))
    assert request.api.key == int.from_bytes(raw[:2], "big")
    assert request.version == int.from_bytes(raw[2:4], "big", signed=True)
    assert (request.correlation_id, request.client_id) == (7, client_id)
    assert bytes(request.body) == bytes.fromhex(body)


@pytest.mark.parametrize("text, client_id, body", HEADERS)
def test_a_header_that_is_cut_short_is_refused(text: str, client_id: Any, body: str) -> None:
    raw = bytes.fromhex(text)
    for size in range(len(raw)):
        with pytest.raises(ProtocolError) as caught:
            read_request(raw[:size])
        assert caught.value.path.startswith("RequestHeader")


WRONG_HEADERS = [  # header, error
    ("", "RequestHeader: the bytes end here"),
    (header(4, 0), "RequestHeader.request_api_key: no API has the key 4"),
    (header(93, 0), "RequestHeader.request_api_key: no API has the key 93"),
    (header(-1, 0), "RequestHeader.request_api_key: no API has the key -1"),
    (header(12, 3, "0005 6162"), "RequestHeader.client_id: 5 bytes announced, 2 left"),
    (header(12, 4, "ffff", "01 05 09 aa"), "RequestHeader: 9 bytes announced, 1 left"),
    (header(12, 4, "ffff", "ffffffff07 05 00"), "RequestHeader: 2147483647 unknown tagged"),
    (header(12, 4, "ffff", "ffffffffff07"), "RequestHeader: varint is longer than 5 bytes"),
]


@pytest.mark.parametrize("text, error", WRONG_HEADERS)
def test_a_wrong_header_is_refused(text: str, error: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_request(bytes.fromhex(text))
    assert str(caught.value).startswith(error)


def test_a_body_is_a_view_of_the_frame() -> None:
    frame = memoryview(bytes.fromhex(header(12, 3) + "aabb"))
    body = read_request(frame).body
    assert isinstance(body, memoryview) and body.obj is frame.obj


# --- both directions ------------------------------------------------------------------------


def heartbeat(version: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id=None)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("client_id", [None, "", "kafka", "é\ud800"])
def test_a_request_is_framed_and_read_again(version: int, client_id: str | None) -> None:
    sent = b"".join(encode_request(HEARTBEAT, version, 42, client_id, heartbeat(version)))
    (frame,) = Connection().receive(sent)
    request = read_request(frame)
    expected = None if client_id is None else client_id.replace("\ud800", "?")
    found = (request.api, request.version, request.correlation_id, request.client_id)
    assert found == (HEARTBEAT, version, 42, expected)
    assert decode(HeartbeatRequest, version, request.body) == heartbeat(version)


RESPONSES = [  # API, version, response, the whole frame
    (
        HEARTBEAT,
        3,
        HeartbeatResponse(throttle_time_ms=1, error_code=25),
        "0000000a 0000002a 00000001 0019",
    ),
    (
        HEARTBEAT,
        4,
        HeartbeatResponse(throttle_time_ms=1, error_code=25),
        "0000000c 0000002a 00 00000001 0019 00",
    ),
    # A client must be able to read this before it knows what the broker speaks: header v0.
    (
        API_VERSIONS,
        3,
        ApiVersionsResponse(error_code=0, api_keys=[]),
        "0000000c 0000002a 0000 01 00000000 00",
    ),
    (
        API_VERSIONS,
        0,
        ApiVersionsResponse(error_code=35, api_keys=[]),
        "0000000a 0000002a 0023 00000000",
    ),
]


@pytest.mark.parametrize("api, version, response, text", RESPONSES)
def test_a_response_is_framed_and_read_again(
    api: Api, version: int, response: Any, text: str
) -> None:
    sent = b"".join(encode_response(api, version, 42, response))
    assert sent == bytes.fromhex(text)
    correlation_id, body = read_response(api, version, sent[4:])
    assert correlation_id == 42
    assert decode(api.response(), version, body) == response


def test_a_response_without_its_header_is_refused() -> None:
    for size in range(5):
        with pytest.raises(ProtocolError, match="the bytes end here"):
            read_response(HEARTBEAT, 4, bytes(4)[:size])
    assert read_response(HEARTBEAT, 3, bytes(4)) == (0, b"")


LARGE = bytes(range(256)) * 64


def fetched(records: Any) -> FetchResponse:
    partitions = [
        PartitionData(
            partition_index=index,
            error_code=0,
            high_watermark=1,
            aborted_transactions=None,
            records=each,
        )
        for index, each in enumerate(records)
    ]
    topics = [FetchableTopicResponse(topic="t", partitions=partitions)]
    return FetchResponse(throttle_time_ms=0, responses=topics)


@pytest.mark.parametrize("version", [4, 12])
def test_large_records_are_sent_from_where_they_are(version: int) -> None:
    records = [LARGE, bytearray(LARGE), memoryview(LARGE), b"small", None]
    pieces = encode_response(FETCH, version, 7, fetched(records))
    owners = [piece.obj for piece in pieces if isinstance(piece, memoryview)]
    assert [id(owner) for owner in owners] == [id(LARGE), id(records[1]), id(LARGE)]
    sent = b"".join(pieces)
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4
    _, body = read_response(FETCH, version, sent[4:])
    read = decode(FetchResponse, version, body).responses[0].partitions
    assert [partition.records for partition in read] == [LARGE, LARGE, LARGE, b"small", None]


def test_large_records_are_sent_in_requests_from_where_they_are() -> None:
    topic = TopicProduceData(
        name="t", partition_data=[PartitionProduceData(index=0, records=LARGE)]
    )
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic])
    pieces = encode_request(PRODUCE, 9, 7, "c", request)
    assert [piece.obj for piece in pieces if isinstance(piece, memoryview)] == [LARGE]
    sent = b"".join(pieces)
    assert decode(ProduceRequest, 9, read_request(sent[4:]).body) == request


def test_a_response_that_cannot_be_written_is_told() -> None:
    response = HeartbeatResponse(throttle_time_ms=2**31, error_code=0)
    with pytest.raises(ProtocolError, match=r"^HeartbeatResponse.throttle_time_ms: "):
        encode_response(HEARTBEAT, 4, 1, response)


def test_the_first_request_of_a_connection() -> None:
    """As clients begin: a version of ApiVersions that the broker may not know."""
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    sent = b"".join(encode_request(API_VERSIONS, 4, 0, "c", request))
    unknown = sent[:6] + b"\0\x63" + sent[8:]
    for data, version in ((sent, 4), (unknown, 99)):
        read = read_request(data[4:])
        assert (read.api, read.version, read.client_id) == (API_VERSIONS, version, "c")


# --- memory that is used again --------------------------------------------------------------


def received_in_parts(reader: FrameReader, data: bytes) -> list[memoryview]:
    frames = []
    while data:
        buffer = reader.buffer()
        part, data = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(part)] = part
        frames += reader.received(len(part))
    return frames


def test_a_large_frame_is_received_into_memory_that_is_used_again() -> None:
    buffers = FrameBuffers()
    reader = FrameReader(memoryview(bytearray(200_000)), buffers=buffers)
    content = [bytes([number]) * 900_000 for number in range(3)]
    places = set()
    for each in content:
        (found,) = received_in_parts(reader, len(each).to_bytes(4, "big") + each)
        assert bytes(found) == each
        places.add(id(found.obj))
        found.release()
    assert len(places) == 1


def test_a_frame_that_somebody_keeps_is_not_written_over() -> None:
    buffers = FrameBuffers()
    reader = FrameReader(memoryview(bytearray(200_000)), buffers=buffers)
    kept = []
    for number in range(8):
        content = bytes([number]) * 900_000
        kept += received_in_parts(reader, len(content).to_bytes(4, "big") + content)
    assert [bytes(each[:1]) for each in kept] == [bytes([number]) for number in range(8)]
    assert all(each == each[:1].tobytes() * 900_000 for each in kept)


def test_who_has_sent_little_gets_little_memory() -> None:
    reader = FrameReader(memoryview(bytearray(200_000)), buffers=FrameBuffers())
    assert received_in_parts(reader, (1_000_000).to_bytes(4, "big") + bytes(1000)) == []
    assert reader.held_bytes <= 64 << 10
