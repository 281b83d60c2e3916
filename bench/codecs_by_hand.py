"""The codecs written by hand, by message and version: what the compiled ones are measured against.

They were written without a look at the compiler's output, and are used nowhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest
from ottla.protocol.messages.metadata import MetadataResponse
from ottla.protocol.messages.offsets import ListOffsetsRequest, OffsetCommitRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.messages.versions import ApiVersionsResponse
from ottla.protocol.wire import Buffer

from .by_hand import consumer_groups, fetch, groups, metadata, offsets, produce, versions


@dataclass(slots=True, frozen=True)
class CodecByHand:
    read: Callable[[Any], Any]
    write: Callable[[Any], bytes | bytearray]


# The newest version that Java's client or librdkafka sends, or is sent; Produce with topic names
# is what librdkafka sends.
BY_HAND: dict[tuple[type[Any], int], CodecByHand] = {
    (ProduceRequest, 13): CodecByHand(produce.read_v13, produce.write_v13),
    (ProduceRequest, 10): CodecByHand(produce.read_v10, produce.write_v10),
    (FetchRequest, 18): CodecByHand(fetch.read_request_v18, fetch.write_request_v18),
    (FetchResponse, 18): CodecByHand(fetch.read_response_v18, fetch.write_response_v18),
    (MetadataResponse, 13): CodecByHand(metadata.read_response_v13, metadata.write_response_v13),
    (OffsetCommitRequest, 10): CodecByHand(offsets.read_commit_v10, offsets.write_commit_v10),
    (ListOffsetsRequest, 10): CodecByHand(offsets.read_list_v10, offsets.write_list_v10),
    (HeartbeatRequest, 4): CodecByHand(groups.read_heartbeat_v4, groups.write_heartbeat_v4),
    (JoinGroupRequest, 9): CodecByHand(groups.read_join_v9, groups.write_join_v9),
    (ApiVersionsResponse, 4): CodecByHand(versions.read_response_v4, versions.write_response_v4),
    (ConsumerGroupHeartbeatRequest, 1): CodecByHand(
        consumer_groups.read_heartbeat_v1, consumer_groups.write_heartbeat_v1
    ),
}

# Those that hold record batches also read out of the middle of a larger buffer.
READ_VIEWS = (ProduceRequest, FetchResponse)


def read(cls: type[Any], version: int, data: Buffer) -> Any:
    return BY_HAND[cls, version].read(data)


def write(message: Any, version: int) -> bytes | bytearray:
    return BY_HAND[type(message), version].write(message)
