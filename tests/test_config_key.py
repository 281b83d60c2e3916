"""One configuration: what its type and its rule let pass, and how values are spelled."""

import math

import pytest

from ottla.broker.config_key import InvalidValue, Key, double_text, value_text


def key(kind: str, valid: str = "", default: object = None) -> Key:
    return Key("a.name", kind, default, valid, "HIGH", "")


def test_a_long_number_is_refused_without_being_computed() -> None:
    with pytest.raises(InvalidValue, match="Not a number of type LONG"):
        key("LONG").parsed("9" * 1_000_000)


def test_zeros_before_a_number_do_not_count() -> None:
    assert key("INT").parsed("0" * 100 + "7") == 7


def test_a_password_is_never_shown() -> None:
    password = key("PASSWORD")
    assert password.is_sensitive
    assert password.text(password.parsed("secret")) == "[hidden]"


def test_a_class_is_taken_only_where_it_is_the_default() -> None:
    builder = key("CLASS", default="a.Class")
    assert builder.parsed("a.Class") == "a.Class"
    with pytest.raises(InvalidValue, match=r"Class b\.Class could not be found\."):
        builder.parsed("b.Class")


DOUBLES = [  # value, what Java's Double.toString makes of it
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (0.5, "0.5"),
    (100.0, "100.0"),
    (0.001, "0.001"),
    (9999999.0, "9999999.0"),
    (1e7, "1.0E7"),
    (12345678.9, "1.23456789E7"),
    (-12345678.9, "-1.23456789E7"),
    (9.99e-4, "9.99E-4"),
    (1e-5, "1.0E-5"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
    (math.nan, "NaN"),
]


@pytest.mark.parametrize(("value", "text"), DOUBLES)
def test_a_double_is_spelled_as_java_spells_it(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("INT", None, None),
        ("BOOLEAN", False, "false"),
        ("BOOLEAN", True, "true"),
        ("LIST", ("a", "b"), "a,b"),
        ("LIST", (), ""),
        ("LONG", -1, "-1"),
    ],
)
def test_a_value_is_spelled_as_kafka_spells_it(kind: str, value: object, text: str | None) -> None:
    assert value_text(kind, value) == text
