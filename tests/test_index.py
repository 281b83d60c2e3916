"""Indexes: what was entered is found, in memory, in the file and after the file was cut."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptFile
from ottla.storage.folder import Folder, LogDir
from ottla.storage.format_index import parse_offset_index, parse_time_index
from ottla.storage.index import OffsetIndex, TimeIndex
from ottla.storage.index_memory import IndexMemory
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import Fault
from ottla.storage.segment import Segment
from ottla.storage.steps import at_once
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex
from tests.log_rig import NOW, Rig

BASE = 1_000


def segment(rig: Rig | None = None, *, memory: IndexMemory | None = None) -> Segment:
    rig = rig or Rig(LogConfig())
    if memory is not None:
        rig.log_dir.indexes = memory
    rig.files.make_directory("logs/t-0")
    made = Segment(Folder(rig.log_dir, "t-0", rig.config), BASE, size=0, now=NOW)
    made.create()
    return made


def reopened(old: Segment) -> Segment:
    """The same files, looked at by another process."""
    files = old.folder.files
    assert isinstance(files, MemoryFiles)
    log_dir = LogDir(files.copy(), "logs", random=Random(1), indexes=IndexMemory())
    return Segment(Folder(log_dir, "t-0", old.folder.config), BASE, size=1 << 20, now=NOW)


COUNTS = [0, 1, 2, 511, 512, 513, 2_000]


def offset_entries(count: int) -> list[tuple[int, int]]:
    return [(BASE + 3 * i + 2, 100 + 70 * i) for i in range(count)]


def time_entries(count: int) -> list[tuple[int, int]]:
    return [(10 * i + 5, BASE + 3 * i) for i in range(count)]


def filled_offsets(count: int) -> OffsetIndex:
    index = segment().offset_index
    for offset, position in offset_entries(count):
        index.append(offset, position)
    return index


def filled_times(count: int) -> TimeIndex:
    index = segment().time_index
    for timestamp, offset in time_entries(count):
        index.maybe_append(timestamp, offset)
    return index


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("unload", [False, True])
def test_the_last_entry_that_is_not_above_is_found(count: int, unload: bool) -> None:
    offsets, times = filled_offsets(count), filled_times(count)
    if unload:
        offsets.unload()
        times.unload()
    step = max(1, count // 50)
    for target in range(BASE, BASE + 3 * count + 5, step):
        expected = [entry for entry in offset_entries(count) if entry[0] <= target][-1:]
        assert at_once(offsets.floor(target)) == (expected[0] if expected else None)
    for target in range(-5, 10 * count + 20, step):
        expected = [entry for entry in time_entries(count) if entry[0] <= target][-1:]
        assert at_once(times.floor(target)) == (expected[0] if expected else None)
    assert at_once(offsets.floor(BASE - 1)) is None
    assert at_once(offsets.floor(1 << 60)) == (offset_entries(count)[-1] if count else None)


@pytest.mark.parametrize("count", COUNTS)
def test_a_trimmed_file_holds_kafkas_entries(count: int) -> None:
    offsets, times = filled_offsets(count), filled_times(count)
    for index in (offsets, times):
        assert index._segment.folder.files.size(index.path) > 10_000_000
        index.trim()
        index.close()
    data = offsets._segment.folder.files.read_whole(offsets.path)
    assert parse_offset_index(data, BASE) == {
        "entries": [{"offset": o, "position": p} for o, p in offset_entries(count)],
        "preallocated_bytes": 0,
    }
    data = times._segment.folder.files.read_whole(times.path)
    assert parse_time_index(data, BASE)["entries"] == [
        {"timestamp": t, "offset": o} for t, o in time_entries(count)
    ]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("trim", [True, False])
def test_another_process_finds_the_same(count: int, trim: bool) -> None:
    offsets, times = filled_offsets(count), filled_times(count)
    for index in (offsets, times):
        (index.trim if trim else index.write_tail)()
    again = reopened(offsets._segment)
    assert again.offset_index.count == count
    assert at_once(again.offset_index.floor(1 << 60)) == (
        offset_entries(count)[-1] if count else None
    )
    again = reopened(times._segment)
    assert again.time_index.last_entry == (time_entries(count) or [(-1, BASE)])[-1]


@pytest.mark.parametrize("kept", [0, 1, 511, 512, 513, 599, 600])
@pytest.mark.parametrize("write", [True, False])
def test_truncation_drops_entries_from_an_offset_on(kept: int, write: bool) -> None:
    offsets, times = filled_offsets(600), filled_times(600)
    if write:
        offsets.write_tail()
        times.write_tail()
    offsets.truncate_to(BASE + 3 * kept + 2)
    times.truncate_to(BASE + 3 * kept)
    assert (offsets.count, times.count) == (kept, kept)
    assert offsets.last_offset == (offset_entries(kept) or [(BASE, 0)])[-1][0]
    assert times.last_entry == (time_entries(kept) or [(-1, BASE)])[-1]
    offsets.append(BASE + 5_000, 9)
    times.maybe_append(50_000, BASE + 5_000)
    for index in (offsets, times):
        index.write_tail()
    assert reopened(offsets._segment).offset_index.count == kept + 1
    assert reopened(times._segment).time_index.last_entry == (50_000, BASE + 5_000)


def test_an_offset_that_does_not_rise_is_refused() -> None:
    index = filled_offsets(3)
    with pytest.raises(ValueError, match="does not follow"):
        index.append(BASE + 8, 1_000)


def test_a_time_that_does_not_rise_is_no_entry() -> None:
    index = filled_times(3)
    index.maybe_append(25, BASE + 99)
    assert index.count == 3


def test_the_first_entry_behind_a_position_is_found() -> None:
    index = filled_offsets(600)
    assert at_once(index.offset_from_position(0)) == BASE + 2
    assert at_once(index.offset_from_position(170)) == BASE + 5
    assert at_once(index.offset_from_position(171)) == BASE + 8
    assert at_once(index.offset_from_position(1 << 30)) is None


def test_an_index_is_full_at_its_size() -> None:
    rig = Rig(LogConfig(segment_index_bytes=50))
    made = segment(rig)
    for i in range(1, 4):
        assert made.time_index.room > 0
        made.time_index.maybe_append(i, BASE + i)
    assert made.time_index.room == 0
    assert (made.offset_index.count_max, made.time_index.count_max) == (6, 4)
    assert rig.files.size(made.offset_index.path) == 48


def test_memory_is_bounded_by_unloading_the_longest_unused() -> None:
    memory = IndexMemory(bytes_max=20_000)
    made = segment(memory=memory)
    indexes = [OffsetIndex(made, is_new=True) for _ in range(3)]
    files = [made.folder.files]
    for number, index in enumerate(indexes):
        made.base_offset = BASE + number
        index._file = files[0].create(f"logs/t-0/{number}.index")
        for i in range(1_024):
            index.append(BASE + 5_000 + i, i + 1)
        at_once(index.floor(BASE + 5_000))
    assert memory.bytes_held <= 20_000
    assert indexes[0]._head is None and indexes[2]._head is not None
    assert at_once(indexes[0].floor(BASE + 5_003)) is not None
    assert indexes[1]._head is None


def test_a_single_zero_entry_is_one_and_more_zeros_are_none() -> None:
    for size, count in [(12, 1), (24, 0), (1_200, 0), (0, 0)]:
        made = segment()
        files = made.folder.files
        made.time_index.close()
        files.remove(made.time_index.path)
        file = files.create(made.time_index.path)
        file.append(bytes(size))
        file.close()
        assert reopened(made).time_index.count == count


CORRUPT: dict[str, tuple[Callable[[Segment], str], bytes]] = {
    "half an offset entry": (lambda s: s.offset_index.path, b"\0\0\0\1\0\0\0\1\0\0\1"),
    "a negative offset": (lambda s: s.offset_index.path, b"\xff" * 8),
    "a negative time": (lambda s: s.time_index.path, b"\xff" * 12),
}


@pytest.mark.parametrize(("path_of", "data"), CORRUPT.values(), ids=CORRUPT)
def test_a_file_that_cannot_be_is_corrupt(path_of: Callable[[Segment], str], data: bytes) -> None:
    made = segment()
    path = path_of(made)
    made.folder.files.remove(path)
    file = made.folder.files.create(path)
    file.append(data)
    file.close()
    again = reopened(made)
    index = again.offset_index if path.endswith(".index") else again.time_index
    with pytest.raises(CorruptFile):
        at_once(index.load())


def test_a_full_disk_keeps_entries_in_memory() -> None:
    rig = Rig()
    made = segment(rig)
    rig.files.fail(lambda op: op.kind == "write", Fault.ENOSPC, times=2)
    for offset, position in offset_entries(600):
        made.offset_index.append(offset, position)
    assert made.offset_index.count == 600
    made.offset_index.write_tail()
    assert reopened(made).offset_index.count == 600


# --- aborted transactions -----------------------------------------------------------------


def aborted(
    first: int, last: int, stable: int | None = None, *, producer_id: int = 7
) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first, last, last + 1 if stable is None else stable)


def filled_transactions() -> TransactionIndex:
    index = segment().transaction_index
    # The third was open while the fourth came and went.
    entries = [aborted(1000, 1009), aborted(1010, 1019), aborted(1040, 1049, 1030)]
    for entry in [*entries, aborted(1030, 1059, producer_id=8)]:
        index.append(entry)
    return index


RANGES = [  # fetch offset, upper bound -> first offsets, whether nothing can follow
    (1000, 1010, [1000], True),
    (1000, 1005, [1000], True),
    (1010, 1020, [1010], True),
    (1012, 1031, [1010, 1030], True),
    (1020, 1100, [1040, 1030], False),
    (1060, 1100, [], False),
]


@pytest.mark.parametrize(("start", "end", "firsts", "complete"), RANGES)
def test_transactions_that_overlap_are_collected(
    start: int, end: int, firsts: list[int], complete: bool
) -> None:
    for index in (
        filled_transactions(),
        reopened(filled_transactions()._segment).transaction_index,
    ):
        found, is_complete = at_once(index.collect(start, end))
        assert [entry.first_offset for entry in found] == firsts
        assert is_complete == complete


def test_transactions_are_truncated_by_their_markers() -> None:
    index = filled_transactions()
    index.truncate_to(1049)
    assert len(at_once(index.load())) == 2
    assert len(at_once(reopened(index._segment).transaction_index.load())) == 2
    index.append(aborted(1020, 1025))


def test_markers_must_rise() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        filled_transactions().append(aborted(1000, 1059))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: b"\0\1" + data[2:],
        lambda data: data + data[:34],
        lambda data: data[:2] + b"\xff" * 24 + data[26:],
    ],
    ids=["half an entry", "another version", "falling", "negative"],
)
def test_a_damaged_transaction_index_is_corrupt(spoil: Callable[[bytes], bytes]) -> None:
    index = filled_transactions()
    files = index._segment.folder.files
    data = spoil(files.read_whole(index.path))
    index.close()
    files.remove(index.path)
    file = files.create(index.path)
    file.append(data)
    file.close()
    with pytest.raises(CorruptFile):
        at_once(reopened(index._segment).transaction_index.load())


def test_a_new_config_holds_for_new_segments() -> None:
    made = segment()
    made.folder.config = replace(made.folder.config, segment_index_bytes=80)
    assert made.offset_index.count_max == (10 << 20) // 8
