"""Which partition a group's records are in: as Java has it, or nobody finds them."""

import pytest

from ottla.broker.coordinators import java_hash

# Seen in Java: Utils.abs(text.hashCode()).
HASHES = [
    ("", 0),
    ("a", 97),
    ("group", 98629247),
    ("consumer-group-1", 147483020),
    ("polygenelubricants", 0),
    ("é", 233),
    ("\U0001f600", 1772899),
]


@pytest.mark.parametrize(("text", "value"), HASHES)
def test_a_text_has_javas_hash(text: str, value: int) -> None:
    assert java_hash(text) == value
