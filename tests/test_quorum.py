"""The shell of a quorum of one: what is committed stays, and each start is a new epoch."""

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import ControlRecordType, iterate_batches, iterate_records, read_control
from ottla.replication.quorum import Quorum, QuorumSettings
from ottla.replication.quorum_state import Election, parse_quorum_state, quorum_state_text
from ottla.replication.raft_progress import Replica
from ottla.replication.voters import Listener, ReplicaKey, static_voters
from ottla.storage.errors import CorruptFile, StorageError
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_operations import Fault, Operation
from ottla.storage.steps import to_the_end
from tests.quorum_rig import (
    DIRECTORY,
    FOLDER,
    Remembering,
    Rig,
    commit,
    nothing,
    small,
    snapshot,
    topic,
)

LOG = f"{FOLDER}/{0:020d}.log"
STATE = f"{FOLDER}/quorum-state"


def controls(rig: Rig, path: str = LOG) -> list[list[str]]:
    """The types of control records, by batch."""
    data = rig.files.read_whole(path)
    return [
        [read_control(record).type.name for record in records]
        for position, header in iterate_batches(data)
        if header.is_control
        for records in [list(iterate_records(data, position, header, decompressed_max=1 << 20))]
    ]


# --- epochs -------------------------------------------------------------------------------


def test_a_new_quorum_begins_with_its_leader_and_its_voters() -> None:
    rig = Rig()
    listener = rig.life(nothing)
    assert controls(rig) == [["LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"]]
    assert listener.commits == [(0, 2, 1, [])]
    assert json.loads(rig.files.read_whole(STATE)) == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }
    assert rig.files.read_whole(f"{FOLDER}/partition.metadata").endswith(b"AAAAAAAAAAAAAAAAAAAAAQ")
    assert rig.files.read_whole(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n1\n1 0\n"


@pytest.mark.parametrize("is_clean", [True, False])
def test_every_start_is_a_new_epoch_with_a_leader_change(is_clean: bool) -> None:
    rig = Rig()

    async def epoch(quorum: Quorum, _: Remembering) -> int:
        return quorum.leader_epoch

    assert [rig.life(epoch, is_clean=is_clean) for _ in range(3)] == [1, 2, 3]
    assert controls(rig)[1:] == [["LEADER_CHANGE"], ["LEADER_CHANGE"]]


def test_an_epoch_is_on_disk_before_the_log_hears_of_it() -> None:
    rig = Rig()
    rig.format()
    journal = rig.files.record()
    rig.life(nothing)
    state = next(i for i, each in enumerate(journal.operations) if each.target == STATE)
    leader = next(
        i for i, each in enumerate(journal.operations) if each.path == LOG and each.kind == "write"
    )
    assert state < leader


def test_the_log_knows_of_a_later_epoch_than_a_file_that_was_lost() -> None:
    rig = Rig()
    for _ in range(3):
        rig.life(nothing)
    rig.files.remove(STATE)

    async def epoch(quorum: Quorum, _: Remembering) -> int:
        return quorum.leader_epoch

    assert rig.life(epoch) == 4


def test_a_controller_that_has_moved_is_told_to_the_log() -> None:
    rig = Rig(listeners=[Listener("CONTROLLER", "localhost", 9093)])
    rig.life(nothing)
    rig.listeners = [Listener("CONTROLLER", "elsewhere", 9093)]
    rig.life(nothing)

    async def where(quorum: Quorum, _: Remembering) -> object:
        return quorum.describe(rig.clock()).listeners

    assert rig.life(where) == {1: (Listener("CONTROLLER", "elsewhere", 9093),)}
    whole = ["LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert controls(rig) == [whole, whole, ["LEADER_CHANGE"]]


def test_a_node_without_an_address_leaves_the_one_that_is_known() -> None:
    rig = Rig(listeners=[Listener("CONTROLLER", "localhost", 9093)])
    rig.life(nothing)
    rig.listeners = []
    rig.life(nothing)
    assert controls(rig)[1:] == [["LEADER_CHANGE"]]


# --- committing ---------------------------------------------------------------------------


def test_what_is_committed_was_heard_of_and_is_there_at_the_next_start() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> Remembering:
        assert await commit(quorum, "a", "b") == 4
        assert listener.commits[-1] == (3, 4, 1, ["a", "b"])
        assert quorum.high_watermark == 5
        return listener

    assert rig.life(live, is_clean=False).timestamps[-1] == rig.clock().wall_ms
    assert rig.life(nothing).names == ["a", "b"]


def test_nobody_hears_of_records_before_they_are_on_disk() -> None:
    rig = Rig()
    rig.life(nothing)

    async def live(quorum: Quorum, listener: Remembering) -> None:
        quorum.append([topic("a")])
        assert listener.names == []
        assert quorum.high_watermark == quorum.log_end_offset - 1
        await asyncio.sleep(0)
        assert listener.names == []

    rig.life(live, is_clean=False)


def test_writers_that_come_together_share_their_flushes() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> int:
        before = rig.files.operation_count
        journal = rig.files.record()
        await asyncio.gather(*[commit(quorum, f"t{number}") for number in range(20)])
        assert rig.files.operation_count > before
        assert listener.names == [f"t{number}" for number in range(20)]
        return sum(each.kind == "sync" and each.path == LOG for each in journal.operations)

    assert rig.life(live) <= 2


def test_an_append_at_the_end_of_a_flush_is_flushed_too() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        for number in range(10):
            offset = quorum.append([topic(f"a{number}")])
            waiting = asyncio.ensure_future(quorum.committed(offset))
            waiting.add_done_callback(lambda _: quorum.append([topic("b")]))
            await waiting
        for _ in range(100):
            await asyncio.sleep(0)
        assert listener.names.count("b") == 10

    rig.life(live)


def test_records_of_one_outcome_are_one_batch() -> None:
    rig = Rig()

    async def live(quorum: Quorum, _: Remembering) -> None:
        offset = quorum.append([topic(f"t{number}") for number in range(12_000)])
        await quorum.committed(offset)

    rig.life(live)
    counts = [header.record_count for _, header in iterate_batches(rig.files.read_whole(LOG))]
    assert counts == [3, 12_000]


def test_what_need_not_stay_together_is_cut_at_ten_thousand() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        names = [f"t{number}" for number in range(12_000)]
        offset = quorum.append([topic(name) for name in names], is_atomic=False)
        await quorum.committed(offset)
        assert listener.names == names

    rig.life(live)
    counts = [header.record_count for _, header in iterate_batches(rig.files.read_whole(LOG))]
    assert counts == [3, 10_000, 2_000]


def test_a_batch_that_is_too_large_is_refused_and_leaves_nothing() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        end = quorum.log_end_offset
        with pytest.raises(KafkaError) as refused:
            quorum.append([topic("x" * 30_000)] * 300)
        assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
        assert quorum.log_end_offset == end
        await commit(quorum, "a")
        assert listener.names == ["a"]

    rig.life(live)


def test_batches_are_as_kafka_writes_them() -> None:
    rig = Rig()

    async def live(quorum: Quorum, _: Remembering) -> None:
        await commit(quorum, "a")

    rig.life(live)
    for _, header in iterate_batches(rig.files.read_whole(LOG)):
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
        assert header.base_timestamp == header.max_timestamp == rig.clock().wall_ms
        assert header.partition_leader_epoch == 1
        assert not header.is_transactional


def test_who_was_never_appended_cannot_be_waited_for() -> None:
    async def live(quorum: Quorum, _: Remembering) -> None:
        with pytest.raises(ValueError, match="never appended"):
            await quorum.committed(quorum.log_end_offset)

    Rig().life(live)


def test_after_the_end_nothing_is_appended_and_nobody_waits() -> None:
    rig = Rig()

    async def live(quorum: Quorum, _: Remembering) -> None:
        offset = quorum.append([topic("a")])
        waiting = asyncio.ensure_future(quorum.committed(offset))
        await asyncio.sleep(0)
        to_the_end(quorum.closing())
        with pytest.raises(KafkaError):
            await waiting
        with pytest.raises(KafkaError):
            quorum.append([topic("b")])

    rig.life(live, is_clean=False)
    assert rig.life(nothing).names == ["a"]


def test_a_listener_that_fails_is_told_to_the_loop() -> None:
    rig = Rig()
    told: list[dict[str, Any]] = []

    async def live(quorum: Quorum, listener: Remembering) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: told.append(said))
        listener.is_broken = True
        with pytest.raises(RuntimeError):
            await commit(quorum, "a")
        await asyncio.sleep(0)

    rig.life(live, is_clean=False)
    assert [type(each["exception"]) for each in told] == [RuntimeError]


# --- disks --------------------------------------------------------------------------------


def test_a_full_disk_refuses_and_takes_records_again_when_there_is_space() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        rig.files.fail(_writes_log, Fault.ENOSPC)
        with pytest.raises(KafkaError) as refused:
            quorum.append([topic("a")])
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await commit(quorum, "b")
        assert listener.names == ["b"]

    rig.life(live)
    assert rig.failures == 0
    assert rig.life(nothing).names == ["b"]


def test_a_failed_flush_ends_the_broker_and_commits_nothing() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        rig.files.fail(_syncs_log, Fault.EIO)
        with pytest.raises(KafkaError) as refused:
            await commit(quorum, "a")
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert listener.names == []
        with pytest.raises(KafkaError):
            quorum.append([topic("b")])
        with pytest.raises(KafkaError):
            await quorum.committed(quorum.log_end_offset - 1)

    rig.life(live, is_clean=False)
    assert rig.failures == 1


def test_a_disk_that_fails_at_the_start_says_so() -> None:
    rig = Rig()
    rig.format()
    rig.files.fail(lambda operation: operation.target == STATE, Fault.EIO)
    with pytest.raises(KafkaError, match="quorum-state"):
        rig.life(nothing)
    assert rig.failures == 1


@pytest.mark.parametrize(("fault", "failures"), [(Fault.EIO, 1), (Fault.EMFILE, 0)])
def test_a_file_that_cannot_be_removed_stops_nothing_by_itself(fault: Fault, failures: int) -> None:
    rig = Rig(settings=small())

    async def live(quorum: Quorum, listener: Remembering) -> None:
        rig.files.fail(lambda each: each.kind == "remove", fault, times=None)
        await _three_snapshots(quorum, listener)
        assert [name for name in rig.names() if name.endswith(".deleted")]
        for _ in range(10):
            quorum.upkeep(rig.clock())

    rig.life(live, is_clean=False)
    assert rig.failures == failures
    rig.life(nothing)
    assert not [name for name in rig.names() if name.endswith(".deleted")]


def _writes_log(operation: Operation) -> bool:
    return operation.kind == "write" and operation.path.endswith(".log")


def _syncs_log(operation: Operation) -> bool:
    return operation.kind == "sync" and operation.path.endswith(".log")


def test_what_a_start_has_read_is_on_disk_from_then_on() -> None:
    """A killed process leaves records in memory that no power cut has taken yet."""
    rig = Rig()

    async def leave(quorum: Quorum, _: Remembering) -> None:
        quorum.append([topic("a")])

    rig.life(leave, is_clean=False)
    assert rig.life(nothing, is_clean=False).names == ["a"]
    rig.files = rig.files.crash(Random(1), Crash.SYNCED)
    assert rig.life(nothing).commits == [(0, 3, 1, ["a"]), (4, 4, 2, []), (5, 5, 3, [])]


@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: data[:-1] + b"?"])
def test_a_torn_end_is_cut_off(damage: Callable[[bytes], bytes]) -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        await commit(quorum, "a")
        await snapshot(quorum, listener)
        await commit(quorum, "b")
        await commit(quorum, "torn")

    rig.life(live, is_clean=False)
    rig.files.write_atomically_now(LOG, damage(rig.files.read_whole(LOG)))
    assert rig.life(nothing).names == ["a", "b"]


# --- snapshots ----------------------------------------------------------------------------


async def _three_snapshots(quorum: Quorum, listener: Remembering) -> None:
    for number in range(3):
        for letter in "abcd":
            await commit(quorum, f"{letter}{number}")
        await snapshot(quorum, listener)


def test_a_start_reads_the_newest_snapshot_and_what_came_after() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        await _three_snapshots(quorum, listener)
        await commit(quorum, "after")

    rig.life(live)
    listener = rig.life(nothing)
    assert listener.loads == [(14, 1, [f"{a}{n}" for n in range(3) for a in "abcd"])]
    assert listener.commits == [(15, 15, 1, ["after"]), (16, 16, 2, [])]


def test_a_snapshot_names_the_voters_and_when_it_was_true() -> None:
    rig = Rig()
    rig.life(_three_snapshots)
    path = f"{FOLDER}/{15:020d}-{1:010d}.checkpoint"
    types = [ControlRecordType.SNAPSHOT_HEADER.name, "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert controls(rig, path) == [types, ["SNAPSHOT_FOOTER"]]


def test_what_a_newer_snapshot_stands_for_is_deleted() -> None:
    rig = Rig(settings=small())
    rig.life(_three_snapshots)
    assert [name for name in rig.names() if name.endswith(".checkpoint")] == [
        f"{15:020d}-{1:010d}.checkpoint"
    ]
    assert LOG.rpartition("/")[2] not in rig.names()
    expected = [f"{letter}{number}" for number in range(3) for letter in "abcd"]
    assert rig.life(nothing).names == expected
    assert not [name for name in rig.names() if name.endswith(".deleted")]


def test_old_snapshots_go_after_metadata_max_retention_ms() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        await _three_snapshots(quorum, listener)
        rig.clock.advance(7 * 24 * 60 * 60 * 1000)
        quorum.upkeep(rig.clock())
        assert len(_checkpoints(rig)) == 4
        rig.clock.advance(60_001)
        quorum.upkeep(rig.clock())
        assert _checkpoints(rig) == [f"{15:020d}-{1:010d}.checkpoint"]
        rig.clock.advance(60_000)
        assert [name for name in rig.names() if name.endswith(".deleted")]
        quorum.upkeep(rig.clock())
        assert not [name for name in rig.names() if name.endswith(".deleted")]

    rig.life(live)


def _checkpoints(rig: Rig) -> list[str]:
    return [name for name in rig.names() if name.endswith(".checkpoint")]


def test_a_snapshot_is_due_after_so_many_bytes_or_so_long() -> None:
    rig = Rig(settings=QuorumSettings(max_record_bytes_between_snapshots=1_000))

    async def live(quorum: Quorum, listener: Remembering) -> None:
        due = quorum.is_snapshot_due
        assert not due(rig.clock())
        while not due(rig.clock()):
            await commit(quorum, "a")
        assert 5 < len(listener.names) < 15
        await snapshot(quorum, listener)
        rig.clock.advance(60 * 60 * 1000)
        assert not due(rig.clock()), "nothing has happened since"
        await commit(quorum, "b")
        assert due(rig.clock())

    rig.life(live)


def test_a_snapshot_on_a_full_disk_leaves_nothing_and_is_no_failure() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        await commit(quorum, "a")
        rig.files.fail(lambda each: each.path.endswith(".part"), Fault.ENOSPC)
        await snapshot(quorum, listener)
        assert _checkpoints(rig) == [f"{0:020d}-{0:010d}.checkpoint"]
        assert not [name for name in rig.names() if name.endswith(".part")]
        await commit(quorum, "b")
        await snapshot(quorum, listener)
        assert len(_checkpoints(rig)) == 2

    rig.life(live)
    assert rig.failures == 0


def test_a_snapshot_is_not_written_twice() -> None:
    rig = Rig()

    async def live(quorum: Quorum, listener: Remembering) -> None:
        await snapshot(quorum, listener)
        journal = rig.files.record()
        await snapshot(quorum, listener)
        assert journal.operations == []

    rig.life(live)


def test_a_missing_snapshot_is_refused_when_the_log_begins_later() -> None:
    rig = Rig(settings=small())
    rig.life(_three_snapshots)
    rig.files.remove(f"{FOLDER}/{15:020d}-{1:010d}.checkpoint")
    with pytest.raises(StorageError, match="no snapshot leads up to it"):
        rig.life(nothing)


# --- whose quorum it is -------------------------------------------------------------------


def test_a_directory_of_another_voter_is_refused() -> None:
    rig = Rig()
    rig.life(nothing)
    rig.files.remove(f"{DIRECTORY}/meta.properties")
    meta = b"version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAABQ\nnode.id=1\n"
    rig.files.write_atomically_now(f"{DIRECTORY}/meta.properties", meta)
    with pytest.raises(CorruptFile, match="not the one"):
        rig.life(nothing)


def _static(rig: Rig, *, voter_ids: list[int], has_state: bool) -> None:
    """As Kafka formats where `controller.quorum.voters` is configured, and maybe ran."""
    rig.format()
    for name in rig.names():
        rig.files.remove(f"{FOLDER}/{name}")
    if has_state:
        text = quorum_state_text(Election(4, 1), kraft_version=0, voters=static_voters(voter_ids))
        rig.files.write_atomically_now(STATE, text)


@pytest.mark.parametrize(("configured", "has_state"), [((1,), False), ((), True), ((), False)])
def test_voters_that_are_configured_stay_so(configured: tuple[int, ...], has_state: bool) -> None:
    rig = Rig(configured_voters=configured)
    _static(rig, voter_ids=[1], has_state=has_state)

    async def live(quorum: Quorum, _: Remembering) -> list[Replica]:
        assert quorum.kraft_version == 0
        await commit(quorum, "a")
        return quorum.describe(rig.clock()).voters

    assert [each.key for each in rig.life(live)] == [ReplicaKey(1)]
    assert controls(rig) == [["LEADER_CHANGE"]]
    assert rig.life(nothing).names == ["a"]
    election, voter_ids = parse_quorum_state(STATE, rig.files.read_whole(STATE))
    assert (election, voter_ids) == (Election(6 if has_state else 2, 1), [1])


@pytest.mark.parametrize("configured", [(1, 2, 3), (2,)])
def test_a_quorum_of_others_is_refused(configured: tuple[int, ...]) -> None:
    rig = Rig(configured_voters=configured)
    _static(rig, voter_ids=[], has_state=False)
    with pytest.raises(CorruptFile, match="cannot lead it alone"):
        rig.life(nothing)


def test_a_configuration_that_names_others_is_not_passed_over() -> None:
    rig = Rig(configured_voters=[1, 2, 3])
    with pytest.raises(CorruptFile, match="voters are 1, 2, 3; node 1 cannot lead it alone"):
        rig.life(nothing)


def test_the_quorum_describes_itself() -> None:
    rig = Rig()

    async def live(quorum: Quorum, _: Remembering) -> None:
        await commit(quorum, "a")
        described = quorum.describe(rig.clock())
        assert described[:3] == (1, 1, 4)
        (voter,) = described.voters
        assert (voter.key.id, voter.end_offset) == (1, 4)
        assert voter.last_fetch_ms == voter.last_caught_up_ms == rig.clock().wall_ms
        assert described.observers == []

    rig.life(live)
