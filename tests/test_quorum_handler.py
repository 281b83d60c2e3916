"""DescribeQuorum, as a running Apache Kafka 4.3.1 answers it."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.handlers.quorum import describe_quorum
from ottla.protocol.errors import ErrorCode
from ottla.protocol.jsonform import to_json
from ottla.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ottla.replication.quorum import Quorum
from ottla.replication.voters import Listener
from tests.quorum_rig import Remembering, Rig, commit


def asked(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=[
                    DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes
                ],
            )
            for name, indexes in topics
        ]
    )


def answer(version: int, request: DescribeQuorumRequest, *, leads: bool = True) -> dict[str, Any]:
    rig = Rig(listeners=[Listener("CONTROLLER", "here", 9093)])

    async def live(quorum: Quorum, _: Remembering) -> dict[str, Any]:
        await commit(quorum, "a")
        if not leads:
            quorum._raft.resign(rig.clock())
        broker: Any = SimpleNamespace(quorum=quorum, world=SimpleNamespace(now=rig.clock))
        context: Any = SimpleNamespace(version=version)
        return to_json(describe_quorum(broker, context, request), version)

    return rig.life(live)


METADATA = asked(("__cluster_metadata", [0]))
NOW_MS = Rig().clock().wall_ms


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_tells_what_it_can_hold(version: int) -> None:
    said = answer(version, METADATA)
    assert said["errorCode"] == 0
    (partition,) = said["topics"][0]["partitions"]
    voter: dict[str, Any] = {"replicaId": 1, "logEndOffset": 4}
    if version >= 1:
        voter |= {"lastFetchTimestamp": NOW_MS, "lastCaughtUpTimestamp": NOW_MS}
    if version >= 2:
        assert partition.pop("errorMessage") == said["errorMessage"] == ""
        voter["replicaDirectoryId"] = partition["currentVoters"][0]["replicaDirectoryId"]
        assert voter["replicaDirectoryId"] != "A" * 22
        listeners = [{"name": "CONTROLLER", "host": "here", "port": 9093}]
        assert said["nodes"] == [{"nodeId": 1, "listeners": listeners}]
    assert partition == {
        "partitionIndex": 0,
        "errorCode": 0,
        "leaderId": 1,
        "leaderEpoch": 1,
        "highWatermark": 4,
        "currentVoters": [voter],
        "observers": [],
    }


@pytest.mark.parametrize(
    "request_",
    [
        asked(("other", [0])),
        asked(("__cluster_metadata", [1])),
        asked(("__cluster_metadata", [0, 1])),
        asked(("__cluster_metadata", [0]), ("__cluster_metadata", [0])),
        asked(("__cluster_metadata", [])),
        asked(),
    ],
)
def test_there_is_one_quorum_and_nothing_else(request_: DescribeQuorumRequest) -> None:
    said = answer(2, request_)
    assert (said["errorCode"], said["errorMessage"], said["nodes"]) == (0, "", [])
    assert [topic["topicName"] for topic in said["topics"]] == [
        topic.topic_name for topic in request_.topics
    ]
    for topic in said["topics"]:
        for partition in topic["partitions"]:
            assert partition["errorCode"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert partition["errorMessage"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message
            assert (partition["leaderId"], partition["highWatermark"]) == (0, 0)


def test_who_does_not_lead_does_not_know() -> None:
    (topic,) = answer(2, METADATA, leads=False)["topics"]
    (partition,) = topic["partitions"]
    assert partition["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
