"""Topics and their partitions, as the metadata log has them.

Immutable: a change is a new value. Knows no log directory and no broker but by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.protocol.messages.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import DIRECTORIES, partition_version

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_STATE_CHANGE = -1
RECOVERED = 0
RECOVERING = 1

# Directory ids with a meaning of their own: not known since before there were ids, not chosen by
# the broker yet, and lost with a disk.
MIGRATING = bytes(16)
UNASSIGNED = bytes(15) + b"\x01"
LOST = bytes(15) + b"\x02"
RESERVED_DIRECTORIES = 100


class PartitionRegistration(NamedTuple):
    """One partition: where its replicas are, which are in sync, and who leads.

    `directories` are the log directories of `replicas`, in their order.
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_recovery_state: int = RECOVERED
    leader_epoch: int = 0
    partition_epoch: int = 0

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    @property
    def preferred_replica(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    def directory(self, broker_id: int) -> bytes:
        return self.directories[self.replicas.index(broker_id)]


class TopicImage(NamedTuple):
    name: str
    id: bytes
    partitions: Mapping[int, PartitionRegistration]


class Topics(NamedTuple):
    """All topics, by name and by id."""

    by_name: Mapping[str, TopicImage]
    by_id: Mapping[bytes, TopicImage]


def registration(record: PartitionRecord) -> PartitionRegistration:
    """The partition that a record begins."""
    replicas = tuple(record.replicas)
    isr = tuple(record.isr)
    return PartitionRegistration(
        replicas,
        _directories(record.directories, replicas),
        replicas if isr == replicas else isr,
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
    )


def merged(old: PartitionRegistration, change: PartitionChangeRecord) -> PartitionRegistration:
    """The partition after a change. Whoever names a leader, even the same one, raises its epoch."""
    replicas = old.replicas if change.replicas is None else tuple(change.replicas)
    directories = old.directories if change.directories is None else tuple(change.directories)
    elects = change.leader != NO_LEADER_CHANGE
    recovery = change.leader_recovery_state
    return PartitionRegistration(
        replicas,
        _directories(directories, replicas),
        _or_old(change.isr, old.isr),
        _or_old(change.removing_replicas, old.removing_replicas),
        _or_old(change.adding_replicas, old.adding_replicas),
        _or_old(change.eligible_leader_replicas, old.elr),
        _or_old(change.last_known_elr, old.last_known_elr),
        change.leader if elects else old.leader,
        old.leader_recovery_state if recovery == NO_RECOVERY_STATE_CHANGE else recovery,
        old.leader_epoch + 1 if elects else old.leader_epoch,
        old.partition_epoch + 1,
    )


def without_elr(old: PartitionRegistration) -> PartitionRegistration:
    """The partition after its eligible leader replicas were cleared."""
    if not old.elr and not old.last_known_elr:
        return old
    return old._replace(elr=(), last_known_elr=(), partition_epoch=old.partition_epoch + 1)


def topic_records(topic: TopicImage, level: int) -> Iterator[Versioned]:
    """The topic and its partitions as a snapshot holds them."""
    yield Versioned(TopicRecord(name=topic.name, topic_id=topic.id))
    version = partition_version(level)
    for index, partition in topic.partitions.items():
        yield Versioned(partition_record(topic.id, index, partition, level), version)


def partition_record(
    topic_id: bytes, index: int, partition: PartitionRegistration, level: int
) -> PartitionRecord:
    # Written before directories had ids, or by brokers that do not tell theirs.
    unknown = level < DIRECTORIES and all(found == MIGRATING for found in partition.directories)
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=[] if unknown else list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def _or_old(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)


def _directories(
    named: list[bytes] | tuple[bytes, ...], replicas: tuple[int, ...]
) -> tuple[bytes, ...]:
    """One directory for each replica; where none is known, Kafka takes them for migrating."""
    if not any(directory != MIGRATING for directory in named):
        return (MIGRATING,) * len(replicas)
    if len(named) != len(replicas):
        raise ValueError(f"{len(named)} directories for {len(replicas)} replicas")
    return tuple(named)
