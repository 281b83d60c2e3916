"""The replicas of a partition on their way to other brokers.

Pure arithmetic of lists. While a reassignment goes on, `replicas` holds the old and the new ones;
it is complete when all that are to stay are in sync, and then the others are dropped at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.metadata_topics import PartitionRegistration


class Reassignment(NamedTuple):
    replicas: Sequence[int]
    removing: Sequence[int]
    adding: Sequence[int]


def begin(current: Sequence[int], target: Sequence[int]) -> Reassignment:
    """What a partition is to be while it moves from these replicas to those."""
    removing = sorted(set(current) - set(target))
    adding = sorted(set(target) - set(current))
    return Reassignment([*target, *removing], removing, adding)


def completed(reassignment: Reassignment, isr: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """The replicas and the ISR at its end; None while it cannot end."""
    replicas, removing, adding = reassignment
    if not removing and not adding:
        return None
    isr_after = [replica for replica in isr if replica not in removing]
    after = [replica for replica in replicas if replica not in removing]
    if removing and (not isr_after or not after):
        return None
    if not set(after) <= set(isr_after):
        return None
    return after, isr_after


class Revert(NamedTuple):
    replicas: list[int]
    isr: list[int]
    unclean: bool


def revert(partition: PartitionRegistration) -> Revert:
    """Back to where the partition was: what was being added goes, what was being removed stays."""
    adding = partition.adding_replicas
    replicas = [replica for replica in partition.replicas if replica not in adding]
    isr = [replica for replica in partition.isr if replica not in adding]
    if isr:
        return Revert(replicas, isr, False)
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    # Only replicas that are being added are in sync. To lead, another one must lose data.
    return Revert(replicas, replicas[:1], True)
