"""Guards: given out once, taken away once, and never too many."""

from ottla.protocol.errors import ErrorCode
from ottla.protocol.records import TRANSACTIONAL_FLAG, BatchHeader
from ottla.storage.verification import Guards, UnverifiedTransaction, VerificationGuard


def start(guards: Guards, producer_id: int, wall_ms: int = 0) -> VerificationGuard:
    return guards.start(
        producer_id, producer_epoch=0, sequence=0, supports_epoch_bump=False, wall_ms=wall_ms
    )


def is_good(guards: Guards, producer_id: int, guard: VerificationGuard) -> bool:
    try:
        guards.check(producer_id, guard)
    except UnverifiedTransaction as error:
        assert error.code is ErrorCode.INVALID_TXN_STATE
        return False
    return True


def test_all_that_wait_for_the_same_answer_share_a_guard() -> None:
    guards = Guards()
    assert start(guards, 1) is start(guards, 1)
    assert start(guards, 1) is not start(guards, 2)


def test_a_guard_is_good_for_one_producer_and_one_transaction() -> None:
    guards = Guards()
    first, second = start(guards, 1), start(guards, 2)
    assert is_good(guards, 1, first) and not is_good(guards, 2, first)
    guards.take_away(BatchHeader(0, 99, 0, 2, 0, TRANSACTIONAL_FLAG, 0, 0, 0, 1, 0, 0, 1))
    assert not is_good(guards, 1, first) and is_good(guards, 2, second)


def test_guards_that_nobody_came_back_with_go_in_time() -> None:
    guards = Guards()
    first, second = start(guards, 1, 50), start(guards, 2, 51)
    guards.remove_expired(100, 150)
    assert not is_good(guards, 1, first) and is_good(guards, 2, second)


def test_there_are_never_more_than_ten_thousand() -> None:
    guards = Guards()
    first, second = start(guards, 0), start(guards, 1)
    for producer_id in range(2, 10_001):
        start(guards, producer_id)
    assert len(guards) == 10_000
    assert not is_good(guards, 0, first) and is_good(guards, 1, second)
