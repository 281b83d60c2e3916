from collections import Counter
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.placement import Placer, UsableBroker


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    """One broker for each rack named, numbered from 1."""
    return [UsableBroker(at, rack, at in fenced) for at, rack in enumerate(racks, 1)]


def placed(usable: list[UsableBroker], count: int, factor: int, seed: int = 1) -> list[list[int]]:
    placer = Placer(usable, Random(seed))
    placer.check(factor)
    return [placer.place(factor) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_no_broker_has_a_partition_twice(seed: int) -> None:
    usable = brokers("a", "b", "a", "c", "b", fenced=(2,))
    for replicas in placed(usable, 50, 5, seed):
        assert sorted(replicas) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", range(20))
def test_no_fenced_broker_leads(seed: int) -> None:
    usable = brokers("a", "a", "b", "b", fenced=(1, 3, 4))
    assert {replicas[0] for replicas in placed(usable, 50, 3, seed)} == {2}


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_on_as_many_racks_as_there_are(seed: int) -> None:
    usable = brokers("a", "b", "c", "a", "b", "c")
    for replicas in placed(usable, 50, 3, seed):
        assert {(broker - 1) % 3 for broker in replicas} == {0, 1, 2}


@pytest.mark.parametrize("seed", range(20))
def test_all_brokers_lead_as_often_as_others(seed: int) -> None:
    usable = brokers(None, None, None, None)
    leaders = Counter(replicas[0] for replicas in placed(usable, 40, 2, seed))
    assert set(leaders.values()) == {10}


def test_fenced_brokers_come_last() -> None:
    usable = brokers(None, None, None, fenced=(2,))
    for replicas in placed(usable, 20, 2):
        assert 2 not in replicas


def test_stripes_begin_one_further_with_each_partition() -> None:
    """As in Kafka's example of three racks of three brokers, but for where it begins."""
    usable = brokers("a", "b", "c", "a", "b", "c", "a", "b", "c")
    racks = [[(broker - 1) % 3 for broker in replicas] for replicas in placed(usable, 3, 3)]
    first = racks[0][0]
    assert racks == [[(first + partition + at) % 3 for at in range(3)] for partition in range(3)]


def test_the_same_dice_give_the_same_places() -> None:
    usable = brokers("a", "b", None, "a")
    assert placed(usable, 30, 3, 7) == placed(usable, 30, 3, 7)


def test_one_broker_takes_any_number_of_partitions() -> None:
    assert placed(brokers(None), 1_000, 1) == [[1]] * 1_000


REFUSED = {
    "nobody is there": ([], 1, "All brokers are currently fenced, or have"),
    "all are fenced": (brokers("a", fenced=(1,)), 1, "All brokers are currently fenced, or have"),
    "none at all": (brokers("a"), 0, "the replication factor must be positive"),
    "more than there are": (brokers("a"), 2, "only 1 broker(s) are registered"),
}


@pytest.mark.parametrize(("usable", "factor", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_placed_is_refused(
    usable: list[UsableBroker], factor: int, reason: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        placed(usable, 1, factor)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert reason in refused.value.message
