import pytest

from ottla.protocol.errors import KafkaError
from ottla.replication.metadata_topics import PartitionRegistration
from ottla.replication.reassignment import Reassignment, begin, completed, revert

COMPLETIONS = {
    "nothing under way": (([1, 2], [], []), [1, 2], None),
    "a new one not in sync": (([3, 1, 2], [1], [3]), [1, 2], None),
    "the new one in sync": (([3, 1, 2], [1], [3]), [1, 2, 3], ([3, 2], [2, 3])),
    "another missing": (([3, 1, 2], [1], [3]), [1, 3], None),
    "only old ones in sync": (([3, 4, 1, 2], [1, 2], [3, 4]), [1, 2], None),
    "removing only": (([1, 2], [2], []), [1, 2], ([1], [1])),
    "adding only": (([1, 2], [], [2]), [2, 1], ([1, 2], [2, 1])),
}


@pytest.mark.parametrize(("lists", "isr", "expected"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_it_ends_when_all_that_stay_are_in_sync(
    lists: tuple[list[int], list[int], list[int]],
    isr: list[int],
    expected: tuple[list[int], list[int]] | None,
) -> None:
    assert completed(Reassignment(*lists), isr) == expected


def test_meanwhile_old_and_new_replicas_are_there() -> None:
    assert begin([1, 2, 3], [4, 2, 5]) == Reassignment([4, 2, 5, 1, 3], [1, 3], [4, 5])


def moving(isr: tuple[int, ...], replicas: tuple[int, ...] = (3, 1, 2)) -> PartitionRegistration:
    directories = (bytes(16),) * len(replicas)
    return PartitionRegistration(
        replicas, directories, isr, removing_replicas=(1,), adding_replicas=(3,)
    )


def test_a_revert_keeps_what_was_to_go() -> None:
    assert revert(moving((1, 2, 3))) == ([1, 2], [1, 2], False)


def test_a_revert_to_replicas_that_are_behind_loses_data() -> None:
    assert revert(moving((3,))) == ([1, 2], [1], True)


def test_a_revert_to_nothing_is_refused() -> None:
    with pytest.raises(KafkaError, match="contains all replicas"):
        revert(moving((3,), (3,)))
