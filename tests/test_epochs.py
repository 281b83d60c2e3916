"""Leader epochs: which of them began where, and what batches say against it."""

import pytest

from ottla.storage.epochs import EpochEntry, LeaderEpochs

Entries = list[tuple[int, int]]


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(*entry) for entry in entries])


def test_a_later_epoch_takes_the_place_of_those_that_begin_where_it_does_or_behind() -> None:
    found = epochs((1, 0), (3, 50))
    assert found.assign(4, 20)
    assert found.entries == [(1, 0), (4, 20)]
    assert not found.assign(4, 30)


BORNE_OUT: list[tuple[Entries, tuple[int, int], Entries]] = [
    # entries, epoch and offset of a batch, entries that it leaves
    ([(1, 0), (3, 50)], (1, 20), [(1, 0), (3, 50)]),
    ([(1, 0), (3, 50)], (3, 60), [(1, 0), (3, 50)]),
    # They know too little: of a truncation that a crash has undone, or of a log start that rose.
    ([(3, 50)], (1, 20), [(1, 20), (3, 50)]),
    ([(1, 0), (3, 50)], (2, 40), [(1, 0), (2, 40), (3, 50)]),
    ([], (2, 40), [(2, 40)]),
    # They know of batches that are gone.
    ([(1, 0), (5, 45)], (1, 60), [(1, 0)]),
    ([(1, 0), (3, 50)], (4, 20), [(1, 0), (4, 20)]),
    ([(1, 0), (5, 40), (6, 45)], (2, 45), [(1, 0), (2, 45)]),
    ([(1, 0), (2, 45)], (3, 45), [(1, 0), (3, 45)]),
]


@pytest.mark.parametrize(("before", "batch", "after"), BORNE_OUT)
def test_a_batch_is_believed_against_the_entries(
    before: Entries, batch: tuple[int, int], after: Entries
) -> None:
    found = epochs(*before)
    found.bear_out(*batch)
    assert found.entries == after
    assert found.epoch_for(batch[1]) == batch[0]


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    found = epochs((1, 0), (3, 50))
    assert found.end_offset_for(1, 99) == (1, 50)
    assert found.end_offset_for(2, 99) == (1, 50)
    assert found.end_offset_for(3, 99) == (3, 99)
    assert found.end_offset_for(4, 99) == (-1, -1)
    assert found.end_offset_for(0, 99) == (0, 0)


def test_truncation_cuts_at_both_ends() -> None:
    found = epochs((1, 0), (3, 50), (4, 70))
    assert found.truncate_from_end(70)
    assert found.truncate_from_start(20)
    assert found.entries == [(1, 20), (3, 50)]
    assert not found.truncate_from_end(70)
    assert not found.truncate_from_start(10)
