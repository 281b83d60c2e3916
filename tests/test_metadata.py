from dataclasses import replace
from random import Random

import pytest

from ottla.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.replication.metadata import REPLAYS, Delta, Image, image_of
from ottla.replication.metadata_records import CLASSES, Versioned
from tests.metadata_history import History

ONE, TWO = b"1" * 16, b"2" * 16


def without_place(image: Image) -> Image:
    return replace(image, offset=-1, epoch=-1)


def topic(name: str, topic_id: bytes) -> Versioned:
    return Versioned(TopicRecord(name=name, topic_id=topic_id))


def setting(name: str, value: str | None, *, of: str = "a") -> Versioned:
    record = ConfigRecord(resource_type=2, resource_name=of, name=name, value=value)
    return Versioned(record)


def broker(broker_id: int, epoch: int) -> Versioned:
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=ONE,
        broker_epoch=epoch,
        end_points=[],
        features=[],
        rack=None,
    )
    return Versioned(record, 4)


def test_every_type_of_record_is_known() -> None:
    assert set(REPLAYS) == set(CLASSES.values())


@pytest.mark.parametrize("seed", range(30))
def test_a_snapshot_of_any_prefix_makes_an_equal_image(seed: int) -> None:
    image = Image()
    for offset, record in enumerate(History(Random(seed)).records(150)):
        delta = Delta(image)
        delta.replay(record)
        image = delta.apply(offset=offset, epoch=1)
        assert image_of(image.records()) == without_place(image)


@pytest.mark.parametrize("seed", range(30))
def test_how_records_are_cut_into_batches_makes_no_difference(seed: int) -> None:
    dice = Random(seed)
    history = History(dice).records(300)
    image, rest = Image(), list(history)
    while rest:
        delta = Delta(image)
        for record in rest[: dice.randint(1, 40)]:
            delta.replay(record)
            rest.pop(0)
        image = delta.apply(offset=-1, epoch=-1)
    assert image == image_of(history)


@pytest.mark.parametrize("seed", range(10))
def test_an_image_never_changes_once_it_was_handed_out(seed: int) -> None:
    history = History(Random(seed)).records(200)
    before, again = image_of(history[:100]), image_of(history[:100])
    delta = Delta(before)
    for record in history[100:]:
        delta.replay(record)
    assert delta.apply(offset=1, epoch=1) != before
    assert before == again


def test_a_section_without_a_change_is_not_copied() -> None:
    image = image_of([topic("a", ONE), broker(1, 5)])
    delta = Delta(image)
    delta.replay(setting("x", "1"))
    after = delta.apply(offset=1, epoch=1)
    assert after.topics is image.topics
    assert after.brokers is image.brokers


def test_an_image_knows_its_place() -> None:
    image = Delta(Image()).apply(offset=7, epoch=3)
    assert (image.offset, image.epoch) == (7, 3)


def test_a_topic_that_goes_takes_its_configs_with_it() -> None:
    gone = Versioned(RemoveTopicRecord(topic_id=ONE))
    image = image_of([topic("a", ONE), setting("x", "1"), gone, topic("a", TWO)])
    assert image.topics.by_name["a"].id == TWO
    assert image.topic_config("a") == {}


def test_a_topic_made_anew_in_one_batch_is_both_deleted_and_created() -> None:
    delta = Delta(image_of([topic("a", ONE)]))
    for record in (Versioned(RemoveTopicRecord(topic_id=ONE)), topic("a", TWO)):
        delta.replay(record)
    assert list(delta.deleted_topics) == [ONE]
    assert delta.created_topics == {TWO: "a"}


def test_a_topic_that_came_and_went_in_one_batch_leaves_no_trace() -> None:
    delta = Delta(Image())
    for record in (topic("a", ONE), setting("x", "1"), Versioned(RemoveTopicRecord(topic_id=ONE))):
        delta.replay(record)
    assert not delta.created_topics
    assert not delta.deleted_topics
    assert without_place(delta.apply(offset=0, epoch=0)) == Image()


def test_a_resource_without_settings_is_forgotten() -> None:
    image = image_of([topic("a", ONE), setting("x", "1"), setting("x", None)])
    assert not image.configs


@pytest.mark.parametrize("name", ["group.version", "kraft.version"])
def test_a_feature_at_level_zero_is_not_finalized(name: str) -> None:
    levels = [FeatureLevelRecord(name=name, feature_level=level) for level in (1, 0)]
    assert image_of(map(Versioned, levels)).features.finalized == {}


def test_kraft_version_is_none_of_the_log_s_features() -> None:
    record = FeatureLevelRecord(name="kraft.version", feature_level=1)
    assert image_of([Versioned(record)]).features.finalized == {}


def test_a_change_of_another_incarnation_is_an_impossible_record() -> None:
    delta = Delta(image_of([broker(1, 5)]))
    with pytest.raises(ValueError, match="epoch 4"):
        delta.replay(Versioned(FenceBrokerRecord(id=1, epoch=4)))


# ---- transactions of the log

BEGIN = Versioned(BeginTransactionRecord(name="Bootstrap records"))
END = Versioned(EndTransactionRecord())
ABORT = Versioned(AbortTransactionRecord(reason="no"))


def test_a_transaction_shows_nothing_until_it_ends() -> None:
    delta = Delta(Image())
    delta.replay(BEGIN)
    delta.replay(topic("a", ONE))
    within = delta.apply(offset=1, epoch=1)
    assert not within.topics.by_id
    assert within.transaction is not None

    delta = Delta(within)
    delta.replay(END)
    after = delta.apply(offset=2, epoch=1)
    assert delta.created_topics == {ONE: "a"}
    assert without_place(after) == image_of([topic("a", ONE)])


def test_a_transaction_that_is_aborted_leaves_no_trace() -> None:
    assert image_of([BEGIN, topic("a", ONE), ABORT]) == Image()


def test_no_snapshot_is_taken_within_a_transaction() -> None:
    with pytest.raises(ValueError, match="transaction"):
        image_of([BEGIN, topic("a", ONE)]).records()


@pytest.mark.parametrize("record", [END, ABORT], ids=["end", "abort"])
def test_a_transaction_ends_only_once(record: Versioned) -> None:
    with pytest.raises(ValueError, match="without a transaction"):
        image_of([record])


KEPT = (
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "PartitionRecord",
    "ClientQuotaRecord",
    "AccessControlEntryRecord",
    "UserScramCredentialRecord",
    "DelegationTokenRecord",
)


@pytest.mark.parametrize("kind", KEPT)
def test_a_record_goes_through_an_image_whole(kind: str) -> None:
    """Where a snapshot left something out, image and snapshot would still agree."""
    level = Versioned(FeatureLevelRecord(name="metadata.version", feature_level=30))
    found = [r for r in History(Random(4)).records(800) if type(r.message).__name__ == kind]
    for record in found:
        before = [level]
        if kind == "PartitionRecord":
            before.append(topic("a", record.message.topic_id))
        if kind == "ClientQuotaRecord":
            record.message.remove = False
            record.message.entity.sort(key=lambda part: part.entity_type)
        assert list(image_of([*before, record]).records())[-1] == record
    assert len(found) > 10
