"""A quorum of one loses nothing that was committed, wherever its disk is cut.

Three lives with restarts, snapshots and deletions run once with a journal. Then the disk is crashed
after every few operations (after each with STEP = 1), in the ways that POSIX allows, and opened.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from ottla.protocol.errors import KafkaError
from ottla.protocol.records import iterate_batches
from ottla.replication.quorum import Quorum
from ottla.storage.errors import StorageError
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import Journal, MemoryFiles
from ottla.storage.memory_operations import Fault
from tests.quorum_rig import FOLDER, Remembering, Rig, commit, nothing, small, snapshot

LIVES = 3
STEP = 3


@dataclass
class Past:
    """What was promised, and after how many operations."""

    journal: Journal
    names: list[str] = field(default_factory=list)
    committed: list[tuple[int, int]] = field(default_factory=list)
    """So many names, after so many operations."""
    epochs: list[tuple[int, int]] = field(default_factory=list)


def lived() -> Past:
    rig = Rig(settings=small())
    rig.files.make_directory("data")
    rig.files.sync_directory_now("")
    past = Past(rig.files.record())
    operations = past.journal.operations

    async def live(quorum: Quorum, listener: Remembering) -> None:
        past.epochs.append((quorum.leader_epoch, len(operations)))
        for number in range(6):
            names = [f"{quorum.leader_epoch}/{number}/{each}" for each in range(1 + number % 3)]
            past.names += names
            await commit(quorum, *names)
            past.committed.append((len(past.names), len(operations)))
            if number % 4 == 3:
                await snapshot(quorum, listener)
                quorum.upkeep(rig.clock())

    for _ in range(LIVES):
        rig.life(live)
    return past


@pytest.fixture(scope="module")
def past() -> Past:
    return lived()


def promised(entries: list[tuple[int, int]], count: int) -> int:
    return max((value for value, at in entries if at <= count), default=0)


def check(files: MemoryFiles, past: Past, count: int) -> Rig:
    """Opens what a crash has left, twice, with a commit in between."""
    rig = Rig(files, settings=small())

    async def live(quorum: Quorum, listener: Remembering) -> tuple[list[str], int]:
        before = listener.names.copy()
        await commit(quorum, "new")
        return before, quorum.leader_epoch

    names, epoch = rig.life(live, is_clean=False)
    assert names == past.names[: len(names)], "others than were appended"
    assert len(names) >= promised(past.committed, count), "what was committed is lost"
    assert epoch > promised(past.epochs, count), "an epoch is used twice"
    assert rig.life(nothing).names == [*names, "new"]
    _check_epochs(rig)
    return rig


def _check_epochs(rig: Rig) -> None:
    """They only rise along the log."""
    last = 0
    for name in rig.names():
        if name.endswith(".log"):
            for _, header in iterate_batches(rig.files.read_whole(f"{FOLDER}/{name}")):
                assert header.partition_leader_epoch >= last
                last = header.partition_leader_epoch


def test_a_crash_loses_nothing_that_was_committed(past: Past) -> None:
    random = Random(5)
    crashes = list(Crash)
    for number, count in enumerate(past.journal.cuts()[::STEP]):
        crash = crashes[number % len(crashes)]
        check(past.journal.disk_at(count).crash(random, crash), past, count)


@pytest.mark.parametrize("crash", list(Crash))
def test_a_crash_while_it_is_opened_again_loses_nothing_either(past: Past, crash: Crash) -> None:
    random = Random(6)
    for count in past.journal.cuts()[:: STEP * 40]:
        rig = Rig(past.journal.disk_at(count).crash(random, crash), settings=small())
        rig.files = rig.files.copy()
        journal = rig.files.record()
        rig.life(nothing, is_clean=False)
        cuts = journal.cuts()
        for again in random.sample(cuts, min(len(cuts), 3)):
            check(journal.disk_at(again).crash(random, crash), past, count)


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.ENOSPC, Fault.EMFILE, Fault.SHORT_WRITE])
def test_a_fault_at_any_operation_loses_nothing_that_was_committed(fault: Fault) -> None:
    """The process may go on, refuse, or not even start; the disk stays right."""
    random = Random(9)
    _, _, total = life_with_fault(-1, fault)
    assert total > 100
    for number in range(0, total, STEP * 3):
        rig, committed, _ = life_with_fault(number, fault)
        for files in (rig.files.copy(), rig.files.crash(random)):
            names = Rig(files, settings=small()).life(nothing).names
            assert names[: len(committed)] == committed, f"after {fault} at {number}"


def life_with_fault(number: int, fault: Fault) -> tuple[Rig, list[str], int]:
    """What was committed before it ended, and how many operations it took."""
    rig = Rig(settings=small())
    committed: list[str] = []

    async def live(quorum: Quorum, listener: Remembering) -> None:
        for each in range(12):
            await asyncio.wait_for(commit(quorum, f"t{each}"), timeout=5)
            committed.append(f"t{each}")
            if each % 4 == 3:
                await snapshot(quorum, listener)
                quorum.upkeep(rig.clock())

    disk = rig.files
    disk.fail(number, fault)
    with suppress(StorageError, KafkaError):
        rig.life(live, is_clean=False)
    return rig, committed, disk.operation_count
