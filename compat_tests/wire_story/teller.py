"""Who tells the story to one broker, and writes down what it answers to each case.

A chapter asks case by case and may use what was answered before. What it needs but does not
compare (topics, waiting until they are served) it asks quietly.
"""

import struct
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from compat_tests.wire_story.answers import Comparable
from compat_tests.wire_story.wire import CLOSED, ConnectionClosed, Wire
from ottla.protocol.compression import Codec
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Headers, Record

PATIENCE_S = 20
PAUSE_S = 0.02
# Long ago, so that no time of the story is near that of an answer; retention is off for it.
TIME_MS = 1_700_000_000_000
KEPT_FOR_EVER = {"retention.ms": "-1"}


class Teller:
    """One broker, and its answers by the names of the cases."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.wire = Wire(host, int(port))
        self.answers: dict[str, Any] = {}
        now_ms = time.time_ns() // 1_000_000
        self.comparable = Comparable(host=host, port=int(port), now_ms=now_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wire.close()

    def ask(self, case: str, request: Any, version: int) -> Any:
        """Asks, writes the answer down, and returns it; None where the connection was closed."""
        try:
            answer = self.wire.ask(request, version)
        except ConnectionClosed:
            self._note(case, CLOSED)
            return None
        self._note(case, self.comparable.answer(answer, version))
        return answer

    def ask_in(self, versions: range, case: str, request: Any) -> None:
        """The same request in several versions of its API: a case each."""
        for version in versions:
            self.ask(f"{case}, v{version}", request, version)

    def ask_for_nothing(self, case: str, request: Any, version: int) -> None:
        """A request that is not to be answered, or costs the connection."""
        self._note(case, self.wire.sent_without_answer(request, version))

    def ask_raw(self, case: str, frame: bytes) -> None:
        """A frame that our own writer would not write; the bytes that are answered."""
        self.ask_bytes(case, struct.pack(">i", len(frame)) + frame)

    def ask_bytes(self, case: str, data: bytes) -> None:
        try:
            self.wire.send_bytes(data)
            answer = self.wire.read_frame().hex()
        except ConnectionClosed:
            answer = CLOSED
        self._note(case, answer)

    def until(self, request: Any, version: int, holds: Callable[[Any], bool]) -> Any:
        """Asks quietly again and again: what was changed takes a moment to be seen."""
        end = time.perf_counter() + PATIENCE_S
        while True:
            answer = self.wire.ask(request, version)
            if holds(answer):
                return answer
            if time.perf_counter() > end:
                raise AssertionError(f"never came to be what was waited for: {answer}")
            time.sleep(PAUSE_S)

    def topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> bytes:
        """Creates a topic, quietly, and waits until all of it is served; its id."""
        listed = [
            CreatableTopicConfig(name=key, value=value)
            for key, value in {**KEPT_FOR_EVER, **(configs or {})}.items()
        ]
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=listed,
        )
        answer = self.wire.ask(CreateTopicsRequest(topics=[topic]), 7)
        created = answer.topics[0]
        if created.error_code:
            raise AssertionError(f"{name} was not created: {created}")
        self.comparable.met(created.topic_id, name)
        self.until_served(name, partitions)
        topic_id: bytes = created.topic_id
        return topic_id

    def until_served(self, name: str, partitions: int) -> None:
        asked = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(partitions)]
        topics = [ListOffsetsTopic(name=name, partitions=asked)]
        self.until(
            ListOffsetsRequest(replica_id=-1, topics=topics),
            7,
            lambda said: not any(each.error_code for each in said.topics[0].partitions),
        )

    def produced(self, name: str, data: bytes | bytearray, *, partition: int = 0) -> int:
        """Appends a batch, quietly; its base offset."""
        answer = self.wire.ask(produce(name, data, partition=partition), 9)
        said = answer.responses[0].partition_responses[0]
        if said.error_code:
            raise AssertionError(f"{name} takes no batch: {ErrorCode(said.error_code).name}")
        offset: int = said.base_offset
        return offset

    def note(self, case: str, answer: Any, version: int) -> None:
        """Writes down an answer that was asked for quietly."""
        self._note(case, self.comparable.answer(answer, version))

    def another_wire(self) -> Wire:
        """A connection beside the first: for who has to wait."""
        return Wire(*self.wire.address)

    def _note(self, case: str, answer: Any) -> None:
        if case in self.answers:
            raise ValueError(f"two cases are called {case!r}")
        self.answers[case] = answer


def batch(
    *values: bytes,
    timestamp: int = TIME_MS,
    key: bytes | None = None,
    headers: Headers = (),
    codec: Codec = Codec.NONE,
    **producer: Any,
) -> bytearray:
    """One batch; its records lie a second apart."""
    records = [
        Record(at, timestamp + 1000 * at, key, value, headers) for at, value in enumerate(values)
    ]
    return build_batch(records, codec=codec, **producer)


def produce(
    name: str,
    data: bytes | bytearray,
    *,
    partition: int = 0,
    acks: int = -1,
    topic_id: bytes = bytes(16),
    transactional_id: str | None = None,
) -> ProduceRequest:
    partitions = [PartitionProduceData(index=partition, records=data)]
    topics = [TopicProduceData(name=name, topic_id=topic_id, partition_data=partitions)]
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=topics
    )


def fetch(
    name: str,
    offset: int = 0,
    *,
    partition: int = 0,
    topic_id: bytes = bytes(16),
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    **more: Any,
) -> FetchRequest:
    """A fetch of one partition that does not wait; `more` are fields of request or partition."""
    of_partition = {
        field: more.pop(field)
        for field in ("current_leader_epoch", "last_fetched_epoch", "log_start_offset")
        if field in more
    }
    asked = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        **of_partition,
    )
    topics = [FetchTopic(topic=name, topic_id=topic_id, partitions=[asked])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics, **more)
