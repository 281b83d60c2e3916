"""kill -9 under load: nothing acknowledged is lost, nothing idempotent is there twice.

    .venv/bin/python -m compat_tests.kills --rounds 50

Producers of librdkafka send all the time, over all kills; topics are created beside them. Then
everything is read. Each mode in which records are acknowledged has its turn.
"""

# mypy: disable-error-code="import-untyped,import-not-found"

import argparse
import threading
import time
from contextlib import ExitStack, suppress
from random import Random
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.ottla_server import Ottla

MODES: dict[str, dict[str, str]] = {
    "acknowledged from memory": {},
    "acknowledged from the disk": {"ottla.ack.after.fsync": "true"},
}
PRODUCERS: dict[str, dict[str, Any]] = {
    "idempotent": {"enable.idempotence": True},
    "idempotent-zstd": {"enable.idempotence": True, "compression.type": "zstd"},
    "leader": {"acks": 1},
    "all": {"acks": "all", "max.in.flight.requests.per.connection": 1},
}
PARTITIONS = 3
OUTSTANDING_MAX = 500
WAIT_S = 60
# Small segments, so that kills fall into rolling, and a wait that lets many batches be under way.
SETTINGS = {"log.segment.bytes": "1048576", "log.retention.ms": "-1"}


class Found(NamedTuple):
    """What a run came to."""

    kills: int
    acknowledged: int
    read: int
    topics: int
    faults: list[str]


class Sender:
    """One producer that never stops; knows what was acknowledged."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self.acknowledged: set[int] = set()
        self.read = 0
        self.is_idempotent = "idempotent" in name
        self._bootstrap = bootstrap
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._send, name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _producer(self) -> Any:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "linger.ms": 2,
            "batch.num.messages": 50,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "delivery.timeout.ms": 60_000,
            "log_level": 0,
        }
        return Producer({**settings, **PRODUCERS[self.name]}, error_cb=lambda error: None)

    def _send(self) -> None:
        producer, number = self._producer(), 0
        while not self._ends.is_set():
            if len(producer) >= OUTSTANDING_MAX:
                producer.poll(0.01)
                continue
            try:
                producer.produce(
                    self.name,
                    b"%d " % number + b"x" * (number % 2000),
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, _, number=number: self._told(error, number),
                )
            except KafkaException as refused:
                # After what it takes for a fatal error librdkafka wants a new producer.
                if not refused.args[0].fatal():
                    raise
                producer = self._producer()
            number += 1
            producer.poll(0)
        with suppress(KafkaException):  # fatal, and told of what it concerns
            producer.flush(WAIT_S)

    def _told(self, error: Any, number: int) -> None:
        if error is None:
            self.acknowledged.add(number)


def run(*, rounds: int, seed: int, settings: dict[str, str]) -> Found:
    """Kills a broker so many times, each at a moment of its own."""
    moments, pause = Random(seed), threading.Event()
    created: list[str] = []
    with Ottla(settings={**SETTINGS, **settings}) as ottla, ExitStack() as stack:
        admin = AdminClient({"bootstrap.servers": ottla.bootstrap, "log_level": 0})
        asked = [NewTopic(name, PARTITIONS, 1) for name in PRODUCERS]
        for each in admin.create_topics(asked).values():
            each.result(WAIT_S)
        senders = [stack.enter_context(Sender(name, ottla.bootstrap)) for name in PRODUCERS]
        for number in range(rounds):
            name = f"created-{number}"
            asked_one = admin.create_topics([NewTopic(name, 1, 1)])[name]
            wait_for_progress(senders, moments.randrange(100, 3000))
            pause.wait(moments.uniform(0, 0.05))
            if asked_one.done() and asked_one.exception() is None:
                created.append(name)
            ottla.kill()
            ottla.start()
        for sender in senders:
            sender.end()
        ottla.restart()  # and cleanly: nothing is to be repaired any more
        faults = [fault for sender in senders for fault in faults_of(sender, ottla.bootstrap)]
        listed = admin.list_topics(timeout=WAIT_S).topics
        faults += [f"{name} was created and is gone" for name in created if name not in listed]
    acknowledged = sum(len(sender.acknowledged) for sender in senders)
    return Found(rounds, acknowledged, sum(each.read for each in senders), len(created), faults)


def wait_for_progress(senders: list[Sender], count: int) -> None:
    """Until so many more records are acknowledged, some of each producer: a kill must hurt."""
    goals = [len(sender.acknowledged) + count // len(senders) for sender in senders]
    end, pause = time.perf_counter() + WAIT_S, threading.Event()
    while any(len(s.acknowledged) < goal for s, goal in zip(senders, goals, strict=True)):
        if time.perf_counter() > end:
            raise RuntimeError("the producers do not get on")
        pause.wait(0.005)


def faults_of(sender: Sender, bootstrap: str) -> list[str]:
    """What is wrong about the records of one producer, partition by partition."""
    faults = []
    for partition in range(PARTITIONS):
        numbers = numbers_in(sender.name, partition, bootstrap)
        sender.read += len(numbers)
        expected = {each for each in sender.acknowledged if each % PARTITIONS == partition}
        missing = sorted(expected - set(numbers))
        if missing:
            faults.append(f"{sender.name}-{partition} lacks {len(missing)}, first {missing[:5]}")
        if sender.is_idempotent and numbers != sorted(set(numbers)):
            twice = len(numbers) - len(set(numbers))
            faults.append(f"{sender.name}-{partition}: {twice} twice, or not in order")
    return faults


def numbers_in(topic: str, partition: int, bootstrap: str) -> list[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    numbers: list[int] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(WAIT_S)
            if message is None:
                raise RuntimeError(f"{topic}-{partition} does not come to its end")
            if message.error() is None:
                numbers.append(int(message.value().split(b" ", 1)[0]))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return numbers
            else:
                raise KafkaException(message.error())
    finally:
        consumer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m compat_tests.kills")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failed = False
    for mode, settings in MODES.items():
        found = run(rounds=arguments.rounds, seed=arguments.seed, settings=settings)
        print(
            f"{mode}: {found.kills} kills, {found.acknowledged} records acknowledged, "
            f"{found.read} read, {found.topics} topics created; {len(found.faults)} faults"
        )
        for fault in found.faults:
            print(f"  {fault}")
        failed |= bool(found.faults)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
