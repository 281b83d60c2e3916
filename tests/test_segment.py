"""Segments: when they are full, what is found in them, and their files on the way in and out."""

import logging
from dataclasses import replace

import pytest

from ottla.protocol.records import BatchHeader, read_header
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptFile
from ottla.storage.folder import Folder
from ottla.storage.format import parse_segment
from ottla.storage.lookup import find_by_timestamp, locate, read_slice
from ottla.storage.names import CLEANED, DELETED, SWAP
from ottla.storage.segment import Segment
from ottla.storage.steps import at_once
from tests.log_rig import NOW, Rig, batch

BASE = 100
DENSE = LogConfig(index_interval_bytes=0, segment_index_bytes=4_800)


def made(rig: Rig, *, state: str = "", base: int = BASE) -> Segment:
    if not rig.files.exists("logs/t-0"):
        rig.files.make_directory("logs/t-0")
    segment = Segment(Folder(rig.log_dir, "t-0", rig.config), base, size=0, now=NOW, state=state)
    segment.create()
    return segment


def fill(segment: Segment, *spans: tuple[int, int], step_ms: int = 10) -> list[bytes]:
    """Batches of (base offset, count)."""
    sent = []
    for base, count in spans:
        timestamp = NOW.wall_ms + (base - BASE) * step_ms
        data = batch(count, base_offset=base, timestamp=timestamp, leader_epoch=0)
        segment.append((read_header(data),), data)
        sent.append(bytes(data))
    return sent


def header(last_offset: int) -> BatchHeader:
    return read_header(batch(1, base_offset=last_offset))


# --- when to roll -------------------------------------------------------------------------

WEEK_MS = 7 * 24 * 60 * 60 * 1000
ROLLS = [  # bytes there, bytes added, time since the first batch, last offset, jitter, rolls
    (0, 1 << 30, 0, BASE, 0, False),
    (0, (1 << 30) + 1, 0, BASE, 0, True),
    (300, (1 << 30) - 300, 0, BASE, 0, False),
    (300, (1 << 30) - 299, 0, BASE, 0, True),
    (300, 1, WEEK_MS, BASE, 0, False),
    (300, 1, WEEK_MS + 1, BASE, 0, True),
    (300, 1, WEEK_MS - 4, BASE, 5, True),
    (0, 1, WEEK_MS + 1, BASE, 0, False),
    (300, 1, 0, BASE + 0x7FFF_FFFF, 0, False),
    (300, 1, 0, BASE + 0x8000_0000, 0, True),
]


@pytest.mark.parametrize(("size", "added", "waited_ms", "last", "jitter_ms", "rolls"), ROLLS)
def test_when_a_segment_is_rolled(
    size: int, added: int, waited_ms: int, last: int, jitter_ms: int, rolls: bool
) -> None:
    segment = made(Rig())
    segment.size = size
    segment.first_timestamp = 1_000
    segment.jitter_ms = jitter_ms
    assert segment.should_roll(added, 1_000 + waited_ms, header(last), NOW) == rolls


def test_without_a_time_in_the_first_batch_the_clock_tells_the_age() -> None:
    segment = made(Rig())
    fill(segment, (BASE, 1))
    segment.first_timestamp = -1
    later = Now(0, NOW.wall_ms + WEEK_MS)
    assert not segment.should_roll(1, 5, header(BASE + 1), later)
    later = Now(0, NOW.wall_ms + WEEK_MS + 1)
    assert segment.should_roll(1, 5, header(BASE + 1), later)


def test_a_reopened_segment_knows_its_age_from_the_first_batch() -> None:
    rig = Rig()
    segment = made(rig)
    fill(segment, (BASE, 3), (BASE + 3, 1))
    segment.close()
    again = Segment(segment.folder, BASE, size=segment.size, now=NOW)
    assert again.waited_ms(NOW.wall_ms + 50, NOW) == 48


def test_compaction_wants_segments_rolled_in_time() -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=500)
    assert config.segment_age_max_ms == 500
    assert replace(config, cleanup_policy=frozenset({"delete"})).segment_age_max_ms == WEEK_MS


def test_jitter_is_below_its_bound() -> None:
    rig = Rig(LogConfig(segment_jitter_ms=50, segment_index_bytes=24))
    jitters = {made(rig, base=base).jitter_ms for base in range(100)}
    assert min(jitters) >= 0 and max(jitters) < 50 and len(jitters) > 10


# --- what is found ------------------------------------------------------------------------

SPANS = [(BASE, 3), (BASE + 3, 1), (BASE + 10, 5), (BASE + 15, 1)]


@pytest.mark.parametrize("config", [LogConfig(), DENSE], ids=["no index entries", "all"])
def test_the_first_batch_that_ends_at_an_offset_or_behind_is_found(config: LogConfig) -> None:
    segment = made(Rig(config))
    fill(segment, *SPANS)
    for offset in range(BASE - 5, BASE + 20):
        found = at_once(locate(segment, offset))
        expected = next((base for base, count in SPANS if base + count > offset), None)
        assert (found.header.base_offset if found else None) == expected


@pytest.mark.parametrize("config", [LogConfig(), DENSE], ids=["no index entries", "all"])
def test_the_bytes_of_a_fetch_begin_with_a_batch_and_end_at_a_limit(config: LogConfig) -> None:
    segment = made(Rig(config))
    sent = fill(segment, *SPANS)
    whole = b"".join(sent)
    for number, (base, count) in enumerate(SPANS):
        start = sum(map(len, sent[:number]))
        for limit in (start, start + 10, len(whole)):
            for max_bytes in (0, 1, len(sent[number]) + 1, 1 << 20):
                found = at_once(
                    read_slice(segment, base + count - 1, max_bytes, limit=limit, minimum_one=False)
                )
                assert found is not None
                assert bytes(found.data) == whole[start : min(limit, start + max_bytes)]
                assert (found.base_offset, found.position) == (base, start)


def test_a_time_is_found_from_an_offset_on() -> None:
    segment = made(Rig(DENSE))
    fill(segment, *SPANS)
    for starting in (BASE, BASE + 2, BASE + 11):
        found = at_once(find_by_timestamp(segment, NOW.wall_ms, starting))
        assert found is not None and found.offset == starting
    assert at_once(find_by_timestamp(segment, NOW.wall_ms, BASE + 16)) is None


# --- what is damaged ----------------------------------------------------------------------


def test_an_index_that_lies_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    for lie in ((BASE + 3, 5), (BASE + 3, 1 << 20), (BASE + 1, 0), (BASE + 4, 0)):
        caplog.clear()
        segment = made(Rig(DENSE))
        fill(segment, *SPANS)
        segment.offset_index.reset()
        segment.offset_index.append(*lie)
        with caplog.at_level(logging.WARNING):
            found = at_once(locate(segment, BASE + 12))
        assert found is not None and found.header.base_offset == BASE + 10
        assert ["index.rebuild" in record.message for record in caplog.records] == [True]
        assert segment.offset_index.count == 3
        fill(segment, (BASE + 20, 1))
        assert segment.offset_index.count == 4


def test_a_time_index_that_lies_is_made_again() -> None:
    for lie in ((NOW.wall_ms + 7, BASE + 2), (NOW.wall_ms + 7, BASE + 5), (5, BASE + 15)):
        segment = made(Rig(DENSE))
        fill(segment, *SPANS)
        segment.time_index.reset()
        segment.time_index.maybe_append(*lie)
        found = at_once(find_by_timestamp(segment, NOW.wall_ms + 20, BASE))
        assert found is not None and found.offset == BASE + 3
        assert segment.time_index.last_entry[1] == BASE + 15


def test_a_log_that_is_damaged_is_named() -> None:
    segment = made(Rig())
    sent = fill(segment, *SPANS)
    segment.file.write(len(sent[0]), bytes(80))
    assert at_once(locate(segment, BASE + 2)) is not None
    with pytest.raises(CorruptFile, match=f"{BASE:020}.log: position {len(sent[0])}:"):
        at_once(locate(segment, BASE + 12))


# --- files --------------------------------------------------------------------------------


def test_the_format_is_kafkas() -> None:
    segment = made(Rig())
    fill(segment, *SPANS)
    parsed = parse_segment(segment.folder.files.read_whole(segment.file_path(".log")))
    assert [each["base_offset"] for each in parsed] == [base for base, _ in SPANS]


def test_a_segment_goes_through_states() -> None:
    rig = Rig()
    segment = made(rig, state=CLEANED)
    fill(segment, *SPANS)
    for state in (SWAP, "", DELETED):
        segment.rename(state)
        assert rig.names() == [
            f"{BASE:020}{suffix}{state}" for suffix in (".index", ".log", ".timeindex")
        ]
    assert at_once(locate(segment, BASE)) is not None
    segment.remove_files()
    assert rig.names() == []


def test_what_a_crash_left_in_its_place_goes_first() -> None:
    rig = Rig()
    segment = made(rig)
    fill(segment, *SPANS)
    segment.close()
    rig.files.create(rig.path(f"{BASE:020}.txnindex")).append(b"x" * 34)
    again = made(rig.killed())
    assert (again.size, again.file.size) == (0, 0)
    assert at_once(again.transaction_index.load()) == []


def test_a_preallocated_segment_is_cut_when_it_is_left() -> None:
    rig = Rig(LogConfig(preallocate=True, segment_bytes=5_000))
    segment = made(rig)
    assert rig.files.size(segment.file_path(".log")) == 5_000
    sent = fill(segment, *SPANS)
    assert rig.files.size(segment.file_path(".log")) == 5_000
    segment.become_inactive()
    assert rig.files.read_whole(segment.file_path(".log")) == b"".join(sent)
