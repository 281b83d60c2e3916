"""New partitions: on which brokers they are, and the records that begin them.

Pure. The first active replica leads; the replicas that are fenced are not in sync.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.controller_state import ControllerState
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import PartitionRegistration, partition_record
from ottla.replication.metadata_versions import partition_version
from ottla.replication.placement import Placer, UsableBroker


def placer(state: ControllerState, *, replication_factor: int) -> Placer:
    """Over all brokers that take new replicas; fenced ones too, but not those that shut down."""
    usable = [
        UsableBroker(broker.id, broker.rack, broker.fenced)
        for broker in state.image.brokers.values()
        if broker.takes_replicas and (broker.fenced or not broker.in_controlled_shutdown)
    ]
    found = Placer(usable, state.random)
    found.check(replication_factor)
    return found


def placed(
    state: ControllerState, found: Placer, count: int, *, replication_factor: int
) -> list[PartitionRegistration]:
    return [_placed(state, found.place(replication_factor)) for _ in range(count)]


def _placed(state: ControllerState, replicas: list[int]) -> PartitionRegistration:
    if not any(map(state.is_active, replicas)):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently"
            " fenced or in controlled shutdown.",
        )
    return _registration(state, replicas)


def assigned(
    state: ControllerState, index: int, replicas: Sequence[int], *, replication_factor: int | None
) -> PartitionRegistration:
    """A partition where the request wants it."""
    check_assignment(state, replicas, replication_factor=replication_factor)
    if not any(map(state.is_active, replicas)):
        raise _invalid(
            "All brokers specified in the manual partition assignment for partition"
            f" {index} are fenced or in controlled shutdown."
        )
    return _registration(state, replicas)


def check_assignment(
    state: ControllerState, replicas: Sequence[int], *, replication_factor: int | None = None
) -> None:
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    before = None
    for broker_id in sorted(replicas):
        if broker_id not in state.image.brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such broker"
                " is registered."
            )
        if broker_id == before:
            raise _invalid(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        before = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)}"
            " replica(s), but this is not consistent with previous partitions, which have"
            f" {replication_factor} replica(s)."
        )


def creation_records(
    topic_id: bytes, first: int, partitions: Sequence[PartitionRegistration], level: int
) -> list[Versioned]:
    version = partition_version(level)
    return [
        Versioned(partition_record(topic_id, index, partition, level), version)
        for index, partition in enumerate(partitions, first)
    ]


def _registration(state: ControllerState, replicas: Sequence[int]) -> PartitionRegistration:
    isr = tuple(filter(state.is_active, replicas))
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=tuple(map(state.default_directory, replicas)),
        isr=isr,
        leader=isr[0],
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
