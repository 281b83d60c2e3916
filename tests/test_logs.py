"""The logs of a node: opened from what is there, apart by directory, closed for a quick start."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from zlib import crc32

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.logs import DuplicateFolder, Logs
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from ottla.storage.steps import exhaust, to_the_end
from tests.log_rig import NOW, TOPIC_ID, append, batch, batches, refused

CONFIG = LogConfig()


def started(files: MemoryFiles, *paths: str, config: LogConfig = CONFIG) -> Logs:
    directories = open_log_directories(files, paths or ("a",), cluster_id="C", node_id=1)
    logs = Logs(files, directories, random=Random(3), default_config=config)
    exhaust(logs.opening(lambda topic: config, NOW))
    return logs


def stopped(logs: Logs, *, broker_epoch: int = 5) -> None:
    exhaust(logs.closing(broker_epoch=broker_epoch))


def made(logs: Logs, topic: str = "t", partition: int = 0, *, path: str | None = None) -> None:
    log = logs.create(topic, partition, CONFIG, topic_id=TOPIC_ID, now=NOW, path=path)
    append(log, 3)
    log.update_high_watermark(3)


def test_logs_are_there_again_after_a_clean_stop() -> None:
    files = MemoryFiles()
    logs = started(files)
    for partition in range(3):
        made(logs, partition=partition)
    expected = {key: batches(log) for key, log in logs.current.items()}
    stopped(logs)
    again = files.copy()
    assert again.read_whole("a/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":5}'
    opened = started(again)
    assert {key: batches(log) for key, log in opened.current.items()} == expected
    assert [log.high_watermark for log in opened.current.values()] == [3, 3, 3]
    assert not again.exists("a/.kafka_cleanshutdown")


def test_checkpoints_hold_what_kafkas_hold() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    log = logs.current["t", 0]
    log.flush_now()
    asyncio.run(logs.checkpoint())
    assert files.read_whole("a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert files.read_whole("a/replication-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert files.read_whole("a/log-start-offset-checkpoint") == b"0\n0\n"
    log.maybe_increment_log_start_offset(2)
    asyncio.run(logs.checkpoint())
    assert files.read_whole("a/log-start-offset-checkpoint") == b"0\n1\nt 0 2\n"
    assert started(files.copy()).current["t", 0].log_start_offset == 2


def test_a_checkpoint_is_written_only_when_it_changed() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    asyncio.run(logs.checkpoint())
    before = files.operation_count
    asyncio.run(logs.checkpoint())
    assert files.operation_count == before


@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", ".kafka_cleanshutdown"],
)
def test_a_checkpoint_that_cannot_be_read_costs_work_and_no_record(name: str) -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    expected = batches(logs.current["t", 0])
    stopped(logs)
    again = files.copy()
    again.write_atomically_now(f"a/{name}", b"\xff\0junk")
    assert batches(started(again).current["t", 0]) == expected


def test_truncation_below_the_recovery_point_is_on_disk_at_once() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    log = logs.current["t", 0]
    log.flush_now()
    asyncio.run(logs.checkpoint())
    log.truncate_to(0, NOW)
    assert files.read_whole("a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 0\n"


def test_a_truncation_is_not_overtaken_by_a_checkpoint_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ottla.storage import log_checkpoints

    monkeypatch.setattr(log_checkpoints, "_LOGS_PER_SLICE", 1)
    files = MemoryFiles()
    logs = started(files)
    for partition in range(3):
        made(logs, partition=partition)
        logs.current["t", partition].flush_now()

    async def main() -> None:
        writing = asyncio.ensure_future(logs.checkpoint())
        await asyncio.sleep(0)
        logs.current["t", 0].truncate_to(0, NOW)
        logs.delete([("t", 1)], NOW)
        await writing

    asyncio.run(main())
    found = files.read_whole("a/recovery-point-offset-checkpoint")
    assert found == b"0\n2\nt 0 0\nt 2 3\n"


def test_a_future_log_takes_the_place_of_the_current_one() -> None:
    files = MemoryFiles()
    logs = started(files, "a", "b")
    made(logs, path="a")
    future = logs.create("t", 0, CONFIG, topic_id=TOPIC_ID, now=NOW, is_future=True, path="b")
    append(future, 2)
    assert future.folder.name.endswith("-future")
    assert list(started(files.copy(), "a", "b").future) == [("t", 0)]
    logs.replace_with_future(("t", 0), NOW)
    assert logs.current["t", 0] is future and logs.future == {}
    assert future.folder.path == "b/t-0"
    opened = started(files.copy(), "a", "b")
    assert opened.current["t", 0].folder.path == "b/t-0"
    assert opened.current["t", 0].log_end_offset == 2


def test_a_folder_of_many_files_is_removed_a_few_at_a_time() -> None:
    files = MemoryFiles()
    config = LogConfig(segment_bytes=400, segment_index_bytes=24)
    logs = started(files, config=config)
    log = logs.create("t", 0, config, topic_id=None, now=NOW)
    append(log, *[1] * 60)
    logs.delete([("t", 0)], NOW)
    later = Now(NOW.monotonic_ms + CONFIG.file_delete_delay_ms, 0)
    counts = []
    while any(name.startswith("t-") for name in files.list("a")):
        before = files.operation_count
        logs.online[0].chores.expire(later.monotonic_ms, count_max=1)
        counts.append(files.operation_count - before)
    assert len(counts) > 3 and max(counts) < 50


def test_producers_that_are_silent_are_forgotten() -> None:
    logs = started(MemoryFiles())
    log = logs.create("t", 0, CONFIG, topic_id=None, now=NOW)
    log.append_as_leader(batch(producer=1), leader_epoch=0, now=NOW)
    for wall_ms, known in [(NOW.wall_ms, 1), (NOW.wall_ms + 86_400_002, 0)]:
        exhaust(logs.expiring_producers(Now(0, wall_ms)))
        assert len(log.producers.producers) == known


def test_the_clean_shutdown_file_does_not_come_back_in_a_crash() -> None:
    files = MemoryFiles()
    stopped(started(files))
    again = files.copy()
    started(again)
    random = Random(1)
    for crash in Crash:
        assert not again.crash(random, crash).exists("a/.kafka_cleanshutdown")


# --- coming and going ---------------------------------------------------------------------


def test_a_new_log_goes_where_the_fewest_are() -> None:
    logs = started(MemoryFiles(), "a", "b")
    for partition in range(4):
        made(logs, partition=partition)
    places = [log.folder.log_dir.path for log in logs.current.values()]
    assert sorted(places) == ["a", "a", "b", "b"]


def test_a_deleted_topic_is_gone_at_once_and_from_disk_after_a_delay() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    logs.delete([("t", 0)], NOW)
    assert logs.current == {}
    (left,) = [name for name in files.list("a") if name.startswith("t-")]
    assert left.startswith("t-0.") and left.endswith("-delete") and len(left) == 4 + 32 + 7
    assert files.read_whole("a/recovery-point-offset-checkpoint") == b"0\n0\n"
    due_ms = NOW.monotonic_ms + CONFIG.file_delete_delay_ms
    assert logs.deadline_ms() == due_ms
    logs.expire(Now(due_ms, 0))
    assert [name for name in files.list("a") if name.startswith("t-")] == []


def test_a_deleted_topic_is_removed_also_after_a_restart() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    logs.delete([("t", 0)], NOW)
    again = files.copy()
    logs = started(again)
    assert logs.current == {}
    logs.expire(Now(NOW.monotonic_ms + CONFIG.file_delete_delay_ms, 0))
    assert [name for name in again.list("a") if name.startswith("t-")] == []


def test_a_topic_that_is_made_again_begins_at_nothing() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    log = logs.current["t", 0]
    log.maybe_increment_log_start_offset(2)
    log.flush_now()
    asyncio.run(logs.checkpoint())
    logs.delete([("t", 0)], NOW)
    made(logs)
    opened = started(files.copy()).current["t", 0]
    assert (opened.log_start_offset, opened.log_end_offset) == (0, 3)


def test_a_stray_is_set_aside_and_kept() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    logs.set_aside_strays([("t", 0)])
    logs = started(files.copy())
    assert logs.current == {}
    assert [name for name in files.list("a") if name.endswith("-stray")]


@pytest.mark.parametrize("name", ["not a partition", "a-b-c", "t-99999999999", "..-0"])
def test_other_folders_are_left_alone(name: str) -> None:
    files = MemoryFiles()
    files.make_directory("a")
    if name != "..-0":
        files.make_directory(f"a/{name}")
    assert started(files).current == {}
    assert name == "..-0" or files.exists(f"a/{name}")


@pytest.mark.parametrize("topic", ["..", ".", "a/b", "", "x" * 250, "ä"])
def test_a_folder_is_made_for_a_valid_name_only(topic: str) -> None:
    files = MemoryFiles()
    logs = started(files)
    with pytest.raises(ValueError, match="no name"):
        logs.create(topic, 0, CONFIG, topic_id=None, now=NOW)


# --- directories that fail ----------------------------------------------------------------


def writes_below(path: str) -> Callable[[Operation], bool]:
    return lambda op: op.kind == "write" and op.path.startswith(f"{path}/")


def test_a_directory_that_fails_goes_alone() -> None:
    files = MemoryFiles()
    logs = started(files, "a", "b")
    made(logs, partition=0, path="a")
    made(logs, partition=1, path="b")
    files.fail(writes_below("a"), Fault.EIO)
    with pytest.raises(KafkaError):
        append(logs.current["t", 0], 1)
    assert logs.take_failed_offline() == [("t", 0)]
    assert [log_dir.path for log_dir in logs.online] == ["b"]
    assert list(logs.offline) == ["a"]
    append(logs.current["t", 1], 1)
    with pytest.raises(KafkaError) as caught:
        logs.create("u", 0, CONFIG, topic_id=None, now=NOW, is_new=False)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    stopped(logs)
    assert not files.exists("a/.kafka_cleanshutdown")
    assert files.exists("b/.kafka_cleanshutdown")


def test_when_the_last_directory_fails_none_is_left() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    called: list[bool] = []
    logs.online[0].on_failure = lambda: called.append(True)
    files.fail(writes_below("a"), Fault.EIO)
    with pytest.raises(KafkaError):
        append(logs.current["t", 0], 1)
    logs.take_failed_offline()
    assert called == [True]
    assert logs.online == []
    with pytest.raises(KafkaError, match="no log directory"):
        logs.create("u", 0, CONFIG, topic_id=None, now=NOW)


def test_a_directory_that_fails_while_it_is_opened_is_offline() -> None:
    files = MemoryFiles()
    logs = started(files, "a", "b")
    made(logs, partition=0, path="a")
    made(logs, partition=1, path="b")
    again = files.copy()
    again.fail(lambda op: op.kind == "read" and op.path.startswith("a/t-0"), Fault.EIO)
    opened = started(again, "a", "b")
    assert list(opened.current) == [("t", 1)]
    assert list(opened.offline) == ["a"]


def test_a_full_disk_at_a_checkpoint_is_no_failed_disk() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs)
    files.fail(lambda op: "checkpoint" in op.path, Fault.ENOSPC)
    asyncio.run(logs.checkpoint())
    assert logs.online[0].failure is None
    asyncio.run(logs.checkpoint())
    assert files.read_whole("a/replication-offset-checkpoint") == b"0\n1\nt 0 3\n"


def test_a_partition_that_cannot_be_opened_is_refused_alone() -> None:
    files = MemoryFiles()
    logs = started(files)
    made(logs, partition=0)
    made(logs, partition=1)
    again = files.copy()
    path = f"a/t-0/{0:020}.log"
    again.remove(path)
    file = again.create(path)
    body = b"\1\0" + bytes(8) + b"\xff\xff\xff\xff\0\0\0\0"
    file.append(bytes(11) + bytes([len(body) + 4]) + crc32(body).to_bytes(4) + body)
    file.close()
    opened = started(again)
    assert list(opened.current) == [("t", 1)]
    assert path in opened.refused["t", 0]
    with pytest.raises(KafkaError):
        opened.create("t", 0, CONFIG, topic_id=None, now=NOW)
    stopped(opened)
    assert not again.exists("a/.kafka_cleanshutdown")


def test_what_is_known_of_a_partition_that_cannot_be_opened_is_kept() -> None:
    files = MemoryFiles()
    logs = started(files)
    for partition in range(2):
        made(logs, partition=partition)
        logs.current["t", partition].maybe_increment_log_start_offset(2)
    stopped(logs)
    again = files.copy()
    whole = again.read_whole(f"a/t-0/{0:020}.log")
    body = b"\1\0" + bytes(8) + b"\xff\xff\xff\xff\0\0\0\0"
    old = bytes(11) + bytes([len(body) + 4]) + crc32(body).to_bytes(4) + body
    again.write_atomically_now(f"a/t-0/{0:020}.log", old)
    opened = started(again)
    assert list(opened.current) == [("t", 1)]
    opened.current["t", 1].flush_now()
    asyncio.run(opened.checkpoint())
    stopped(opened)
    again.write_atomically_now(f"a/t-0/{0:020}.log", whole)
    assert started(again.copy()).current["t", 0].log_start_offset == 2


def test_a_partition_in_two_directories_stops_the_start() -> None:
    files = MemoryFiles()
    logs = started(files, "a", "b")
    made(logs, path="a")
    files.make_directory("b/t-0")
    with pytest.raises(DuplicateFolder, match="same partition"):
        started(files.copy(), "a", "b")


# --- time ---------------------------------------------------------------------------------


def test_flush_ms_flushes() -> None:
    files = MemoryFiles()
    config = LogConfig(flush_ms=500)
    logs = started(files, config=config)
    log = logs.create("t", 0, config, topic_id=None, now=NOW)
    append(log, 2)
    asyncio.run(logs.flush_due(Now(NOW.monotonic_ms + 499, 0)))
    assert log.recovery_point == 0
    asyncio.run(logs.flush_due(Now(NOW.monotonic_ms + 500, 0)))
    assert log.recovery_point == 2


# --- changes that failed half-way ---------------------------------------------------------

SHORT_SEGMENTS = LogConfig(segment_bytes=1_200, index_interval_bytes=100, segment_index_bytes=480)
CHANGES: dict[str, Callable[[Log], object]] = {
    "a truncation": lambda log: log.truncate_to(10, NOW),
    "a new beginning": lambda log: log.truncate_fully_and_start_at(90, NOW),
}


@pytest.mark.parametrize("fault", [Fault.ENOSPC, Fault.EMFILE])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_log_goes_on_once_it_could_be_opened_again(
    change: Callable[[Log], object], fault: Fault
) -> None:
    reopened = number = 0
    while True:
        files = MemoryFiles()
        logs = started(files, config=SHORT_SEGMENTS)
        log = logs.create("t", 0, SHORT_SEGMENTS, topic_id=TOPIC_ID, now=NOW)
        append(log, *[3] * 12)
        before = [data for _, data in batches(log)]
        log.flush_now()
        log.update_high_watermark(30)
        armed = files.operation_count + number
        files.fail(armed, fault)
        number += 1
        try:
            change(log)
        except KafkaError:
            if log.folder.log_dir.failure is not None:
                continue
        else:
            if files.operation_count <= armed:
                break
            continue
        if log.failure is not None:
            for call in (partial(append, log, 1), log.flush_now, partial(log.read, 12, 100)):
                assert refused(call) is ErrorCode.KAFKA_STORAGE_ERROR
            assert to_the_end(logs.reopening(NOW)) == [("t", 0)]
            reopened += 1
        found = [data for _, data in batches(log)]
        assert found == before[: len(found)]
        assert log.high_watermark <= log.log_end_offset
        append(log, 2, 2)
        assert to_the_end(logs.reopening(NOW)) == []
        expected = batches(log)
        assert batches(started(files.copy(), config=SHORT_SEGMENTS).current["t", 0]) == expected
    assert reopened > 3


def test_a_log_that_cannot_be_opened_yet_is_tried_again() -> None:
    files = MemoryFiles()
    logs = started(files, config=SHORT_SEGMENTS)
    log = logs.create("t", 0, SHORT_SEGMENTS, topic_id=TOPIC_ID, now=NOW)
    append(log, *[3] * 12)
    files.fail(lambda operation: operation.kind == "rename", Fault.ENOMEM)
    with pytest.raises(KafkaError):
        log.truncate_to(10, NOW)
    tries = 0
    while log.failure is not None:
        # Of every attempt one more file can be opened.
        files.fail(partial(_is_opening_behind, iter(range(tries))), Fault.ENFILE)
        to_the_end(logs.reopening(NOW))
        tries += 1
    assert tries > 3
    assert log.folder.log_dir.failure is None
    append(log, 1)


def _is_opening_behind(chances: Iterator[int], operation: Operation) -> bool:
    return operation.kind == "open" and next(chances, None) is None
