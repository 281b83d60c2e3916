"""What we write on disk, judged by Apache Kafka; what Apache Kafka wrote, opened by us.

A random workload of ours is read by DumpLogSegments: no complaint, and line by line what we say
ourselves.
"""

import collections
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.both_readers import agree, files_of_storage
from compat_tests.dump_log import (
    Lines,
    dump,
    dumpable,
    expected_complaints,
    expected_lines,
    read_log,
)
from compat_tests.workload import Workload
from ottla.protocol.compression import Codec

SEEDS = range(5)
OPERATIONS = 500
ALL = ("--deep-iteration", "--print-data-log")


@pytest.fixture(scope="module")
def dumper(needs_kafka: None) -> Iterator[Kafka]:
    """For its tools: it does not run."""
    kafka = Kafka()
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
    counts = collections.Counter(path.suffix for path in paths)
    return ", ".join(f"{count} {suffix}" for suffix, count in sorted(counts.items()))
