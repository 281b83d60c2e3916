"""What a cleaner knows of transactions as it goes through a log."""

from ottla.protocol.records import BatchHeader, ControlRecordType, read_header
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.transaction_index import AbortedTransaction
from tests.log_rig import batch, marker

COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT


def data(producer: int, offset: int, *, transactional: bool = True) -> BatchHeader:
    return read_header(batch(1, producer=producer, transactional=transactional, base_offset=offset))


def control(producer: int, offset: int) -> BatchHeader:
    return read_header(marker(producer, COMMIT, base_offset=offset))


def aborted(producer: int, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(producer, first, last, last + 1)


def test_batches_of_an_aborted_transaction_are_told_from_others() -> None:
    transactions = CleanedTransactions()
    transactions.add([aborted(1, 3, 6)])
    assert not transactions.on_batch(data(1, 1)), "an earlier transaction"
    assert not transactions.on_control_batch(control(1, 2), COMMIT)
    assert transactions.on_batch(data(1, 3))
    assert not transactions.on_batch(data(2, 4))
    assert not transactions.on_batch(data(1, 5, transactional=False))
    transactions.on_control_batch(control(1, 6), ABORT)
    assert not transactions.on_batch(data(1, 7)), "a later transaction"


def test_a_marker_is_needed_as_long_as_there_are_batches() -> None:
    transactions = CleanedTransactions()
    transactions.add([aborted(1, 0, 1), aborted(1, 2, 3)])
    transactions.on_batch(data(1, 0))
    assert not transactions.on_control_batch(control(1, 1), ABORT)
    assert transactions.on_control_batch(control(1, 3), ABORT)
    transactions.on_batch(data(1, 4))
    assert not transactions.on_control_batch(control(1, 5), COMMIT)
    assert transactions.on_control_batch(control(1, 6), COMMIT)
    assert transactions.on_control_batch(control(1, 7), ABORT), "nobody knows of it"


def test_an_emptied_marker_is_not_needed_and_other_control_records_are() -> None:
    transactions = CleanedTransactions()
    assert transactions.on_control_batch(control(1, 0), None)
    assert not transactions.on_control_batch(control(1, 1), ControlRecordType.LEADER_CHANGE)
    assert not transactions.on_control_batch(control(1, 2), ControlRecordType.UNKNOWN)


def test_only_transactions_with_batches_are_kept_in_the_index() -> None:
    kept: list[AbortedTransaction] = []
    transactions = CleanedTransactions(kept.append)
    first, second = aborted(1, 0, 2), aborted(2, 1, 3)
    transactions.add([second, first])
    transactions.on_batch(data(2, 1))
    transactions.on_control_batch(control(1, 2), ABORT)
    transactions.on_control_batch(control(2, 3), ABORT)
    assert kept == [second]


def test_a_transaction_that_is_told_of_twice_is_one() -> None:
    transactions = CleanedTransactions()
    transactions.add([aborted(1, 0, 4)])
    assert transactions.on_batch(data(1, 0))
    transactions.add([aborted(1, 0, 4)])
    assert transactions.on_batch(data(1, 3))
    assert not transactions.on_control_batch(control(1, 4), ABORT)
    assert not transactions.on_batch(data(1, 5))
