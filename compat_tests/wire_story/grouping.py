"""Chapters of classic groups and committed offsets."""

from collections.abc import Sequence
from typing import Any

from compat_tests.wire_story.teller import Teller
from ottla.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.schema import encode

JOIN, SYNC, HEARTBEAT, LEAVE, DESCRIBE, LIST = 9, 5, 4, 5, 6, 5
COMMIT, FETCH = 9, 9
MEMBER_ID_REQUIRED = 79
UNKNOWN_ID = bytes(15) + b"\x07"


def subscription(*topics: str) -> bytes:
    said = ConsumerProtocolSubscription(topics=list(topics), user_data=None, owned_partitions=[])
    return b"\0\0" + encode(said, 0)


class Group:
    """One group of the story, and what its members ask."""

    def __init__(self, teller: Teller, name: str, *, topics: Sequence[str] = ("none",)) -> None:
        self.teller = teller
        self.name = name
        self.protocols = [("range", subscription(*topics)), ("roundrobin", subscription(*topics))]
        self._find()

    def _find(self) -> None:
        request = FindCoordinatorRequest(coordinator_keys=[self.name])
        self.teller.until(request, 6, lambda answer: not answer.coordinators[0].error_code)
        listing = DescribeGroupsRequest(groups=[self.name])
        self.teller.until(listing, 5, lambda answer: not answer.groups[0].error_code)

    def join_request(self, member_id: str = "", **how: Any) -> JoinGroupRequest:
        protocols = how.pop("protocols", self.protocols)
        fields: dict[str, Any] = {
            "group_id": self.name,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 6_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
        }
        return JoinGroupRequest(**{**fields, **how})

    def join(self, case: str, member_id: str = "", *, version: int = JOIN, **how: Any) -> Any:
        """Asks, and gives the member that is new a name."""
        request = self.join_request(member_id, **how)
        answer = self.teller.wire.ask(request, version)
        self.teller.comparable.met_member(answer.member_id, f"<member of {self.name}>")
        self.teller.note(case, answer, version)
        return answer

    def joined(self, **how: Any) -> Any:
        """A new member, quietly; its JoinGroup response."""
        answer = self.teller.wire.ask(self.join_request(**how), JOIN)
        if answer.error_code == MEMBER_ID_REQUIRED:
            answer = self.teller.wire.ask(self.join_request(answer.member_id, **how), JOIN)
        self.teller.comparable.met_member(answer.member_id, f"<member of {self.name}>")
        return answer

    def sync_request(self, joined: Any, assignment: bytes | None = None, **how: Any) -> Any:
        assigned = []
        if assignment is not None:
            assigned = [
                SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
            ]
        fields: dict[str, Any] = {
            "group_id": self.name,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assigned,
        }
        return SyncGroupRequest(**{**fields, **how})

    def stable(self, **how: Any) -> Any:
        """One member with an assignment, quietly."""
        joined = self.joined(**how)
        instance = how.get("group_instance_id")
        self.teller.wire.ask(
            self.sync_request(joined, b"assigned", group_instance_id=instance), SYNC
        )
        return joined

    def heartbeat(self, case: str, joined: Any, **how: Any) -> None:
        fields: dict[str, Any] = {
            "group_id": self.name,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
        }
        self.teller.ask(case, HeartbeatRequest(**{**fields, **how}), HEARTBEAT)

    def commit_request(self, topic: str, **how: Any) -> OffsetCommitRequest:
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=how.pop("partition", 0),
                committed_offset=how.pop("offset", 5),
                committed_leader_epoch=how.pop("epoch", 0),
                committed_metadata=how.pop("metadata", "told"),
            )
        ]
        named = OffsetCommitRequestTopic(
            name=topic, topic_id=how.pop("topic_id", bytes(16)), partitions=partitions
        )
        fields: dict[str, Any] = {"group_id": self.name, "member_id": "", "topics": [named]}
        return OffsetCommitRequest(**{**fields, **how})

    def fetch_request(self, topics: Sequence[str] | None, **how: Any) -> OffsetFetchRequest:
        listed = None
        if topics is not None:
            listed = [
                OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1]) for name in topics
            ]
        group = OffsetFetchRequestGroup(group_id=self.name, topics=listed)
        return OffsetFetchRequest(groups=[group], **how)


# --- who coordinates, and what there is ----------------------------------------------------


def finding(teller: Teller) -> None:
    group = Group(teller, "to-be-found")
    for version in range(4):
        request = FindCoordinatorRequest(key=group.name)
        teller.ask(f"find a coordinator, v{version}", request, version)
    two = FindCoordinatorRequest(coordinator_keys=[group.name, "another"])
    teller.ask_in(range(4, 7), "find two coordinators", two)
    teller.ask("find none", FindCoordinatorRequest(coordinator_keys=[]), 4)
    empty = FindCoordinatorRequest(coordinator_keys=[""])
    teller.ask("find the coordinator of the empty group", empty, 4)
    for kind in (3, -1):
        odd = FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
        teller.ask(f"find a coordinator of kind {kind}", odd, 6)
    teller.ask_in(range(7), "describe an unknown group", DescribeGroupsRequest(groups=["nobody"]))
    twice = DescribeGroupsRequest(groups=["nobody", "nobody"], include_authorized_operations=True)
    teller.ask("describe a group twice", twice, 5)
    teller.ask("describe no group", DescribeGroupsRequest(groups=[]), 5)
    teller.ask("describe the empty group", DescribeGroupsRequest(groups=[""]), 6)
    teller.ask("delete an unknown group", DeleteGroupsRequest(groups_names=["nobody"]), 2)
    teller.ask("delete the empty group", DeleteGroupsRequest(groups_names=[""]), 2)


# --- members ------------------------------------------------------------------------------


def joining(teller: Teller) -> None:
    group = Group(teller, "joining")
    group.join("join without a name", group_id="")
    group.join("join with too short a session", session_timeout_ms=1)
    group.join("join with too long a session", session_timeout_ms=1_800_001)
    group.join("join as nobody", "nobody")
    group.join("join without protocols", protocols=[])
    group.join("join without a type", protocol_type="")
    for version in range(4):
        one = Group(teller, f"joining-v{version}")
        one.join(f"join, v{version}", version=version)
    asked = group.join("join to be told an id")
    first = group.join("join with it", asked.member_id)
    group.join("join again before the sync", first.member_id)
    group.join("join with another type", protocol_type="connect")
    group.join("join with other protocols", protocols=[("other", b"")])
    teller.ask("describe before the sync", DescribeGroupsRequest(groups=[group.name]), DESCRIBE)
    group.heartbeat("beat before the sync", first)
    teller.ask("sync with a wrong generation", group.sync_request(first, generation_id=7), SYNC)
    teller.ask("sync with a wrong type", group.sync_request(first, protocol_type="x"), SYNC)
    teller.ask("sync with a wrong protocol", group.sync_request(first, protocol_name="x"), SYNC)
    teller.ask("sync as nobody", group.sync_request(first, member_id="nobody"), SYNC)
    teller.ask("sync with no group", group.sync_request(first, group_id=""), SYNC)
    teller.ask("sync with an unknown group", group.sync_request(first, group_id="x"), SYNC)
    teller.ask("sync as nobody's instance", group.sync_request(first, group_instance_id="x"), SYNC)
    teller.ask("sync as the leader", group.sync_request(first, b"mine"), SYNC)
    teller.ask_in(range(6), "sync again", group.sync_request(first))
    group.heartbeat("beat", first)
    group.heartbeat("beat with a wrong generation", first, generation_id=9)
    group.heartbeat("beat as nobody", first, member_id="nobody")
    group.heartbeat("beat in no group", first, group_id="")
    group.heartbeat("beat in an unknown group", first, group_id="unknown")
    group.heartbeat("beat as nobody's instance", first, group_instance_id="nobody")
    teller.ask_in(range(7), "describe a stable group", DescribeGroupsRequest(groups=[group.name]))
    group.join("join again as the leader", first.member_id)
    teller.ask("delete a group with members", DeleteGroupsRequest(groups_names=[group.name]), 2)
    left = LeaveGroupRequest(
        group_id=group.name,
        members=[MemberIdentity(member_id="nobody"), MemberIdentity(member_id=first.member_id)],
    )
    teller.ask("leave", left, LEAVE)
    teller.ask("leave again", left, LEAVE)
    teller.ask("leave no group", LeaveGroupRequest(group_id="", members=[]), LEAVE)
    gone = LeaveGroupRequest(group_id="unknown", members=[MemberIdentity(member_id="x")])
    teller.ask("leave an unknown group", gone, LEAVE)
    old = LeaveGroupRequest(group_id=group.name, member_id="nobody", members=[])
    teller.ask_in(range(3), "leave as nobody", old)
    teller.ask("describe an empty group", DescribeGroupsRequest(groups=[group.name]), DESCRIBE)
    group.join("join an empty group as somebody who left", first.member_id)
    teller.ask("sync in an empty group", group.sync_request(first), SYNC)
    group.heartbeat("beat in an empty group", first)
    teller.ask("delete an empty group", DeleteGroupsRequest(groups_names=[group.name]), 2)
    teller.ask("describe a deleted group", DescribeGroupsRequest(groups=[group.name]), DESCRIBE)


def static_members(teller: Teller) -> None:
    group = Group(teller, "static")
    first = group.join("join as an instance", group_instance_id="i")
    teller.ask(
        "sync as an instance", group.sync_request(first, b"mine", group_instance_id="i"), SYNC
    )
    again = group.join("come back as an instance", group_instance_id="i")
    teller.ask(
        "sync as the instance that came back",
        group.sync_request(again, group_instance_id="i"),
        SYNC,
    )
    group.heartbeat("beat as the one before", first, group_instance_id="i")
    group.heartbeat("beat as the instance", again, group_instance_id="i")
    for version in (5, 8):
        group.join(f"come back as an instance, v{version}", version=version, group_instance_id="i")
    other = group.join(
        "come back with another protocol",
        group_instance_id="i",
        protocols=[("roundrobin", subscription("other"))],
    )
    teller.ask("describe an instance", DescribeGroupsRequest(groups=[group.name]), DESCRIBE)
    by_instance = LeaveGroupRequest(
        group_id=group.name,
        members=[
            MemberIdentity(member_id="", group_instance_id="nobody"),
            MemberIdentity(member_id="wrong", group_instance_id="i"),
            MemberIdentity(member_id="", group_instance_id="i"),
        ],
    )
    teller.ask("remove an instance", by_instance, LEAVE)
    group.heartbeat("beat as an instance that was removed", other, group_instance_id="i")


def rebalancing(teller: Teller) -> None:
    """Two members: the second has a connection of its own, because it has to wait."""
    group = Group(teller, "rebalancing")
    first = group.stable()
    wire = teller.another_wire()
    asked = wire.ask(group.join_request(), JOIN)
    teller.comparable.met_member(asked.member_id, f"<second member of {group.name}>")
    join = group.join_request(asked.member_id)
    joining_id = wire.send(join, JOIN)
    _until_preparing(teller, group, first)
    group.heartbeat("beat while others join", first)
    teller.ask("sync while others join", group.sync_request(first), SYNC)
    teller.ask("describe while others join", DescribeGroupsRequest(groups=[group.name]), DESCRIBE)
    again = group.join("join with the other one", first.member_id)
    second = wire.read_answer(join, JOIN, joining_id)
    teller.note("the other one's answer", second, JOIN)
    sync = group.sync_request(second)
    syncing_id = wire.send(sync, SYNC)
    teller.ask("assign to one of two", group.sync_request(again, b"all"), SYNC)
    teller.note("the other one's assignment", wire.read_answer(sync, SYNC, syncing_id), SYNC)
    teller.ask("describe two members", DescribeGroupsRequest(groups=[group.name]), DESCRIBE)
    group.join("join again as a follower", second.member_id)
    wire.close()


def _until_preparing(teller: Teller, group: Group, first: Any) -> None:
    request = DescribeGroupsRequest(groups=[group.name])
    teller.until(
        request, DESCRIBE, lambda answer: answer.groups[0].group_state == "PreparingRebalance"
    )


# --- offsets ------------------------------------------------------------------------------


def committing(teller: Teller) -> None:
    topic_id = teller.topic("committed", partitions=2)
    group = Group(teller, "committing", topics=["committed"])
    for version in range(2, 10):
        teller.ask(f"commit, v{version}", group.commit_request("committed"), version)
    teller.ask("commit, v10", group.commit_request("", topic_id=topic_id), 10)
    teller.ask("commit to an unknown id", group.commit_request("", topic_id=UNKNOWN_ID), 10)
    teller.ask("commit to an unknown topic", group.commit_request("unknown"), COMMIT)
    beyond = group.commit_request("committed", partition=9)
    teller.ask("commit to an unknown partition", beyond, COMMIT)
    for length in (4096, 4097):
        long = group.commit_request("committed", metadata="x" * length)
        teller.ask(f"commit with metadata of {length}", long, COMMIT)
    wide = group.commit_request("committed", metadata="é" * 4096)
    teller.ask("commit with wide metadata", wide, COMMIT)
    bare = group.commit_request("committed", metadata=None, partition=1)
    teller.ask("commit without metadata", bare, COMMIT)
    negative = group.commit_request("committed", offset=-1)
    teller.ask("commit a negative offset", negative, COMMIT)
    dated = group.commit_request("committed", retention_time_ms=1000 * 60 * 60)
    teller.ask("commit for an hour", dated, 4)
    named = group.commit_request("committed", member_id="x")
    teller.ask("commit as somebody to an empty group", named, COMMIT)
    generation = group.commit_request("committed", generation_id_or_member_epoch=3)
    teller.ask("commit with a generation to an empty group", generation, COMMIT)
    teller.ask(
        "commit nothing", OffsetCommitRequest(group_id=group.name, member_id="", topics=[]), COMMIT
    )
    no_group = group.commit_request("committed", group_id="")
    teller.ask("commit to the group without a name", no_group, COMMIT)
    nobody = group.commit_request(
        "committed", group_id="never-there", generation_id_or_member_epoch=1
    )
    teller.ask("commit with a generation to an unknown group", nobody, COMMIT)
    _fetching(teller, group)
    _members_commit(teller)
    _deleting(teller, group)


def _fetching(teller: Teller, group: Group) -> None:
    for version in range(1, 8):
        asked = OffsetFetchRequest(
            group_id=group.name,
            topics=[
                OffsetFetchRequestTopic(name="committed", partition_indexes=[0, 1, 7]),
                OffsetFetchRequestTopic(name="unknown", partition_indexes=[0]),
            ],
        )
        teller.ask(f"fetch offsets, v{version}", asked, version)
    everything = OffsetFetchRequest(group_id=group.name, topics=None)
    teller.ask_in(range(2, 8), "fetch all offsets", everything)
    teller.ask("fetch all offsets, v8", group.fetch_request(None), 8)
    teller.ask("fetch offsets, v9", group.fetch_request(["committed", "unknown"]), 9)
    stable = group.fetch_request(["committed"], require_stable=True)
    teller.ask("fetch stable offsets", stable, 9)
    teller.ask("fetch offsets by id, v10", group.fetch_request(None), 10)
    by_id = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group.name,
                topics=[OffsetFetchRequestTopics(topic_id=UNKNOWN_ID, partition_indexes=[0])],
            )
        ]
    )
    teller.ask("fetch offsets of an unknown id", by_id, 10)
    unknown = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="nobody", topics=None)])
    teller.ask("fetch offsets of an unknown group", unknown, 9)
    teller.ask("fetch offsets of no groups", OffsetFetchRequest(groups=[]), 9)


def _members_commit(teller: Teller) -> None:
    group = Group(teller, "members-commit", topics=["committed"])
    joined = group.joined()

    def asked(**how: Any) -> OffsetCommitRequest:
        fields: dict[str, Any] = {
            "member_id": joined.member_id,
            "generation_id_or_member_epoch": joined.generation_id,
        }
        return group.commit_request("committed", **{**fields, **how})

    teller.ask("commit before the sync", asked(), COMMIT)
    teller.wire.ask(group.sync_request(joined, b"x"), SYNC)
    teller.ask("commit as a member", asked(), COMMIT)
    teller.ask("commit with a wrong generation", asked(generation_id_or_member_epoch=9), COMMIT)
    teller.ask("commit as another member", asked(member_id="nobody"), COMMIT)
    teller.ask("commit as nobody's instance", asked(group_instance_id="nobody"), COMMIT)
    simple = group.commit_request("committed")
    teller.ask("commit from outside to a group with members", simple, COMMIT)


def _deleting(teller: Teller, group: Group) -> None:
    def asked(name: str, *topics: str) -> OffsetDeleteRequest:
        listed = [
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in (0, 7)],
            )
            for topic in topics
        ]
        return OffsetDeleteRequest(group_id=name, topics=listed)

    teller.ask("delete offsets of an unknown group", asked("nobody", "committed"), 0)
    teller.ask("delete offsets of no group", asked("", "committed"), 0)
    busy = asked("members-commit", "committed", "unknown")
    teller.ask("delete offsets that are read", busy, 0)
    teller.ask("delete offsets", asked(group.name, "committed", "unknown"), 0)
    teller.ask("fetch what is left", group.fetch_request(["committed"]), 9)
    teller.ask("delete a group with offsets", DeleteGroupsRequest(groups_names=[group.name]), 2)
    teller.ask("fetch from a deleted group", group.fetch_request(["committed"]), 9)


def listing(teller: Teller) -> None:
    """Of this chapter's groups only: those of others are there or not."""
    stable = Group(teller, "listed-stable")
    stable.stable()
    empty = Group(teller, "listed-empty")
    teller.topic("listed")
    teller.wire.ask(empty.commit_request("listed"), COMMIT)
    for version in range(6):
        _list(teller, f"list groups, v{version}", ListGroupsRequest(), version)
    for states in (["Stable"], ["stable", "EMPTY"], ["Dead"], ["nonsense"]):
        _list(teller, f"list groups in {states}", ListGroupsRequest(states_filter=states), LIST)
    for types in (["classic"], ["Consumer"], ["nonsense"]):
        _list(teller, f"list groups of {types}", ListGroupsRequest(types_filter=types), LIST)


def _list(teller: Teller, case: str, request: ListGroupsRequest, version: int) -> None:
    answer = teller.wire.ask(request, version)
    answer.groups = [each for each in answer.groups if each.group_id.startswith("listed-")]
    teller.note(case, answer, version)


CHAPTERS = {
    "finding coordinators": finding,
    "joining": joining,
    "static members": static_members,
    "rebalancing": rebalancing,
    "committing": committing,
    "listing groups": listing,
}
