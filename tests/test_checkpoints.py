"""Checkpoints and the other small text files: Kafka's bytes, and nothing else."""

from collections.abc import Callable
from random import Random

import pytest

from ottla.storage.checkpoints import (
    UNKNOWN_BROKER_EPOCH,
    clean_shutdown_text,
    epochs_text,
    offsets_text,
    parse_clean_shutdown,
    parse_epochs,
    parse_offsets,
    parse_partition_metadata,
    parse_uuid,
    partition_metadata_text,
    uuid_text,
)
from ottla.storage.errors import CorruptFile
from tests.kafka_directories import files

# --- as Kafka writes them -----------------------------------------------------------------


def test_an_offset_checkpoint_is_written_as_kafka_does() -> None:
    offsets = {("both", 0): 1590, ("compacted", 0): 9_223_372_036_854_775_807}
    text = b"0\n2\nboth 0 1590\ncompacted 0 9223372036854775807\n"
    assert offsets_text(offsets) == text
    assert parse_offsets("c", text) == offsets
    assert offsets_text({}) == b"0\n0\n"
    assert parse_offsets("c", b"0\n0\n") == {}


def test_an_offset_checkpoint_is_born_empty() -> None:
    assert parse_offsets("c", b"") == {}
    assert parse_epochs("c", b"") == []


def test_a_leader_epoch_checkpoint_is_written_as_kafka_does() -> None:
    assert epochs_text([(0, 0), (2, 320)]) == b"0\n2\n0 0\n2 320\n"
    assert parse_epochs("c", b"0\n2\n0 0\n2 320\n") == [(0, 0), (2, 320)]


def test_a_partitions_metadata_is_written_as_kafka_does() -> None:
    text = b"version: 0\ntopic_id: PQQ50gOcQLOWLRmj84BXuQ"
    topic_id = parse_partition_metadata("partition.metadata", text)
    assert topic_id == bytes.fromhex("3d0439d2039c40b3962d19a3f38057b9")
    assert partition_metadata_text(topic_id) == text
    assert parse_partition_metadata("partition.metadata", text + b"\n") == topic_id


def test_a_clean_shutdown_is_written_as_kafka_does() -> None:
    assert clean_shutdown_text(305) == b'{"version":0,"brokerEpoch":305}'
    assert parse_clean_shutdown(b'{"version":0,"brokerEpoch":305}') == 305


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"brokerEpoch":"1"}', b'{"brokerEpoch":true}', b"\xff", b"7",
     b'{"brokerEpoch":-2}', b'{"brokerEpoch":9223372036854775808}', b"[" * 100_000],
)  # fmt: skip
def test_a_clean_shutdown_without_an_epoch_is_still_one(data: bytes) -> None:
    assert parse_clean_shutdown(data) == UNKNOWN_BROKER_EPOCH


def test_whitespace_between_fields_is_as_free_as_kafkas() -> None:
    assert parse_offsets("c", b"0\r\n1\r\na\t 0  5\r\n") == {("a", 0): 5}
    assert parse_offsets("c", b"0\n1\na 0 5") == {("a", 0): 5}


KAFKAS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("-offset-checkpoint", lambda data: offsets_text(parse_offsets("c", data)) if data else b""),
    ("leader-epoch-checkpoint", lambda data: epochs_text(parse_epochs("c", data)) if data else b""),
    (
        "partition.metadata",
        lambda data: partition_metadata_text(parse_partition_metadata("p", data)),
    ),
    (".kafka_cleanshutdown", lambda data: clean_shutdown_text(parse_clean_shutdown(data))),
]


@pytest.mark.parametrize(("name", "again"), KAFKAS, ids=[case[0] for case in KAFKAS])
def test_what_a_real_kafka_wrote_is_written_alike(
    name: str, again: Callable[[bytes], bytes]
) -> None:
    written = {path: data for path, data in files().items() if path.endswith(name)}
    assert written
    for path, data in written.items():
        assert again(data) == data, path


# --- what is refused ----------------------------------------------------------------------

CORRUPT_OFFSETS = [  # data, the complaint
    (b"1\n0\n", "line 1: version 1 is unknown"),
    (b"zero\n0\n", "line 1: 'zero' is no number up to 2147483647"),
    (b"0\n", "line 2: the count of entries is missing"),
    (b"0\n-1\n", "line 2: '-1' is no number up to 2147483647"),
    (b"0\n1\n", "line 2: 1 entries are announced, and 0 are there"),
    (b"0\n0\na 0 5\n", "line 2: 0 entries are announced, and 1 are there"),
    (b"0\n1\na 0 5\n\n", "line 2: 1 entries are announced, and 2 are there"),
    (b"0\n1\na 0\n", "line 3: 'a 0' has 2 fields instead of 3"),
    (b"0\n1\na 0 5 6\n", "line 3: 'a 0 5 6' has 4 fields instead of 3"),
    (b"0\n1\n a 0 5\n", "line 3: ' a 0 5' has 4 fields instead of 3"),
    (b"0\n2\na 0 5\nb x 5\n", "line 4: 'x' is no number up to 2147483647"),
    (b"0\n1\na 2147483648 5\n", "line 3: '2147483648' is no number up to 2147483647"),
    (b"0\n1\na -1 5\n", "line 3: '-1' is no number up to 2147483647"),
    (b"0\n1\na 0 -5\n", "line 3: '-5' is no number up to 9223372036854775807"),
    (
        b"0\n1\na 0 9223372036854775808\n",
        "line 3: '9223372036854775808' is no number up to 9223372036854775807",
    ),
    (b"0\n1\na 0 1_0\n", "line 3: '1_0' is no number up to 9223372036854775807"),
    (b"0\n1\n../a 0 5\n", "line 3: '../a' is no name of a topic"),
    (b"0\n1\n.. 0 5\n", "line 3: '..' is no name of a topic"),
    (b"0\n2\na 0 5\na 0 6\n", "line 4: a-0 is there twice"),
    (b"0\n1\n\xc3\xa9 0 5\n", "line 3: byte 0xc3 is no text"),
    (b"0\n1\na 0 \xd9\xa5\n", "line 3: byte 0xd9 is no text"),
]


@pytest.mark.parametrize(("data", "complaint"), CORRUPT_OFFSETS)
def test_a_corrupt_offset_checkpoint_is_named_with_its_line(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile) as caught:
        parse_offsets("/d/checkpoint", data)
    assert str(caught.value) == f"/d/checkpoint: {complaint}"


CORRUPT_EPOCHS = [
    (b"0\n1\n5\n", "line 3: '5' has 1 fields instead of 2"),
    (b"0\n2\n5 10\n5 20\n", "line 4: epoch 5 from offset 20 does not come after the one before"),
    (b"0\n2\n5 10\n6 10\n", "line 4: epoch 6 from offset 10 does not come after the one before"),
    (b"0\n1\n2147483648 0\n", "line 3: '2147483648' is no number up to 2147483647"),
]


@pytest.mark.parametrize(("data", "complaint"), CORRUPT_EPOCHS)
def test_corrupt_leader_epochs_are_named_with_their_line(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile) as caught:
        parse_epochs("/d/leader-epoch-checkpoint", data)
    assert str(caught.value) == f"/d/leader-epoch-checkpoint: {complaint}"


CORRUPT_METADATA = [
    (b"", "version or topic_id is missing"),
    (b"version: 0\n", "version or topic_id is missing"),
    (b"version: 1\ntopic_id: PQQ50gOcQLOWLRmj84BXuQ", "version '1' is unknown"),
    (b"version: 0\ntopic_id: short", "'short' is no id of a topic"),
    (
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        "'AAAAAAAAAAAAAAAAAAAAAA' is no id of a topic",
    ),
    (b"version: 0\nversion: 0", "line 2: 'version: 0' is neither `version: 0` nor `topic_id: ID`"),
    (b"version 0", "line 1: 'version 0' is neither `version: 0` nor `topic_id: ID`"),
]


@pytest.mark.parametrize(("data", "complaint"), CORRUPT_METADATA)
def test_corrupt_metadata_of_a_partition_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile) as caught:
        parse_partition_metadata("/d/t-0/partition.metadata", data)
    assert str(caught.value) == f"/d/t-0/partition.metadata: {complaint}"


def test_a_flipped_bit_never_escapes_as_anything_but_a_corrupt_file() -> None:
    random = Random(7)
    texts: list[tuple[Callable[[str, bytes], object], bytes]] = [
        (parse_offsets, offsets_text({("orders", n): n * 1000 for n in range(20)})),
        (parse_epochs, epochs_text([(n, n * 100) for n in range(20)])),
        (parse_partition_metadata, partition_metadata_text(random.randbytes(16))),
    ]
    for parse, text in texts:
        for bit in range(8 * len(text)):
            flipped = bytearray(text)
            flipped[bit // 8] ^= 1 << bit % 8
            try:
                parse("f", bytes(flipped))
            except CorruptFile as error:
                assert "\n" not in str(error)


# --- uuids --------------------------------------------------------------------------------


def test_a_uuid_is_22_characters_both_ways() -> None:
    random = Random(3)
    for uuid in (bytes(16), bytes([255] * 16), *(random.randbytes(16) for _ in range(50))):
        text = uuid_text(uuid)
        assert len(text) == 22
        assert parse_uuid(text) == uuid


@pytest.mark.parametrize(
    "text",
    ["", "A" * 21, "A" * 23, "A" * 22 + "==", "A" * 21 + "+", "A" * 21 + "/", "A" * 21 + "B"],
)
def test_what_is_no_uuid_is_none(text: str) -> None:
    assert parse_uuid(text) is None
