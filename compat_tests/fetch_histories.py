"""Random histories of fetch sessions, told to two brokers at once.

The same seed is the same history. Nothing waits, so that the answers depend on nothing but what was
asked before; two clients have a session each, and now and then they get its epoch wrong.
"""

from random import Random
from typing import Any, NamedTuple

from compat_tests.wire_story.teller import Teller, batch, produce
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from ottla.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.records import iterate_batches

STEPS = 80
PARTITIONS = {"a": 3, "b": 4}
VERSIONS = (7, 11, 12, 13, 17)
_EPOCHS_SINCE = 12
_CLIENTS = 2
_NO_LIMIT = 1 << 20


class Asked(NamedTuple):
    """What a client asks for, without the names that differ from broker to broker."""

    client: int
    epoch: int
    wanted: dict[tuple[str, int], dict[str, Any]]
    forgotten: list[tuple[str, int]]
    max_bytes: int
    isolation_level: int


class Side:
    """One of the brokers, with the topics of one history."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._teller = Teller(bootstrap)
        self._names = {name: f"fetched-{name}-{seed}" for name in PARTITIONS}
        self._sessions = [0] * _CLIENTS
        self._ids = {
            name: self._teller.topic(self._names[name], partitions=count)
            for name, count in PARTITIONS.items()
        }
        self._known = {topic_id: name for name, topic_id in self._ids.items()}
        self._known_names = {called: name for name, called in self._names.items()}

    def close(self) -> None:
        self._teller.wire.close()

    def produced(self, name: str, partition: int, data: bytes | bytearray) -> tuple[int, int]:
        answer = self._teller.wire.ask(produce(self._names[name], data, partition=partition), 9)
        said = answer.responses[0].partition_responses[0]
        return said.error_code, said.base_offset

    def deleted(self, name: str, partition: int, offset: int) -> tuple[int, int]:
        partitions = [DeleteRecordsPartition(partition_index=partition, offset=offset)]
        topics = [DeleteRecordsTopic(name=self._names[name], partitions=partitions)]
        answer = self._teller.wire.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 1)
        said = answer.topics[0].partitions[0]
        return said.error_code, said.low_watermark

    def fetched(self, asked: Asked, version: int) -> Any:
        topics: list[FetchTopic] = []
        last = ""
        for (name, index), fields in asked.wanted.items():
            if name != last:
                last = name
                topics.append(FetchTopic(partitions=[], **self._called(name)))
            topics[-1].partitions.append(FetchPartition(partition=index, **fields))
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=asked.max_bytes,
            isolation_level=asked.isolation_level,
            session_id=self._sessions[asked.client],
            session_epoch=asked.epoch,
            topics=topics,
            forgotten_topics_data=[
                ForgottenTopic(partitions=[index], **self._called(name))
                for name, index in asked.forgotten
            ],
        )
        answer = self._teller.wire.ask(request, version)
        if not answer.error_code:
            self._sessions[asked.client] = answer.session_id
        return self._comparable(answer)

    def _called(self, name: str) -> dict[str, Any]:
        return {"topic": self._names[name], "topic_id": self._ids[name]}

    def _comparable(self, answer: FetchResponse) -> Any:
        topics = [
            (
                self._known.get(topic.topic_id) or self._known_names.get(topic.topic),
                [_said(part) for part in topic.partitions],
            )
            for topic in answer.responses
        ]
        return answer.error_code, answer.session_id > 0, topics


def _said(part: Any) -> Any:
    records = part.records or b""
    return (
        *(part.partition_index, part.error_code, part.high_watermark, part.last_stable_offset),
        *(part.log_start_offset, part.aborted_transactions, part.diverging_epoch),
        *(len(records), [header.base_offset for _, header in iterate_batches(records)]),
    )


class History:
    """What happens, one step after the other."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        self.version = VERSIONS[seed % len(VERSIONS)]
        self._epochs = [0] * _CLIENTS

    def tell(self, sides: list[Side]) -> list[tuple[str, list[Any]]]:
        """Each step, and what the sides answered; it ends where they differ."""
        told = []
        for _ in range(STEPS):
            step, answers = self._step(sides)
            told.append((step, answers))
            if answers[0] != answers[1]:
                break
        return told

    def _step(self, sides: list[Side]) -> tuple[str, list[Any]]:
        dice = self._dice
        kind = dice.random()
        name, index = self._partition()
        if kind < 0.35:
            values = [bytes(dice.randrange(1, 200)) for _ in range(dice.randrange(1, 5))]
            answers = [side.produced(name, index, batch(*values)) for side in sides]
            return f"produce to {name}-{index}", answers
        if kind < 0.42:
            offset = dice.choice((-1, 0, 1, 2, 5))
            answers = [side.deleted(name, index, offset) for side in sides]
            return f"delete from {name}-{index} to {offset}", answers
        asked = self._asked()
        fetched = [side.fetched(asked, self.version) for side in sides]
        error, has_session, _ = fetched[0]
        if not error:
            self._epochs[asked.client] = max(asked.epoch, 0) + 1 if has_session else 0
        return str(asked), fetched

    def _partition(self) -> tuple[str, int]:
        """Now and then one that is not there."""
        name = self._dice.choice(tuple(PARTITIONS))
        return name, self._dice.randrange(PARTITIONS[name] + (self._dice.random() < 0.1))

    def _asked(self) -> Asked:
        dice = self._dice
        client = dice.randrange(_CLIENTS)
        return Asked(
            client,
            self._epoch(self._epochs[client]),
            {self._partition(): self._wanted() for _ in range(dice.choice((0, 0, 1, 1, 2, 4)))},
            [self._partition() for _ in range(dice.choice((0, 0, 0, 1, 2)))],
            dice.choice((1, 400, 1000, _NO_LIMIT, _NO_LIMIT)),
            dice.choice((0, 0, 1)),
        )

    def _epoch(self, right: int) -> int:
        kind = self._dice.random()
        if kind < 0.06:
            return 0
        if kind < 0.10:
            return -1
        return self._dice.choice((right + 1, 77)) if kind < 0.16 else right

    def _wanted(self) -> dict[str, Any]:
        dice = self._dice
        wanted: dict[str, Any] = {
            "fetch_offset": dice.choice((0, 0, 1, 2, 3, 5, 8, 20)),
            "partition_max_bytes": dice.choice((1, 300, _NO_LIMIT)),
            "current_leader_epoch": dice.choice((-1, -1, -1, 0, 1)),
        }
        if self.version >= _EPOCHS_SINCE:
            wanted["last_fetched_epoch"] = dice.choice((-1, -1, -1, 0, 3))
        return wanted
