"""Mixed load for a long time, bad peers beside it, and a large compacted topic that is cleaned.

    .venv/bin/python -m compat_tests.soak --minutes 30 --compacted-mb 2048

First a sixth of the time without bad peers and cleaning: what the good clients then wait is what
they may wait twice of afterwards. Memory and descriptors are looked at all along.
"""

# mypy: disable-error-code="import-untyped,import-not-found"

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.teller import batch, produce
from compat_tests.wire_story.wire import Wire

MIB = 1 << 20
REPOSITORY = Path(__file__).parent.parent
KEYS = 50_000
VALUE_BYTES = 1000
RECORDS_PER_S = 1000
PROBES_PER_S = 50
BAD_PEERS_PER_S = 30
SAMPLE_S = 2.0
WAIT_S = 60
ALONE_PART = 1 / 6
COMPACTED, LOADED = "soak-compacted", "soak-loaded"
SETTINGS = {
    "ottla.log.level": "info",
    "log.cleaner.backoff.ms": "1000",
    "log.retention.bytes": str(200 * MIB),
    "log.retention.check.interval.ms": "10000",
    "log.segment.bytes": str(50 * MIB),
}


class Sample(NamedTuple):
    """What the process holds at one moment."""

    resident_bytes: int
    descriptors: int


class Load:
    """Threads that work until they are told to end; an error in one of them is kept."""

    def __init__(self) -> None:
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []
        self.errors: list[str] = []
        self.counts: dict[str, int] = {}

    def add(self, name: str, step: Callable[[], int]) -> None:
        """Calls `step`, which tells how much it has done, again and again."""

        def work() -> None:
            while not self._ends.is_set():
                try:
                    self.counts[name] = self.counts.get(name, 0) + step()
                except (OSError, RuntimeError, AssertionError) as error:
                    self.errors.append(f"{name}: {error!r}")
                    self._ends.wait(0.5)

        self._threads.append(threading.Thread(target=work, name=name))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def pause(self, seconds: float) -> None:
        self._ends.wait(seconds)


def fill_compacted(bootstrap: str, megabytes: int) -> None:
    """The same keys again and again, and nothing is cleaned yet."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "acks": 1})
    dice = Random(megabytes)
    for number in range(megabytes * MIB // VALUE_BYTES):
        while len(producer) > 50_000:
            producer.poll(0.05)
        producer.produce(
            COMPACTED, dice.randbytes(20) * (VALUE_BYTES // 20), b"%d" % (number % KEYS)
        )
        producer.poll(0)
    if producer.flush(WAIT_S * 10):
        raise RuntimeError("the compacted topic was not filled")


def clean_from_now_on(admin: Any) -> None:
    entry = ConfigEntry(
        "min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.TOPIC, COMPACTED, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def good_clients(load: Load, bootstrap: str, stack: ExitStack) -> None:
    """Producers and consumers at an even pace."""
    for number in range(2):
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": bool(number)})

        stack.callback(producer.flush, WAIT_S)

        def send(producer: Any = producer) -> int:
            for _ in range(RECORDS_PER_S // 20):
                producer.produce(LOADED, b"x" * 500)
            producer.poll(0)
            load.pause(0.05)
            return RECORDS_PER_S // 20

        load.add(f"producer {number}", send)
        settings = {"bootstrap.servers": bootstrap, "group.id": "x", "enable.auto.commit": False}
        consumer = Consumer(settings)
        stack.callback(consumer.close)
        consumer.assign([TopicPartition(LOADED, number, -1)])

        def read(consumer: Any = consumer) -> int:
            return len(consumer.consume(500, 0.5))

        load.add(f"consumer {number}", read)


def probe(load: Load, ottla: Ottla, times_ms: list[float], stack: ExitStack) -> None:
    """How long an acknowledgement takes that somebody waits for."""
    wire = stack.enter_context(closing(Wire("127.0.0.1", ottla.port)))
    request = produce(LOADED, batch(b"probe", timestamp=time.time_ns() // 1_000_000), partition=0)

    def ask() -> int:
        before = time.perf_counter()
        said = wire.ask(request, 9).responses[0].partition_responses[0]
        times_ms.append((time.perf_counter() - before) * 1000)
        if said.error_code:
            raise RuntimeError(f"the probe was refused: {said}")
        load.pause(1 / PROBES_PER_S)
        return 1

    load.add("probe", ask)


def bad_peers(port: int, seed: int, stack: ExitStack) -> None:
    """In a process of their own, which shares nothing with those who measure but the machine."""
    command = [sys.executable, "-m", "compat_tests.bad_peers", str(port), str(seed)]
    process = subprocess.Popen([*command, str(BAD_PEERS_PER_S)], cwd=REPOSITORY)
    stack.callback(process.wait)
    stack.callback(process.kill)


def sample(pid: int) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    return Sample(int(resident[1]) * 1024 if resident else 0, len(os.listdir(f"/proc/{pid}/fd")))


def percentile(times_ms: list[float], part: float) -> float:
    return sorted(times_ms)[int(len(times_ms) * part)] if times_ms else 0.0


def watch(ottla: Ottla, seconds: float) -> list[Sample]:
    end, samples, pause = time.perf_counter() + seconds, [], threading.Event()
    while time.perf_counter() < end:
        samples.append(sample(ottla.pid))
        pause.wait(SAMPLE_S)
    return samples


def said_of(samples: list[Sample]) -> str:
    third = max(1, len(samples) // 3)
    parts = [samples[third : 2 * third] or samples, samples[-third:]]
    resident = [median(each.resident_bytes for each in part) / MIB for part in parts]
    descriptors = [median(each.descriptors for each in part) for part in parts]
    most = max(each.resident_bytes for each in samples) / MIB
    return (
        f"memory {resident[0]:.0f} -> {resident[1]:.0f} MiB (at most {most:.0f}), "
        f"descriptors {descriptors[0]:.0f} -> {descriptors[1]:.0f}"
    )


def phase(ottla: Ottla, *, seconds: float, seed: int | None) -> tuple[float, float]:
    """Load for so long, with bad peers where there is a seed; p50 and p99 of the probe."""
    times_ms: list[float] = []
    load = Load()
    with ExitStack() as stack:
        good_clients(load, ottla.bootstrap, stack)
        probe(load, ottla, times_ms, stack)
        if seed is not None:
            bad_peers(ottla.port, seed, stack)
        load.start()
        try:
            samples = watch(ottla, seconds)
        finally:
            load.end()
    name = "alone" if seed is None else "with bad peers and cleaning"
    p50, p99 = percentile(times_ms, 0.5), percentile(times_ms, 0.99)
    most = max(times_ms, default=0.0)
    print(
        f"{name}: ack p50 {p50:.2f}, p99 {p99:.2f}, at most {most:.0f} ms; "
        f"{said_of(samples)}; {load.counts}"
    )
    for error in load.errors[:5]:
        print(f"  {error}")
    return p50, p99


def size_of(topic: str, data_dir: Path) -> int:
    return sum(each.stat().st_size for each in data_dir.glob(f"{topic}-*/*.log"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m compat_tests.soak")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--compacted-mb", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    seconds = arguments.minutes * 60
    with Ottla(settings=SETTINGS) as ottla:
        admin = AdminClient({"bootstrap.servers": ottla.bootstrap})
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"}
        topics = [NewTopic(LOADED, 2, 1), NewTopic(COMPACTED, 1, 1, config=compacted)]
        for each in admin.create_topics(topics).values():
            each.result(WAIT_S)
        fill_compacted(ottla.bootstrap, arguments.compacted_mb)
        print(f"compacted topic: {size_of(COMPACTED, ottla.data_dir) / MIB:.0f} MiB")
        _, alone = phase(ottla, seconds=seconds * ALONE_PART, seed=None)
        clean_from_now_on(admin)
        _, beside = phase(ottla, seconds=seconds * (1 - ALONE_PART), seed=arguments.seed)
        print(f"compacted topic: {size_of(COMPACTED, ottla.data_dir) / MIB:.0f} MiB")
        ottla.stop()
        held = re.findall(r"longest_hold ms=([\d.]+)", ottla.log_tail(100_000))
    print(f"p99 with bad peers and cleaning / alone: {beside / alone:.2f}; longest hold {held} ms")


if __name__ == "__main__":
    main()
