from collections.abc import Sequence
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.protocol.schema import ZERO
from ottla.replication.controller import Controller, ControllerSettings
from tests.controller_rig import Cluster, Rules, creatable, directory

NOT_A_TOPIC = b"\x07" * 16


def create(
    cluster: Cluster, *topics: CreatableTopic, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return cluster.do(cluster.controller.create_topics(request, cluster.now)).topics


def error_of(result: CreatableTopicResult) -> tuple[str, str | None]:
    return ErrorCode(result.error_code).name, result.error_message


def kinds(cluster: Cluster) -> list[str]:
    return [type(record.message).__name__.removesuffix("Record") for record in cluster.records]


# ---- CreateTopics


def test_a_topic_begins_with_its_configs_and_partitions() -> None:
    cluster = Cluster()
    (result,) = create(cluster, creatable("a", 2, 1, configs={"x": "1"}))
    assert kinds(cluster) == ["Topic", "Config", "Partition", "Partition"]
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)
    assert cluster.topic("a").id == result.topic_id
    assert cluster.controller.image.topic_config("a") == {"x": "1"}
    partition = cluster.partition("a", 1)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 0, (1,))
    assert partition.directories == (directory(1),)


def test_minus_one_takes_what_the_node_is_configured_for() -> None:
    settings = ControllerSettings(num_partitions=3, default_replication_factor=2)
    cluster = Cluster(3, settings=settings)
    (result,) = create(cluster, creatable("a"))
    assert (result.num_partitions, result.replication_factor) == (3, 2)


def test_what_is_only_validated_is_not_written() -> None:
    cluster = Cluster()
    good, bad = create(cluster, creatable("a", 1, 1), creatable("b", 0), validate_only=True)
    assert good.error_code == 0
    assert good.topic_id != ZERO
    assert ErrorCode(bad.error_code) is ErrorCode.INVALID_PARTITIONS
    assert cluster.records == []


def test_one_bad_topic_does_not_keep_others_away() -> None:
    cluster = Cluster()
    results = create(cluster, creatable("a", 1, 1), creatable("a/b", 1, 1), creatable("c", 1, 1))
    assert [result.error_code for result in results] == [0, 17, 0]
    assert set(cluster.controller.image.topics.by_name) == {"a", "c"}


def test_a_name_that_collides_is_refused_until_the_other_is_gone() -> None:
    cluster = Cluster()
    gone = cluster.create("a.b_c", [1])
    (result,) = create(cluster, creatable("a_b.c"))
    reason = "Topic 'a_b.c' collides with existing topic: a.b_c"
    assert error_of(result) == ("INVALID_TOPIC_EXCEPTION", reason)
    delete(cluster, topic_id=gone)
    assert create(cluster, creatable("a_b.c"))[0].error_code == 0


def test_names_of_one_request_may_collide() -> None:
    cluster = Cluster()
    assert [topic.error_code for topic in create(cluster, creatable("a.c"), creatable("a_c"))] == [
        0,
        0,
    ]


def test_a_controller_that_takes_over_knows_names_that_collide() -> None:
    cluster = Cluster()
    cluster.create("a.b", [1])
    image = cluster.controller.image
    other = Controller(node_id=1, cluster_id="c", random=Random(1), rules=Rules(), image=image)
    request = CreateTopicsRequest(topics=[creatable("a_b")])
    (result,) = other.create_topics(request, cluster.now).response.topics
    assert error_of(result)[0] == "INVALID_TOPIC_EXCEPTION"


def test_whatever_comes_twice_is_refused_wholly() -> None:
    cluster = Cluster()
    results = create(cluster, creatable("a"), creatable("b"), creatable("a"))
    assert [(result.name, *error_of(result)) for result in results] == [
        ("b", "NONE", None),
        ("a", "INVALID_REQUEST", "Duplicate topic name."),
    ]


def test_too_many_partitions_are_refused_altogether() -> None:
    cluster = Cluster()
    with pytest.raises(KafkaError, match="Excessively large number of partitions per request"):
        create(cluster, creatable("a", 5_000), creatable("b", 5_001))
    assert len(create(cluster, creatable("c", 9_990))) == 1


def test_more_records_than_a_batch_may_have_are_refused_altogether() -> None:
    cluster = Cluster()
    with pytest.raises(KafkaError, match="excessively large batch"):
        create(cluster, creatable("a", 5_000), creatable("b", 5_000))


REFUSED: dict[str, tuple[CreatableTopic, str, str]] = {
    "a name that is there": (
        creatable("there"),
        "TOPIC_ALREADY_EXISTS",
        "Topic 'there' already exists.",
    ),
    "the log itself": (
        creatable("__cluster_metadata"),
        "INVALID_REQUEST",
        "Creation of internal topic __cluster_metadata is prohibited.",
    ),
    "-2 replicas": (
        creatable("a", 1, -2),
        "INVALID_REPLICATION_FACTOR",
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    "too many replicas": (
        creatable("a", 1, 4),
        "INVALID_REPLICATION_FACTOR",
        "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be"
        " reached because only 3 broker(s) are registered or some brokers have all their log"
        " directories cordoned.",
    ),
    "a null": (
        creatable("a", configs={"x": None, "y": None}),
        "INVALID_CONFIG",
        "Null value not supported for topic configs: x,y",
    ),
    "a bad config": (creatable("a", configs={"x": "bad"}), "INVALID_CONFIG", "a bad value"),
    "an assignment and a count": (
        creatable("a", 1, -1, assigned=[[1]]),
        "INVALID_REQUEST",
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    "an assignment to uneven numbers": (
        creatable("a", assigned=[[1, 2], [3]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "The manual partition assignment includes a partition with 1 replica(s), but this is not"
        " consistent with previous partitions, which have 2 replica(s).",
    ),
    "an assignment to a fenced broker": (
        creatable("a", assigned=[[1, 2], [3, 3]]),
        "INVALID_REPLICA_ASSIGNMENT",
        "The manual partition assignment includes the broker 3 more than once.",
    ),
}


@pytest.mark.parametrize(("topic", "code", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_topic_is_refused_in_kafka_s_words(topic: CreatableTopic, code: str, reason: str) -> None:
    cluster = Cluster(3)
    cluster.create("there", [1])
    (result,) = create(cluster, topic)
    assert error_of(result) == (code, reason)
    assert (result.num_partitions, result.replication_factor, result.topic_id) == (-1, -1, ZERO)


def test_an_assignment_must_not_name_a_partition_twice() -> None:
    cluster = Cluster()
    topic = creatable("a", assigned=[[1]])
    topic.assignments.append(CreatableReplicaAssignment(partition_index=0, broker_ids=[1]))
    reason = "Found multiple manual partition assignments for partition 0"
    assert error_of(create(cluster, topic)[0]) == ("INVALID_REPLICA_ASSIGNMENT", reason)


def test_fenced_replicas_are_assigned_but_not_in_sync() -> None:
    cluster = Cluster(3)
    cluster.heartbeat(1, wants_fence=True)
    cluster.create("a", [1, 2, 3])
    assert (cluster.partition("a").leader, cluster.partition("a").isr) == (2, (2, 3))


def test_nothing_is_created_where_all_are_fenced() -> None:
    cluster = Cluster()
    cluster.heartbeat(1, wants_fence=True)
    placed, assigned = create(cluster, creatable("a", 1, 1), creatable("b", assigned=[[1]]))
    assert error_of(placed) == (
        "INVALID_REPLICATION_FACTOR",
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all"
        " their log directories cordoned.",
    )
    assert error_of(assigned) == (
        "INVALID_REPLICA_ASSIGNMENT",
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in"
        " controlled shutdown.",
    )


def test_a_broker_that_shuts_down_gets_no_replicas() -> None:
    cluster = Cluster(2)
    cluster.create("a", [1, 2])
    cluster.heartbeat(1, wants_shutdown=True)
    create(cluster, creatable("b", 20, 1))
    assert {partition.replicas for partition in cluster.topic("b").partitions.values()} == {(2,)}


def test_a_broker_whose_directories_are_cordoned_gets_no_replicas() -> None:
    cluster = Cluster(2)
    cluster.heartbeat(1, cordoned=[directory(1)])
    create(cluster, creatable("b", 20, 1))
    assert {partition.replicas for partition in cluster.topic("b").partitions.values()} == {(2,)}


def test_a_broker_with_several_directories_chooses_later() -> None:
    cluster = Cluster(0)
    cluster.register(1, directories=[directory(1, 1), directory(1, 2)])
    cluster.heartbeat(1)
    cluster.create("a", [1])
    assert cluster.partition("a").directories == (bytes(15) + b"\x01",)


def test_replicas_are_spread_over_racks() -> None:
    cluster = Cluster(0)
    for broker_id, rack in enumerate("aabbcc", 1):
        cluster.register(broker_id, rack=rack)
        cluster.heartbeat(broker_id)
    create(cluster, creatable("a", 30, 3))
    for partition in cluster.topic("a").partitions.values():
        assert len({(broker - 1) // 2 for broker in partition.replicas}) == 3


@pytest.mark.parametrize("seed", range(20))
def test_a_topic_s_id_is_no_option_of_a_tool(seed: int) -> None:
    cluster = Cluster(seed=seed)
    for number in range(20):
        found = cluster.create(f"t{number}", [1])
        assert found[0] >> 2 != 0b111110
        assert (found[6] >> 4, found[8] >> 6) == (4, 2)


# ---- DeleteTopics


def delete(
    cluster: Cluster, *names: str, topic_id: bytes | None = None
) -> list[DeletableTopicResult]:
    states = [] if topic_id is None else [DeleteTopicState(name=None, topic_id=topic_id)]
    return delete_states(cluster, *states, names=names)


def delete_states(
    cluster: Cluster, *states: DeleteTopicState, names: Sequence[str] = ()
) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(topics=list(states), topic_names=list(names), timeout_ms=0)
    return cluster.do(cluster.controller.delete_topics(request, cluster.now)).responses


def deleted(result: DeletableTopicResult) -> tuple[str | None, bytes, str]:
    return result.name, result.topic_id, ErrorCode(result.error_code).name


def test_topics_go_by_name_and_by_id() -> None:
    cluster = Cluster()
    by_name, by_id = cluster.create("a", [1]), cluster.create("b", [1])
    assert [deleted(result) for result in delete(cluster, "a", topic_id=by_id)] == [
        ("b", by_id, "NONE"),
        ("a", by_name, "NONE"),
    ]
    assert not cluster.controller.image.topics.by_id


def test_what_is_not_there_cannot_go() -> None:
    cluster = Cluster()
    assert [deleted(result) for result in delete(cluster, "a", topic_id=NOT_A_TOPIC)] == [
        (None, NOT_A_TOPIC, "UNKNOWN_TOPIC_ID"),
        ("a", ZERO, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]


def test_a_topic_asked_for_in_two_ways_stays() -> None:
    cluster = Cluster()
    topic_id = cluster.create("a", [1])
    by_id = DeleteTopicState(name=None, topic_id=topic_id)
    by_name = DeleteTopicState(name="a", topic_id=ZERO)
    for states in ([by_id, by_name], [by_id, by_id], [by_name, by_name], [by_id, by_id, by_name]):
        for result in delete_states(cluster, *states):
            assert ErrorCode(result.error_code) is ErrorCode.INVALID_REQUEST
    assert "a" in cluster.controller.image.topics.by_name
    both = DeleteTopicState(name="a", topic_id=topic_id)
    neither = DeleteTopicState(name=None, topic_id=ZERO)
    reasons = [result.error_message for result in delete_states(cluster, both, neither)]
    assert reasons == [
        "You may not specify both topic name and topic id.",
        "Neither topic name nor id were specified.",
    ]


# ---- CreatePartitions


def grow(
    cluster: Cluster,
    name: str,
    count: int,
    *assigned: Sequence[int],
    validate_only: bool = False,
) -> CreatePartitionsTopicResult:
    assignments = [CreatePartitionsAssignment(broker_ids=list(each)) for each in assigned]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=0, validate_only=validate_only)
    return cluster.do(cluster.controller.create_partitions(request, cluster.now)).results[0]


def test_a_topic_grows_as_it_began() -> None:
    cluster = Cluster(3)
    cluster.create("a", [1, 2])
    assert grow(cluster, "a", 4).error_code == 0
    assert [len(cluster.partition("a", index).replicas) for index in range(4)] == [2, 2, 2, 2]
    assert grow(cluster, "a", 5, [3, 1]).error_code == 0
    assert cluster.partition("a", 4).replicas == (3, 1)


def test_a_growth_that_is_only_validated_is_not_written() -> None:
    cluster = Cluster()
    cluster.create("a", [1])
    assert grow(cluster, "a", 4, validate_only=True).error_code == 0
    assert len(cluster.topic("a").partitions) == 1


def test_a_topic_never_grows_by_more_than_a_batch() -> None:
    cluster = Cluster()
    cluster.create("a", [1])
    assert ErrorCode(grow(cluster, "a", 2_000_000_000).error_code) is ErrorCode.POLICY_VIOLATION
    assert cluster.records == []


GROWTHS: dict[str, tuple[str, int, list[list[int]], str, str | None]] = {
    "unknown": ("b", 2, [], "UNKNOWN_TOPIC_OR_PARTITION", None),
    "as many": ("a", 1, [], "INVALID_PARTITIONS", "Topic already has 1 partition(s)."),
    "fewer": (
        "a",
        0,
        [],
        "INVALID_PARTITIONS",
        "The topic a currently has 1 partition(s); 0 would not be an increase.",
    ),
    "too few assignments": (
        "a",
        3,
        [[1]],
        "INVALID_REPLICA_ASSIGNMENT",
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    "another number of replicas": (
        "a",
        2,
        [[1, 2]],
        "INVALID_REPLICA_ASSIGNMENT",
        "The manual partition assignment includes a partition with 2 replica(s), but this is not"
        " consistent with previous partitions, which have 1 replica(s).",
    ),
}


@pytest.mark.parametrize(
    ("name", "count", "assigned", "code", "reason"), GROWTHS.values(), ids=GROWTHS
)
def test_a_growth_is_refused_in_kafka_s_words(
    name: str, count: int, assigned: list[list[int]], code: str, reason: str | None
) -> None:
    cluster = Cluster(2)
    cluster.create("a", [1])
    result = grow(cluster, name, count, *assigned)
    assert (ErrorCode(result.error_code).name, result.error_message) == (code, reason)
