"""Whether a log that was opened after a crash is one that this crash may have left.

Everything here complains with an AssertionError of one line. Knows the model and what was found in
the opened log, and neither the log nor how the disk came to be.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from tests.simulation.history import (
    Batch,
    History,
    Known,
    Mark,
    Replayed,
    records_of,
    replayed,
)
from tests.simulation.world import Recovered


class Wrong(AssertionError):
    """A crash has left what it must not."""


def check_recovered(log: Recovered | None, history: History, count: int) -> None:
    """`count` operations were done before the crash."""
    before, after = history.around(count)
    marks = history.marks
    safe = min(marks[before].safe, marks[after].safe)
    if log is None:
        if marks[before].is_there:
            raise Wrong("the log is gone")
        return
    starts = [mark.start for mark in marks[history.since_checkpoint(before) : after + 1]]
    # Where the first segments had not even a name on disk, those behind them are a log still, as in
    # Kafka: it cannot be told from one of which the first segments were deleted.
    if log.start < min(starts) or (log.start > max(starts) and safe > max(starts)):
        raise Wrong(f"{log} starts outside {min(starts)} to {max(starts)}")
    visible = max(log.start, max(marks[before].start, marks[after].start))
    was_cleaned = history.was_cleaned(after)
    _check_order(log, history, visible, was_cleaned=was_cleaned)
    here = [batch for batch in log.found if batch.last >= visible]
    _check_safe(here, marks[before], marks[after], start=visible, safe=safe)
    candidates = marks[history.since_flush(before) : after + 1]
    lineages = _lineages(here, candidates, safe, log.end, has_holes=log.is_compacted)
    _check_epochs(log, here, visible)
    _check_by_lineage(log, lineages, was_cleaned=was_cleaned)
    _check_lookups(log, was_cleaned=was_cleaned)


def _check_order(log: Recovered, history: History, start: int, *, was_cleaned: bool) -> None:
    """What a cleaner has made of batches below the log start the model does not know."""
    end = -1
    for batch in log.found:
        if batch.base < end:
            raise Wrong(f"{batch.base} comes behind {end - 1}")
        is_known = batch.last >= start or not was_cleaned
        if is_known and batch.data not in history.versions.get(batch.base, ()):
            raise Wrong(f"the batch at {batch.base} was never there")
        end = batch.last + 1
    if log.found and end > log.end:
        raise Wrong(f"a batch ends at {end}, {log} before")


def _check_safe(found: list[Batch], before: Mark, after: Mark, *, start: int, safe: int) -> None:
    """Below `safe` there is what both marks have, and nothing that neither has."""
    here = {batch.data for batch in found if batch.last < safe}
    old, new = ({b.data for b in m.stored if start <= b.last < safe} for m in (before, after))
    if lost := (old & new) - here:
        raise Wrong(f"flushed, and gone: {sorted(_bases(lost))} after {after.name}")
    if strange := here - old - new:
        raise Wrong(f"not there before the crash: {sorted(_bases(strange))} after {after.name}")
    # What a swap was about to replace is there in one form or the other.
    offsets = {offset for batch in found for offset in range(batch.base, batch.last + 1)}
    for batch in after.stored:
        if start <= batch.base and batch.last < safe and not offsets >= {batch.base, batch.last}:
            raise Wrong(f"neither the old nor the new form of {batch.base} is there")


def _bases(batches: set[bytes]) -> list[int]:
    return [int.from_bytes(data[:8]) for data in batches]


def _lineages(
    found: list[Batch], candidates: list[Mark], safe: int, end: int, *, has_holes: bool
) -> list[Mark]:
    """The marks of which the log holds the beginning. Nobody can tell a hole in a compacted log,
    where the end of a segment is lost and the next one is not, from what a cleaner leaves."""
    behind = [batch.data for batch in found if batch.last >= safe]
    first = found[0].base if found else end
    fitting = []
    for mark in reversed(candidates):
        wanted = [b.data for b in mark.stored if b.last >= safe and b.base >= first]
        if mark.end >= end and (
            behind == wanted[: len(behind)] or (has_holes and _is_part(behind, wanted))
        ):
            fitting.append(mark)
    # A cleaning in progress leaves old segments beside new ones.
    if not fitting and candidates[-1].name == "compact":
        both = {batch.data for mark in candidates[-2:] for batch in mark.stored}
        if both >= set(behind):
            fitting.append(candidates[-1])
    if not fitting:
        there = [int.from_bytes(data[:8]) for data in behind]
        marks = [(mark.name, mark.end) for mark in candidates]
        raise Wrong(f"behind {safe} stands {there} to {end}, and never did so: {marks[-30:]}")
    return fitting


def _is_part(part: list[bytes], whole: list[bytes]) -> bool:
    """Whether all of it comes in the whole, in this order."""
    rest = iter(whole)
    return all(each in rest for each in part)


@lru_cache(maxsize=256)
def _possible(lineage: "_Identity", end: int) -> Replayed:
    return replayed(lineage.mark.appended, end)


class _Identity:
    """A mark as itself: what it holds is not compared."""

    __slots__ = ("mark",)

    def __init__(self, mark: Mark) -> None:
        self.mark = mark

    def __hash__(self) -> int:
        return id(self.mark.appended)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.mark.appended is other.mark.appended


def _check_by_lineage(log: Recovered, lineages: list[Mark], *, was_cleaned: bool) -> None:
    """One of them at least must explain what the log knows."""
    for number, lineage in enumerate(lineages, 1):
        possible = _possible(_Identity(lineage), log.end)
        try:
            _check_producers(log, lineage, possible, was_cleaned=was_cleaned)
            _check_aborted(log, possible)
            return
        except Wrong:
            if number == len(lineages):
                raise


def _check_producers(
    log: Recovered, lineage: Mark, appended: Replayed, *, was_cleaned: bool
) -> None:
    """Those of the batches that survived are known, and nobody by what did not survive."""
    wanted, possible = log.replayed.known, appended.known
    for producer_id, state in log.known.items():
        if state == wanted.get(producer_id):
            # Also where a truncation, behind which it was cleaned, has left older batches alone.
            continue
        if (was_cleaned or log.is_compacted) and _was_so(producer_id, state, lineage.appended):
            # The last batch that the log has lost had let the cleaner take the ones before. Or it
            # was lost in a hole that the cleaner could have left.
            continue
        if not _is_mixed(state, wanted.get(producer_id), possible.get(producer_id)):
            raise Wrong(
                f"producer {producer_id} is {state}, by the log {wanted.get(producer_id)},"
                f" by all that was appended {possible.get(producer_id)}"
            )
    if missing := wanted.keys() - log.known.keys():
        raise Wrong(f"producers {sorted(missing)} are forgotten")


def _was_so(producer_id: int, state: Known, appended: tuple[Batch, ...]) -> bool:
    return any(
        header.producer_id == producer_id
        and (header.producer_epoch, header.last_offset) == (state.epoch, state.last_offset)
        for header, _ in appended
    )


def _is_mixed(state: Known, wanted: Known | None, possible: Known | None) -> bool:
    """What is gone from the log may be known of a snapshot, or not any more."""
    if possible is None:
        return False
    forms = [possible] if wanted is None else [possible, wanted]
    return state.epoch == possible.epoch and all(
        value in [form[number] for form in forms] + [-1] for number, value in enumerate(state)
    )


def _check_epochs(log: Recovered, found: list[Batch], start: int) -> None:
    entries = log.epochs
    for earlier, later in pairwise(entries):
        if not (earlier.epoch < later.epoch and earlier.start_offset < later.start_offset):
            raise Wrong(f"epochs {entries} do not rise")
    if entries and entries[-1].start_offset > log.end:
        raise Wrong(f"epochs {entries} reach behind {log}")
    number = -1
    for batch in found:
        offset = max(batch.base, start)
        while number + 1 < len(entries) and entries[number + 1].start_offset <= offset:
            number += 1
        if number < 0 or entries[number].epoch != batch.header.partition_leader_epoch:
            raise Wrong(
                f"the batch at {batch.base} is of epoch {batch.header.partition_leader_epoch},"
                f" the epochs are {entries}"
            )


def _check_aborted(log: Recovered, appended: Replayed) -> None:
    """Each transaction whose records are there is named, and none that was not aborted."""
    wanted = log.replayed.aborted
    ends = {(producer_id, last) for producer_id, _, last in (*appended.aborted, *wanted)}
    if strange := [each for each in log.aborted if (each[0], each[2]) not in ends]:
        raise Wrong(f"never aborted: {strange}")
    named = {(producer_id, last) for producer_id, _, last in log.aborted}
    for producer_id, first, last in wanted:
        if first >= log.start and (producer_id, last) not in named:
            raise Wrong(f"the abort of {producer_id} at {first} to {last} is forgotten")


def _check_lookups(log: Recovered, *, was_cleaned: bool) -> None:
    """The indexes lead where they must, near the ends and in the middle."""
    for batch, data, at in log.lookups:
        if data != batch.data:
            raise Wrong(f"a read of {batch.base} finds another batch")
        if log.start > log.first_base or log.is_compacted or was_cleaned:
            # As in Kafka, a time is looked for in the first segment that has it, below the log
            # start and in empty batches too, and in no other.
            continue
        latest = batch.header.max_timestamp
        wanted = next(_not_earlier(log.found, latest, log.start), None)
        if wanted != at:
            raise Wrong(f"the time {latest} is found at {at}, and is at {wanted}")


def _not_earlier(found: tuple[Batch, ...], timestamp: int, start: int) -> Iterator[int]:
    for batch in found:
        if batch.header.max_timestamp >= timestamp:
            for record in records_of(batch):
                if record.timestamp >= timestamp and record.offset >= start:
                    yield record.offset
