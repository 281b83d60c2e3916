"""Deciding what becomes of many partitions when a broker comes, goes, or loses a disk.

Pure. A partition that keeps all its replicas in sync and its leader gets no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.replication.controller_state import ControllerState
from ottla.replication.metadata import TopicImage
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import NO_LEADER, PartitionRegistration
from ottla.replication.partition_change import Election

Found = tuple[TopicImage, int, PartitionRegistration]
NOBODY = NO_LEADER


def in_sync(state: ControllerState, broker_id: int) -> Iterator[Found]:
    """The partitions in whose ISR a broker is."""
    return (found for found in state.partitions() if broker_id in found[2].isr)


def eligible(state: ControllerState, broker_id: int) -> Iterator[Found]:
    """The partitions that a broker might lead if nobody is in sync."""
    return (found for found in state.partitions() if broker_id in found[2].elr)


def leaderless(state: ControllerState) -> Iterator[Found]:
    return (found for found in state.partitions() if found[2].leader == NO_LEADER)


def in_directory(state: ControllerState, broker_id: int, directory: bytes) -> Iterator[Found]:
    for found in state.partitions():
        partition = found[2]
        if broker_id in partition.replicas and partition.directory(broker_id) == directory:
            yield found


def leads_any(state: ControllerState, broker_id: int) -> bool:
    return any(found[2].leader == broker_id for found in state.partitions())


def changes(
    state: ControllerState,
    partitions: Iterable[Found],
    *,
    leaving: int = NOBODY,
    coming: int = NOBODY,
    broken: int = NOBODY,
) -> list[Versioned]:
    """Takes a broker out of the ISR and leadership, or looks for leaders now that one is there.

    `coming` counts as active and `leaving` does not, whatever the image still says. `broken` was
    shut down uncleanly: it is no eligible leader either.
    """

    def is_acceptable(broker_id: int) -> bool:
        if broker_id in (leaving, broken):
            return False
        return broker_id == coming or state.is_active(broker_id)

    records = []
    may_be_unclean: dict[str, bool] = {}
    for topic, index, partition in partitions:
        change = state.change(topic, index, partition, is_acceptable=is_acceptable)
        if topic.name not in may_be_unclean:
            may_be_unclean[topic.name] = state.may_elect_uncleanly(topic.name)
        if may_be_unclean[topic.name]:
            change.election = Election.UNCLEAN
        if broken != NOBODY:
            change.unclean = (broken,)
        change.isr = [replica for replica in partition.isr if replica not in (leaving, broken)]
        record = change.record()
        if record is not None:
            records.append(record)
    return records
