"""The yardsticks of bench/ are fair: codecs written by hand do all that the compiled ones do."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

# bench/ is not installed, and pytest puts no folder on the path. Last, so that it hides nothing.
sys.path.append(str(Path(__file__).parent.parent))

from bench import __main__ as runner
from bench.codecs_by_hand import BY_HAND, READ_VIEWS, read, write
from bench.measure import Times, calls
from bench.samples import SAMPLES
from bench.tables import Cell, Goal, Table
from ottla.protocol.schema import decode, encode
from ottla.protocol.wire import ProtocolError
from tests.random_messages import random_message

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from bench import codecs

PAIRS = list(BY_HAND)
IDS = [f"{cls.__name__}-{version}" for cls, version in PAIRS]
each_pair = pytest.mark.parametrize(("cls", "version"), PAIRS, ids=IDS)


def random_messages(cls: type[Any], version: int, *, count: int) -> Iterator[Any]:
    dice = Random(f"{cls.__name__} {version}")
    for _ in range(count):
        yield random_message(cls.__name__, version, dice)


def samples(cls: type[Any], version: int) -> list[Any]:
    """As they are once they were sent: with the fields of this version alone."""
    made = [make() for _, its_version, make in SAMPLES if its_version == version]
    return [decode(cls, version, encode(each, version)) for each in made if type(each) is cls]


def lengthened(message: Any, *, depth: int) -> None:
    """Make lists, so many structs deep, so long that their count takes two bytes."""
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, list) and value:
            if depth == 0:
                setattr(message, name, value * (200 // len(value)))
            elif hasattr(value[0], "__slots__"):
                lengthened(value[0], depth=depth - 1)


def outcome(reading: Any, *arguments: Any) -> Any:
    try:
        return reading(*arguments)
    except ProtocolError:
        return ProtocolError


@each_pair
def test_both_write_the_same_bytes(cls: type[Any], version: int) -> None:
    for message in random_messages(cls, version, count=200):
        assert write(message, version) == encode(message, version)


@each_pair
def test_both_read_the_same_message(cls: type[Any], version: int) -> None:
    for message in random_messages(cls, version, count=200):
        data = bytes(encode(message, version))
        assert read(cls, version, data) == message == decode(cls, version, data)


@each_pair
def test_both_fill_fields_with_the_same_types(cls: type[Any], version: int) -> None:
    for message in samples(cls, version):
        data = bytes(encode(message, version))
        assert repr_of_types(read(cls, version, data)) == repr_of_types(decode(cls, version, data))


def repr_of_types(value: Any) -> Any:
    if isinstance(value, list):
        return [repr_of_types(each) for each in value]
    if hasattr(value, "__slots__"):
        return {name: repr_of_types(getattr(value, name)) for name in value.__slots__}
    return type(value)


@pytest.mark.parametrize("cls", READ_VIEWS)
def test_both_read_out_of_the_middle_of_a_buffer(cls: type[Any]) -> None:
    for version in (version for each, version in PAIRS if each is cls):
        for message in random_messages(cls, version, count=50):
            data = bytes(encode(message, version))
            view = memoryview(bytearray(b"<" + data + b">"))[1:-1]
            assert read(cls, version, view) == message == decode(cls, version, view)


@each_pair
def test_both_take_lists_whose_count_has_two_bytes(cls: type[Any], version: int) -> None:
    for depth in range(3):
        for message in samples(cls, version):
            lengthened(message, depth=depth)
            data = bytes(encode(message, version))
            assert write(message, version) == data
            assert read(cls, version, data) == message


@each_pair
def test_what_is_cut_short_is_refused_by_hand(cls: type[Any], version: int) -> None:
    messages = [*random_messages(cls, version, count=20), *samples(cls, version)]
    for message in messages:
        data = bytes(encode(message, version))
        for length in range(0, len(data), max(1, len(data) // 500)):
            with pytest.raises(ProtocolError):
                read(cls, version, data[:length])


@each_pair
def test_both_make_the_same_of_bytes_that_were_changed(cls: type[Any], version: int) -> None:
    # They would differ where Java makes fewer U+FFFD of invalid UTF-8 than Python does.
    dice = Random(f"changed {cls.__name__} {version}")
    refused = 0
    for message in random_messages(cls, version, count=300):
        data = bytearray(encode(message, version))
        data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 127, 128, 129, 255))
        by_hand = outcome(read, cls, version, bytes(data))
        assert by_hand == outcome(decode, cls, version, bytes(data))
        refused += by_hand is ProtocolError
    assert 10 < refused < 290


@each_pair
def test_tags_that_nobody_knows_are_skipped_by_hand(cls: type[Any], version: int) -> None:
    skipped = 0
    for message in random_messages(cls, version, count=60):
        data = bytes(encode(message, version))
        # Some of the zeros are the count of tags of the message, or of a struct inside.
        for at in [index for index, byte in enumerate(data[:300]) if byte == 0]:
            changed = data[:at] + b"\2\x63\3abc\xe3\1\0" + data[at + 1 :]
            by_hand = outcome(read, cls, version, changed)
            assert by_hand == outcome(decode, cls, version, changed)
            skipped += by_hand == message
    assert skipped > 30


@each_pair
def test_a_string_that_is_too_long_is_refused_by_hand(cls: type[Any], version: int) -> None:
    for message in samples(cls, version):
        names = [name for name in message.__slots__ if isinstance(getattr(message, name), str)]
        for name in (name for name in names if name not in ("name", "topic")):
            setattr(message, name, "x" * 40_000)
            with pytest.raises(ProtocolError):
                write(message, version)


def test_all_contenders_agree_before_they_are_measured() -> None:
    names = [name for name, _ in codecs.rows()]
    assert len(names) == 2 * len(SAMPLES) + 4
    assert len(set(names)) == len(names)


def test_kafka_python_is_compared_wherever_it_has_the_message() -> None:
    compared = {cls.__name__ for cls, _ in PAIRS if cls.__name__ in codecs.KAFKA_PYTHON_TYPES}
    assert {cls.__name__ for cls, _ in PAIRS} - compared == {"ConsumerGroupHeartbeatRequest"}


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    times = Times({"ours": [2.0, 30.0, 3.0], "theirs": [1.0, 10.0, 2.0]})
    assert times.ratio("ours", "theirs") == 2.0
    assert times.difference("ours", "theirs") == 1.0
    assert times.median("ours") == 3.0


def test_what_takes_ten_times_as_long_is_seen_to() -> None:
    def work(times: int) -> int:
        return sum(range(times))

    times = calls({"once": (work, 2_000), "tenfold": (work, 20_000)}, rounds=5)
    assert 5 < times.ratio("tenfold", "once") < 20


GOALS = [  # goal, value, is it met
    (Goal(1.25), 1.25, True),
    (Goal(1.25), 1.26, False),
    (Goal(1.0, strictly=True), 1.0, False),
    (Goal(1.0, strictly=True), 0.99, True),
]


@pytest.mark.parametrize(("goal", "value", "met"), GOALS)
def test_a_goal_is_met_or_missed(goal: Goal, value: float, met: bool) -> None:
    table = Table("codecs", ["message", "ratio"])
    table.add("Heartbeat", Cell(value, goal))
    assert len(table.missed()) == (0 if met else 1)
    assert ("!" in str(table)) is not met


def test_a_cell_without_a_goal_or_a_value_misses_nothing() -> None:
    table = Table("codecs", ["message", "us", "ratio"])
    table.add("Heartbeat", Cell(1e9), Cell(None, Goal(1.0)))
    assert table.missed() == []


CHECKS = [  # arguments, ratio, exit code
    (["made_up"], 2.0, 0),
    (["made_up", "--check"], 2.0, 1),
    (["made_up", "--check"], 0.5, 0),
]


@pytest.mark.parametrize(("arguments", "ratio", "code"), CHECKS)
def test_a_missed_goal_fails_only_a_check(
    arguments: list[str], ratio: float, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table("made_up", ["message", "ratio"])
    table.add("Heartbeat", Cell(ratio, Goal(1.0)))
    module = ModuleType("bench.made_up")
    monkeypatch.setattr(module, "run", lambda: [table], raising=False)
    monkeypatch.setitem(sys.modules, "bench.made_up", module)
    monkeypatch.setitem(runner.SECTIONS, "made_up", "a ratio")
    assert runner.main(arguments) == code


def test_a_section_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        runner.main(["nonesuch"])
    assert "no section 'nonesuch'" in capsys.readouterr().err
