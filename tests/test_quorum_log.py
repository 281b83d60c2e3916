"""The metadata log on disk, its snapshots, and what it says of the quorum."""

from collections.abc import Iterator
from random import Random

import pytest

from ottla.protocol.messages.metadata_records import FeatureLevelRecord
from ottla.protocol.messages.raft_records import KRaftVersionRecord
from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum_batches import control_batch, metadata_batch
from ottla.replication.quorum_log import FOLDER, MetadataLog, MetadataLogSettings
from ottla.replication.quorum_snapshots import snapshot_batches, snapshot_name
from ottla.replication.raft_messages import Position
from ottla.replication.voters import Voters, static_voters
from ottla.storage.errors import CorruptFile
from ottla.storage.folder import LogDir
from ottla.storage.index_memory import IndexMemory
from ottla.storage.log import Log
from ottla.storage.long_work import work_now
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.producers import Origin
from ottla.storage.steps import to_the_end
from tests.kafka_directories import files as kafka_files
from tests.quorum_rig import Clock, topic

CLOCK = Clock()
VERSION = KRaftVersionRecord(version=0, k_raft_version=1)


def voters(*ids: int) -> Voters:
    return static_voters(ids)


def disk() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory("data")
    return files


def opened(files: MemoryFiles, settings: MetadataLogSettings | None = None) -> MetadataLog:
    log_dir = LogDir(files, "data", random=Random(1), indexes=IndexMemory())
    log = MetadataLog(log_dir, settings=settings or MetadataLogSettings(), now=CLOCK)
    to_the_end(log.opening())
    return log


def reopened(log: MetadataLog, files: MemoryFiles) -> MetadataLog:
    log.log.close()
    return opened(files)


def append(log: Log, *names: str, epoch: int = 1) -> None:
    data = metadata_batch(
        [topic(name) for name in names], base_offset=0, epoch=epoch, timestamp_ms=5
    )
    log.append_as_leader(data, leader_epoch=epoch, now=CLOCK(), origin=Origin.COORDINATOR)
    log.update_high_watermark(log.log_end_offset)


def append_controls(log: MetadataLog, *messages: object) -> None:
    data = control_batch(messages, base_offset=0, epoch=1, timestamp_ms=5)
    offset = log.log.log_end_offset
    log.log.append_as_leader(data, leader_epoch=1, now=CLOCK(), origin=Origin.COORDINATOR)
    log.note(messages, offset)
    log.log.update_high_watermark(log.log.log_end_offset)


def put_snapshot(log: MetadataLog, position: Position, *names: str) -> None:
    records: Iterator[Versioned] = iter([topic(name) for name in names])
    work_now(log.writing_snapshot(position, records, last_contained_log_timestamp=5))


def offsets(log: MetadataLog, start: int) -> list[int]:
    return [batch.header.base_offset for batch in log.batches(start) if batch is not None]


def test_a_new_log_is_empty() -> None:
    log = opened(disk())
    assert (log.end, log.newest, log.history) == (Position(0, 0), None, [])


def test_a_log_that_is_gone_is_missed_when_there_are_topics() -> None:
    files = disk()
    files.make_directory("data/topic-0")
    with pytest.raises(CorruptFile, match="the metadata log is missing, and topic-0 is there"):
        opened(files)


def test_reading_begins_with_the_batch_that_holds_the_offset() -> None:
    log = opened(disk())
    for names in (["a"], ["b", "c", "d"], ["e"]):
        append(log.log, *names)
    assert offsets(log, 0) == [0, 1, 4]
    assert offsets(log, 2) == [1, 4]
    assert offsets(log, 4) == [4]
    assert offsets(log, 5) == []


def test_the_voters_are_those_that_the_log_named_last() -> None:
    files = disk()
    log = opened(files)
    append_controls(log, VERSION, voters(1).record())
    append(log.log, "a")
    append_controls(log, voters(1, 2).record())
    log = reopened(log, files)
    assert [(each.offset, each.kraft_version, each.voters.ids) for each in log.history] == [
        (0, 1, [1]),
        (3, 1, [1, 2]),
    ]


def test_a_snapshot_tells_the_voters_of_its_time() -> None:
    files = disk()
    log = opened(files)
    append_controls(log, VERSION, voters(1).record())
    append(log.log, "a")
    put_snapshot(log, Position(1, 3), "a")
    append_controls(log, voters(1, 2).record())
    log = reopened(log, files)
    assert [(each.offset, each.voters.ids) for each in log.history] == [(2, [1]), (3, [1, 2])]
    put_snapshot(log, Position(1, 4), "a")
    assert log.open_snapshot(Position(1, 3)).controls == [VERSION, voters(1).record()]
    assert log.open_snapshot(Position(1, 4)).controls == [VERSION, voters(1, 2).record()]


def test_voters_that_are_configured_stand_in_no_snapshot() -> None:
    log = opened(disk())
    append(log.log, "a")
    put_snapshot(log, Position(1, 1), "a")
    assert log.open_snapshot(Position(1, 1)).controls == []


@pytest.mark.parametrize("position", [Position(1, 9), Position(2, 1)])
def test_a_log_that_is_behind_its_snapshot_begins_there(position: Position) -> None:
    """As after a snapshot that a follower has fetched."""
    files = disk()
    log = opened(files)
    append(log.log, "a", "b")
    log.log.close()
    data = b"".join(snapshot_batches([], [], epoch=2, wall_ms=5, last_contained_log_timestamp=5))
    files.write_atomically_now(f"data/{FOLDER}/{snapshot_name(position)}", data)
    log = opened(files)
    assert log.end == position
    assert log.log.log_start_offset == position.offset


def test_a_damaged_snapshot_is_refused() -> None:
    files = disk()
    log = opened(files)
    append(log.log, "a")
    put_snapshot(log, Position(1, 1), "a")
    log.log.close()
    path = f"data/{FOLDER}/{snapshot_name(Position(1, 1))}"
    files.write_atomically_now(path, files.read_whole(path)[:-1] + b"?")
    with pytest.raises(CorruptFile, match="crc"):
        for _ in opened(files).open_snapshot(Position(1, 1)).records():
            pass


def test_too_many_bytes_or_days_are_too_much() -> None:
    log = opened(disk(), MetadataLogSettings(max_retention_bytes=-1, max_retention_ms=-1))
    for number in range(1, 4):
        append(log.log, f"t{number}")
        put_snapshot(log, Position(1, number), "x")
    log.clean(CLOCK())
    assert len(log.snapshots) == 3, "nothing is limited"
    log._settings = MetadataLogSettings(max_retention_bytes=-1, max_retention_ms=1)
    log.clean(CLOCK())
    assert log.snapshots == [Position(1, 3)], "the newest stays, however old"
    assert log.log.log_start_offset == 3


def test_the_log_of_a_real_kafka_is_read() -> None:
    """Stopped cleanly, in its second life, with a snapshot from before."""
    files = disk()
    files.make_directory(f"data/{FOLDER}")
    for name, data in kafka_files().items():
        if name.startswith(f"clean/{FOLDER}/"):
            files.write_atomically_now(f"data/{FOLDER}/{name.rpartition('/')[2]}", data)
    log = opened(files)
    assert log.snapshots == [Position(0, 0), Position(2, 379)]
    assert log.end == Position(2, 417)
    (known,) = [each for each in log.history if each.offset < 379]
    assert (known.kraft_version, known.voters.ids) == (1, [1])
    records = [
        record
        for batch in log.batches(0)
        if batch is not None and not batch.header.is_control
        for record in batch.metadata()
    ]
    levels = [each.message.name for each in records if type(each.message) is FeatureLevelRecord]
    assert "metadata.version" in levels
    snapshot = log.open_snapshot(Position(2, 379))
    assert sum(map(len, snapshot.records())) > 50
