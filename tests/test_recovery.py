"""Opening a folder: what was synced is there, nothing wrong is, and twice equals once."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from ottla.protocol.records import ControlRecordType
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.format_names import parse_file_name
from ottla.storage.log import Log
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault, Operation
from ottla.storage.names import CLEANED
from ottla.storage.producers import Origin
from ottla.storage.segment import Segment
from ottla.storage.steps import at_once
from tests.log_rig import NOW, SMALL, TOPIC_ID, Rig, append, batch, batches, marker, records

ABORT = ControlRecordType.ABORT
CRASHES = list(Crash)


def workload(log: Log, *, rounds: int = 8) -> None:
    """Plain, idempotent and transactional batches over several segments and epochs."""
    for number in range(rounds):
        epoch = number // 3
        append(log, 3, 1, epoch=epoch)
        data = batch(2, producer=1, sequence=number * 2, timestamp=NOW.wall_ms + number)
        log.append_as_leader(data, leader_epoch=epoch, now=NOW)
        data = batch(2, producer=2, sequence=number * 2, transactional=True)
        log.append_as_leader(data, leader_epoch=epoch, now=NOW)
        if number % 2:
            data = marker(2, ABORT)
            log.append_as_leader(data, leader_epoch=epoch, now=NOW, origin=Origin.COORDINATOR)


def known(log: Log) -> object:
    """All that a log knows, but for what a restart may forget."""
    producers = {
        producer_id: (
            producer.epoch,
            [tuple(each)[:4] for each in list(producer.batches)[-1:]],
            producer.current_txn_first_offset,
            producer.coordinator_epoch,
        )
        for producer_id, producer in log.producers.producers.items()
    }
    return (
        batches(log),
        log.log_start_offset,
        log.log_end_offset,
        log.epochs.entries,
        producers,
        at_once(log.aborted_transactions(0, 1 << 62)),
        log.producers.first_unstable_offset if log.producers.ongoing else None,
        [at_once(log.offset_for_timestamp(NOW.wall_ms + ms)) for ms in range(0, 60, 7)],
    )


def contents(files: MemoryFiles) -> dict[str, bytes]:
    return {name: files.read_whole(f"logs/t-0/{name}") for name in files.list("logs/t-0")}


def written() -> tuple[Rig, Log]:
    rig = Rig(SMALL)
    log = rig.create()
    workload(log)
    return rig, log


# --- whole folders ------------------------------------------------------------------------


def test_a_cleanly_closed_log_is_opened_without_reading_it() -> None:
    rig, log = written()
    expected = known(log)
    log.close()
    again = rig.killed()
    reads: list[int] = []

    def noted(op: Operation) -> bool:
        if op.kind == "read" and op.path.endswith(".log"):
            reads.append(op.size)
        return False

    again.files.fail(noted, Fault.EIO)
    opened = again.open(clean=True, recovery_point=log.recovery_point)
    assert sum(reads) < 20_000
    assert known(opened) == expected
    assert opened.recovery_point == opened.log_end_offset
    assert opened.topic_id == TOPIC_ID


def test_a_killed_log_is_the_same_after_recovery() -> None:
    rig, log = written()
    opened = rig.killed().open()
    assert known(opened) == known(log)
    assert opened.recovery_point == 0


def test_only_segments_behind_the_recovery_point_are_recovered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig, log = written()
    rig.log_dir.chores.flush_now()
    again = rig.killed()
    path = again.path(f"{0:020}.log")
    spoil(again.files, path, 100)
    with caplog.at_level(logging.WARNING):
        opened = again.open(recovery_point=log.recovery_point)
    assert opened.log_end_offset == log.log_end_offset
    assert not caplog.records


def test_recovery_twice_equals_once() -> None:
    rig, _ = written()
    once = rig.killed()
    spoil(once.files, once.path(f"{0:020}.log"), 1_200)
    first = once.open()
    expected, files = known(first), contents(once.files)
    twice = once.killed()
    assert known(twice.open()) == expected
    del_deleted = {n: d for n, d in files.items() if not n.endswith(".deleted")}
    assert contents(twice.files) == del_deleted


def test_a_recovered_log_goes_on() -> None:
    rig, log = written()
    opened = rig.killed().open()
    end = opened.log_end_offset
    append(opened, 3, 3, epoch=7)
    assert [record.offset for record in records(opened)] == list(range(end + 6))
    assert opened.end_offset_for_epoch(2) == (2, end)
    assert log.log_end_offset == end


# --- logs that are damaged ----------------------------------------------------------------


def spoil(files: MemoryFiles, path: str, position: int, mask: int = 0xFF) -> None:
    file = files.open(path)
    file.write(position, bytes([file.read(position, 1)[0] ^ mask]))
    file.sync_now()
    file.close()


def put(files: MemoryFiles, path: str, data: bytes) -> None:
    if files.exists(path):
        files.remove(path)
    file = files.create(path)
    file.append(data)
    file.close()


TAILS = {
    "zeros": bytes(100),
    "a header": bytes(batch()[:61]),
    "half a batch": bytes(batch(leader_epoch=0)[:-10]),
    "junk": bytes(range(256)),
    "an offset of the past": bytes(batch(base_offset=1, leader_epoch=0)),
    "an offset out of reach": bytes(batch(base_offset=1 << 40, leader_epoch=0)),
    "a negative length": bytes(8) + b"\xff\xff\xff\xff" + bytes(60),
    "a length of 2 GiB": bytes(8) + b"\x7f\xff\xff\xff" + bytes(60),
    "one byte": b"\0",
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("clean", [True, False])
def test_a_bad_tail_is_cut(tail: bytes, clean: bool, caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    log = rig.create()
    append(log, 3, 3)
    expected = batches(log)
    log.close()
    again = rig.killed()
    file = again.files.open(again.path(f"{0:020}.log"))
    file.append(tail)
    file.close()
    with caplog.at_level(logging.WARNING):
        opened = again.open(clean=clean)
    assert batches(opened) == expected
    assert any("recovery.cut" in record.message for record in caplog.records)
    append(opened, 2)
    assert opened.log_end_offset == 8


def test_what_follows_a_hole_is_removed() -> None:
    rig, log = written()
    expected = batches(log)
    again = rig.killed()
    spoil(again.files, again.path(f"{0:020}.log"), 1_000)
    opened = again.open()
    found = batches(opened)
    assert 0 < len(found) < len(expected)
    assert found == expected[: len(found)]
    assert len(opened.segments) == 1
    assert [each for each in opened.epochs.entries if each[1] >= opened.log_end_offset] == []


def old_message(magic: int) -> bytes:
    import zlib

    body = bytes([magic, 0]) + bytes(8 * magic) + (-1).to_bytes(4, signed=True) + b"\0\0\0\1x"
    message = zlib.crc32(body).to_bytes(4) + body
    return (0).to_bytes(8) + len(message).to_bytes(4) + message


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("clean", [True, False])
def test_messages_of_an_old_format_are_refused_and_kept(magic: int, clean: bool) -> None:
    rig = Rig()
    rig.create().close()
    path = rig.path(f"{0:020}.log")
    again = rig.killed()
    put(again.files, path, old_message(magic) * 3)
    with pytest.raises(CorruptFile) as caught:
        again.open(clean=clean)
    line = str(caught.value)
    assert path in line and "offset 0" in line and f"format {magic}" in line
    assert again.files.read_whole(path) == old_message(magic) * 3


# --- indexes that are damaged -------------------------------------------------------------

INDEX_DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "preallocated": lambda data: data + bytes(4_000 - len(data)),
    "half an entry": lambda data: data[:-3],
    "too much": lambda data: data + b"\1\2\3",
    "junk": lambda data: bytes((each * 7 + 13) % 256 for each in data),
    "reversed": lambda data: data[::-1],
    "all ones": lambda data: b"\xff" * len(data),
}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", INDEX_DAMAGE.values(), ids=INDEX_DAMAGE)
@pytest.mark.parametrize("which", ["first", "last"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_index_changes_no_answer(
    suffix: str, damage: Callable[[bytes], bytes | None], which: str, clean: bool
) -> None:
    rig, log = written()
    expected = known(log)
    latest = at_once(log.offset_of_max_timestamp())
    log.close()
    again = rig.killed()
    names = [name for name in again.names() if name.endswith(suffix)]
    path = again.path(names[0] if which == "first" else names[-1])
    damaged = damage(again.files.read_whole(path))
    again.files.remove(path)
    if damaged is not None:
        put(again.files, path, damaged)
    other = again.killed()
    opened = again.open(clean=clean, recovery_point=log.recovery_point)
    assert at_once(opened.offset_of_max_timestamp()) == latest
    assert known(opened) == expected
    # Another process appends before it looks anything up.
    opened = other.open(clean=clean, recovery_point=log.recovery_point)
    end = opened.log_end_offset
    append(opened, 3, 3, 3, epoch=9)
    opened.truncate_to(end, NOW)
    assert known(opened) == expected


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_a_flipped_bit_in_what_belongs_to_a_log_changes_no_record(suffix: str) -> None:
    rig, log = written()
    expected = batches(log)
    times = [at_once(log.offset_for_timestamp(NOW.wall_ms + ms)) for ms in range(0, 60, 7)]
    log.close()
    random = Random(3)
    for _ in range(60):
        again = rig.killed()
        name = random.choice([name for name in again.names() if name.endswith(suffix)])
        size = again.files.size(again.path(name))
        if not size:
            continue
        spoil(again.files, again.path(name), random.randrange(size), 1 << random.randrange(8))
        opened = again.open(clean=True, recovery_point=log.recovery_point)
        assert batches(opened) == expected
        found = [at_once(opened.offset_for_timestamp(NOW.wall_ms + ms)) for ms in range(0, 60, 7)]
        assert found == times


def test_an_orphaned_index_is_removed() -> None:
    rig, log = written()
    log.close()
    again = rig.killed()
    put(again.files, again.path(f"{7:020}.timeindex"), bytes(12))
    again.open(clean=True)
    assert f"{7:020}.timeindex" not in again.names()


# --- other files --------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [None, b"", b"junk", b"0\n1\n", b"0\n1\n5 x\n", b"\xff"])
def test_epochs_are_collected_again_where_the_checkpoint_is_lost(damage: bytes | None) -> None:
    rig, log = written()
    expected = log.epochs.entries
    log.close()
    again = rig.killed()
    path = again.path("leader-epoch-checkpoint")
    again.files.remove(path)
    if damage is not None:
        put(again.files, path, damage)
    opened = again.open(clean=True)
    assert opened.epochs.entries == expected
    assert again.killed().open(clean=True).epochs.entries == expected


@pytest.mark.parametrize("damage", [None, b"", b"\0\1junk"])
def test_producers_are_learned_again_where_snapshots_are_lost(damage: bytes | None) -> None:
    rig, log = written()
    expected = known(log)
    log.close()
    again = rig.killed()
    for name in again.names():
        if name.endswith(".snapshot"):
            again.files.remove(again.path(name))
            if damage is not None:
                put(again.files, again.path(name), damage)
    assert known(again.open(clean=True)) == expected


def test_of_each_producer_the_last_batch_is_known_after_a_start() -> None:
    rig = Rig()
    log = rig.create()
    for sequence in (0, 3, 6):
        log.append_as_leader(batch(producer=1, sequence=sequence), leader_epoch=0, now=NOW)
    for clean in (False, True):
        opened = rig.killed().open(clean=clean)
        again = opened.append_as_leader(batch(producer=1, sequence=6), leader_epoch=0, now=NOW)
        assert (again.is_duplicate, again.base_offset) == (True, 6)
        with pytest.raises(Exception, match="OUT_OF_ORDER"):
            opened.append_as_leader(batch(producer=1, sequence=3), leader_epoch=0, now=NOW)
        if not clean:
            log.close()


def test_an_old_producer_is_forgotten() -> None:
    rig = Rig()
    log = rig.create()
    old = NOW.wall_ms - 86_400_000 - 10
    log.append_as_leader(batch(producer=1, timestamp=old), leader_epoch=0, now=NOW)
    log.close()
    assert rig.killed().open(clean=True).producers.producers == {}
    assert rig.killed().open(clean=False).producers.producers == {}


@pytest.mark.parametrize("text", [b"", b"version: 0\ntopic_id: x", b"\xff\xfe"])
def test_a_topic_id_that_cannot_be_read_is_not_known(text: bytes) -> None:
    rig, log = written()
    log.close()
    again = rig.killed()
    put(again.files, again.path("partition.metadata"), text)
    assert again.open(clean=True).topic_id is None


def test_leftovers_are_removed_and_foreign_files_kept() -> None:
    rig, log = written()
    expected = known(log)
    log.close()
    again = rig.killed()
    for name in (
        f"{0:020}.log.deleted",
        f"{5:020}.index.cleaned",
        f"{0:020}.snapshot.deleted",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000005-0000000001.checkpoint.deleted",
        "notes",
    ):
        put(again.files, again.path(name), b"x")
    opened = again.open(clean=True)
    assert known(opened) == expected
    # Snapshots of the metadata log belong to the quorum.
    snapshot = "00000000000000000005-0000000001.checkpoint.deleted"
    states = {name: (parse_file_name(name) or {}).get("state") for name in again.names()}
    assert {name for name, state in states.items() if state != ""} == {"notes", snapshot}


def test_a_log_start_behind_the_end_begins_anew() -> None:
    rig, log = written()
    log.close()
    again = rig.killed()
    opened = again.open(clean=True, log_start=5_000)
    assert (opened.log_start_offset, opened.log_end_offset) == (5_000, 5_000)
    append(opened, 2)
    assert [record.offset for record in records(again.killed().open(log_start=5_000))] == [
        5_000,
        5_001,
    ]


def test_a_log_start_within_a_segment_holds() -> None:
    rig, log = written()
    opened = rig.killed().open(log_start=5)
    assert opened.log_start_offset == 5
    assert opened.epochs.entries[0][1] == 5
    assert log.log_start_offset == 0


def test_a_folder_without_segments_becomes_an_empty_log() -> None:
    rig, log = written()
    log.close()
    again = rig.killed()
    for name in again.names():
        again.files.remove(again.path(name))
    opened = again.open(log_start=9)
    assert (opened.log_start_offset, opened.log_end_offset) == (9, 9)


# --- the swap of compaction ---------------------------------------------------------------


def compacted(log: Log) -> tuple[list[Segment], list[Segment]]:
    """One cleaned segment from the first two: every second batch of them."""
    old = [log.segments[0], log.segments[1]]
    kept = [
        (header, data)
        for number, (header, data) in enumerate(batches(log))
        if header.base_offset < log.segments[2].base_offset and number % 2 == 0
    ]
    new = Segment(log.folder, old[0].base_offset, size=0, now=NOW, state=CLEANED)
    new.create()
    for header, data in kept:
        new.append((header,), data)
    new.become_inactive()
    new.flush_now()
    return [new], old


def test_a_swap_replaces_segments() -> None:
    rig, log = written()
    tail = [each for each in batches(log) if each[0].base_offset >= log.segments[2].base_offset]
    new, old = compacted(log)
    log.replace_segments(new, old, NOW)
    found = batches(log)
    assert found[-len(tail) :] == tail
    assert new[0].state == ""
    assert batches(rig.killed().open()) == found


@pytest.mark.parametrize("crash", CRASHES)
def test_a_swap_is_done_or_not_done_wherever_it_is_cut(crash: Crash) -> None:
    rig, log = written()
    log.flush_now()
    before = batches(log)
    new, old = compacted(log)
    journal = rig.files.record()
    log.replace_segments(new, old, NOW)
    after = batches(log)
    random = Random(5)
    for cut in journal.cuts():
        for _ in range(3):
            survivor = Rig(SMALL, journal.disk_at(cut).crash(random, crash))
            opened = survivor.open(recovery_point=log.recovery_point)
            assert batches(opened) in (before, after)
            again = survivor.killed().open(recovery_point=log.recovery_point)
            assert batches(again) == batches(opened)


# --- crashes ------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", CRASHES)
def test_no_crash_loses_what_was_flushed_or_leaves_what_is_wrong(crash: Crash) -> None:
    rig = Rig(replace(SMALL, flush_messages=7))
    log = rig.create()
    log.settle()
    journal = rig.files.record()
    workload(log, rounds=5)
    expected = batches(log)
    by_offset = {header.base_offset: data for header, data in expected}
    random = Random(11)
    for cut in journal.cuts():
        disk = journal.disk_at(cut)
        survivor = Rig(rig.config, disk.crash(random, crash))
        opened = survivor.open()
        found = batches(opened)
        assert found == expected[: len(found)]
        for header, data in found:
            assert by_offset[header.base_offset] == data
        state = known(opened)
        assert known(survivor.killed().open()) == state


def test_flushed_batches_survive_every_crash() -> None:
    rig = Rig(replace(SMALL, flush_messages=1))
    log = rig.create()
    random = Random(13)
    for number in range(40):
        append(log, 1, epoch=number // 10)
        for crash in CRASHES:
            opened = Rig(rig.config, rig.files.crash(random, crash)).open()
            assert batches(opened) == batches(log)
            assert opened.epochs.entries == log.epochs.entries
            assert opened.topic_id == TOPIC_ID


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("which", [1, -1])
def test_a_recovery_may_itself_be_cut_anywhere(policy: str, which: int) -> None:
    rig = Rig(replace(SMALL, cleanup_policy=frozenset({policy})))
    log = rig.create()
    for number in range(30):
        append(log, 3, epoch=number // 10)
    again = rig.killed()
    spoil(again.files, again.path(f"{log.segments[which].base_offset:020}.log"), 300)
    journal = again.files.record()
    expected = known(again.open())
    random = Random(17)
    for cut in journal.cuts():
        survivor = Rig(rig.config, journal.disk_at(cut).crash(random, Crash.EVERYTHING))
        assert known(survivor.open()) == expected


@pytest.mark.parametrize("crash", CRASHES)
def test_what_was_truncated_does_not_come_back_beside_what_replaced_it(crash: Crash) -> None:
    # With compaction a hole does not tell that something is missing.
    rig = Rig(replace(SMALL, cleanup_policy=frozenset({"compact"})))
    log = rig.create()
    append(log, *[3] * 20)
    log.flush_now()
    log.truncate_to(6, NOW)
    append(log, 2, 1)
    log.flush_now()
    for seed in range(20):
        opened = Rig(rig.config, rig.files.crash(Random(seed), crash)).open(recovery_point=6)
        assert batches(opened) == batches(log)
        assert opened.epochs.entries == log.epochs.entries


def test_a_disk_that_refuses_during_recovery_is_an_error_and_no_loss() -> None:
    rig, log = written()
    expected = known(log)
    again = rig.killed()
    journal = again.files.record()
    again.open()
    for number in range(0, len(journal.operations), 3):
        for fault in (Fault.EIO, Fault.ENOSPC, Fault.EMFILE):
            faulty = rig.killed()
            faulty.files.fail(number, fault)
            with suppress(StorageError):
                faulty.open()
            assert known(faulty.killed().open()) == expected


CONFIGS = {
    "preallocated": replace(SMALL, preallocate=True),
    "no index": LogConfig(segment_index_bytes=4),
    "every batch": LogConfig(index_interval_bytes=0, segment_index_bytes=480),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_it_works_with_unusual_settings(config: LogConfig) -> None:
    rig = Rig(config)
    log = rig.create()
    workload(log)
    expected = known(log)
    assert known(rig.killed().open()) == expected
    log.close()
    assert known(rig.killed().open(clean=True)) == expected


def test_a_hole_between_unflushed_segments_ends_the_log() -> None:
    rig, log = written()
    cut, kept = log.segments[1], batches(log)
    again = rig.killed()
    file = again.files.open(again.path(f"{cut.base_offset:020}.log"))
    whole = [(h, d) for h, d in kept if h.next_offset <= log.segments[2].base_offset]
    file.truncate(file.size - whole[-1][0].size)
    file.close()
    assert batches(again.open()) == whole[:-1]


def test_a_hole_that_compaction_left_ends_nothing() -> None:
    rig = Rig(replace(SMALL, cleanup_policy=frozenset({"compact"})))
    log = rig.create()
    append(log, *[3] * 20)
    expected = batches(log)
    hole = log.segments[1]
    again = rig.killed()
    file = again.files.open(again.path(f"{hole.base_offset:020}.log"))
    last = max(h.base_offset for h, _ in expected if h.base_offset < log.segments[2].base_offset)
    file.truncate(file.size - next(h.size for h, _ in expected if h.base_offset == last))
    file.close()
    assert batches(again.open()) == [each for each in expected if each[0].base_offset != last]
