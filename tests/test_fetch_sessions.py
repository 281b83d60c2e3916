"""Fetch sessions: what is told again, who keeps a session, and what a fetch costs."""

import gc
from asyncio import CancelledError
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ottla.broker import fetch_sessions
from ottla.broker.context import Context
from ottla.broker.fetch_sessions import EVICTION_MS, FetchSessions
from ottla.broker.handlers.fetch import fetch
from ottla.protocol.apis import APIS
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from ottla.storage.clock import Now
from tests.data_rig import Broker, topic_id
from tests.log_rig import NOW, batch, refused
from tests.test_fetch import append, offsets, parts

ENOUGH = 1 << 20


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.loop.close()


class Client:
    """Asks as a client with one session does; `fetched` are (topic, partition, batches)."""

    def __init__(self, broker: Broker, *, version: int = 17) -> None:
        self.broker = broker
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def ask(
        self,
        *wanted: tuple[int, int],
        topic: str = "t",
        forget: tuple[int, ...] = (),
        wait_ms: int = 0,
        **fields: Any,
    ) -> Any:
        """`wanted` are partitions and their offsets."""
        fields.setdefault("session_id", self.session_id)
        fields.setdefault("session_epoch", self.epoch)
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=ENOUGH)
            for index, offset in wanted
        ]
        name: dict[str, Any] = {"topic": topic, "topic_id": topic_id(topic)}
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            topics=[FetchTopic(partitions=partitions, **name)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(partitions=list(forget), **name)]
            if forget
            else [],
            **fields,
        )
        answer = self.broker.ask(fetch, request, self.version)
        self.epoch += 1
        if isinstance(answer, FetchResponse) and not answer.error_code:
            self.session_id = answer.session_id
        return answer

    def indexes(self, *wanted: tuple[int, int], **fields: Any) -> list[int]:
        """Which partitions the answer names."""
        return [part.partition_index for part in parts(self.ask(*wanted, **fields))]


@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_only_what_is_new_is_told_again(broker: Broker, version: int) -> None:
    partitions = broker.create("t", 3)
    client = Client(broker, version=version)
    assert client.indexes((0, 0), (1, 0), (2, 0)) == [0, 1, 2]
    assert client.session_id > 0
    assert client.indexes() == []
    append(partitions[1], 3)
    assert client.indexes() == [1]
    assert client.indexes() == [1], "the client has not said that it goes on"
    assert client.indexes((1, 3)) == []
    append(partitions[0], 3)
    append(partitions[2], 3)
    assert client.indexes((0, 3)) == [0, 2], "the watermark alone is new for partition 0"


def test_a_new_log_start_is_told(broker: Broker) -> None:
    (partition,) = broker.create("t")
    append(partition, 5)
    client = Client(broker)
    client.ask((0, 5))
    assert client.indexes() == []
    partition.delete_records(2)
    (part,) = parts(client.ask())
    assert part.log_start_offset == 2
    assert client.indexes() == []


def test_partitions_come_and_go(broker: Broker) -> None:
    partitions = broker.create("t", 3)
    client = Client(broker)
    assert client.indexes((0, 0), (1, 0)) == [0, 1]
    assert client.indexes((2, 0), forget=(0,)) == [2]
    for partition in partitions:
        append(partition, 3)
    assert client.indexes() == [1, 2]
    assert not partitions[0].watchers
    assert client.indexes(forget=(0, 7)) == [1, 2]


def test_an_error_is_told_until_it_is_gone(broker: Broker) -> None:
    broker.create("t")
    client = Client(broker)
    client.ask((0, 0), (1, 0))
    for _ in range(2):
        (part,) = parts(client.ask())
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("u", 1)
    broker.partitions["t", 1] = broker.partitions["u", 0]
    broker.partitions["t", 1].topic_id = topic_id("t")
    (part,) = parts(client.ask())
    assert (part.error_code, part.high_watermark) == (0, 0)
    assert client.indexes() == []


def test_a_topic_that_is_deleted_in_a_session_is_an_unknown_partition(broker: Broker) -> None:
    broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    broker.drop("t")
    (part,) = parts(client.ask())
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("t", id=bytes(15) + b"\7")
    (part,) = parts(client.ask())
    assert part.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_who_got_records_comes_last(broker: Broker) -> None:
    partitions = broker.create("t", 3)
    for partition in partitions:
        append(partition, *[3] * 4)
    client = Client(broker)
    size = len(batch(3))
    first = client.ask((0, 0), (1, 0), (2, 0), max_bytes=size)
    assert [len(part.records or b"") for part in parts(first)] == [size, 0, 0]
    served = []
    for _ in range(6):
        answer = client.ask(max_bytes=size)
        served += [part.partition_index for part in parts(answer) if part.records]
    assert served == [0, 1, 2, 0, 1, 2], "a new session has the order of its first answer"


def test_what_there_was_no_room_for_is_not_forgotten(broker: Broker) -> None:
    partitions = broker.create("t", 2)
    for partition in partitions:
        append(partition, 3)
    client = Client(broker)
    client.ask((0, 0), (1, 0), max_bytes=10)
    assert client.indexes((0, 3)) == [1]


def test_a_session_waits_for_any_of_its_partitions(broker: Broker) -> None:
    partitions = broker.create("t", 5)
    client = Client(broker)
    client.ask(*[(index, 0) for index in range(5)])
    waiting = client.ask(wait_ms=500)
    broker.loop.call_later(0.1, append, partitions[3], 3)
    (part,) = parts(broker.run(waiting))
    assert (part.partition_index, offsets(part)) == (3, [0])
    assert broker.loop.time() == pytest.approx(0.1)


def test_watermarks_that_rose_during_a_wait_are_told(broker: Broker) -> None:
    partitions = broker.create("t", 2, replicas=(1, 2), isr=(1, 2))
    append(partitions[0], 3)
    client = Client(broker)
    client.ask((0, 3), (1, 0))
    waiting = client.ask(wait_ms=500)
    partitions[0].replica_fetched(2, offset=3, log_start_offset=0, now=NOW)
    broker.loop.turn()
    assert not waiting.done(), "a watermark is no reason to answer"
    (part,) = parts(broker.run(waiting))
    assert (part.partition_index, part.high_watermark) == (0, 3)


# sessions and epochs


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [
        (None, 5, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (12345, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_a_wrong_session_is_refused_and_the_right_one_goes_on(
    broker: Broker, session_id: int | None, epoch: int, code: ErrorCode
) -> None:
    broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    wrong = client.session_id if session_id is None else session_id
    answer = client.ask(session_id=wrong, session_epoch=epoch)
    assert (answer.error_code, answer.session_id, answer.responses) == (code, 0, [])
    client.epoch = 1
    assert client.indexes() == []


def test_a_session_keeps_to_names_or_to_ids(broker: Broker) -> None:
    broker.create("t")
    client = Client(broker, version=13)
    client.ask((0, 0))
    client.version = 12
    assert client.ask().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    client.version, client.epoch = 13, 1
    assert client.indexes() == []


def test_epochs_go_round_and_leave_out_zero(broker: Broker) -> None:
    broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    session = next(iter(broker.fetch_sessions._by_id.values()))
    session.epoch = client.epoch = 0x7FFF_FFFF
    assert client.ask().error_code == 0
    assert client.ask(session_epoch=1).error_code == 0


def test_a_last_fetch_ends_the_session(broker: Broker) -> None:
    (partition,) = broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    assert len(broker.fetch_sessions) == 1
    assert partition.watchers
    assert client.ask((0, 0), session_epoch=-1).session_id == 0
    assert len(broker.fetch_sessions) == 0
    assert not partition.watchers


def test_a_full_fetch_begins_anew(broker: Broker) -> None:
    broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    old = client.session_id
    assert client.indexes((0, 0), session_epoch=0) == [0]
    assert client.session_id not in (0, old)
    assert len(broker.fetch_sessions) == 1


def test_a_session_without_partitions_is_kept_once_and_ends_when_it_is_left_empty(
    broker: Broker,
) -> None:
    broker.create("t")
    client = Client(broker)
    assert client.ask().session_id > 0
    assert client.indexes((0, 0)) == [0]
    answer = client.ask(forget=(0,))
    assert (answer.session_id, answer.responses) == (0, [])
    assert len(broker.fetch_sessions) == 0


def test_what_is_asked_for_along_with_the_end_of_a_session_is_answered(broker: Broker) -> None:
    broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    answer = client.ask((0, 0), forget=(0,))
    assert [part.partition_index for part in parts(answer)] == [0]
    assert answer.session_id == 0
    assert len(broker.fetch_sessions) == 0


def test_a_new_session_has_the_order_of_its_first_answer(broker: Broker) -> None:
    broker.create("t", 2)
    client = Client(broker)
    assert client.indexes((7, 0), (1, 0), (0, 9)) == [1, 0, 7]
    append(broker.partitions["t", 1], 3)
    assert client.indexes() == [1, 0, 7]


def test_versions_before_sessions_have_none(broker: Broker) -> None:
    (partition,) = broker.create("t")
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[
            FetchTopic(
                topic="t",
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=9)],
            )
        ],
    )
    broker.ask(fetch, request, 6)
    assert len(broker.fetch_sessions) == 0
    assert not partition.watchers


def test_the_next_fetch_ends_one_that_still_waits(broker: Broker) -> None:
    (partition,) = broker.create("t")
    client = Client(broker)
    client.ask((0, 0))
    older = client.ask(wait_ms=500)
    newer = client.ask(wait_ms=500)
    broker.loop.turn()
    answer = older.result()
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    append(partition, 3)
    assert offsets(parts(broker.run(newer))[0]) == [0]


# who keeps a session


class Slots:
    """Sessions of given sizes in few slots."""

    def __init__(self, slots: int) -> None:
        self.sessions = FetchSessions(slots, random=Random(3))
        self.now_ms = 0

    def add(self, size: int, *, is_follower: bool = False) -> int:
        wanted = [
            FetchPartition(partition=i, fetch_offset=0, partition_max_bytes=9) for i in range(size)
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=0,
            topics=[FetchTopic(topic="t", partitions=wanted)],
        )
        session = self.sessions.begin(
            request, uses_topic_ids=False, is_follower=is_follower, now=self.now
        )
        self.sessions.keep(session, self.now)
        return session.id

    @property
    def now(self) -> Now:
        return Now(self.now_ms, 0)

    def use(self, session_id: int, epoch: int = 1) -> None:
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=[]
        )
        self.sessions.begin(request, uses_topic_ids=False, is_follower=False, now=self.now)

    def has(self, session_id: int) -> bool:
        return session_id in self.sessions._by_id


def test_new_sessions_are_safe_from_each_other() -> None:
    slots = Slots(2)
    assert slots.add(1)
    assert slots.add(1)
    assert slots.add(100) == 0


def test_the_idle_one_goes_first() -> None:
    slots = Slots(2)
    idle, used = slots.add(100), slots.add(1)
    slots.now_ms = EVICTION_MS
    slots.use(used)
    assert slots.add(1) == 0
    slots.now_ms += 1
    assert slots.add(1)
    assert not slots.has(idle)
    assert slots.has(used)


def test_idle_is_who_was_used_longest_ago_not_who_came_first() -> None:
    slots = Slots(2)
    used, idle = slots.add(1), slots.add(100)
    slots.now_ms = EVICTION_MS
    slots.use(used)
    slots.now_ms += 1
    assert slots.add(1)
    assert not slots.has(idle)
    assert slots.has(used)


def test_of_those_that_are_not_new_the_smallest_goes_to_a_larger_one() -> None:
    slots = Slots(3)
    sessions = [slots.add(size) for size in (5, 3, 9)]
    slots.now_ms = EVICTION_MS + 1
    for session in sessions:
        slots.use(session)
    assert slots.add(3) == 0
    assert slots.add(4)
    assert [slots.has(session) for session in sessions] == [True, False, True]
    assert slots.add(4) == 0, "the newest is small, but new"


def test_a_follower_takes_a_consumers_place_but_not_the_reverse() -> None:
    slots = Slots(2)
    consumer, follower = slots.add(100), slots.add(1, is_follower=True)
    assert slots.add(2, is_follower=True)
    assert not slots.has(consumer)
    assert slots.add(500) == 0
    slots.now_ms = EVICTION_MS + 1
    slots.use(follower)
    assert slots.has(follower)


def test_without_slots_there_are_no_sessions() -> None:
    assert Slots(0).add(1) == 0


def test_partitions_in_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 10)
    slots = Slots(100)
    first = slots.add(6)
    assert slots.add(5) == 0
    assert slots.add(4)
    grown = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=first,
        session_epoch=1,
        topics=[
            FetchTopic(
                topic="u",
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=9)],
            )
        ],
    )
    code = refused(
        lambda: slots.sessions.begin(grown, uses_topic_ids=False, is_follower=False, now=slots.now)
    )
    assert code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert slots.add(6), "what it held is free again"


def test_one_request_names_no_more_partitions_than_it_may(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_NAMED_MAX", 3)
    broker.create("t", 4)
    client = Client(broker)
    answer = client.ask(*[(index, 0) for index in range(4)])
    assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_REQUEST, [])
    client.epoch = 0
    assert client.indexes(*[(index, 0) for index in range(3)]) == [0, 1, 2]


def test_an_evicted_session_lets_its_partitions_go() -> None:
    broker = Broker(slots=1)
    (partition,) = broker.create("t")
    first, second = Client(broker), Client(broker)
    first.ask((0, 0))
    waiting = first.ask(wait_ms=EVICTION_MS * 2)
    broker.loop.call_later(EVICTION_MS / 1000 + 1, second.ask, (0, 0))
    broker.loop.call_later(EVICTION_MS / 1000 + 2, append, partition, 3)
    assert offsets(parts(broker.run(waiting))[0]) == [0], "who waits is still told"
    assert len(partition.watchers) == 1
    assert first.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    broker.loop.close()


# what it costs


def test_a_fetch_reads_only_what_has_changed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = broker.create("t", 200)
    client = Client(broker)
    client.ask(*[(index, 0) for index in range(200)])
    reads: list[int] = []
    log_type = type(partitions[0].log)
    read = log_type.read

    def counted(log: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(log.partition)
        return read(log, *args, **kwargs)

    monkeypatch.setattr(log_type, "read", counted)
    client.ask()
    assert reads == []
    append(partitions[77], 3)
    assert client.indexes() == [77]
    assert client.indexes((77, 3)) == []
    assert reads == [77, 77]


def test_a_fetch_that_is_given_up_half_way_forgets_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = broker.create("t", 3)
    client = Client(broker)
    client.ask((0, 0), (1, 0), (2, 0))
    for partition in partitions:
        append(partition, 3)
    monkeypatch.setattr("ottla.broker.fetch_reads._AT_ONCE_MAX", 1)

    async def pause() -> None:
        raise CancelledError

    with monkeypatch.context() as given_up:
        given_up.setattr(broker, "pause", pause)
        with pytest.raises(CancelledError):
            client.ask()
    client.epoch = 2
    found = client.indexes()
    assert found == [0, 1, 2]


def test_a_fetch_leaves_nothing_for_the_garbage_collector(broker: Broker) -> None:
    (partition,) = broker.create("t")
    context = Context(APIS[1], 12, 1, "test", broker.connection)  # type: ignore[arg-type]

    def fetched(*, wait_ms: int) -> None:
        wanted = FetchPartition(
            partition=0,
            fetch_offset=partition.log.log_end_offset,
            partition_max_bytes=ENOUGH,
        )
        topics = [FetchTopic(topic="t", partitions=[wanted])]
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=topics)
        answer = fetch(broker, context, request)  # type: ignore[arg-type]
        if not isinstance(answer, FetchResponse):
            append(partition, 1)
            broker.run(broker.loop.create_task(answer))  # type: ignore[arg-type]

    for wait_ms in (0, 50):
        fetched(wait_ms=wait_ms)
        gc.collect()
        gc.disable()
        for _ in range(20):
            fetched(wait_ms=wait_ms)
        assert gc.collect() == 0
        gc.enable()
