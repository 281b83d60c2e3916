import pytest

from ottla.replication.topic_names import may_collide, unified, why_invalid

INVALID = {
    "": "the empty string is not allowed",
    ".": "'.' is not allowed",
    "..": "'..' is not allowed",
    "a/b": "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
    "é": "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
}


@pytest.mark.parametrize(("name", "reason"), INVALID.items())
def test_a_bad_name_is_refused_in_kafka_s_words(name: str, reason: str) -> None:
    assert why_invalid(name) == f"Topic name is invalid: {reason}"


def test_a_name_may_be_249_long() -> None:
    assert why_invalid("n" * 249) is None
    assert "longer than the max allowed length 249" in str(why_invalid("n" * 250))


def test_names_collide_that_differ_in_dots_and_underscores() -> None:
    assert unified("a.b_c") == unified("a_b.c")
    assert may_collide("a.b")
    assert not may_collide("a-b")
