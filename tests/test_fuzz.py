"""The first rounds of `make fuzz`: twenty thousand mutated inputs."""

from random import Random

import pytest

from ottla.protocol.wire import ProtocolError
from tests.fuzz.mutation import MUTATIONS, mutated
from tests.fuzz.rounds import (
    KINDS,
    LINES_EVERY,
    MemoryLawBroken,
    Result,
    kind_of,
    look_at,
    run_round,
)
from tests.fuzz.targets import Fault, Input, Tally, try_message
from tests.random_messages import PAIRS, schema_named

SEED = 1
ROUNDS = (*range(19), LINES_EVERY - 1)


@pytest.mark.parametrize("number", ROUNDS)
def test_mutated_input_is_read_or_refused(number: int) -> None:
    result = run_round(SEED, number)
    assert sum(result.inputs.values()) == 1000
    # If all were refused nothing would be tried but the first fields.
    assert 20 < result.accepted < 980


def test_every_pair_has_its_turn_in_a_full_run() -> None:
    rounds = [number for number in range(1000) if kind_of(number) == "messages"]
    seen = {(number * 8 + index) % len(PAIRS) for number in rounds for index in range(8)}
    assert len(seen) == len(PAIRS)
    assert {kind_of(number) for number in ROUNDS} == {*KINDS, "lines"}


def test_a_round_is_the_same_when_run_again() -> None:
    dice, again = Random("seed"), Random("seed")
    for _ in range(200):
        assert mutated(b"0123456789", b"other", dice) == mutated(b"0123456789", b"other", again)
    assert len(set(MUTATIONS)) == 8


def test_readers_that_do_not_agree_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = schema_named("HeartbeatResponse").cls

    def refuse(*_: object) -> None:
        raise ProtocolError("odd", "HeartbeatResponse")

    assert try_message(cls, 0, bytes(2))
    monkeypatch.setattr("tests.fuzz.targets.decode_prefix", refuse)
    with pytest.raises(Fault, match="only one of two readers"):
        try_message(cls, 0, bytes(2))


def test_other_exceptions_end_a_round() -> None:
    def fail() -> bool:
        raise IndexError

    with pytest.raises(IndexError):
        Tally().feed(Input("failing", b"", fail, fail))


def test_what_costs_too_much_is_seen() -> None:
    def waste() -> bool:
        return bool([0] * 1_000_000)

    result = Result()
    look_at(Input("modest", b"", bool, bool), result)
    assert (result.looked_at, result.share_of_law < 0.5) == (1, True)
    with pytest.raises(MemoryLawBroken, match="wasteful: 3 bytes cost"):
        look_at(Input("wasteful", b"abc", waste, waste), result)


def test_results_add_up() -> None:
    one = Result({"messages": 3}, 1, 0.5, 1, 0.5, [(0.1, "a", 1, b"")])
    one.add(Result({"messages": 2, "lines": 4}, 2, 0.5, 1, 0.25, [(0.2, "b", 1, b"")]))
    assert one.inputs == {"messages": 5, "lines": 4}
    assert (one.accepted, one.looked_at, one.share_of_law) == (3, 2, 0.5)
    assert [what for _, what, *_ in one.slowest] == ["b", "a"]
