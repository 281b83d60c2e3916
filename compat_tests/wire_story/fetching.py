"""Chapters of Fetch with its sessions, ListOffsets and OffsetForLeaderEpoch."""

from compat_tests.wire_story.teller import TIME_MS, Teller, batch, fetch
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from ottla.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

NOT_A_TOPIC = bytes(15) + b"\x07"


def fetching(teller: Teller) -> None:
    """Fetches without a session: all versions, all offsets, all limits."""
    topic_id = teller.topic("fetching", partitions=2)
    for at in range(4):
        data = batch(b"%d" % at, b"x" * 100, b"y", timestamp=TIME_MS + 10_000 * at)
        teller.produced("fetching", data)
    teller.ask_in(range(4, 13), "fetch", fetch("fetching", 1))
    teller.ask_in(range(13, 19), "fetch", fetch("", 1, topic_id=topic_id))
    teller.ask("fetch at the end", fetch("fetching", 12), 11)
    teller.ask("fetch beyond the end", fetch("fetching", 13), 11)
    teller.ask("fetch at a negative offset", fetch("fetching", -1), 11)
    teller.ask("fetch an empty partition", fetch("fetching", partition=1), 11)
    teller.ask("fetch a batch larger than the limits", fetch("fetching", max_bytes=10), 11)
    small = fetch("fetching", max_bytes=0, partition_max_bytes=0)
    teller.ask("fetch with limits of 0", small, 11)
    teller.ask("fetch a partition's limit", fetch("fetching", partition_max_bytes=400), 11)
    teller.ask("fetch read_committed", fetch("fetching", 6, isolation_level=1), 11)
    teller.ask("fetch read_committed, v4", fetch("fetching", 6, isolation_level=1), 4)
    teller.ask("fetch from a rack", fetch("fetching", 9, rack_id="somewhere"), 11)
    teller.ask("fetch an unknown topic", fetch("no-such-topic"), 11)
    teller.ask("fetch an unknown partition", fetch("fetching", partition=5), 11)
    teller.ask("fetch an unknown id", fetch("", topic_id=NOT_A_TOPIC), 13)
    teller.ask("fetch an unknown id, v18", fetch("", topic_id=NOT_A_TOPIC), 18)
    teller.ask("fetch the id of zeros", fetch(""), 13)
    teller.ask("fetch an unknown partition by id", fetch("", topic_id=topic_id, partition=4), 17)
    teller.ask("fetch nothing", FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), 11)
    both = fetch("fetching")
    both.topics[0].partitions.append(
        FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20)
    )
    teller.ask("fetch two partitions", both, 11)
    waits = fetch("fetching", 12)
    waits.max_wait_ms, waits.min_bytes = 30, 1
    teller.ask("fetch and wait in vain", waits, 11)


def fetch_epochs(teller: Teller) -> None:
    """What leader epochs say to a fetch."""
    teller.topic("epochs")
    teller.produced("epochs", batch(b"a", b"b"))
    teller.ask("fetch with the leader's epoch", fetch("epochs", current_leader_epoch=0), 12)
    newer = fetch("epochs", current_leader_epoch=9)
    teller.ask("fetch with too new an epoch", newer, 12)
    teller.ask("fetch with too new an epoch, v9", newer, 9)
    last = fetch("epochs", 2, current_leader_epoch=0, last_fetched_epoch=0)
    teller.ask("fetch with the last fetched epoch", last, 12)
    beyond = fetch("epochs", 1, last_fetched_epoch=5)
    teller.ask("fetch with a last fetched epoch that nobody knows", beyond, 12)
    past = fetch("epochs", 20, current_leader_epoch=0, last_fetched_epoch=0)
    teller.ask("fetch past the end with a last fetched epoch", past, 12)
    replica = fetch("epochs", replica_id=5)
    teller.ask("fetch as a replica that is none", replica, 11)

    def asked(name: str, *, partition: int = 0, epoch: int, current: int = -1) -> object:
        partitions = [
            OffsetForLeaderPartition(
                partition=partition, current_leader_epoch=current, leader_epoch=epoch
            )
        ]
        topics = [OffsetForLeaderTopic(topic=name, partitions=partitions)]
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)

    teller.ask_in(range(2, 5), "offset for the leader epoch", asked("epochs", epoch=0))
    teller.ask("offset for an epoch to come", asked("epochs", epoch=7), 4)
    teller.ask("offset for epoch -1", asked("epochs", epoch=-1), 4)
    teller.ask("offset with too new a current epoch", asked("epochs", epoch=0, current=3), 4)
    teller.ask("offset for an epoch of no topic", asked("no-such-topic", epoch=0), 4)
    no_partition = asked("epochs", partition=2, epoch=0)
    teller.ask("offset for an epoch of no partition", no_partition, 4)
    teller.ask("offset for no epoch", OffsetForLeaderEpochRequest(replica_id=-1, topics=[]), 3)


def sessions(teller: Teller) -> None:
    """A fetch session from its beginning to its end, and those that never were."""
    topic_id = teller.topic("sessions", partitions=3)
    other_id = teller.topic("sessions-other")
    for partition in range(3):
        teller.produced("sessions", batch(b"a"), partition=partition)

    def fetched(
        session: tuple[int, int], *partitions: tuple[int, int], forgotten: tuple[int, ...] = ()
    ) -> FetchRequest:
        asked = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in partitions
        ]
        topics = [FetchTopic(topic="sessions", topic_id=topic_id, partitions=asked)]
        forgets = [ForgottenTopic(topic="sessions", topic_id=topic_id, partitions=list(forgotten))]
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=session[0],
            session_epoch=session[1],
            topics=topics if asked else [],
            forgotten_topics_data=forgets if forgotten else [],
        )

    all_three = ((0, 0), (1, 0), (2, 0))
    answer = teller.ask("a full fetch begins a session", fetched((0, 0), *all_three), 17)
    number = answer.session_id
    teller.ask("the session goes on where it was", fetched((number, 1)), 17)
    moved = fetched((number, 2), (0, 1), (1, 1), (2, 1))
    teller.ask("offsets move in the session", moved, 17)
    teller.ask("nothing is new in the session", fetched((number, 3)), 17)
    teller.produced("sessions", batch(b"b"), partition=1)
    teller.ask("one partition has news", fetched((number, 4)), 17)
    teller.ask("a wrong epoch of a session", fetched((number, 9)), 17)
    teller.ask("the right epoch after the wrong one", fetched((number, 5), (1, 2)), 17)
    teller.ask("a partition is forgotten", fetched((number, 6), forgotten=(0,)), 17)
    teller.produced("sessions", batch(b"c"), partition=0)
    teller.ask("nobody hears of the forgotten one", fetched((number, 7)), 17)
    unknown = fetched((number, 8), (7, 0))
    teller.ask("an unknown partition joins the session", unknown, 17)
    teller.ask("an unknown partition is told again", fetched((number, 9)), 17)
    past = fetched((number, 10), (1, 99))
    teller.ask("an offset out of range in a session", past, 17)
    teller.ask("a version by name within a session by id", fetched((number, 11)), 12)
    stranger = fetched((number, 11))
    stranger.topics = fetch("", topic_id=other_id).topics
    teller.ask("another topic joins", stranger, 17)
    teller.ask("the session ends with a full fetch", fetched((number, -1), (1, 2)), 17)
    teller.ask("the ended session is not found", fetched((number, 12)), 17)
    teller.ask("a session that never was", fetched((123, 1)), 17)
    teller.ask("an epoch without a session", fetched((0, 5), (0, 0)), 17)
    teller.ask("a session of nothing", fetched((0, 0)), 17)
    by_name = fetched((0, 0), (0, 0))
    answer = teller.ask("a session by name, v7", by_name, 7)
    teller.ask("it goes on, v12", fetched((answer.session_id, 1)), 12)


def listing_offsets(teller: Teller) -> None:
    """ListOffsets: the special timestamps, and times."""
    teller.topic("listing", partitions=2)
    for at in range(3):
        teller.produced("listing", batch(b"a", b"b", timestamp=TIME_MS + 10_000 * at))

    def asked(
        timestamp: int,
        *,
        name: str = "listing",
        partition: int = 0,
        epoch: int = -1,
        level: int = 0,
    ) -> ListOffsetsRequest:
        partitions = [
            ListOffsetsPartition(
                partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
            )
        ]
        topics = [ListOffsetsTopic(name=name, partitions=partitions)]
        return ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=topics)

    teller.ask_in(range(1, 12), "list the latest offset", asked(-1))
    teller.ask_in(range(1, 12), "list the earliest offset", asked(-2))
    for special in (-3, -4, -5, -6):
        teller.ask_in(range(6, 12), f"list the offset of {special}", asked(special))
    teller.ask("list the offset of -7", asked(-7), 11)
    for name, time in {
        "before all": TIME_MS - 5,
        "of a record": TIME_MS + 11_000,
        "between records": TIME_MS + 10_500,
        "of the last": TIME_MS + 21_000,
        "after all": TIME_MS + 99_000,
        "zero": 0,
    }.items():
        teller.ask(f"list the offset at a time {name}", asked(time), 7)
    teller.ask("list the offset at a time, v1", asked(TIME_MS + 11_000), 1)
    teller.ask("list the latest offset read_committed", asked(-1, level=1), 7)
    teller.ask("list the latest offset of an empty partition", asked(-1, partition=1), 7)
    teller.ask("list the max timestamp of an empty partition", asked(-3, partition=1), 7)
    teller.ask("list a time in an empty partition", asked(5, partition=1), 7)
    teller.ask("list offsets of an unknown topic", asked(-1, name="no-such-topic"), 7)
    teller.ask("list offsets of an unknown partition", asked(-1, partition=8), 7)
    teller.ask("list offsets with the leader's epoch", asked(-1, epoch=0), 7)
    teller.ask("list offsets with too new an epoch", asked(-1, epoch=5), 7)
    twice = asked(-1)
    twice.topics[0].partitions *= 2
    teller.ask("list offsets of a partition named twice", twice, 7)
    nothing = ListOffsetsRequest(replica_id=-1, topics=[])
    teller.ask("list offsets of nothing", nothing, 7)
