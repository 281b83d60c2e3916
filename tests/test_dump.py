"""`ottla dump`: what it prints of whole files, and that no broken file trips it up."""

import io
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ottla.__main__ import main
from ottla.protocol.wire import ProtocolError
from ottla.storage import dump_rows
from ottla.storage.disk_files import DiskFiles
from ottla.storage.dump import dump
from ottla.storage.dump_messages import decoder_for
from ottla.storage.dump_print import JsonPrinter, Printer, escaped
from ottla.storage.dump_rows import Source, rows
from ottla.storage.format import Fields, build_batch, build_segment, parse_segment
from ottla.storage.format_names import FileKind
from tests import kafka_directories

BATCH: Fields = {
    "partition_leader_epoch": 3,
    "base_timestamp": 1000,
    "records": [{"key": b"k", "value": b"v"}, {"value": b"\xff\x00", "timestamp_delta": 5}],
}
LOG = "00000000000000000000.log"


def write(place: Path, name: str, data: bytes) -> str:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def for_people(*paths: str, **options: Any) -> tuple[str, str]:
    """What is printed, and the complaints."""
    out, complaints = io.StringIO(), io.StringIO()
    dump(paths, DiskFiles(), Printer(out, complaints), **options)
    return out.getvalue(), complaints.getvalue()


def as_json(*paths: str, **options: Any) -> list[Fields]:
    out = io.StringIO()
    dump(paths, DiskFiles(), JsonPrinter(out), **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kafka_directories.unpack(tmp_path_factory.mktemp("kafka"))


# --- what is whole --------------------------------------------------------------------------------


def test_people_get_the_file_and_its_entries_in_kafkas_words(tmp_path: Path) -> None:
    path = write(tmp_path, f"orders-1/{LOG}", build_batch(BATCH))
    out, complaints = for_people(path, with_records=True)
    assert complaints == ""
    assert out.splitlines() == [
        f"{path}: segment of orders-1, 79 bytes",
        "  baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 "
        "producerEpoch: -1 partitionLeaderEpoch: 3 isTransactional: false isControl: false "
        "position: 0 size: 79 timestampType: CreateTime maxTimestamp: 1005 compression: none "
        "magic: 2 crc: 2600809213",
        '    offset: 0 timestamp: 1000 sequence: -1 key: "k" value: "v"',
        "    offset: 1 timestamp: 1005 sequence: -1 key: null value: 0xff00",
        "  total batches: 1 records: 2",
    ]


def test_programs_get_a_json_object_a_line(tmp_path: Path) -> None:
    path = write(tmp_path, f"orders-1/{LOG}", build_batch(BATCH))
    file, batch, first, second, total = as_json(path, with_records=True)
    assert file == {
        "file": path,
        "kind": "file",
        "holds": "segment",
        "state": "",
        "offset": 0,
        "topic": "orders",
        "partition": 1,
        "bytes": 79,
    }
    assert (batch["file"], batch["kind"], batch["lastOffset"]) == (path, "batch", 1)
    assert (first["key"], first["value"]) == ("k", "v")
    assert (second["key"], second["value"]) == (None, {"base64": "/wA="})
    assert total == {"file": path, "kind": "total", "batches": 1, "records": 2}


def test_without_records_only_control_records_are_printed(tmp_path: Path) -> None:
    marker = {"key": b"\0\0\0\1", "value": b"\0\0\0\0\0\7"}
    control = {"base_offset": 9, "attributes": {"is_control": True}, "records": [marker]}
    path = write(tmp_path, LOG, build_segment([BATCH, control]))
    printed = as_json(path)
    assert [row["kind"] for row in printed] == ["file", "batch", "batch", "control", "total"]
    expected = {"offset": 9, "type": "COMMIT", "version": 0, "coordinatorEpoch": 7}
    assert expected.items() <= printed[3].items()


def test_all_that_kafka_wrote_is_printed_without_a_complaint(kafka: Path) -> None:
    out, complaints = for_people(str(kafka), with_records=True)
    assert complaints == ""
    assert all(f"{kafka}/{path}: " in out for path in kafka_directories.files())


def test_all_records_that_kafka_wrote_are_there(kafka: Path) -> None:
    kinds = Counter(row["kind"] for row in as_json(str(kafka), with_records=True))
    in_segments = 0
    for path, data in kafka_directories.files().items():
        if ".log" in path or path.endswith(".checkpoint"):
            in_segments += sum(len(batch["records"]) for batch in parse_segment(data))
    assert kinds["record"] + kinds["control"] == in_segments
    assert kinds["preallocated"] == 4


def test_records_of_kafkas_own_topics_are_shown_as_messages(kafka: Path) -> None:
    printed = as_json(str(kafka), with_records=True)
    records = [row for row in printed if row["kind"] == "record"]
    assert not [row for row in records if "undecoded" in row]
    topics = {row["file"]: row.get("topic") for row in printed if row["kind"] == "file"}
    own = [row for row in records if (topics[row["file"]] or "__").startswith("__")]
    messages = {row["value"]["message"] for row in own if row["value"]}
    assert messages > {
        "TopicRecord",
        "PartitionRecord",
        "FeatureLevelRecord",
        "GroupMetadataValue",
        "OffsetCommitValue",
        "ConsumerGroupMemberMetadataValue",
        "TransactionLogValue",
    }
    commit = next(row for row in own if (row["key"] or {}).get("message") == "OffsetCommitKey")
    assert commit["key"]["json"].keys() == {"group", "topic", "partition"}


def test_an_index_is_printed_without_its_preallocated_zeros(tmp_path: Path) -> None:
    entry = bytes.fromhex("00000003 00001000")
    path = write(tmp_path, "00000000000000000100.index", entry + bytes(80))
    assert for_people(path)[0].splitlines()[1:] == [
        "  offset: 103 position: 4096",
        "  preallocated bytes: 80",
    ]


def test_a_text_file_is_printed_in_kafkas_words(tmp_path: Path) -> None:
    checkpoint = write(tmp_path, "leader-epoch-checkpoint", b"0\n1\n4 17\n")
    properties = write(tmp_path, "meta.properties", b"#\nnode.id=1\nversion=1\n")
    assert "  epoch: 4 startOffset: 17\n" in for_people(checkpoint)[0]
    assert "  node.id: 1 version: 1\n" in for_people(properties)[0]


def test_a_limit_holds_for_each_file(tmp_path: Path) -> None:
    batches = [{**BATCH, "base_offset": offset} for offset in range(0, 20, 2)]
    write(tmp_path, f"a-0/{LOG}", build_segment(batches))
    write(tmp_path, f"b-0/{LOG}", build_segment(batches))
    kinds = [row["kind"] for row in as_json(str(tmp_path), limit=3)]
    assert kinds == ["file", "batch", "batch", "batch"] * 2


def test_a_directory_is_walked_and_strangers_in_it_are_named(tmp_path: Path) -> None:
    write(tmp_path, "1/orders-0/notes.txt", b"hello")
    out, complaints = for_people(str(tmp_path))
    assert (out, complaints) == (
        f"{tmp_path}/1/orders-0/notes.txt: not a file of Kafka's, 5 bytes\n",
        "",
    )


# --- what is printed cannot harm ------------------------------------------------------------------


def test_nothing_printed_can_steer_a_terminal(tmp_path: Path) -> None:
    attack = "\x1b[2J\x9b31m\u202e\n\r\x7f"
    record = {"key": attack.encode(), "headers": [{"key": attack.encode(), "value": None}]}
    write(tmp_path, f"t-0/{LOG}", build_batch({"records": [record]}))
    write(tmp_path, f"t-0/{attack}", b"")
    write(tmp_path, f"{attack}/{LOG}", b"broken")
    write(tmp_path, "quorum-state", json.dumps({"data_version": 0, attack: attack}).encode())
    write(tmp_path, "meta.properties", f"a={attack[:-3]}\n{attack[:3]}".encode())
    out, complaints = for_people(str(tmp_path), with_records=True)
    assert (out + complaints).replace("\n", "").isprintable()
    assert len(out.splitlines()) == 9


def test_a_long_value_is_cut_for_people_and_whole_for_programs(tmp_path: Path) -> None:
    text = "é" * 2000
    path = write(tmp_path, LOG, build_batch({"records": [{"value": b"x" + text.encode()}]}))
    out, _ = for_people(path, with_records=True)
    assert f'value: "x{text[:499]}"... (4001 bytes)' in out
    assert as_json(path, with_records=True)[2]["value"] == "x" + text


def test_bytes_that_are_no_text_are_shown_as_hex(tmp_path: Path) -> None:
    values = [b"", b"\x00\x01", b"\xc3", "ü".encode(), b"a\nb"]
    batch = {"records": [{"key": value} for value in values]}
    out, _ = for_people(write(tmp_path, LOG, build_batch(batch)), with_records=True)
    shown = [line.split("key: ")[1].split(" value")[0] for line in out.splitlines()[2:-1]]
    assert shown == ['""', "0x0001", "0xc3", '"ü"', '"a\\nb"']


def test_escaping_leaves_what_is_printable() -> None:
    assert escaped("a b ü") == "a b ü"
    assert escaped("a\udc80\x00") == "a\\udc80\\x00"


# --- what is broken -------------------------------------------------------------------------------

WHOLE = build_batch(BATCH)
SECOND = build_batch({**BATCH, "base_offset": 2})
THIRD = build_batch({**BATCH, "base_offset": 4})
UNDECODABLE = build_batch(
    {"base_offset": 2, "attributes": {"compression": "zstd"}, "compressed": b"junk", "records": []}
)
BROKEN: dict[str, tuple[str, bytes, str, int]] = {  # name, bytes, complaint, rows before it
    "a torn batch": (LOG, WHOLE + SECOND[:-1], "position 79: 78 bytes are left of a batch", 1),
    "a flipped bit": (LOG, WHOLE + SECOND[:-1] + b"\1", "position 79: the CRC is", 1),
    "records that cannot be decoded": (
        LOG,
        WHOLE + UNDECODABLE + THIRD,
        "position 79: the zstd data cannot be read",
        8,
    ),
    "an index out of order": (
        "00000000000000000000.index",
        bytes.fromhex("00000003 00001000 00000002 00002000"),
        "position 8: offset 2 comes after 3",
        1,
    ),
    "a torn time index": (
        "00000000000000000000.timeindex",
        b"\0\0\0\0\0\0\0\5\0\0\0\1\1",
        "position 12: 1 bytes are left",
        1,
    ),
    "an empty snapshot": ("00000000000000000000.snapshot", b"", "position 0: 0 bytes", 0),
    "a checkpoint without its count": ("cleaner-offset-checkpoint", b"0\n", "position 2: ", 0),
    "a checkpoint that is huge": (
        "cleaner-offset-checkpoint",
        bytes(dump_rows.TEXT_SIZE_MAX + 1),
        "position 0: 8388609 bytes are too many",
        0,
    ),
    "quorum state nested deeply": (
        "quorum-state",
        b'{"data_version":0,"a":' + b"[" * 900 + b"]" * 900 + b"}",
        "position 0: nested too deeply",
        0,
    ),
    "quorum state with our own words": (
        "quorum-state",
        b'{"data_version":0,"kind":"error","file":"x"} ',
        "",
        1,
    ),
}


@pytest.mark.parametrize(("name", "data", "complaint", "row_count"), BROKEN.values(), ids=BROKEN)
def test_what_is_whole_is_printed_then_one_line_says_what_is_broken(
    name: str, data: bytes, complaint: str, row_count: int, tmp_path: Path
) -> None:
    path = write(tmp_path, name, data)
    out, complaints = for_people(path, with_records=name == LOG and b"junk" in data)
    printed = out.splitlines()[1:]
    assert len(printed) == row_count
    if complaint:
        (line,) = complaints.splitlines()
        assert line.startswith(f"{path}: {complaint}")
    else:
        assert complaints == ""


def test_programs_get_the_complaint_as_an_object(tmp_path: Path) -> None:
    path = write(tmp_path, LOG, WHOLE + bytes(100))
    last = as_json(path)[-1]
    assert last == {
        "file": path,
        "kind": "error",
        "position": len(WHOLE),
        "reason": "zeros instead of a batch: a torn or preallocated tail",
    }


def test_a_file_cannot_pass_for_another_by_what_it_holds(tmp_path: Path) -> None:
    path = write(tmp_path, "quorum-state", b'{"data_version":0,"kind":"error","file":"x"}')
    assert [(row["file"], row["kind"]) for row in as_json(path)] == [
        (path, "file"),
        (path, "entry"),
    ]


def test_a_file_that_is_not_there_or_not_kafkas_is_complained_about(tmp_path: Path) -> None:
    missing, stranger = str(tmp_path / LOG), write(tmp_path, "notes.txt", b"")
    assert for_people(missing)[1] == f"{missing}: No such file or directory\n"
    assert for_people(stranger)[1] == f"{stranger}: Kafka has no file of such a name\n"


def test_one_broken_file_does_not_keep_the_others_back(tmp_path: Path) -> None:
    write(tmp_path, f"a-0/{LOG}", b"junk")
    whole = write(tmp_path, f"b-0/{LOG}", WHOLE)
    assert f"{whole}: segment of b-0" in for_people(str(tmp_path))[0]


def test_a_link_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    os.symlink(tmp_path, tmp_path / "again")
    out, complaints = for_people(str(tmp_path))
    assert out == ""
    assert "not as deep" in complaints


def test_a_segment_is_read_in_pieces(tmp_path: Path) -> None:
    batch = build_batch({"records": [{"value": bytes(10 << 20)}]})
    sizes = []

    def read(position: int, size: int) -> bytes:
        sizes.append(size)
        return batch[position : position + size]

    source = Source(kind=FileKind.SEGMENT, offset=0, topic=None, read=read, size=len(batch))
    assert [row["kind"] for row in rows(source, with_records=False)] == ["batch", "total"]
    assert max(sizes) == 1 << 20


def test_a_batch_that_is_too_large_is_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_rows, "BATCH_SIZE_MAX", 78)
    _, complaints = for_people(write(tmp_path, LOG, WHOLE), with_records=True)
    assert "records of a batch of 79 bytes are not decoded" in complaints


def test_a_small_batch_that_grows_without_end_takes_no_memory(tmp_path: Path) -> None:
    batch = build_batch(
        {"records": [{"value": bytes(100 << 20)}], "attributes": {"compression": "zstd"}}
    )
    assert len(batch) < 10_000
    path = write(tmp_path, LOG, batch)
    tracemalloc.start()
    _, complaints = for_people(path, with_records=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "decompresses to more bytes than allowed" in complaints
    assert peak < 100 << 20


def test_a_record_of_an_unknown_message_is_shown_as_it_is(tmp_path: Path) -> None:
    records = [{"key": b"\x7f\0later", "value": b"\0\0"}, {"key": None}, {"key": b"\0"}]
    path = write(tmp_path, f"__consumer_offsets-0/{LOG}", build_batch({"records": records}))
    printed = [row for row in as_json(path, with_records=True) if row["kind"] == "record"]
    assert [row["key"] for row in printed] == [{"base64": "fwBsYXRlcg=="}, None, {"base64": "AA=="}]
    assert [row["undecoded"] for row in printed] == [
        "type 32512 is unknown",
        "a record without a key",
        "too short for a version",
    ]


UNDECODED: dict[str, tuple[str, bytes, bytes, str]] = {  # topic, key, value, words of the reason
    "no type of this topic": ("__transaction_state", b"\0\7", b"\0\0", "type 7 is unknown"),
    "a version of later": ("__transaction_state", b"\0\0\0\1a", b"\0\x63", "version 99"),
    "more than the message": ("__transaction_state", b"\0\0\0\1a!", b"\0\0", "1 bytes follow"),
    "less than the message": ("__transaction_state", b"\0\0\0\2a", b"\0\0", "transactional_id"),
    "a frame of later": ("__cluster_metadata", b"", b"\2\x14\0\0", "frame version 2"),
    "a frame that is cut": ("__cluster_metadata", b"", b"\1\x14", "cut short"),
    "a value that is huge": ("__cluster_metadata", b"", bytes((16 << 20) + 1), "too many"),
}


@pytest.mark.parametrize(("topic", "key", "value", "words"), UNDECODED.values(), ids=UNDECODED)
def test_what_is_no_message_of_the_topic_is_told_with_its_reason(
    topic: str, key: bytes, value: bytes, words: str
) -> None:
    decoder = decoder_for(topic)
    assert decoder is not None
    with pytest.raises(ProtocolError, match=words):
        decoder.decode(key, value)


def test_a_topic_of_users_is_not_decoded() -> None:
    assert decoder_for("orders") is None
    assert decoder_for(None) is None


@pytest.mark.parametrize("seed", range(6))
def test_no_broken_file_ends_in_anything_but_a_complaint(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    for number, (path, data) in enumerate(kafka_directories.files().items()):
        if not 0 < len(data) < 10_000:
            continue
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            broken[dice.randrange(len(broken))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF])
        del broken[dice.choice([len(broken), dice.randrange(len(broken))]) :]
        write(tmp_path, f"{number}/{path.partition('/')[2]}", bytes(broken))
    _, complaints = for_people(str(tmp_path), with_records=True)
    assert "position" in complaints
    for line in complaints.splitlines():
        assert line.startswith(f"{tmp_path}/")


# --- the command ----------------------------------------------------------------------------------


def test_the_exit_code_tells_whether_all_was_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write(tmp_path, f"a-0/{LOG}", WHOLE)
    broken = write(tmp_path, f"b-0/{LOG}", WHOLE[:-1])
    assert main(["dump", whole]) == 0
    assert main(["dump", whole, "--json", "--records", "--limit", "1"]) == 0
    assert main(["dump", whole, "--limit", "9" * 30]) == 0
    capsys.readouterr()
    assert main(["dump", broken, whole]) == 1
    printed = capsys.readouterr()
    assert printed.err == f"{broken}: position 0: 78 bytes are left of a batch of 79\n"
    assert f"{whole}: segment of a-0" in printed.out


@pytest.mark.parametrize("arguments", [[], ["x", "--limit", "-1"], ["x", "--limit", "many"]])
def test_a_wrong_command_line_ends_with_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["dump", *arguments])
    assert stop.value.code == 2
    assert "usage: ottla dump" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    batches = [{**BATCH, "base_offset": offset} for offset in range(0, 4000, 2)]
    path = write(tmp_path, LOG, build_segment(batches))
    command = [sys.executable, "-m", "ottla", "dump", "--records", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.readline()
        ran.stdout.close()
        assert ran.stderr.read() == b""
        assert ran.wait() == 0


def test_a_terminal_that_knows_only_ascii_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path, LOG, build_batch({"records": [{"key": "ü".encode()}]}))
    command = [sys.executable, "-m", "ottla", "dump", "--records", path]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert b'key: "\\xfc"' in ran.stdout
