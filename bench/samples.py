"""The hottest messages as clients and brokers send them: what the codecs are measured with.

Names, sizes and nulls are those of real traffic: topic names of some twenty characters, member ids
as clients make them, batches of about a kilobyte, no tags where none are sent.
"""

from collections.abc import Callable
from typing import Any

from ottla.protocol.apis import APIS, BROKER
from ottla.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

GROUP_ID = "payments-settlement"
MEMBER_ID = "consumer-payments-settlement-1-6f1c2a9e-58f4-4d0f-9c57-0b8e2f4a7d13"
TOPIC_NAME = "payments.settled.v2"
SUBSCRIPTION = bytes(4) + b"\0\x13" + TOPIC_NAME.encode() + bytes(12)


def batch(size: int) -> bytes:
    """Bytes of the size of a record batch: no codec of messages looks inside."""
    return bytes(index * 31 & 255 for index in range(size))


def topic_id(number: int) -> bytes:
    return number.to_bytes(2, "big") * 8


def shape(partitions: int) -> tuple[int, int]:
    """How many topics with how many partitions each: ten, if there are so many."""
    return (1, 1) if partitions == 1 else (partitions // 10, 10)


def produce_request() -> ProduceRequest:
    """With both topic name and id: each version takes its own."""
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=TOPIC_NAME,
                topic_id=topic_id(1),
                partition_data=[PartitionProduceData(index=3, records=batch(1_100))],
            )
        ],
    )


def fetch_request(partitions: int) -> FetchRequest:
    topic_count, partition_count = shape(partitions)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=52_428_800,
        session_id=0,
        session_epoch=0,
        topics=[
            FetchTopic(
                topic_id=topic_id(topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=7,
                        fetch_offset=1_000_000 + index,
                        partition_max_bytes=1_048_576,
                    )
                    for index in range(partition_count)
                ],
            )
            for topic in range(topic_count)
        ],
    )


def fetch_response(partitions: int) -> FetchResponse:
    topic_count, partition_count = shape(partitions)
    return FetchResponse(
        throttle_time_ms=0,
        session_id=918_273_645,
        responses=[
            FetchableTopicResponse(
                topic_id=topic_id(topic),
                partitions=[
                    PartitionData(
                        partition_index=index,
                        error_code=0,
                        high_watermark=1_000_050 + index,
                        last_stable_offset=1_000_050 + index,
                        log_start_offset=0,
                        aborted_transactions=None,
                        records=batch(1_100),
                    )
                    for index in range(partition_count)
                ],
            )
            for topic in range(topic_count)
        ],
    )


def metadata_response(partitions: int) -> MetadataResponse:
    topic_count, partition_count = shape(partitions)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=f"kafka-{node}.example.net", port=9092)
            for node in (1, 2, 3)
        ],
        cluster_id="q1Sh-9_ISia_zwGINzRvyQ",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                error_code=0,
                name=f"{TOPIC_NAME}.{topic}",
                topic_id=topic_id(topic),
                partitions=[
                    MetadataResponsePartition(
                        error_code=0,
                        partition_index=index,
                        leader_id=index % 3 + 1,
                        leader_epoch=7,
                        replica_nodes=[1, 2, 3],
                        isr_nodes=[1, 2, 3],
                    )
                    for index in range(partition_count)
                ],
            )
            for topic in range(topic_count)
        ],
    )


def offset_commit_request(partitions: int) -> OffsetCommitRequest:
    topic_count, partition_count = shape(partitions)
    return OffsetCommitRequest(
        group_id=GROUP_ID,
        generation_id_or_member_epoch=12,
        member_id=MEMBER_ID,
        topics=[
            OffsetCommitRequestTopic(
                topic_id=topic_id(topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=1_000_000 + index,
                        committed_leader_epoch=7,
                        committed_metadata="",
                    )
                    for index in range(partition_count)
                ],
            )
            for topic in range(topic_count)
        ],
    )


def list_offsets_request(partitions: int) -> ListOffsetsRequest:
    topic_count, partition_count = shape(partitions)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[
            ListOffsetsTopic(
                name=f"{TOPIC_NAME}.{topic}",
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=7, timestamp=-1
                    )
                    for index in range(partition_count)
                ],
            )
            for topic in range(topic_count)
        ],
        timeout_ms=30_000,
    )


def heartbeat_request() -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP_ID, generation_id=12, member_id=MEMBER_ID)


def join_group_request() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP_ID,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=MEMBER_ID,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),
            JoinGroupRequestProtocol(name="cooperative-sticky", metadata=SUBSCRIPTION),
        ],
        reason="",
    )


def api_versions_response() -> ApiVersionsResponse:
    """With the features that a broker of 4.3 finalizes, which are tagged fields."""
    levels = {"group.version": 1, "kraft.version": 1, "metadata.version": 30, "share.version": 1}
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[
            ApiVersion(api_key=api.key, min_version=api.first, max_version=api.last)
            for api in APIS.values()
            if api.listeners & BROKER
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in levels.items()
        ],
        finalized_features_epoch=1_234,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
        ],
    )


def consumer_group_heartbeat_request() -> ConsumerGroupHeartbeatRequest:
    """As it is sent every few seconds: nothing has changed."""
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP_ID, member_id="Xw1yQ0rSTk2iYk3Oaxq9bA", member_epoch=12
    )


def consumer_group_heartbeat_request_joining() -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP_ID,
        member_id="Xw1yQ0rSTk2iYk3Oaxq9bA",
        member_epoch=0,
        rack_id="eu-central-1a",
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=[f"{TOPIC_NAME}.{number}" for number in range(3)],
        server_assignor="uniform",
        topic_partitions=[
            ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=topic_id(number), partitions=[0, 1, 2, 3]
            )
            for number in range(3)
        ],
    )


# What it is called in the table, its version, and how it is made.
SAMPLES: list[tuple[str, int, Callable[[], Any]]] = [
    ("Produce request", 13, produce_request),
    ("Produce request", 10, produce_request),
    ("Fetch request, 1 partition", 18, lambda: fetch_request(1)),
    ("Fetch request, 100 partitions", 18, lambda: fetch_request(100)),
    ("Fetch response, 1 partition", 18, lambda: fetch_response(1)),
    ("Fetch response, 100 partitions", 18, lambda: fetch_response(100)),
    ("Metadata response, 1,000 partitions", 13, lambda: metadata_response(1000)),
    ("OffsetCommit request, 10 partitions", 10, lambda: offset_commit_request(10)),
    ("ListOffsets request, 10 partitions", 10, lambda: list_offsets_request(10)),
    ("Heartbeat request", 4, heartbeat_request),
    ("JoinGroup request", 9, join_group_request),
    ("ApiVersions response", 4, api_versions_response),
    ("ConsumerGroupHeartbeat request", 1, consumer_group_heartbeat_request),
    ("the same, joining", 1, consumer_group_heartbeat_request_joining),
]
