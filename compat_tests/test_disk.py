"""What we write on disk, judged by Apache Kafka; what Apache Kafka wrote, opened by us.

A random workload of ours is read by DumpLogSegments: no complaint, and line by line what we say
ourselves. The folders of a stopped or killed Kafka hold here what they held there; we append to
them, and Kafka serves both parts.
"""

import collections
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.both_readers import agree, files_of_storage
from compat_tests.dump_log import (
    SUFFIXES,
    Lines,
    dump,
    dumpable,
    expected_complaints,
    expected_lines,
    read_log,
)
from compat_tests.filled_kafka import TOPICS, Told, consumed, fill, send_batch, told
from compat_tests.opened_folders import OpenedFolders, committed_rows, producer_states, rows
from compat_tests.workload import Workload
from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import ControlRecordType, read_control
from ottla.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    LOG_START_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    parse_clean_shutdown,
    parse_offsets,
)
from ottla.storage.format_index import parse_transaction_index
from ottla.storage.format_text import parse_leader_epoch_checkpoint
from ottla.storage.log import Log
from ottla.storage.names import LEADER_EPOCH_CHECKPOINT

SEEDS = range(5)
OPERATIONS = 500
PROPERTIES = {
    # After kill -9 a broker may register again only when its old session has run out.
    "broker.session.timeout.ms": "4000",
    "log.initial.task.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "2",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
ALL = ("--deep-iteration", "--print-data-log")


@pytest.fixture(scope="module")
def dumper(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """For its tools: it does not run."""
    kafka = Kafka(data_dir=tmp_path_factory.getbasetemp())
    yield kafka
    kafka.close()


@pytest.fixture(scope="module")
def workloads(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> list[Workload]:
    done = [Workload(seed, tmp_path_factory.mktemp(f"workload-{seed}")) for seed in SEEDS]
    for workload in done:
        workload.run(OPERATIONS)
    return done


def test_kafka_reads_what_we_wrote_and_complains_of_nothing(
    dumper: Kafka, workloads: list[Workload], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [path for each in workloads for path in dumpable(each.directory)]
    printed, complaints = dump(dumper, paths, *ALL)
    must_be_as_we_say(paths, printed, complaints)
    with capsys.disabled():
        print(f"\n{counted(paths)}: {sum(map(len, printed.values()))} lines of DumpLogSegments")


def test_kafka_finds_our_indexes_sane(dumper: Kafka, workloads: list[Workload]) -> None:
    paths = [path for each in workloads for path in dumpable(each.directory)]
    indexes = [path for path in paths if path.suffix in (".index", ".timeindex")]
    printed, complaints = dump(dumper, indexes, "--index-sanity-check")
    assert not complaints
    for path in indexes:
        told = "is empty." if is_empty_offset_index(path) else "passed sanity check."
        assert printed[path] == [f"{path} {told}"]
    printed, complaints = dump(dumper, indexes, "--verify-index-only")
    assert complaints == {path: said for path in indexes if (said := expected_complaints(path))}
    assert {path for path in printed if printed[path]} == set(
        filter(is_empty_offset_index, indexes)
    )


def test_kafka_reads_what_a_crash_left(dumper: Kafka, workloads: list[Workload]) -> None:
    """But indexes that are nothing but preallocated: there the tool takes the zeros for an entry,
    also in what Kafka itself leaves after kill -9."""
    paths = [
        path
        for each in workloads
        for image in each.images
        for path in dumpable(image)
        if not is_zeros(path)
    ]
    printed, complaints = dump(dumper, paths, *ALL)
    must_be_as_we_say(paths, printed, complaints)
    assert sum(path.suffix == ".log" for path in paths) > 20 * len(SEEDS)


def test_our_transaction_indexes_say_what_the_batches_say(workloads: list[Workload]) -> None:
    """Made again from the log in another way, where nothing of it was deleted or compacted."""
    compared = 0
    for each in workloads:
        for topic in ("plain", "stamped", "packed"):
            paths = dumpable(each.directory / f"{topic}-0")
            logs = [path for path in paths if path.suffix == ".log"]
            if int(logs[0].stem) != 0:
                continue
            stored = [
                tuple(entry.values())[-4:]
                for path in paths
                if path.suffix == ".txnindex"
                for entry in parse_transaction_index(path.read_bytes())
            ]
            assert stored == aborted_in(logs), logs[0]
            compared += len(stored)
    assert compared > len(SEEDS)


def aborted_in(logs: list[Path]) -> list[tuple[int, ...]]:
    """Producer id, first offset, offset of the marker, last stable offset after it."""
    found: list[tuple[int, ...]] = []
    ongoing: dict[int, int] = {}
    for header, records in (batch for path in logs for batch in read_log(path)):
        producer_id, offset = header.producer_id, header.base_offset
        if header.is_transactional and not header.is_control:
            ongoing.setdefault(producer_id, offset)
        elif header.is_control and producer_id in ongoing:
            first = ongoing.pop(producer_id)
            if read_control(records[0]).type is ControlRecordType.ABORT:
                stable = min(ongoing.values(), default=offset + 1)
                found.append((producer_id, first, offset, stable))
    return found


def test_the_workload_had_something_of_everything(workloads: list[Workload]) -> None:
    """Or the tests above would prove less than they say."""
    batches = [
        (header, records)
        for each in workloads
        for path in dumpable(each.directory)
        if path.suffix == ".log"
        for header, records in read_log(path)
    ]
    counts = collections.Counter[str]()
    for each in workloads:
        counts.update(each.counts)
    assert min(counts.values()) >= len(SEEDS), counts
    assert {header.compression for header, _ in batches} == set(Codec)
    for flag in ("is_control", "is_transactional", "is_log_append_time", "has_delete_horizon"):
        assert {getattr(header, flag) for header, _ in batches} == {True, False}, flag
    assert any(not records for _, records in batches)
    assert any(header.last_sequence < header.base_sequence for header, _ in batches)
    assert max(header.partition_leader_epoch for header, _ in batches) > 5


def test_the_specification_and_the_fast_path_agree_on_what_we_wrote(
    workloads: list[Workload],
) -> None:
    for each in workloads:
        for directory in (each.directory, *each.images[-1:]):
            for path in files_of_storage(directory):
                agree(path)


@pytest.mark.parametrize(
    ("version", "ends"),
    [
        ("4.3.1", Kafka.stop),
        ("4.3.1", Kafka.kill),
        ("3.9.1", Kafka.stop),
        ("3.9.1", Kafka.kill),
    ],
)
def test_kafkas_folders_are_opened_added_to_and_served_by_kafka_again(
    version: str,
    ends: Callable[[Kafka], None],
    start_kafka: Callable[..., Kafka],
    dumper: Kafka,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kafka = start_kafka(version=version, properties=PROPERTIES, data_dir=tmp_path)
    fill(kafka)
    before = {topic: told(kafka, topic) for topic in TOPICS}
    if ends is Kafka.kill:
        wait_for_checkpoints(kafka.data_dir, before)
    ends(kafka)
    written = files_of_storage(kafka.data_dir)
    broker_epoch = epoch_of_clean_shutdown(kafka.data_dir)
    assert (broker_epoch is None) is (ends is Kafka.kill)
    for path in written:
        agree(path)
    epochs = {topic: leader_epochs(kafka.data_dir / f"{topic}-0") for topic in TOPICS}

    wall_ms = max(row[1] for each in before.values() for row in each.records)
    folders = OpenedFolders(kafka.data_dir, wall_ms=wall_ms)
    for topic, expected in before.items():
        must_hold(folders.log(topic), expected, epochs[topic])
        folders.append(folders.log(topic))
    log = folders.log("idempotent")
    idempotent = next(iter(before["idempotent"].producers))
    last = folders.next_batch(log, idempotent, "ours")
    appended = log.append_as_leader(
        bytearray(last), leader_epoch=log.epochs.latest or 0, now=folders.now
    )
    following = folders.next_batch(log, idempotent, "following")
    ours = {topic: told_by_us(folders.log(topic)) for topic in TOPICS}
    folders.close(broker_epoch=-1 if broker_epoch is None else broker_epoch)
    for path in files_of_storage(kafka.data_dir):
        agree(path)
    dumped = [path for topic in TOPICS for path in dumpable(kafka.data_dir / f"{topic}-0")]
    must_be_as_we_say(dumped, *dump(dumper, dumped, *ALL))

    kafka.start()
    for topic in TOPICS:
        must_be_served(kafka, topic, ours[topic])
        assert len(ours[topic].records) == len(before[topic].records) + 10 * 30 + (
            3 if topic == "idempotent" else 0
        )
    end = ours["idempotent"].high_watermark
    assert send_batch(kafka, "idempotent", last) == (ErrorCode.NONE, appended.base_offset)
    assert send_batch(kafka, "idempotent", following) == (ErrorCode.NONE, end)
    assert consumed(kafka, "idempotent", "read_uncommitted")[2] == end + 3
    with capsys.disabled():
        count = sum(len(each.records) for each in before.values())
        print(
            f"\n{version} after {ends.__name__}: {count} records in {counted(written)};"
            f" {sum(len(each.records) for each in ours.values())} after us"
        )


def test_kafka_recovers_what_a_crash_of_ours_left(
    start_kafka: Callable[..., Kafka], tmp_path: Path
) -> None:
    """Killed in the midst of a batch: indexes at their full length, no clean stop, a torn tail."""
    kafka = start_kafka(properties=PROPERTIES, data_dir=tmp_path)
    fill(kafka)
    wall_ms = max(row[1] for topic in TOPICS for row in told(kafka, topic).records)
    kafka.stop()
    folders = OpenedFolders(kafka.data_dir, wall_ms=wall_ms)
    ours = {}
    for topic in TOPICS:
        log = folders.log(topic)
        folders.append(log)
        ours[topic] = told_by_us(log)
        torn = build_batch(folders.records(5, "never whole"))
        log.append_as_leader(torn, leader_epoch=log.epochs.latest or 0, now=folders.now)
    folders.crash()
    assert epoch_of_clean_shutdown(kafka.data_dir) is None
    for topic in TOPICS:
        last = max((kafka.data_dir / f"{topic}-0").glob("*.log"))
        os.truncate(last, last.stat().st_size - 17)
    kafka.start()
    for topic in TOPICS:
        must_be_served(kafka, topic, ours[topic])


def must_be_served(kafka: Kafka, topic: str, expected: Told) -> None:
    found = told(kafka, topic)
    if topic != "compacted":
        assert found == expected, topic
        return
    # It may have been cleaned once more.
    assert set(found.records) <= set(expected.records)
    assert found.high_watermark == expected.high_watermark
    latest = {key: (offset, value) for offset, _, key, value, _ in expected.records}
    for offset, _, key, value, _ in found.records:
        if latest[key] == (offset, value):
            del latest[key]
    # Old tombstones alone may be gone.
    assert all(value is None for _, value in latest.values())


def must_hold(log: Log, expected: Told, epochs: list[tuple[int, int]]) -> None:
    """What Kafka had."""
    assert rows(log) == expected.records, log
    assert committed_rows(log) == expected.committed, log
    assert log.log_start_offset == expected.log_start, log
    assert log.high_watermark == expected.high_watermark == log.log_end_offset, log
    # Kafka, too, forgets a leader that appended nothing when it loads the log.
    assert log.epochs.entries == [each for each in epochs if each[1] < log.log_end_offset], log
    assert producer_states(log) == expected.producers, log


def told_by_us(log: Log) -> Told:
    """With all of it committed."""
    high_watermark = log.update_high_watermark(log.log_end_offset)
    committed = committed_rows(log)
    return Told(rows(log), committed, log.log_start_offset, high_watermark, producer_states(log))


def wait_for_checkpoints(directory: Path, expected: dict[str, Told]) -> None:
    """Kafka writes them now and then."""
    pause = threading.Event()
    for _ in range(100):
        starts = offsets_in(directory / LOG_START_OFFSET_CHECKPOINT)
        ends = offsets_in(directory / REPLICATION_OFFSET_CHECKPOINT)
        if starts.get(("deleted", 0)) == expected["deleted"].log_start and all(
            ends.get((topic, 0)) == each.high_watermark for topic, each in expected.items()
        ):
            return
        pause.wait(0.1)
    pytest.fail("Kafka has not written its checkpoints")


def offsets_in(path: Path) -> dict[tuple[str, int], int]:
    return parse_offsets(str(path), path.read_bytes()) if path.exists() else {}


def leader_epochs(folder: Path) -> list[tuple[int, int]]:
    entries = parse_leader_epoch_checkpoint((folder / LEADER_EPOCH_CHECKPOINT).read_bytes())
    return [(each["epoch"], each["start_offset"]) for each in entries or []]


def epoch_of_clean_shutdown(directory: Path) -> int | None:
    path = directory / CLEAN_SHUTDOWN
    return parse_clean_shutdown(path.read_bytes()) if path.exists() else None


def must_be_as_we_say(paths: list[Path], printed: Lines, complaints: Lines) -> None:
    assert set(printed) == set(paths)
    for path in paths:
        assert printed[path] == expected_lines(path), path
        assert complaints.get(path, []) == expected_complaints(path), path
    assert set(complaints) <= set(paths)


def is_empty_offset_index(path: Path) -> bool:
    return path.suffix == ".index" and not path.stat().st_size


def is_zeros(path: Path) -> bool:
    data = path.read_bytes()
    return path.suffix in (".index", ".timeindex") and len(data) > 12 and not any(data)


def counted(paths: list[Path]) -> str:
    counts = collections.Counter(path.suffix for path in paths if path.suffix in SUFFIXES)
    return ", ".join(f"{count} {suffix}" for suffix, count in sorted(counts.items()))
