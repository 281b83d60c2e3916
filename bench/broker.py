"""Ottla beside Apache Kafka: the same clients, the same work, in turns, on the same machine.

A cell is Ottla's seconds divided by Kafka's, so less than 1 is faster; the goals are those of the
design. A warm-up turn of each does not count. Needs Java; without, it says so.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from statistics import median

from bench import load
from bench.tables import Cell, Goal, Table
from compat_tests.apache_kafka import Kafka, why_no_kafka
from compat_tests.ottla_server import Ottla

ROUNDS = 3
FULL_JVM = ("-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
MB = 1_000_000


def run() -> list[Table]:
    reason = why_no_kafka()
    if reason is not None:
        print(f"skipped: there is no Apache Kafka to compare with: {reason}")
        return []
    os.environ.setdefault("TMPDIR", tempfile.gettempdir())
    with ExitStack() as stack:
        kafka = stack.enter_context(Kafka(jvm_options=FULL_JVM))
        ottla = stack.enter_context(Ottla())
        sides = {"ottla": (ottla.bootstrap, ottla.pid), "kafka": (kafka.bootstrap, kafka.pid)}
        bench = _Bench(sides)
        return [bench.memory(), bench.latencies(), bench.requests(), bench.throughput()]


def _consume_all(bootstrap: str, topic: str, *, partitions: int) -> float:
    return load.consume(bootstrap, topic, count=300_000, partitions=partitions)


class _Bench:
    def __init__(self, sides: dict[str, tuple[str, int]]) -> None:
        self._sides = sides
        self._topics = 0

    def memory(self) -> Table:
        table = Table("idle", ["resident memory", "MB Ottla", "MB Kafka", "ratio"])
        ours, theirs = (load.resident_bytes(pid) / MB for _, pid in self._sides.values())
        table.add("idle", Cell(ours), Cell(theirs), Cell(ours / theirs, Goal(0.16)))
        return table

    def throughput(self) -> Table:
        columns = ["throughput", "s Ottla", "s Kafka", "ratio", "CPU ratio"]
        table = Table("throughput", columns)
        rows: list[tuple[str, float, Callable[[str, str], object]]] = [
            ("produce 1 KB", 1.3, lambda b, t: load.produce(b, t, count=300_000, size=1000)),
            ("produce 100 B", 1.1, lambda b, t: load.produce(b, t, count=1_000_000, size=100)),
            (
                "produce 1 KB lz4",
                1.0,
                lambda b, t: load.produce(b, t, count=300_000, size=1000, codec="lz4"),
            ),
        ]
        for name, goal, work in rows:
            self._compare(table, name, goal, work, partitions=1)
        self._compare(
            table,
            "produce 1 KB, 50 partitions",
            1.3,
            lambda b, t: load.produce(b, t, count=300_000, size=1000),
            partitions=50,
        )
        for partitions, goal in ((1, 1.15), (50, 1.1)):
            self._compare(
                table,
                f"consume 1 KB, {partitions} partitions",
                goal,
                partial(_consume_all, partitions=partitions),
                partitions=partitions,
                filled=300_000,
            )
        return table

    def _compare(
        self,
        table: Table,
        name: str,
        goal: float,
        work: Callable[[str, str], object],
        *,
        partitions: int,
        filled: int = 0,
    ) -> None:
        seconds: dict[str, list[float]] = {side: [] for side in self._sides}
        used: dict[str, list[float]] = {side: [] for side in self._sides}
        for number in range(ROUNDS + 1):
            for side, (bootstrap, pid) in self._sides.items():
                topic = self._new_topic(bootstrap, partitions)
                if filled:
                    load.produce(bootstrap, topic, count=filled, size=1000)
                before = load.cpu_seconds(pid)
                taken = load.timed(lambda b=bootstrap, t=topic: work(b, t))  # type: ignore[misc]
                if number:
                    seconds[side].append(taken)
                    used[side].append(load.cpu_seconds(pid) - before)
        ours, theirs = median(seconds["ottla"]), median(seconds["kafka"])
        cpu = median(used["ottla"]) / max(0.01, median(used["kafka"]))
        table.add(
            name,
            Cell(ours),
            Cell(theirs),
            Cell(ours / theirs, Goal(1 / goal)),
            Cell(cpu, Goal(0.7)),
        )

    def _new_topic(self, bootstrap: str, partitions: int = 1) -> str:
        self._topics += 1
        topic = f"bench-{self._topics}"
        load.make_topic(bootstrap, topic, partitions)
        return topic

    def requests(self) -> Table:
        table = Table("requests", ["requests", "1000/s Ottla", "1000/s Kafka", "time ratio"])
        rows = [
            ("1 in flight", 5_000, 1, 1, 1.3),
            ("20 in flight", 40_000, 20, 1, 3.5),
            ("1 in flight on 20 connections", 20_000, 1, 20, 1.5),
            ("1 in flight on 50 connections", 20_000, 1, 50, 1.0),
        ]
        for name, count, in_flight, lines, goal in rows:
            taken = self._in_turns(
                lambda b, t, n=count, f=in_flight, m=lines: load.requests(  # type: ignore[misc]
                    b, t, count=n, in_flight=f, lines=m
                )
            )
            ours, theirs = median(taken["ottla"]), median(taken["kafka"])
            table.add(
                name,
                Cell(count / ours / 1000),
                Cell(count / theirs / 1000),
                Cell(ours / theirs, Goal(1 / goal)),
            )
        return table

    def _in_turns(self, work: Callable[[str, str], float]) -> dict[str, list[float]]:
        taken: dict[str, list[float]] = {side: [] for side in self._sides}
        topics = {side: self._new_topic(bootstrap) for side, (bootstrap, _) in self._sides.items()}
        for number in range(ROUNDS + 1):
            for side, (bootstrap, _) in self._sides.items():
                seconds = work(bootstrap, topics[side])
                if number:
                    taken[side].append(seconds)
        return taken

    def latencies(self) -> Table:
        table = Table("latency", ["latency", "ms Ottla", "ms Kafka", "ratio"])
        rows = [
            ("acknowledgement", load.ack_latencies, 0.7, 0.5),
            ("end to end", load.end_to_end_latencies, 0.8, 0.3),
        ]
        for name, work, goal50, goal99 in rows:
            taken: dict[str, list[float]] = {side: [] for side in self._sides}
            topics = {side: self._new_topic(each[0]) for side, each in self._sides.items()}
            for number in range(ROUNDS + 1):
                for side, (bootstrap, _) in self._sides.items():
                    found = work(bootstrap, topics[side], count=1000)
                    if number:
                        taken[side] += found
            for quantile, pick, goal in (("p50", load.p50, goal50), ("p99", load.p99, goal99)):
                ours, theirs = pick(taken["ottla"]) * 1000, pick(taken["kafka"]) * 1000
                cell = Cell(ours / theirs, Goal(goal))
                table.add(f"{name} {quantile}", Cell(ours), Cell(theirs), cell)
        return table
