"""A random life of one log, from a seed: every operation that storage has, with a mark after each.

The model goes beside it and is compared with the log after every operation. What the disk refuses
(a fault was armed) ends the workload.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from ottla.protocol.record_build import build_batch
from ottla.protocol.records import ControlRecordType, Record
from ottla.storage.cleaner import Cleaner
from ottla.storage.clock import Now
from ottla.storage.config import COMPACT, DELETE, LogConfig
from ottla.storage.log import Log
from ottla.storage.long_work import work_now
from ottla.storage.memory_files import Journal, MemoryFiles
from ottla.storage.producers import Origin
from ottla.storage.retention import delete_old_segments
from ottla.storage.steps import exhaust, to_the_end
from tests.log_rig import NOW, TOPIC_ID, marker
from tests.simulation.compaction_law import check_compaction
from tests.simulation.history import NOTHING, Batch, History, Mark, batch_of
from tests.simulation.world import PARTITION, TOPIC, known_in, log_in, opened, stored_in

OPERATIONS = 220
_KEYS = 7
_PRODUCERS = 4
POLICIES = (frozenset({DELETE}), frozenset({COMPACT}), frozenset({COMPACT, DELETE}))


def config_of(random: Random) -> LogConfig:
    return LogConfig(
        segment_bytes=random.choice((1_000, 2_000, 4_000)),
        segment_ms=random.choice((6_000, 1 << 40)),
        index_interval_bytes=random.choice((1, 150, 400)),
        segment_index_bytes=random.choice((60, 480)),
        cleanup_policy=random.choice(POLICIES),
        retention_bytes=random.choice((-1, 3_000, 5_000)),
        retention_ms=random.choice((30_000, 1 << 40)),
        file_delete_delay_ms=random.choice((0, 2_000)),
        delete_retention_ms=random.choice((0, 3_000)),
        min_cleanable_dirty_ratio=0.0,
        flush_messages=random.choice((1, 9, 1 << 40, 1 << 40)),
        preallocate=random.random() < 0.15,
    )


@dataclass(slots=True)
class Sender:
    """A producer as it sees itself."""

    number: int
    epoch: int = 0
    sequence: int = 0
    in_transaction: bool = False


class Refused(AssertionError):
    """Storage did not do it, and says no more: expected where a fault was armed, and only there."""


class Workload:
    def __init__(self, seed: int, files: MemoryFiles | None = None) -> None:
        self.random = Random(seed)
        self.config = config_of(self.random)
        self.files = files or MemoryFiles()
        self.journal: Journal | None = None
        self.history = History()
        self.now = NOW
        self.epoch = 0
        self.senders = [Sender(number) for number in range(_PRODUCERS)]
        self.stored: list[Batch] = []
        self.appended: list[Batch] = []
        self.start = self.end = self.safe = self.claimed = 0
        self.duplicates: list[tuple[bytes, int]] = []
        self.doing = "create"
        self.done: set[str] = set()
        """Of what not every call comes to something."""
        weights: dict[Callable[[], None], int] = {
            self.append: 70,
            self.append_idempotent: 30,
            self.append_transactional: 24,
            self.append_as_follower: 16,
            self.send_again: 4,
            self.end_transaction: 16,
            self.bump_producer: 2,
            self.flush: 10,
            self.flush_aside: 4,
            self.flush_chores: 8,
            self.roll: 5,
            self.truncate: 7,
            self.start_over: 2,
            self.delete_records: 5,
            self.retain: 8,
            self.compact: 8,
            self.checkpoint: 6,
            self.new_epoch: 6,
            self.expire: 12,
            self.restart: 2,
        }
        self._calls, self._weights = list(weights), list(weights.values())

    def begin(self, *, record: bool = True) -> None:
        self.logs = opened(self.files, self.config, self.now)
        if record:
            self.journal = self.files.record()
        self.first_operation = self.files.operation_count
        self.cleaner = Cleaner(lambda: self.now)
        self.history.add(Mark(0, "nothing", (), (), 0, 0, 0, is_there=False))
        self.logs.create(TOPIC, PARTITION, self.config, topic_id=TOPIC_ID, now=self.now)
        self.mark("create")

    @property
    def log(self) -> Log:
        log = log_in(self.logs)
        if log is None:
            raise Refused(f"the log is gone: {self.logs.refused}")
        return log

    def run(self, count: int = OPERATIONS) -> None:
        self.begin()
        for _ in range(count):
            (call,) = self.random.choices(self._calls, self._weights)
            self.step(call)
        for call in (self.roll, self.truncate, self.compact, self.checkpoint):
            if call.__name__ not in self.done:
                self._bring_about(call)

    def _bring_about(self, call: Callable[[], None]) -> None:
        """So that no life is without it."""
        while any(sender.in_transaction for sender in self.senders):
            self.step(self.end_transaction)
        for _ in range(3):
            self.step(self.append)
            self.step(self.roll)
            self.step(call)
        if call.__name__ not in self.done:
            raise AssertionError(f"{self.log} comes to no {call.__name__}")

    def step(self, call: Callable[[], None]) -> None:
        passed_ms = self.random.choice((0, 1, 40, 700))
        self.now = Now(self.now.monotonic_ms + passed_ms, self.now.wall_ms + passed_ms)
        self.doing = call.__name__
        call()
        self.mark(self.doing)

    def mark(self, name: str) -> None:
        log = self.log
        self.stored = [each for each in self.stored if each.last >= self.start]
        seen = (log.log_start_offset, log.log_end_offset, stored_in(log))
        wanted = (self.start, self.end, tuple(self.stored))
        if seen != wanted:
            raise AssertionError(f"after {name} the log is {_short(seen)}, not {_short(wanted)}")
        if log.recovery_point < min(self.safe, self.end):
            raise AssertionError(f"after {name} {log} forgets what was flushed, {self.safe}")
        if log.recovery_point > self.claimed:
            # What is below the log start counts as safe, and need not be on disk.
            is_flush = name not in ("delete_records", "retain")
            self.safe = log.recovery_point if is_flush else self.safe
        self.claimed = log.recovery_point
        count = self.files.operation_count - self.first_operation
        self.history.add(
            Mark(
                count,
                name,
                wanted[2],
                tuple(self.appended),
                self.start,
                self.end,
                self.safe,
                log.is_settled,
            )
        )

    # appending

    def _records(self, keyed: bool) -> list[Record]:
        random = self.random
        return [
            Record(
                number,
                self.now.wall_ms + random.randrange(-3, 4),
                b"k%d" % random.randrange(_KEYS) if keyed else None,
                None
                if keyed and random.random() < 0.25
                else b"v%d" % random.randrange(1 << 30) * random.choice((1, 3, 12)),
            )
            for number in range(random.choice((1, 1, 2, 4)))
        ]

    def _batch(self, sender: Sender | None = None, *, transactional: bool = False) -> bytearray:
        records = self._records(self.config.is_compacted or self.random.random() < 0.5)
        if sender is None:
            return build_batch(records)
        data = build_batch(
            records,
            producer_id=sender.number,
            producer_epoch=sender.epoch,
            base_sequence=sender.sequence,
            transactional=transactional,
        )
        sender.sequence += len(records)
        return data

    def _append(self, data: bytearray, origin: Origin = Origin.CLIENT) -> None:
        self.log.append_as_leader(data, leader_epoch=self.epoch, now=self.now, origin=origin)
        self._appended(bytes(data))

    def _appended(self, data: bytes) -> None:
        batch = batch_of(data)
        self.stored.append(batch)
        self.appended.append(batch)
        self.end = batch.last + 1
        if self.random.random() < 0.7:
            self.log.update_high_watermark(self.end)

    def append(self) -> None:
        self._append(self._batch())

    def _idle(self) -> Sender | None:
        idle = [sender for sender in self.senders if not sender.in_transaction]
        return self.random.choice(idle) if idle else None

    def append_idempotent(self) -> None:
        sender = self._idle()
        if sender is not None:
            data = self._batch(sender)
            sent = bytes(data)
            self._append(data)
            self.duplicates = [(sent, self.stored[-1].base)]

    def send_again(self) -> None:
        for sent, base_offset in self.duplicates:
            appended = self.log.append_as_leader(
                bytearray(sent), leader_epoch=self.epoch, now=self.now
            )
            if not appended.is_duplicate or appended.base_offset != base_offset:
                raise AssertionError(f"a duplicate of {base_offset} became {appended}")

    def append_transactional(self) -> None:
        sender = self.random.choice(self.senders)
        self._append(self._batch(sender, transactional=True))
        sender.in_transaction = True
        self.duplicates = []

    def end_transaction(self) -> None:
        open_ones = [sender for sender in self.senders if sender.in_transaction]
        if open_ones:
            sender = self.random.choice(open_ones)
            type_ = self.random.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT))
            data = marker(sender.number, type_, epoch=sender.epoch, coordinator_epoch=self.epoch)
            self._append(data, Origin.COORDINATOR)
            sender.in_transaction = False

    def bump_producer(self) -> None:
        sender = self._idle()
        if sender is not None:
            sender.epoch, sender.sequence = sender.epoch + 1, 0
            self.duplicates = []

    def append_as_follower(self) -> None:
        # A cleaner has been at the leader's log.
        base_offset = self.end + self.random.choice((0, 0, 0, 1, 4))
        data = build_batch(
            [
                record._replace(offset=base_offset + number)
                for number, record in enumerate(self._records(keyed=True))
            ],
            base_offset=base_offset,
            leader_epoch=self.epoch,
        )
        self.log.append_as_follower(bytes(data), leader_epoch=self.epoch, now=self.now)
        self._appended(bytes(data))

    # the rest

    def flush(self) -> None:
        self.log.flush_now()
        self._must_be_safe(self.end)

    def flush_aside(self) -> None:
        asyncio.run(self.log.flush())
        self._must_be_safe(self.end)

    def flush_chores(self) -> None:
        self.log.folder.log_dir.chores.flush_now()

    def _must_be_safe(self, offset: int) -> None:
        if self.log.recovery_point < offset:
            raise AssertionError(f"{self.log} was flushed and says {self.log.recovery_point}")

    def roll(self) -> None:
        self.done |= {"roll"} if self.log.segments.active.size else set()
        self.log.roll(self.now)

    def truncate(self) -> None:
        # Where a batch ends, and not in a gap: how far the log goes there no start could tell.
        ends = {self.start, *(each.last + 1 for each in self.stored)}
        offsets = [each.base for each in self.stored if each.base in ends]
        if not offsets:
            return
        self.done.add("truncate")
        offset = self.random.choice(offsets if self.random.random() < 0.3 else offsets[-6:])
        self.cleaner.truncated(self.log, offset)
        self.log.truncate_to(offset, self.now)
        self._cut_to(offset)
        self.log.update_high_watermark(min(self.log.high_watermark, self.end))

    def _cut_to(self, offset: int) -> None:
        self.stored = [each for each in self.stored if each.last < offset]
        self.appended = [each for each in self.appended if each.last < offset]
        self.end = offset
        self.safe = min(self.safe, offset)
        self.start = min(self.start, offset)
        self.duplicates = []
        self._see_producers()

    def _see_producers(self) -> None:
        """After a truncation a producer goes on where the log does."""
        known = known_in(self.log)
        for sender in self.senders:
            found = known.get(sender.number, NOTHING)
            sender.epoch = max(found.epoch, 0) if found.epoch >= 0 else sender.epoch + 1
            sender.sequence = found.last_sequence + 1 if found.last_offset >= 0 else 0
            sender.in_transaction = found.transaction_start >= 0

    def start_over(self) -> None:
        offset = self.random.choice((self.end, self.end + 5, max(0, self.start)))
        self.cleaner.truncated(self.log, offset)
        self.log.truncate_fully_and_start_at(offset, self.now)
        self.stored, self.appended = [], []
        self.start = self.end = offset
        self.safe = min(self.safe, offset)
        self.duplicates = []
        self._see_producers()

    def delete_records(self) -> None:
        high_watermark = self.log.high_watermark
        if high_watermark > self.start:
            offset = self.random.randrange(self.start, high_watermark + 1)
            self.log.maybe_increment_log_start_offset(offset)
            self.start = max(self.start, offset)

    def retain(self) -> None:
        self.log.update_high_watermark(self.end)
        delete_old_segments(self.log, self.now)
        self.start = max(self.start, self.log.segments.first.base_offset)

    def compact(self) -> None:
        """Where the policy is another one it is changed for a moment, but seldom."""
        if not self.config.is_compacted and "compact" in self.done and self.random.random() < 0.9:
            return
        self.log.update_high_watermark(self.end)
        self.log.config = replace(self.config, cleanup_policy=frozenset({COMPACT}))
        found = to_the_end(self.cleaner.dirtiest([self.log], self.now))
        cleaned = None if found is None else work_now(self.cleaner.clean(found))
        self.log.config = self.config
        if found is None:
            return
        if cleaned is None:
            raise Refused(f"{self.log} could not be cleaned: {self.cleaner.uncleanable}")
        self.done.add("compact")
        after = list(stored_in(self.log))
        check_compaction(self.stored, after, end=cleaned.end_offset, wall_ms=self.now.wall_ms)
        self.stored = after

    def checkpoint(self) -> None:
        self.done.add("checkpoint")
        asyncio.run(self.logs.checkpoint())
        self.history.checkpoints.append(len(self.history.marks))

    def new_epoch(self) -> None:
        self.epoch += self.random.randrange(1, 3)
        if self.random.random() < 0.5:
            self.log.assign_epoch(self.epoch)

    def expire(self) -> None:
        while (due_ms := self.logs.deadline_ms()) is not None and due_ms <= self.now.monotonic_ms:
            self.logs.expire(self.now)

    def restart(self) -> None:
        exhaust(self.logs.closing(broker_epoch=5))
        self.logs = opened(self.files, self.config, self.now)
        self.cleaner = Cleaner(lambda: self.now)
        self.history.checkpoints.append(len(self.history.marks))
        self.duplicates = []


def _short(view: tuple[int, int, tuple[Batch, ...]]) -> str:
    start, end, stored = view
    return f"{start} to {end}: {[(batch.base, batch.last, batch.header.crc) for batch in stored]}"
