"""Committed offsets: who may commit, what is kept, for how long, and what the log says of it."""

import pytest

from ottla.coordinator.classic_group import State
from ottla.coordinator.groups import GroupSettings
from ottla.coordinator.offsets import Commit, OffsetSettings
from ottla.coordinator.outcome import Outcome
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.schema import encode
from tests.group_rig import Rig

TOPIC_ID = b"t" * 16
HOUR_MS = 3_600_000


@pytest.fixture
def rig() -> Rig:
    return Rig(
        GroupSettings(initial_rebalance_delay_ms=0), OffsetSettings(retention_ms=24 * HOUR_MS)
    )


def commit(
    rig: Rig,
    offset: int = 5,
    *,
    group: str = "g",
    member: str = "",
    generation: int = -1,
    metadata: str | None = "",
    topic: str = "t",
    retention_ms: int = -1,
    version: int = 8,
) -> ErrorCode:
    try:
        rig.offsets.check_commit(
            group,
            member_id=member,
            group_instance_id=None,
            generation=generation,
            now=rig.now,
            version=version,
        )
    except KafkaError as error:
        return error.code
    commits = [Commit(topic, TOPIC_ID, 0, offset, 3, metadata)]
    records, codes = rig.offsets.commit(group, commits, rig.now, retention_ms=retention_ms)
    rig.carry_out(Outcome(records))
    return codes[0]


def offset(rig: Rig, group: str = "g", topic: str = "t") -> int | None:
    found = rig.offsets.committed(group, topic, 0)
    return None if found is None else found.offset


def subscription(*topics: str) -> bytes:
    message = ConsumerProtocolSubscription(topics=list(topics), user_data=None, owned_partitions=[])
    return b"\0\0" + encode(message, 0)


def expire(rig: Rig) -> None:
    for outcome in rig.offsets.expired(rig.now):
        rig.carry_out(outcome)


# --- who may ------------------------------------------------------------------------------


def test_somebody_without_a_group_may_commit(rig: Rig) -> None:
    assert commit(rig, 5) is ErrorCode.NONE
    assert offset(rig) == 5


def test_a_generation_of_a_group_that_is_not_there_is_illegal(rig: Rig) -> None:
    assert commit(rig, generation=3) is ErrorCode.ILLEGAL_GENERATION
    assert commit(rig, generation=3, version=9) is ErrorCode.GROUP_ID_NOT_FOUND


def test_members_alone_may_commit_while_there_are_any(rig: Rig) -> None:
    (first,) = rig.stable(1)
    assert commit(rig) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(rig, member="other", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(rig, member=first, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert commit(rig, member=first, generation=1) is ErrorCode.NONE


def test_a_commit_waits_for_the_assignment_and_not_for_a_round(rig: Rig) -> None:
    first, _ = rig.member()
    assert commit(rig, member=first, generation=1) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = rig.join(first)
    rig.sync(joined.response, {first: b""})
    rig.member()
    assert rig.groups.by_id["g"].state is State.PREPARING_REBALANCE
    assert commit(rig, member=first, generation=1) is ErrorCode.NONE


def test_who_commits_lives(rig: Rig) -> None:
    (first,) = rig.stable(1, session_ms=10_000)
    rig.after(9_000)
    commit(rig, member=first, generation=1)
    rig.after(9_000)
    assert rig.heartbeat(first, 1) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 4096, ErrorCode.NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 4096, ErrorCode.NONE),
        ("\U0001f600" * 2048, ErrorCode.NONE),
        ("\U0001f600" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        (None, ErrorCode.NONE),
    ],
)
def test_metadata_is_as_long_as_java_counts(
    rig: Rig, metadata: str | None, code: ErrorCode
) -> None:
    assert commit(rig, metadata=metadata) is code
    found = rig.offsets.committed("g", "t", 0)
    assert found is None if code else found is not None and found.metadata == (metadata or "")


# --- deleting -----------------------------------------------------------------------------


def test_a_group_is_deleted_with_its_offsets_once_it_is_empty(rig: Rig) -> None:
    (first,) = rig.stable(1)
    commit(rig, member=first, generation=1)
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        rig.offsets.delete_group("g")
    rig.after(60_000)
    rig.carry_out(Outcome(rig.offsets.delete_group("g")))
    assert offset(rig) is None
    assert "g" not in rig.groups.by_id
    assert "g" not in rig.reloaded().groups.by_id
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        rig.offsets.delete_group("g")


def test_offsets_of_topics_that_are_read_stay(rig: Rig) -> None:
    protocols = (("range", subscription("read")),)
    (first,) = rig.stable(1, protocols=protocols)
    for topic in ("read", "other"):
        commit(rig, member=first, generation=1, topic=topic)
    records, codes = rig.offsets.delete("g", [("read", 0), ("other", 0), ("never", 0)])
    rig.carry_out(Outcome(records))
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert (offset(rig, topic="read"), offset(rig, topic="other")) == (5, None)


def test_where_subscriptions_cannot_be_read_every_topic_might_be(rig: Rig) -> None:
    (first,) = rig.stable(1)
    commit(rig, member=first, generation=1)
    assert rig.offsets.delete("g", [("t", 0)])[1] == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_members_of_another_kind_keep_all_their_offsets(rig: Rig) -> None:
    rig.stable(1, protocol_type="connect")
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        rig.offsets.delete("g", [("t", 0)])


def test_the_offsets_of_a_topic_go_with_it(rig: Rig) -> None:
    for topic in ("t", "u"):
        commit(rig, topic=topic)
    for outcome in rig.offsets.topics_deleted(frozenset({"t"})):
        rig.carry_out(outcome)
    assert (offset(rig, topic="t"), offset(rig, topic="u")) == (None, 5)


# --- time ---------------------------------------------------------------------------------


def test_offsets_of_nobody_expire_by_their_own_age(rig: Rig) -> None:
    commit(rig)
    rig.after(24 * HOUR_MS - 1)
    expire(rig)
    assert offset(rig) == 5
    rig.after(1)
    expire(rig)
    assert offset(rig) is None
    assert "g" not in rig.groups.by_id


def test_offsets_of_a_group_expire_when_it_has_been_empty_for_long(rig: Rig) -> None:
    (first,) = rig.stable(1, session_ms=1_800_000)
    commit(rig, member=first, generation=1)
    for _ in range(90):
        rig.after(HOUR_MS // 3)
        rig.heartbeat(first, 1)
        expire(rig)
    assert offset(rig) == 5
    rig.after(1_800_000)
    assert rig.groups.by_id["g"].state is State.EMPTY
    rig.after(23 * HOUR_MS)
    expire(rig)
    assert offset(rig) == 5
    rig.after(HOUR_MS)
    expire(rig)
    assert offset(rig) is None


def test_a_client_of_old_may_say_how_long(rig: Rig) -> None:
    commit(rig, retention_ms=HOUR_MS)
    rig = rig.reloaded()
    rig.after(HOUR_MS)
    expire(rig)
    assert offset(rig) is None


# --- the log ------------------------------------------------------------------------------


def test_another_node_knows_what_was_committed(rig: Rig) -> None:
    commit(rig, 5)
    commit(rig, 9, metadata="m")
    other = rig.reloaded()
    found = other.offsets.committed("g", "t", 0)
    assert found is not None
    assert (found.offset, found.leader_epoch, found.metadata) == (9, 3, "m")
    assert found.topic_id == TOPIC_ID
    assert other.groups.by_id["g"].state is State.EMPTY
