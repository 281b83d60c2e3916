"""Java's properties: what java.util.Properties reads, and what it would read back."""

from random import Random

import pytest

from ottla.storage.errors import CorruptFile
from ottla.storage.properties import parse_properties, properties_text

# What java.util.Properties (JDK 17) made of these bytes.
READ = [  # data, properties
    (b"", {}),
    (b"# comment\n  ! another\n\n \t\f\r\n", {}),
    (b"a=b", {"a": "b"}),
    (b"a = b \n", {"a": "b "}),
    (b"a:b\nc d\n", {"a": "b", "c": "d"}),
    (b"a \t\f=\t b\n", {"a": "b"}),
    (b"a==b\n", {"a": "=b"}),
    (b"a : = b\n", {"a": "= b"}),
    (b"a\n", {"a": ""}),
    (b"=b\n", {"": "b"}),
    (b"a=1\na=2\n", {"a": "2"}),
    (b"a=1\\\n    2\\\r\n3\n", {"a": "123"}),
    (b"a=1\\\n#2\n", {"a": "1#2"}),
    (b"a=1\\\\\nb=2\n", {"a": "1\\", "b": "2"}),
    (b"a=1\\", {"a": "1"}),
    (b"# c\\\na=1\n", {"a": "1"}),
    (b"a\\ b\\=c=d\n", {"a b=c": "d"}),
    (b"a\\\\=b\n", {"a\\": "b"}),
    (b"a=\\t\\n\\r\\f\\q\n", {"a": "\t\n\r\fq"}),
    (b"a=\\u00e9\\u20AC\n", {"a": "\u00e9\u20ac"}),
    (b"a=\\ud83d\\ude00\n", {"a": "\U0001f600"}),
    (b"a=\\\\u00e9\n", {"a": "\\u00e9"}),
    (b"a=\xe9\xc3\xa9\n", {"a": "\u00e9\u00c3\u00a9"}),
]


@pytest.mark.parametrize(("data", "properties"), READ)
def test_properties_are_read_as_java_reads_them(data: bytes, properties: dict[str, str]) -> None:
    assert parse_properties("p", data) == properties


@pytest.mark.parametrize("escape", [b"\\u", b"\\u12", b"\\u12g4", b"\\uuuuu"])
def test_half_an_escape_is_named_with_its_line(escape: bytes) -> None:
    with pytest.raises(CorruptFile) as caught:
        parse_properties("/d/meta.properties", b"#\nx=1\na=" + escape)
    complaint = r"line 3: \u without four hexadecimal digits"
    assert str(caught.value) == f"/d/meta.properties: {complaint}"


def test_properties_are_written_as_java_writes_them() -> None:
    properties = {"node.id": "1", "a b": " c d", "x:=#!": "y:=#!", "back\\": "tab\t\n\r\f"}
    assert properties_text(properties) == (
        b"node.id=1\na\\ b=\\ c d\nx\\:\\=\\#\\!=y\\:\\=\\#\\!\nback\\\\=tab\\t\\n\\r\\f\n"
    )
    assert properties_text({"a": "\u00e9\U0001f600\x01"}) == b"a=\\u00E9\\uD83D\\uDE00\\u0001\n"


def test_what_is_written_is_read_back() -> None:
    random = Random(5)
    letters = "ab =:#!\\\t\n\r\f\u00e9\U0001f600\x01"
    for _ in range(2000):
        properties = {
            "".join(random.choices(letters, k=random.randrange(1, 6))): "".join(
                random.choices(letters, k=random.randrange(6))
            )
            for _ in range(3)
        }
        assert parse_properties("p", properties_text(properties)) == properties
