"""`python -m bench.soak [--minutes N] [--compacted-gb N]`: a broker under mixed load, for long.

Good clients come first alone, then beside hostile connections and the cleaning of a compacted
topic. It prints memory, descriptors and the good clients' latencies over time, and ends with 1
where memory or descriptors have grown, or p99 has more than doubled.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import load
from compat_tests.ottla_server import Ottla

RECORD = bytes(1000)
# A quarter of the time without, the rest with, what disturbs.
ALONE_PART = 0.25
GROWTH_MAX = 1.25
P99_MAX = 2.0
PACE_S = 0.005
SAMPLE_S = 5.0


@dataclass(slots=True)
class Sample:
    at_s: float
    resident_mb: float
    descriptors: int


@dataclass(slots=True)
class Watch:
    """What is seen of the broker and of its good clients."""

    pid: int
    started: float = field(default_factory=time.perf_counter)
    samples: list[Sample] = field(default_factory=list)
    latencies: dict[str, list[float]] = field(
        default_factory=lambda: {"alone": [], "disturbed": []}
    )
    phase: str = "alone"
    is_over: bool = False
    failures: list[str] = field(default_factory=list)

    def sample(self) -> None:
        found = Sample(
            time.perf_counter() - self.started,
            load.resident_bytes(self.pid) / 1e6,
            len(os.listdir(f"/proc/{self.pid}/fd")),
        )
        self.samples.append(found)
        taken = self.latencies[self.phase][-500:]
        p99 = load.p99(taken) * 1000 if len(taken) > 10 else 0.0
        print(
            f"{found.at_s:7.0f} s  {self.phase:9}  {found.resident_mb:7.1f} MB"
            f"  {found.descriptors:4} descriptors  p99 {p99:.2f} ms",
            flush=True,
        )


def good_client(watch: Watch, bootstrap: str, topic: str) -> None:
    """Produces a record, and waits for it with a fetch: again and again, at an easy pace."""
    while not watch.is_over:
        watch.latencies[watch.phase] += load.end_to_end_latencies(bootstrap, topic, count=100)
        time.sleep(PACE_S)


def busy_client(watch: Watch, bootstrap: str, topic: str) -> None:
    """Produces and consumes in bulk, but leaves room for others."""
    while not watch.is_over:
        load.produce(bootstrap, topic, count=5_000, size=1000)
        load.consume(bootstrap, topic, count=5_000)
        time.sleep(1.0)


# --- hostile connections ------------------------------------------------------------------


def _connect(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def garbage(bootstrap: str, dice: random.Random) -> None:
    with _connect(bootstrap) as connection:
        connection.sendall(dice.randbytes(dice.randrange(1, 5000)))


def half_a_frame(bootstrap: str, dice: random.Random) -> None:
    with _connect(bootstrap) as connection:
        connection.sendall((50 << 20).to_bytes(4, "big") + bytes(dice.randrange(200_000)))
        time.sleep(0.1)


def byte_by_byte(bootstrap: str, dice: random.Random) -> None:
    with _connect(bootstrap) as connection:
        for byte in load.produce_frame("none")[:100]:
            connection.sendall(bytes([byte]))


def never_reads(bootstrap: str, dice: random.Random) -> None:
    with _connect(bootstrap) as connection:
        connection.settimeout(0.2)
        try:
            for _ in range(20):
                connection.sendall(load.fetch_frame("busy", 0))
        except TimeoutError:
            pass
        time.sleep(0.5)


def mutated(bootstrap: str, dice: random.Random) -> None:
    frame = bytearray(load.produce_frame("none"))
    for _ in range(3):
        frame[dice.randrange(4, len(frame))] = dice.randrange(256)
    with _connect(bootstrap) as connection:
        connection.sendall(frame)
        connection.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            connection.recv(1000)


HOSTILE: list[Callable[[str, random.Random], None]] = [
    garbage,
    half_a_frame,
    byte_by_byte,
    never_reads,
    mutated,
]


def hostile_client(watch: Watch, bootstrap: str, seed: int) -> None:
    dice = random.Random(seed)
    while not watch.is_over:
        if watch.phase == "disturbed":
            try:
                dice.choice(HOSTILE)(bootstrap, dice)
            except (ConnectionError, TimeoutError):
                continue
        time.sleep(0.02)


def fill_compacted(watch: Watch, bootstrap: str, size_bytes: int) -> None:
    """Writes many versions of few keys, so that there is much to clean."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 500_000})
    for number in range(size_bytes // len(RECORD)):
        while not watch.is_over:
            try:
                producer.produce("compacted", RECORD, key=str(number % 200_000))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 20_000 == 0:
            producer.flush(60)
            time.sleep(0.2)
        if watch.is_over:
            return
    producer.flush(60)


# --- the run ------------------------------------------------------------------------------


def make_topics(bootstrap: str) -> None:
    load.make_topic(bootstrap, "good")
    load.make_topic(bootstrap, "busy")
    compacted = NewTopic(
        "compacted",
        1,
        1,
        config={
            "cleanup.policy": "compact",
            "segment.bytes": str(64 << 20),
            "min.cleanable.dirty.ratio": "0.1",
        },
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([compacted])["compacted"].result(30)


def guarded(watch: Watch, work: Callable[..., None], *arguments: object) -> threading.Thread:
    def run() -> None:
        try:
            work(*arguments)
        except (RuntimeError, OSError) as error:
            if not watch.is_over:
                watch.failures.append(f"{work.__name__}: {error}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def soak(minutes: float, compacted_bytes: int) -> int:
    settings = {"log.cleaner.backoff.ms": "1000", "ottla.log.level": "info"}
    settings |= {"log.initial.task.delay.ms": "1000", "log.retention.bytes": str(256 << 20)}
    settings |= {"log.segment.bytes": str(64 << 20), "log.retention.check.interval.ms": "5000"}
    with Ottla(settings=settings) as ottla:
        watch = Watch(ottla.pid)
        bootstrap = ottla.bootstrap
        make_topics(bootstrap)
        threads = [
            guarded(watch, good_client, watch, bootstrap, "good"),
            guarded(watch, busy_client, watch, bootstrap, "busy"),
            *(guarded(watch, hostile_client, watch, bootstrap, seed) for seed in range(4)),
        ]
        _watch_until(watch, minutes * 60 * ALONE_PART)
        watch.phase = "disturbed"
        threads.append(guarded(watch, fill_compacted, watch, bootstrap, compacted_bytes))
        _watch_until(watch, minutes * 60)
        watch.is_over = True
        for thread in threads:
            thread.join(30)
        if ottla.is_running():
            os.kill(ottla.pid, signal.SIGTERM)
            time.sleep(3)
        return _verdict(watch, ottla.log_file.read_text(errors="replace"))


def _watch_until(watch: Watch, seconds: float) -> None:
    while time.perf_counter() - watch.started < seconds and not watch.failures:
        time.sleep(SAMPLE_S)
        try:
            watch.sample()
        except OSError:
            watch.failures.append("the broker is gone")


def _verdict(watch: Watch, log: str) -> int:
    disturbed = [each for each in watch.samples if each.at_s > watch.samples[-1].at_s * 0.4]
    third = max(1, len(disturbed) // 3)
    first, last = disturbed[:third], disturbed[-third:]
    memory = median(s.resident_mb for s in last) / median(s.resident_mb for s in first)
    descriptors = median(s.descriptors for s in last) / median(s.descriptors for s in first)
    if watch.failures:
        print(*watch.failures, "its log:", log[-3000:], sep="\n")
        return 1
    alone, beside = (load.p99(watch.latencies[phase]) for phase in ("alone", "disturbed"))
    holds = re.findall(r"loop\.longest_hold ms=([0-9.]+)", log)
    print(f"memory, last third over first: {memory:.2f}; descriptors: {descriptors:.2f}")
    print(f"p99 of good clients: {alone * 1000:.2f} ms alone, {beside * 1000:.2f} ms disturbed")
    print(f"cleaned {log.count('cleaner.cleaned')} times; longest hold of the loop: {holds} ms")
    is_good = memory <= GROWTH_MAX and descriptors <= GROWTH_MAX and beside <= P99_MAX * alone
    return 0 if is_good else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--compacted-gb", type=float, default=2)
    options = parser.parse_args()
    return soak(options.minutes, int(options.compacted_gb * 1e9))


if __name__ == "__main__":
    sys.exit(main())
