import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from ottla.protocol.messages.metadata_records import FeatureLevelRecord
from ottla.replication.config_rules import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import ELR_FEATURE
from tests.controller_rig import Cluster

SET, DELETE, APPEND, SUBTRACT = range(4)
Item = tuple[str, int, str | None]
Answer = tuple[str, str | None]


def asked(kind: int, name: str, *items: Item) -> IncrementalAlterConfigsRequestAlterConfigsResource:
    return IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(
                name=key, config_operation=operation, value=value
            )
            for key, operation, value in items
        ],
    )


def change_all(
    cluster: Cluster,
    *resources: IncrementalAlterConfigsRequestAlterConfigsResource,
    validate_only: bool = False,
) -> list[tuple[str, Answer]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = cluster.do(cluster.controller.incremental_alter_configs(request, cluster.now))
    return [
        (each.resource_name, (ErrorCode(each.error_code).name, each.error_message))
        for each in response.responses
    ]


def change(cluster: Cluster, kind: int, name: str, *items: Item) -> Answer:
    ((_, answer),) = change_all(cluster, asked(kind, name, *items))
    return answer


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(1)
    made.create("a", [1])
    return made


def config(cluster: Cluster, kind: int = TOPIC, name: str = "a") -> dict[str, str]:
    return dict(cluster.controller.image.config(kind, name))


OPERATIONS: dict[str, tuple[list[Item], dict[str, str]]] = {
    "set": ([("x", SET, "1")], {"x": "1"}),
    "set and delete": ([("x", SET, "1"), ("y", DELETE, None)], {"x": "1"}),
    "the last of a key": ([("x", SET, "1"), ("x", SET, "2")], {"x": "2"}),
    "append to the default": (
        [("cleanup.policy", APPEND, "compact")],
        {"cleanup.policy": "delete,compact"},
    ),
    "append what is there": ([("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "delete"}),
    "subtract": ([("cleanup.policy", SUBTRACT, "delete,other")], {"cleanup.policy": ""}),
}


@pytest.mark.parametrize(("items", "expected"), OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_changes_a_key(
    cluster: Cluster, items: list[Item], expected: dict[str, str]
) -> None:
    assert change(cluster, TOPIC, "a", *items) == ("NONE", None)
    assert config(cluster) == expected


def test_what_is_so_already_is_not_written_but_for_brokers(cluster: Cluster) -> None:
    for kind, name, count in ((TOPIC, "a", 0), (BROKER, "1", 1)):
        change(cluster, kind, name, ("x", SET, "1"))
        change(cluster, kind, name, ("x", SET, "1"))
        assert len(cluster.records) == count


def test_one_bad_key_keeps_its_whole_resource_as_it_was(cluster: Cluster) -> None:
    cluster.create("b", [1])
    results = change_all(
        cluster,
        asked(TOPIC, "a", ("x", SET, "1"), ("y", SET, "bad")),
        asked(TOPIC, "b", ("x", SET, "1")),
    )
    assert results == [("a", ("INVALID_CONFIG", "a bad value")), ("b", ("NONE", None))]
    assert config(cluster) == {}
    assert config(cluster, TOPIC, "b") == {"x": "1"}


def test_what_is_only_validated_is_not_written(cluster: Cluster) -> None:
    results = change_all(cluster, asked(TOPIC, "a", ("x", SET, "1")), validate_only=True)
    assert results == [("a", ("NONE", None))]
    assert config(cluster) == {}


def test_a_resource_named_twice_changes_in_no_way(cluster: Cluster) -> None:
    items = ("x", SET, "1")
    results = change_all(cluster, *[asked(TOPIC, "a", items)] * 3)
    assert results == [("a", ("INVALID_REQUEST", "Duplicate resource."))]
    assert config(cluster) == {}


REFUSED: dict[str, tuple[int, str, Item, Answer]] = {
    "an unknown topic": (
        TOPIC,
        "b",
        ("x", SET, "1"),
        ("UNKNOWN_TOPIC_OR_PARTITION", "The topic 'b' does not exist."),
    ),
    "every topic": (
        TOPIC,
        "",
        ("x", SET, "1"),
        ("INVALID_REQUEST", "Default topic resources are not allowed."),
    ),
    "an illegal name": (
        TOPIC,
        ".",
        ("x", SET, "1"),
        ("INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '.' is not allowed"),
    ),
    "an unknown broker": (
        BROKER,
        "9",
        ("x", SET, "1"),
        ("BROKER_ID_NOT_REGISTERED", "No node with id 9 found."),
    ),
    "a broker that is no number": (
        BROKER,
        "one",
        ("x", SET, "1"),
        ("INVALID_REQUEST", "Unable to parse broker name as a base 10 number."),
    ),
    "a negative broker": (
        BROKER,
        "-1",
        ("x", SET, "1"),
        ("INVALID_REQUEST", "Invalid negative broker ID."),
    ),
    "every group": (
        GROUP,
        "",
        ("x", SET, "1"),
        ("INVALID_REQUEST", "Default group resources are not allowed."),
    ),
    "a group's bad value": (GROUP, "g", ("x", SET, "bad"), ("INVALID_CONFIG", "a bad value")),
    "a subscription's": (CLIENT_METRICS, "s", ("x", SET, "bad"), ("INVALID_CONFIG", "a bad value")),
    "a logger": (
        BROKER_LOGGER,
        "1",
        ("x", SET, "1"),
        ("INVALID_REQUEST", "Unknown resource type BROKER_LOGGER"),
    ),
    "an odd type": (
        99,
        "x",
        ("x", SET, "1"),
        ("UNSUPPORTED_VERSION", "Unknown resource type 99."),
    ),
    "appending to what is no list": (
        TOPIC,
        "a",
        ("x", APPEND, "1"),
        ("INVALID_CONFIG", "Can't APPEND to key x because its type is not LIST."),
    ),
    "an odd operation": (TOPIC, "a", ("x", 9, "1"), ("INVALID_REQUEST", None)),
    "too long a value": (
        TOPIC,
        "a",
        ("x", SET, "1" * 32_768),
        (
            "INVALID_CONFIG",
            "The configuration value cannot be added because it exceeds the maximum value size of"
            " 32767 bytes.",
        ),
    ),
}


@pytest.mark.parametrize(("kind", "name", "item", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_change_is_refused_in_kafka_s_words(
    cluster: Cluster, kind: int, name: str, item: Item, expected: Answer
) -> None:
    assert change(cluster, kind, name, item) == expected
    assert not cluster.records


@pytest.mark.parametrize(
    ("kind", "name"), [(BROKER, ""), (BROKER, "1"), (BROKER, "100"), (GROUP, "g")]
)
def test_other_resources_have_configs_too(cluster: Cluster, kind: int, name: str) -> None:
    """A controller that is no broker is one of the brokers as far as configs go."""
    assert change(cluster, kind, name, ("x", SET, "1")) == ("NONE", None)
    assert config(cluster, kind, name) == {"x": "1"}


def test_the_old_way_replaces_everything(cluster: Cluster) -> None:
    change(cluster, TOPIC, "a", ("x", SET, "1"), ("y", SET, "1"))
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsRequestAlterConfigsResource(
                resource_type=TOPIC,
                resource_name="a",
                configs=[
                    AlterConfigsRequestAlterableConfig(name="y", value="2"),
                    AlterConfigsRequestAlterableConfig(name="z", value="3"),
                ],
            )
        ],
        validate_only=False,
    )
    response = cluster.do(cluster.controller.alter_configs(request, cluster.now))
    assert [each.error_code for each in response.responses] == [0]
    assert config(cluster) == {"y": "2", "z": "3"}


# ---- eligible leader replicas (KIP-966)


@pytest.fixture
def with_elr(cluster: Cluster) -> Cluster:
    cluster.replay(Versioned(FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)))
    return cluster


MIN_ISR = {
    "of a broker": (
        "1",
        SET,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
    "none for all": (
        "",
        DELETE,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    ),
}


@pytest.mark.parametrize(("name", "operation", "reason"), MIN_ISR.values(), ids=MIN_ISR)
def test_min_isr_is_the_cluster_s_business(
    with_elr: Cluster, name: str, operation: int, reason: str
) -> None:
    item = ("min.insync.replicas", operation, "2")
    assert change(with_elr, BROKER, name, item) == ("INVALID_CONFIG", reason)


@pytest.mark.parametrize(("kind", "name", "cleared"), [(TOPIC, "a", "a"), (BROKER, "", "")])
def test_another_min_isr_forgets_eligible_leaders(
    with_elr: Cluster, kind: int, name: str, cleared: str
) -> None:
    assert change(with_elr, kind, name, ("min.insync.replicas", SET, "2")) == ("NONE", None)
    assert with_elr.records[-1].message.topic_name == cleared
