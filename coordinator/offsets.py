"""Committed offsets of groups: who may commit, what is kept, and for how long.

Pure: knows neither the log nor sockets. `replay` alone makes an offset count, for commits just
written and for those read at a load alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ottla.coordinator.classic_group import CONSUMER, UNKNOWN_MEMBER, ClassicGroup, State
from ottla.coordinator.groups import Groups
from ottla.coordinator.outcome import Now, Outcome, Record
from ottla.coordinator.records import Decoded, group_record, offset_record
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.schema import ZERO

_NO_TIME = -1
# From this version on clients know that a group may not be there.
_NOT_FOUND_VERSION = 9
_EXPIRED_AT_ONCE_MAX = 1000

TopicPartition = tuple[str, int]


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_wall_ms: int
    expire_wall_ms: int = _NO_TIME
    """Of clients that said it themselves, which Kafka has long given up."""
    topic_id: bytes = ZERO


class Commit(NamedTuple):
    """One partition of an OffsetCommit."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class OffsetSettings(NamedTuple):
    metadata_max: int = 4096
    """In UTF-16 units, as Java counts."""
    retention_ms: int = 7 * 24 * 60 * 60 * 1000


class Offsets:
    def __init__(self, groups: Groups, settings: Callable[[], OffsetSettings]) -> None:
        self._groups = groups
        self._settings = settings
        self.by_group: dict[str, dict[TopicPartition, Committed]] = {}

    # ---- committing

    def check_commit(
        self,
        group_id: str,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        now: Now,
        version: int,
    ) -> None:
        """Whether this client may commit now; a member that does lives."""
        group = self._groups.by_id.get(group_id)
        if group is None:
            if generation >= 0:
                is_told = version >= _NOT_FOUND_VERSION
                code = ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.ILLEGAL_GENERATION
                raise KafkaError(code)
            # Somebody who only keeps offsets here.
            self._groups.by_id[group_id] = ClassicGroup(group_id, wall_ms=now.wall_ms)
            return
        if generation < 0 and group.state is State.EMPTY:
            return
        if generation < 0 and member_id == UNKNOWN_MEMBER and group_instance_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.check_member(member_id, group_instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state is State.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._groups.session(group, group.members[member_id], now)

    def commit(
        self, group_id: str, commits: Iterable[Commit], now: Now, *, retention_ms: int = -1
    ) -> tuple[list[Record], list[ErrorCode]]:
        """The records of those that are taken, and what to say of each."""
        records, codes = [], []
        metadata_max = self._settings().metadata_max
        for each in commits:
            metadata = each.metadata or ""
            if _units(metadata) > metadata_max:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            codes.append(ErrorCode.NONE)
            value = OffsetCommitValue(
                offset=each.offset,
                leader_epoch=each.leader_epoch,
                metadata=metadata,
                commit_timestamp=now.wall_ms,
                expire_timestamp=now.wall_ms + retention_ms if retention_ms >= 0 else _NO_TIME,
                topic_id=each.topic_id,
            )
            records.append(offset_record(group_id, each.topic, each.partition, value))
        return records, codes

    # ---- asking

    def committed(self, group_id: str, topic: str, partition: int) -> Committed | None:
        return self.by_group.get(group_id, {}).get((topic, partition))

    def all_of(self, group_id: str) -> dict[str, list[tuple[int, Committed]]]:
        """By topic."""
        found: dict[str, list[tuple[int, Committed]]] = {}
        for (topic, partition), committed in self.by_group.get(group_id, {}).items():
            found.setdefault(topic, []).append((partition, committed))
        return found

    # ---- deleting

    def delete(
        self, group_id: str, asked: Iterable[TopicPartition]
    ) -> tuple[list[Record], list[ErrorCode]]:
        group = self._group(group_id)
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        records, codes = [], []
        for topic, partition in asked:
            if _is_subscribed(group, topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            codes.append(ErrorCode.NONE)
            if self.committed(group_id, topic, partition) is not None:
                records.append(offset_record(group_id, topic, partition, None))
        return records, codes

    def delete_group(self, group_id: str) -> list[Record]:
        """The group with all that it has committed."""
        group = self._group(group_id)
        if group.state is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        offsets = self.by_group.get(group_id, {})
        records = [offset_record(group_id, *each, None) for each in offsets]
        records.append(group_record(group_id, None))
        return records

    def _group(self, group_id: str) -> ClassicGroup:
        group = self._groups.by_id.get(group_id)
        if group is None or group.state is State.DEAD:
            message = f"Group {group_id} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return group

    def topics_deleted(self, topics: frozenset[str]) -> Iterator[Outcome]:
        """What was committed for a topic that is gone goes with it."""
        for group_id, offsets in list(self.by_group.items()):
            records = [
                offset_record(group_id, *each, None) for each in offsets if each[0] in topics
            ]
            if records:
                yield Outcome(records)

    # ---- time

    def expired(self, now: Now) -> Iterator[Outcome]:
        """What nobody has asked for long enough, a group at a time; each is replayed before the
        next. Groups that have nothing left and no members go too."""
        for group_id in [*self._groups.by_id, *self.by_group]:
            group = self._groups.by_id.get(group_id)
            if group is None:
                continue
            offsets = self.by_group.get(group_id, {})
            gone = [
                each
                for each, found in offsets.items()
                if self._is_expired(group, each[0], found, now)
            ][:_EXPIRED_AT_ONCE_MAX]
            records = [offset_record(group_id, *each, None) for each in gone]
            if group.state is State.EMPTY and len(gone) == len(offsets) and not group.pending:
                records.append(group_record(group_id, None))
            if records:
                yield Outcome(records)

    def _is_expired(self, group: ClassicGroup, topic: str, committed: Committed, now: Now) -> bool:
        since_ms = committed.commit_wall_ms
        if group.protocol_type is not None:
            if group.state is State.EMPTY:
                # From when on nobody has been there.
                if group.changed_wall_ms >= 0:
                    since_ms = group.changed_wall_ms
            elif (
                group.state is not State.STABLE
                or _is_subscribed(group, topic)
                or group.protocol_type != CONSUMER
                or group.subscribed_topics is None
            ):
                return False
        if committed.expire_wall_ms >= 0:
            return now.wall_ms >= committed.expire_wall_ms
        return now.wall_ms - since_ms >= self._settings().retention_ms

    # ---- the log

    def replay(self, record: Decoded) -> None:
        key: OffsetCommitKey = record.key
        value: OffsetCommitValue | None = record.value
        place = (key.topic, key.partition)
        if value is None:
            offsets = self.by_group.get(key.group)
            if offsets is not None:
                offsets.pop(place, None)
                if not offsets:
                    del self.by_group[key.group]
            return
        self.by_group.setdefault(key.group, {})[place] = Committed(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
        )

    def loaded(self, now: Now) -> None:
        """The log is read to its end: who has offsets is a group, if only for them."""
        for group_id in self.by_group:
            if group_id not in self._groups.by_id:
                self._groups.by_id[group_id] = ClassicGroup(group_id, wall_ms=_NO_TIME)


def _is_subscribed(group: ClassicGroup, topic: str) -> bool:
    """Of consumers whose subscriptions cannot be read, everything might be."""
    if group.subscribed_topics is None:
        return group.protocol_type == CONSUMER
    return topic in group.subscribed_topics


def _units(text: str) -> int:
    """Its length as Java counts: characters beyond 16 bits are two."""
    return len(text) + sum(character > "\uffff" for character in text)
