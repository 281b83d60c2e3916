"""A partition's log beside the bare system calls that it cannot do without.

The files lie in the working directory's file system, in a folder that is removed afterwards.
"""

import gc
import os
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from bench.measure import Times, in_turns
from bench.tables import Cell, Goal, Table
from ottla.protocol.checksum import crc32c
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record, patch
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.disk_files import DiskFiles
from ottla.storage.folder import LogDir
from ottla.storage.index_memory import IndexMemory
from ottla.storage.log import Log
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.logs import Logs
from ottla.storage.recovery import create_log
from ottla.storage.steps import at_once, exhaust

APPEND = Goal(2.0)
READ = Goal(1.25)
NOW = Now(0, 1_800_000_000_000)
MIB = 1 << 20
ROUNDS = 9
BATCHES = 1000
PARTITIONS = 1000
SEGMENTS = 1000
RECOVERED_BYTES = 256 * MIB


def run() -> list[Table]:
    place = Path(tempfile.mkdtemp(prefix=".bench-", dir="."))
    files = DiskFiles()
    # As a broker does once it has loaded: the collector need not walk over what stays.
    gc.freeze()
    try:
        bench = _Bench(files, place)
        return [bench.appends(), bench.reads(), bench.lookups(), openings(place)]
    finally:
        files.close()
        shutil.rmtree(place)


def batches(
    count: int, *, records: int, value_size: int, idempotent: bool, spread: int = 0
) -> list[bytearray]:
    """As one producer sends them, one after the other; values are larger or smaller by `spread`."""
    value = bytes(range(256)) * ((value_size + spread) // 256 + 1)
    random = Random(3)
    sizes = [value_size + random.randint(-spread, spread) for _ in range(records * count)]
    return [
        build_batch(
            [
                Record(i, NOW.wall_ms + number, b"key", value[: sizes[number * records + i]])
                for i in range(records)
            ],
            producer_id=7 if idempotent else -1,
            producer_epoch=0 if idempotent else -1,
            base_sequence=number * records if idempotent else -1,
        )
        for number in range(count)
    ]


class _Bench:
    def __init__(self, files: DiskFiles, place: Path) -> None:
        self.place = place
        self.log_dir = LogDir(files, str(place), random=Random(1), indexes=IndexMemory())
        self.created = 0

    def new_log(self, config: LogConfig | None = None) -> Log:
        self.created += 1
        config = config or LogConfig()
        log = create_log(self.log_dir, "bench", self.created, config, topic_id=None, now=NOW)
        log.assign_epoch(0)
        log.settle()
        return log

    # appending

    def appends(self) -> Table:
        table = Table(
            f"append of 16 KiB batches ({BATCHES} in a row)",
            ["", "log us", "bare crc and write us", f"log / bare ({APPEND})"],
        )
        shapes = {
            "160 records of 90 bytes": (160, 90, 0),
            "16 records of 1 KB": (16, 1000, 0),
            "16 records of 0.1 to 1.9 KB": (16, 1000, 900),
        }
        for name, (records, size, spread) in shapes.items():
            for idempotent in (True, False):
                prepared = batches(
                    BATCHES,
                    records=records,
                    value_size=size,
                    idempotent=idempotent,
                    spread=spread,
                )
                gc.collect()
                gc.freeze()
                turns = {
                    "log": partial(self._append_all, prepared),
                    "bare": partial(self._write_all, prepared),
                }
                times = in_turns(turns, rounds=ROUNDS)
                _add(table, f"{name}{', idempotent' * idempotent}", times, "log", "bare", APPEND)
        return table

    def _append_all(self, prepared: list[bytearray]) -> float:
        log = self.new_log()
        for batch in prepared:
            patch(batch, 0, base_offset=0, leader_epoch=-1)
        # As a request leaves them: views of what was received.
        views = [memoryview(batch) for batch in prepared]
        started = process_time()
        for view in views:
            log.append_as_leader(view, leader_epoch=0, now=NOW)
        elapsed = process_time() - started
        log.delete()
        return elapsed / len(prepared)

    def _write_all(self, prepared: list[bytearray]) -> float:
        path = self.place / "bare"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        started = process_time()
        for batch in prepared:
            crc32c(memoryview(batch)[21:])
            os.write(fd, batch)
        elapsed = process_time() - started
        os.close(fd)
        path.unlink()
        return elapsed / len(prepared)

    # reading

    def reads(self) -> Table:
        log = self.new_log()
        for batch in batches(256 * 64 // 16, records=160, value_size=90, idempotent=True):
            log.append_as_leader(batch, leader_epoch=0, now=NOW)
        offsets = [offset for offset in range(0, log.log_end_offset, 160 * 64)][:-1]
        fd = os.open(self.place / log.folder.name / f"{0:020}.log", os.O_RDONLY)
        times = in_turns(
            {
                "log": lambda: _per_item(lambda at: log.read(at, MIB), offsets),
                "bare": lambda: _per_item(
                    lambda at: os.pread(fd, MIB, at * MIB), list(range(len(offsets)))
                ),
            },
            rounds=25,
        )
        os.close(fd)
        table = Table(
            "read of 1 MiB slices, in order",
            ["", "log us", "bare pread us", f"log / bare ({READ})"],
        )
        _add(table, "cached", times, "log", "bare", READ)
        return table

    # looking up

    def lookups(self) -> Table:
        table = Table("lookups, in microseconds", ["segments", "by offset, read 1 byte", "by time"])
        for count in (1, 100, 1000):
            log = self.new_log(LogConfig(segment_bytes=64 << 10, segment_index_bytes=4096))
            prepared = batches(count * 3, records=160, value_size=90, idempotent=False)
            for batch in prepared:
                log.append_as_leader(batch, leader_epoch=0, now=NOW)
            self.log_dir.chores.flush_now()
            random = Random(2)
            offsets = [random.randrange(log.log_end_offset) for _ in range(500)]
            stamps = [NOW.wall_ms + offset // 160 for offset in offsets]
            # The first pass opens what is opened when it is first asked for.
            times = [(self._by_offset(log, offsets), self._by_time(log, stamps)) for _ in range(5)]
            best = [min(column) * 1e6 for column in zip(*times[1:], strict=True)]
            table.add(str(len(log.segments)), *map(Cell, best))
        return table

    @staticmethod
    def _by_offset(log: Log, offsets: list[int]) -> float:
        return _per_item(lambda at: log.read(at, 1, minimum_one=False), offsets)

    @staticmethod
    def _by_time(log: Log, stamps: list[int]) -> float:
        return _per_item(lambda at: at_once(log.offset_for_timestamp(at)), stamps)


def openings(place: Path) -> Table:
    table = Table("opening what is on disk", ["", "seconds", "bytes of memory for each"])
    _fill(place / "many", partitions=PARTITIONS, batches_each=12, config=LogConfig())
    table.add(f"{PARTITIONS} clean partitions", *_opened(place / "many"))
    small = LogConfig(segment_bytes=64 << 10, segment_index_bytes=4096)
    _fill(place / "long", partitions=1, batches_each=4 * SEGMENTS, config=small)
    seconds, size = _opened(place / "long")
    table.add(f"{SEGMENTS} clean segments", seconds, Cell((size.value or 0) / SEGMENTS))
    _fill(place / "large", partitions=1, batches_each=(RECOVERED_BYTES >> 14), config=LogConfig())
    (place / "large/.kafka_cleanshutdown").unlink()
    (place / "large/recovery-point-offset-checkpoint").unlink()
    table.add(f"recover {RECOVERED_BYTES >> 20} MiB after a crash", *_opened(place / "large"))
    return table


def _logs(place: Path, files: DiskFiles, config: LogConfig) -> Logs:
    directories = open_log_directories(files, [str(place)], cluster_id="bench", node_id=1)
    return Logs(files, directories, random=Random(1), default_config=config)


def _fill(place: Path, *, partitions: int, batches_each: int, config: LogConfig) -> None:
    files = DiskFiles()
    logs = _logs(place, files, config)
    exhaust(logs.opening(lambda topic: config, NOW))
    prepared = batches(min(batches_each, 1000), records=160, value_size=90, idempotent=False)
    for partition in range(partitions):
        log = logs.create("bench", partition, config, topic_id=None, now=NOW)
        for number in range(batches_each):
            batch = prepared[number % len(prepared)]
            patch(batch, 0, base_offset=0, leader_epoch=-1)
            log.append_as_leader(batch, leader_epoch=0, now=NOW)
    exhaust(logs.closing(broker_epoch=1))
    files.close()


def _opened(place: Path) -> tuple[Cell, Cell]:
    files = DiskFiles()
    logs = _logs(place, files, LogConfig())
    gc.collect()
    gc.freeze()
    started = perf_counter()
    exhaust(logs.opening(lambda topic: LogConfig(), NOW))
    elapsed = perf_counter() - started
    exhaust(logs.closing(broker_epoch=1))
    logs = _logs(place, files, LogConfig())
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    exhaust(logs.opening(lambda topic: LogConfig(), NOW))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    exhaust(logs.closing(broker_epoch=1))
    files.close()
    return Cell(elapsed), Cell(size / len(logs.current))


def _per_item(call: Callable[[int], object], items: list[int]) -> float:
    started = process_time()
    for item in items:
        call(item)
    return (process_time() - started) / len(items)


def _add(table: Table, name: str, times: Times, ours: str, bare: str, goal: Goal) -> None:
    table.add(
        name,
        Cell(times.median(ours) * 1e6),
        Cell(times.median(bare) * 1e6),
        Cell(times.ratio(ours, bare), goal),
    )
