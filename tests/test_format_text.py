"""The specification of the text files of a log directory, and what it refuses."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.storage.format import FormatError
from ottla.storage.format_text import (
    build_json,
    build_leader_epoch_checkpoint,
    build_meta_properties,
    build_offset_checkpoint,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)


def test_a_checkpoint_that_was_never_written_is_an_empty_file() -> None:
    assert parse_offset_checkpoint(b"") is None
    assert parse_leader_epoch_checkpoint(b"") is None
    assert build_offset_checkpoint(None) == build_leader_epoch_checkpoint(None) == b""
    assert parse_offset_checkpoint(b"0\n0\n") == []


def test_checkpoints_are_lines_of_words() -> None:
    epochs = [{"epoch": 0, "start_offset": 0}, {"epoch": 2, "start_offset": 17}]
    assert parse_leader_epoch_checkpoint(b"0\n2\n0 0\n2 17\n") == epochs
    offsets = [{"topic": "a.b_c-d", "partition": 3, "offset": 2**63 - 1}]
    assert parse_offset_checkpoint(b"0\n1\na.b_c-d 3 9223372036854775807\n") == offsets


def test_a_text_file_is_read_into_its_names_and_values() -> None:
    text = b"#\n#Thu Jan 01 00:00:00 UTC 1970\nnode.id=1\ncluster.id=a\\=b\n"
    assert parse_meta_properties(text)["properties"] == {"node.id": "1", "cluster.id": "a=b"}
    assert build_meta_properties(parse_meta_properties(text)) == text
    assert parse_clean_shutdown(b"") == {}
    assert build_json({}) == b""


BROKEN_TEXTS: list[tuple[Callable[[bytes], Any], bytes, int, str]] = [
    (parse_offset_checkpoint, b"0\n", 2, "begins with"),
    (parse_offset_checkpoint, b"1\n0\n", 0, "version 1 is unknown"),
    (parse_offset_checkpoint, b"0\n2\na 0 1\n", 2, "1 entries instead of 2"),
    (parse_offset_checkpoint, b"0\n1\na 0\n", 4, "2 words instead of 3"),
    (parse_offset_checkpoint, b"0\n1\na 0 x\n", 4, "not a number"),
    (parse_offset_checkpoint, b"0\n1\na 0 1_0\n", 4, "not a number"),
    (parse_offset_checkpoint, b"0\n1\na 0 " + b"1" * 5000, 4, "not a number"),
    (parse_offset_checkpoint, b"0\n1\n\xff 0 1\n", 4, "not UTF-8"),
    (parse_leader_epoch_checkpoint, b"0\n2\n1 0\n1 5\n", 8, "do not rise"),
    (parse_leader_epoch_checkpoint, b"0\n2\n1 5\n2 5\n", 8, "do not rise"),
    (parse_partition_metadata, b"version: 0\n", 0, "not the two lines"),
    (parse_partition_metadata, b"version: 0\ntopic_id: short", 0, "not the two lines"),
    (parse_meta_properties, b"#\nnode.id 1\n", 2, "no `=`"),
    (parse_clean_shutdown, b"{", 1, "not JSON"),
    (parse_clean_shutdown, b"[]", 0, "not an object"),
    (parse_quorum_state, b"[" * 100_000, 0, "nested too deeply"),
    (parse_quorum_state, b'{"data_version":2}', 0, "data_version"),
    (parse_quorum_state, b"{}", 0, "data_version"),
]


@pytest.mark.parametrize(("parse", "data", "position", "words"), BROKEN_TEXTS)
def test_a_broken_text_file_is_refused_with_position_and_reason(
    parse: Callable[[bytes], Any], data: bytes, position: int, words: str
) -> None:
    with pytest.raises(FormatError) as refusal:
        parse(data)
    assert refusal.value.position == position
    assert words in refusal.value.reason
