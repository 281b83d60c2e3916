"""What a seed stands for: topics, clients, and what befalls the node; all drawn beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

LIFETIME_S = 25.0
FIRST_EVENT_S = 1.0
# How long a node stays down that was not just restarted.
DOWN_S = (0.1, 1.0, 8.0)


class Event(Enum):
    RESTART = "a clean stop and a start"
    KILL = "the process is killed, the kernel stays"
    POWER_CUT = "what is not synced may be gone"
    FULL = "the disk is full for a while"
    FAILING = "the disk fails, and the machine is started anew"
    CUT = "a connection breaks"
    STALL = "a connection delivers nothing for a while"
    JUMP = "the wall clock jumps"


RARE = (Event.RESTART, Event.KILL, Event.POWER_CUT, Event.FULL, Event.FAILING, Event.JUMP)
FREQUENT = (Event.CUT, Event.STALL)


@dataclass(slots=True, frozen=True)
class TopicPlan:
    name: str
    partitions: int
    configs: dict[str, str]


@dataclass(slots=True, frozen=True)
class ProducerPlan:
    number: int
    is_idempotent: bool
    acks: int | str
    compression: str | None
    linger_ms: int
    batch_bytes: int
    value_bytes_max: int
    burst_max: int
    pause_s: float
    targets: tuple[tuple[str, int], ...]


@dataclass(slots=True, frozen=True)
class ConsumerPlan:
    number: int
    targets: tuple[tuple[str, int], ...]
    max_wait_ms: int
    min_bytes: int


@dataclass(slots=True, frozen=True)
class Plan:
    seed: int
    acks_after_fsync: bool
    topics: tuple[TopicPlan, ...]
    producers: tuple[ProducerPlan, ...]
    consumers: tuple[ConsumerPlan, ...]
    events: tuple[tuple[float, Event], ...]
    lifetime_s: float
    settings: dict[str, str]

    @property
    def partitions(self) -> list[tuple[str, int]]:
        return [(topic.name, index) for topic in self.topics for index in range(topic.partitions)]


def plan_of(seed: int, *, lifetime_s: float = LIFETIME_S, pace: float = 1.0) -> Plan:
    """`pace` stretches the pauses of producers, and the time between events."""
    random = Random(f"plan {seed}")
    topics = tuple(_topic(random, number) for number in range(random.randint(1, 3)))
    partitions = tuple((topic.name, i) for topic in topics for i in range(topic.partitions))
    return Plan(
        seed=seed,
        acks_after_fsync=random.random() < 0.5,
        topics=topics,
        producers=tuple(
            _producer(random, number, partitions, pace) for number in range(random.randint(1, 4))
        ),
        consumers=tuple(
            ConsumerPlan(
                number,
                _some(random, partitions),
                random.choice((30, 100, 500)),
                random.choice((1, 1, 1000)),
            )
            for number in range(random.randint(1, 3))
        ),
        events=tuple(_events(random, lifetime_s, pace)),
        lifetime_s=lifetime_s,
        settings={
            "log.flush.offset.checkpoint.interval.ms": random.choice(("1000", "60000")),
            "producer.id.expiration.check.interval.ms": "10000",
            "log.initial.task.delay.ms": "5000",
            "log.index.size.max.bytes": str(random.choice((400, 8_000))),
        },
    )


def _topic(random: Random, number: int) -> TopicPlan:
    configs = {"retention.ms": "-1"}
    if random.random() < 0.5:
        configs["segment.bytes"] = str(random.choice((1 << 20, 2 << 20)))
        configs["segment.ms"] = str(random.choice((2_000, 20_000)))
    if random.random() < 0.3:
        configs["compression.type"] = random.choice(("gzip", "lz4", "zstd", "snappy"))
    if random.random() < 0.2:
        configs["message.timestamp.type"] = "LogAppendTime"
    if random.random() < 0.3:
        configs["flush.messages"] = str(random.choice((1, 50)))
    if random.random() < 0.3:
        configs["flush.ms"] = str(random.choice((500, 5_000)))
    configs["index.interval.bytes"] = str(random.choice((64, 4096)))
    return TopicPlan(f"topic-{number}", random.randint(1, 3), configs)


def _producer(
    random: Random, number: int, partitions: tuple[tuple[str, int], ...], pace: float
) -> ProducerPlan:
    is_idempotent = random.random() < 0.6
    return ProducerPlan(
        number,
        is_idempotent,
        "all" if is_idempotent else random.choice((0, 1, 1, "all")),
        random.choice((None, None, "gzip", "lz4", "zstd", "snappy")),
        random.choice((0, 0, 20, 200)),
        random.choice((300, 2_000, 16_384)),
        random.choice((20, 200, 3_000)),
        random.choice((1, 5, 20)),
        pace * random.choice((0.1, 0.3, 1.0)),
        _some(random, partitions),
    )


def _some(random: Random, partitions: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(random.sample(partitions, random.randint(1, len(partitions)))))


def _events(random: Random, lifetime_s: float, pace: float) -> list[tuple[float, Event]]:
    """Some nodes live in peace, some have bad lines only, most have all of it."""
    kinds = random.choice(((), FREQUENT, RARE, RARE + FREQUENT, RARE + FREQUENT))
    events, at_s = [], FIRST_EVENT_S
    while kinds:
        at_s += pace * random.choice((0.3, 2.0, 8.0)) * (0.5 + random.random())
        if at_s > lifetime_s:
            break
        events.append((at_s, random.choice(kinds)))
    return events
