from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages import metadata_records as messages
from ottla.protocol.messages.transactions import AllocateProducerIdsRequest
from ottla.protocol.messages.versions import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.replication.controller import Controller
from ottla.replication.controller_bootstrap import bootstrap_records, refusals
from ottla.replication.metadata import Image, image_of
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import (
    CORDONED_DIRECTORIES,
    KNOWN_FEATURES,
    METADATA_VERSION,
    NAMES,
    NEWEST,
    SUPPORTED_FEATURES,
)
from ottla.storage.clock import Now
from tests.controller_rig import CLUSTER_ID, Cluster, Rules

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def level(name: str, number: int) -> Versioned:
    return Versioned(messages.FeatureLevelRecord(name=name, feature_level=number))


# ---- the first records


def kinds(cluster: Cluster) -> list[str]:
    return [type(record.message).__name__.removesuffix("Record") for record in cluster.records]


def test_a_new_cluster_begins_with_its_features_in_one_transaction() -> None:
    cluster = Cluster(0)
    assert kinds(cluster) == ["BeginTransaction", "FeatureLevel", "EndTransaction"]
    assert cluster.controller.image.features.finalized == {METADATA_VERSION: NEWEST}


def test_an_old_cluster_begins_without_a_transaction() -> None:
    assert kinds(Cluster(0, level=12)) == ["FeatureLevel"]


def test_a_controller_that_takes_over_writes_nothing() -> None:
    cluster = Cluster(0)
    cluster.do(cluster.controller.bootstrap(cluster.now))
    assert not cluster.records


def test_a_transaction_that_was_left_open_is_aborted() -> None:
    begin = Versioned(messages.BeginTransactionRecord(name="Bootstrap records"))
    cluster = Cluster(0)
    cluster.replay(begin, level("group.version", 1))
    cluster.do(cluster.controller.bootstrap(cluster.now))
    assert kinds(cluster) == ["AbortTransaction"]
    assert cluster.controller.image.features.levels == {}


def test_a_first_transaction_that_was_cut_off_is_written_again() -> None:
    begin = Versioned(messages.BeginTransactionRecord(name="Bootstrap records"))
    image = image_of([begin, level(METADATA_VERSION, NEWEST)])
    controller = Controller(
        node_id=1, cluster_id=CLUSTER_ID, random=Random(1), rules=Rules(), image=image
    )
    records = controller.bootstrap(Now(0, 0)).records
    controller.replay(records, offset=9, epoch=2)
    assert isinstance(records[0].message, messages.AbortTransactionRecord)
    assert controller.image.features.metadata_version == NEWEST
    assert controller.image.transaction is None


def test_a_snapshot_of_a_new_cluster_holds_its_features() -> None:
    assert list(Cluster(0).controller.image.records()) == bootstrap_records()


# ---- what cannot be served


ACL = messages.AccessControlEntryRecord(
    id=b"1" * 16,
    resource_type=2,
    resource_name="a",
    pattern_type=3,
    principal="User:a",
    host="*",
    operation=3,
    permission_type=3,
)
UNSERVED = {
    "a newer version": ([level(METADATA_VERSION, NEWEST + 1)], "metadata.version 31 is newer"),
    "an older version": ([level(METADATA_VERSION, 6)], "metadata.version 6 is older"),
    "access control": ([level(METADATA_VERSION, NEWEST), Versioned(ACL)], "1 ACLs"),
    "features without a version": ([level("group.version", 1)], "no metadata.version"),
}


@pytest.mark.parametrize(("records", "reason"), UNSERVED.values(), ids=UNSERVED)
def test_a_directory_is_refused_in_one_line(records: list[Versioned], reason: str) -> None:
    said = refusals(image_of(records, offset=5, epoch=1))
    assert said is not None
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize("number", NAMES)
def test_every_version_that_is_known_may_be_served(number: int) -> None:
    records = [level(METADATA_VERSION, number), level("group.version", 1)]
    assert refusals(image_of(records, offset=5, epoch=1)) is None
    assert refusals(Image()) is None


# ---- UpdateFeatures


def update(
    cluster: Cluster, *updates: tuple[str, int, int], validate_only: bool = False
) -> tuple[str, str | None]:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=number, upgrade_type=kind)
            for name, number, kind in updates
        ],
        validate_only=validate_only,
    )
    response = cluster.do(cluster.controller.update_features(request, cluster.now))
    return ErrorCode(response.error_code).name, response.error_message


def test_metadata_version_rises_with_all_brokers() -> None:
    cluster = Cluster(2, level=25)
    assert update(cluster, (METADATA_VERSION, 29, UPGRADE), validate_only=True)[0] == "NONE"
    assert not cluster.records
    assert update(cluster, (METADATA_VERSION, 29, UPGRADE)) == ("NONE", None)
    assert cluster.controller.image.features.metadata_version == 29
    assert update(cluster, (METADATA_VERSION, 25, SAFE)) == ("NONE", None)
    assert cluster.controller.image.features.metadata_version == 25


def test_a_feature_that_kafka_raised_may_be_lowered() -> None:
    cluster = Cluster(1)
    cluster.replay(level("group.version", 1))
    assert update(cluster, ("group.version", 0, SAFE)) == ("NONE", None)
    assert cluster.controller.image.features.levels == {}


REFUSED: dict[str, tuple[tuple[str, int, int], str]] = {
    "not served yet": (
        ("group.version", 1, UPGRADE),
        "Invalid update version 1 for feature group.version. Local controller 100 does not support"
        " this feature.",
    ),
    "too new": (
        (METADATA_VERSION, 31, UPGRADE),
        "Invalid update version 31 for feature metadata.version. Local controller 100 only supports"
        " versions 7-30",
    ),
    "records would be lost": (
        (METADATA_VERSION, CORDONED_DIRECTORIES - 1, SAFE),
        "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested"
        " downgrade because it might delete metadata information.",
    ),
    "unsafe": (
        (METADATA_VERSION, CORDONED_DIRECTORIES - 1, UNSAFE),
        "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is not"
        " supported in this version.",
    ),
}


@pytest.mark.parametrize(("asked", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_level_is_refused_in_kafka_s_words(asked: tuple[str, int, int], reason: str) -> None:
    begin = "The update failed for all features since the following feature had an error: "
    assert update(Cluster(1), asked) == ("INVALID_UPDATE_VERSION", begin + reason)


def test_a_broker_that_does_not_know_a_level_keeps_it_away() -> None:
    cluster = Cluster(1, level=25)
    cluster.register(2, features={**KNOWN_FEATURES, METADATA_VERSION: (7, 25)})
    code, reason = update(cluster, (METADATA_VERSION, 26, UPGRADE))
    assert code == "INVALID_UPDATE_VERSION"
    assert str(reason).endswith("Broker 2 only supports versions 7-25")


def test_all_features_of_a_request_change_or_none() -> None:
    cluster = Cluster(1, level=25)
    code, _ = update(cluster, (METADATA_VERSION, 26, UPGRADE), ("no.such", 1, UPGRADE))
    assert code == "INVALID_UPDATE_VERSION"
    assert not cluster.records


def test_what_is_served_is_known() -> None:
    assert SUPPORTED_FEATURES.items() <= KNOWN_FEATURES.items()


# ---- AllocateProducerIds


def allocate(cluster: Cluster, epoch: int | None = None) -> range:
    request = AllocateProducerIdsRequest(
        broker_id=1, broker_epoch=cluster.broker(1).epoch if epoch is None else epoch
    )
    response = cluster.do(cluster.controller.allocate_producer_ids(request, cluster.now))
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)


def test_no_producer_id_is_given_twice() -> None:
    cluster = Cluster(1)
    assert [allocate(cluster) for _ in range(3)] == [
        range(0, 1000),
        range(1000, 2000),
        range(2000, 3000),
    ]
    assert cluster.controller.image.producer_ids.next_producer_id == 3000


def test_producer_ids_are_for_brokers_that_are_there() -> None:
    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        allocate(Cluster(1), epoch=0)


def test_producer_ids_come_to_an_end() -> None:
    cluster = Cluster(1)
    last = messages.ProducerIdsRecord(broker_id=1, next_producer_id=2**63 - 1000)
    cluster.replay(Versioned(last))
    with pytest.raises(KafkaError, match="Exhausted all producerIds"):
        allocate(cluster)
