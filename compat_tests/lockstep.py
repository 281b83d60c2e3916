"""Random requests to two brokers in lockstep: after each one the answers must be the same.

    .venv/bin/python -m compat_tests.lockstep --steps 8000 --seed 3

Producers with good and bad sequences and epochs, fetches with and without sessions, offsets, times,
epochs, deleted records, all on one topic: what an answer says depends on everything before it.
"""

import argparse
from collections.abc import Callable
from random import Random
from typing import Any

from compat_tests.apache_kafka import Kafka
from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.chapters import FEATURES_OFF, SETTINGS
from compat_tests.wire_story.teller import TIME_MS, Teller, batch, fetch, produce
from ottla.protocol.compression import Codec
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.transactions import (
    DescribeProducersRequest,
    InitProducerIdRequest,
    TopicRequest,
)

NAME = "lockstep"
PARTITIONS = 2
UNKNOWN_PRODUCER = 777_777
Asked = tuple[Any, int]


class Side:
    """One of the two brokers: its ids, and the session that it has given us."""

    def __init__(self, bootstrap: str) -> None:
        self.teller = Teller(bootstrap)
        self.topic_id = self.teller.topic(
            NAME, partitions=PARTITIONS, configs={"segment.bytes": "1048576"}
        )
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        self.producer_ids = [
            self.teller.until(asked, 4, lambda said: not said.error_code).producer_id
            for _ in range(2)
        ]
        self.producer_ids.append(UNKNOWN_PRODUCER)
        self.session = (0, 0)

    def ask(self, request: Any, version: int) -> tuple[Any, Any]:
        """The answer, and what of it can be compared."""
        answer = self.teller.wire.ask(request, version)
        if isinstance(request, FetchRequest) and version >= 13:
            self._follow_session(request, answer)
        return answer, self.teller.comparable.answer(answer, version)

    def _follow_session(self, request: FetchRequest, answer: Any) -> None:
        if answer.error_code:
            return
        if request.session_epoch == 0:
            self.session = (answer.session_id, 1)
        elif request.session_epoch == -1:
            self.session = (0, 0)
        else:
            self.session = (request.session_id, request.session_epoch + 1)


class Story:
    """Draws requests; knows so much of what was answered that most of them make sense."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        self._step = 0
        self._ends = [0] * PARTITIONS
        self._next_sequence: dict[tuple[int, int, int], int] = {}
        self._sent: tuple[int, int, int] | None = None

    def next(self) -> Callable[[Side], Asked]:
        """The next request, for either side."""
        self._step += 1
        self._sent = None
        deeds: dict[Callable[[int], Callable[[Side], Asked]], int] = {
            self._idempotent: 6,
            self._plain: 1,
            self._list: 2,
            self._fetch: 2,
            self._session: 2,
            self._epoch: 1,
            self._delete: 1,
            self._producers: 1,
        }
        (deed,) = self._dice.choices(list(deeds), weights=list(deeds.values()))
        return deed(self._dice.randrange(PARTITIONS))

    def told(self, request: Any, answer: Any) -> None:
        """What Kafka said to it."""
        if type(answer).__name__ != "ProduceResponse":
            return
        partition = request.topic_data[0].partition_data[0].index
        said = answer.responses[0].partition_responses[0]
        if said.error_code or said.base_offset < 0:
            return
        self._ends[partition] = max(self._ends[partition], said.base_offset + 3)
        if self._sent is not None:
            number, epoch, after = self._sent
            key = (partition, number, epoch)
            self._next_sequence[key] = max(self._next_sequence.get(key, 0), after)

    def _time(self) -> int:
        return TIME_MS + 1000 * self._step

    def _idempotent(self, partition: int) -> Callable[[Side], Asked]:
        dice = self._dice
        number, epoch = dice.randrange(3), dice.choice([0, 0, 0, 0, 1, 1, 2])
        expected = self._next_sequence.get((partition, number, epoch), 0)
        earlier = max(0, expected - dice.randrange(1, 12))
        odd = [0, dice.randrange(15), earlier, 2**31 - 1]
        sequence = dice.choice([*[expected] * 4, *odd])
        count, version = dice.randrange(1, 4), dice.choice([3, 5, 7, 8, 9, 11])
        self._sent = (number, epoch, (sequence + count) % 2**31)
        time_ms = self._time()

        def asked(side: Side) -> Asked:
            data = batch(
                *[b"v"] * count,
                timestamp=time_ms,
                producer_id=side.producer_ids[number],
                producer_epoch=epoch,
                base_sequence=sequence,
            )
            return produce(NAME, data, partition=partition), version

        return asked

    def _plain(self, partition: int) -> Callable[[Side], Asked]:
        dice = self._dice
        value = bytes([dice.randrange(256)]) * dice.choice([1, 10, 1000, 100_000, 400_000])
        data = batch(
            *[value] * dice.randrange(1, 4),
            timestamp=self._time() + dice.choice([0, -50_000, 3]),
            codec=dice.choice(list(Codec)),
        )
        request = produce(NAME, data, partition=partition, acks=dice.choice([1, -1]))
        version = dice.choice([7, 9])
        return lambda side: (request, version)

    def _list(self, partition: int) -> Callable[[Side], Asked]:
        dice = self._dice
        times = [-1, -2, -3, -4, -5, -6, *[TIME_MS + dice.randrange(1000 * self._step)] * 3]
        asked = ListOffsetsPartition(
            partition_index=partition,
            current_leader_epoch=dice.choice([-1, -1, 0, 1]),
            timestamp=dice.choice(times),
        )
        topics = [ListOffsetsTopic(name=NAME, partitions=[asked])]
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=dice.randrange(2), topics=topics
        )
        version = dice.choice([4, 7, 8, 9, 10, 11])
        return lambda side: (request, version)

    def _offset(self, partition: int) -> int:
        return self._dice.randrange(-1, max(2, self._ends[partition] + 2))

    def _fetch(self, partition: int) -> Callable[[Side], Asked]:
        dice, sizes = self._dice, [0, 100, 10_000, 1 << 20]
        version = dice.choice([4, 7, 11, 12])
        epochs: dict[str, Any] = {}
        if version == 12:
            epochs = {
                "current_leader_epoch": dice.choice([0, -1, 3]),
                "last_fetched_epoch": dice.choice([-1, 0, 0, 2]),
                "log_start_offset": dice.choice([-1, 0, 9]),
            }
        request = fetch(
            NAME,
            self._offset(partition),
            partition=partition,
            max_bytes=dice.choice(sizes),
            partition_max_bytes=dice.choice(sizes),
            isolation_level=dice.randrange(2),
            **epochs,
        )
        return lambda side: (request, version)

    def _session(self, partition: int) -> Callable[[Side], Asked]:
        dice = self._dice
        named = {dice.randrange(3): self._offset(0) for _ in range(dice.randrange(3))}
        forgotten = [dice.randrange(3)] if dice.random() < 0.2 else []
        ahead, size = dice.choice([*[0] * 8, 1, 5]), dice.choice([100, 10_000, 1 << 20])
        what = dice.choices(["goes on", "begins", "ends"], weights=[16, 3, 1])[0]

        def asked(side: Side) -> Asked:
            number, epoch = side.session
            if what == "begins" or not number:
                number, epoch = 0, 0
            else:
                epoch = -1 if what == "ends" else epoch + ahead
            partitions = [
                FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=size)
                for index, offset in named.items()
            ]
            topic = FetchTopic(topic_id=side.topic_id, partitions=partitions)
            gone = ForgottenTopic(topic_id=side.topic_id, partitions=forgotten)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_id=number,
                session_epoch=epoch,
                topics=[topic] if partitions else [],
                forgotten_topics_data=[gone] if forgotten else [],
            )
            return request, 17

        return asked

    def _epoch(self, partition: int) -> Callable[[Side], Asked]:
        asked = OffsetForLeaderPartition(
            partition=partition,
            current_leader_epoch=self._dice.choice([-1, 0, 1]),
            leader_epoch=self._dice.randrange(-2, 3),
        )
        topics = [OffsetForLeaderTopic(topic=NAME, partitions=[asked])]
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
        version = self._dice.choice([2, 3, 4])
        return lambda side: (request, version)

    def _delete(self, partition: int) -> Callable[[Side], Asked]:
        # Mostly of the older half: something should be left to read.
        half = self._dice.randrange(max(1, self._ends[partition] // 2 + 1))
        offset = self._dice.choice([*[half] * 12, -1, self._offset(partition)])
        asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
        topics = [DeleteRecordsTopic(name=NAME, partitions=[asked])]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
        return lambda side: (request, 2)

    def _producers(self, partition: int) -> Callable[[Side], Asked]:
        topics = [TopicRequest(name=NAME, partition_indexes=[partition])]
        return lambda side: (DescribeProducersRequest(topics=topics), 0)


def run(kafka_bootstrap: str, our_bootstrap: str, *, steps: int, seed: int) -> list[str]:
    """The differences, each with the request."""
    story, kafka, ours = Story(seed), Side(kafka_bootstrap), Side(our_bootstrap)
    found = []
    with kafka.teller, ours.teller:
        for step in range(steps):
            drawn = story.next()
            request, version = drawn(kafka)
            answer, kafkas = kafka.ask(request, version)
            _, our = ours.ask(*drawn(ours))
            story.told(request, answer)
            if our != kafkas:
                found.append(f"step {step}: {request}\n  Kafka: {kafkas}\n  ours:  {our}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m compat_tests.lockstep")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with Kafka(properties=SETTINGS, features=FEATURES_OFF) as kafka, Ottla(settings=SETTINGS) as us:
        steps, seed = arguments.steps, arguments.seed
        found = run(kafka.bootstrap, us.bootstrap, steps=steps, seed=seed)
    print("\n".join(found[:10]))
    print(f"{steps} steps, seed {seed}: {len(found)} differences")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
