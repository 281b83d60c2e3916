"""Chapters in which something happens while a fetch waits, and of topics that come again."""

from contextlib import closing

from compat_tests.wire_story.teller import Teller, batch, fetch, produce
from compat_tests.wire_story.wire import Wire
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)

# Longer than the story may take; what is waited for must come before.
LONG_MS = 20_000


def patient(name: str, offset: int, *, min_bytes: int = 1, **more: bytes) -> FetchRequest:
    request = fetch(name, offset, **more)  # type: ignore[arg-type]
    request.max_wait_ms, request.min_bytes = LONG_MS, min_bytes
    return request


def waiting(teller: Teller) -> None:
    """What ends the wait of a fetch before its time."""
    topic_id = teller.topic("waited-for", partitions=2)

    def meanwhile(case: str, request: FetchRequest, version: int, *events: bytearray) -> None:
        with closing(Wire(*teller.wire.address)) as other:
            correlation_id = other.send(request, version)
            for data in events:
                teller.produced("waited-for", data)
            answer = other.read_answer(request, version, correlation_id)
        teller.answers[case] = teller.comparable.answer(answer, version)

    meanwhile("a record comes", patient("waited-for", 0), 11, batch(b"first"))
    meanwhile("enough comes", patient("waited-for", 1, min_bytes=200), 11, *[batch(b"x" * 99)] * 2)
    by_id = patient("", 3, topic_id=topic_id)
    meanwhile("a record comes, v17", by_id, 17, batch(b"more"))
    teller.ask("what is there ends the wait", patient("waited-for", 1), 11)
    teller.ask("out of range ends the wait", patient("waited-for", 99), 11)
    both = patient("waited-for", 4)
    both.topics += patient("waited-for", 99).topics
    both.topics[1].partitions[0].partition = 1
    teller.ask("an error of another partition ends the wait", both, 11)
    limited = patient("waited-for", 0, min_bytes=1 << 20)
    limited.max_bytes = 300
    teller.ask("a least size above the largest", limited, 11)


def coming_again(teller: Teller) -> None:
    """The id of a topic that is gone, whose name lives on."""
    old = teller.topic("comes-again")
    teller.produced("comes-again", batch(b"old"))
    full = fetch("", topic_id=old)
    full.session_epoch = 0
    session = teller.wire.ask(full, 17).session_id
    teller.wire.ask(DeleteTopicsRequest(topic_names=["comes-again"], timeout_ms=10_000), 5)
    named = MetadataRequest(
        topics=[MetadataRequestTopic(name="comes-again")], allow_auto_topic_creation=False
    )
    teller.until(named, 9, lambda said: said.topics[0].error_code == 3)
    going_on = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[], session_id=session, session_epoch=1
    )
    teller.ask("a session whose topic is gone", going_on, 17)
    new = teller.topic("comes-again")
    teller.comparable.met(old, "what was")
    teller.comparable.met(new, "comes-again")
    going_on.session_epoch = 2
    teller.ask("a session whose topic is another now", going_on, 17)
    teller.ask("fetch an old id", fetch("", topic_id=old), 17)
    teller.ask("produce to an old id", produce("", batch(b"x"), topic_id=old), 13)
    by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=old, name=None)])
    teller.ask("metadata of an old id", by_id, 12)
    teller.ask("fetch the new topic", fetch("", topic_id=new), 17)
    teller.ask("produce to the new topic", produce("comes-again", batch(b"new")), 9)


def starting_later(teller: Teller) -> None:
    """A log whose start moves under its readers."""
    teller.topic("starts-later")
    for at in range(3):
        teller.produced("starts-later", batch(b"%d" % at, b"x"))
    full = fetch("starts-later", 6)
    full.session_epoch = 0
    session = teller.wire.ask(full, 11).session_id
    partitions = [DeleteRecordsPartition(partition_index=0, offset=4)]
    topics = [DeleteRecordsTopic(name="starts-later", partitions=partitions)]
    deletes = DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
    teller.ask("the start moves", deletes, 2)
    going_on = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[], session_id=session, session_epoch=1
    )
    teller.ask("a session hears of the new start", going_on, 11)
    going_on.session_epoch = 2
    teller.ask("it hears of it once", going_on, 11)
    teller.ask("fetch from below the new start", fetch("starts-later", 1), 12)
    with_epoch = fetch("starts-later", 1, current_leader_epoch=0, last_fetched_epoch=0)
    teller.ask("the same with the last fetched epoch", with_epoch, 12)
