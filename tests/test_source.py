"""Source under construction: lines, names, and the field that a line serves."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.protocol.source import SIZES, Source, failed_at


def test_lines_stand_in_their_blocks() -> None:
    source = Source("f", "a, b")
    with source.block("if a:"):
        with source.block("for _ in range(b):"):
            source.line("pass")
        source.line("return 1")
    source.line("return 2")
    assert source.text().splitlines() == [
        "def f(a, b):",
        "    if a:",
        "        for _ in range(b):",
        "            pass",
        "        return 1",
        "    return 2",
    ]
    function: Callable[..., Any] = source.function()
    assert (function(True, 0), function(False, 0)) == (1, 2)


def test_one_value_has_one_name() -> None:
    source = Source("f", "")
    one, equal = [1], [1]
    assert source.name_for("D", one) == source.name_for("D", one) == "D1"
    assert source.name_for("D", equal) == "D2"
    source.line("return D1")
    assert source.function()() is one


def test_variables_are_never_the_same() -> None:
    source = Source("f", "")
    assert [source.variable("x"), source.variable("n"), source.variable("x")] == ["x1", "n2", "x3"]


def failing() -> Source:
    """Of rows of fields, with an error in the row and field that are handed in."""
    source = Source("walk", "rows")
    with source.at(".head"):
        source.line("rows.upper")
    with source.at(".rows"):
        with source.block("for i1, row in enumerate(rows.split()):"), source.at("[{i1}]"):
            with source.at(".first"):
                source.line("int(row[0])")
            inner = source.block("for i2, x in enumerate(row[1:]):")
            with source.at(".others"), inner, source.at("[{i2}]"):
                source.line("int(x)")
        source.line("pass")
    source.line("raise KeyError")
    return source


FAILURES = [  # input, path
    (5, "head"),
    ("x", "rows[0].first"),
    ("1 2 x", "rows[2].first"),
    ("1 234 123x5", "rows[2].others[2]"),
    ("1", ""),
]


@pytest.mark.parametrize("rows, path", FAILURES)
def test_an_exception_is_told_as_a_path(rows: Any, path: str) -> None:
    source = failing()
    with pytest.raises((AttributeError, ValueError, KeyError)) as caught:
        source.function()(rows)
    assert failed_at(source, caught.value) == path


def test_an_exception_from_elsewhere_has_no_path() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    assert failed_at(failing(), caught.value) == ""


def test_an_exception_from_below_is_told_by_the_line_that_called() -> None:
    def refuse() -> None:
        raise ValueError

    source = Source("outer", "")
    source.names["refuse"] = refuse
    with source.at(".called"):
        source.line("refuse()")
    with pytest.raises(ValueError) as caught:
        source.function()()
    assert failed_at(source, caught.value) == "called"


def test_kafkas_types_have_their_sizes() -> None:
    assert SIZES == {
        "Bool": 1,
        "Int8": 1,
        "Int16": 2,
        "Int32": 4,
        "Int64": 8,
        "Uint16": 2,
        "Uint32": 4,
        "Float64": 8,
        "Uuid": 16,
    }
