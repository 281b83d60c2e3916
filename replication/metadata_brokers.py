"""Brokers as they registered, and what became of them since.

Immutable: a change is a new value. Knows no connection to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from ottla.replication.metadata_topics import LOST, MIGRATING, UNASSIGNED


class Endpoint(NamedTuple):
    """Where clients reach a broker through one of its listeners."""

    name: str
    host: str
    port: int
    security_protocol: int


class BrokerImage(NamedTuple):
    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[bytes, ...]
    # None: the broker never said. No new replica is placed in these.
    cordoned_directories: tuple[bytes, ...] | None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """It may take new replicas and leaderships."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """It has a directory that is not cordoned, or tells of none."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return not set(self.directories) <= set(self.cordoned_directories)

    @property
    def default_directory(self) -> bytes:
        """Where a new replica of it is put; a broker with several directories chooses later."""
        if not self.directories:
            return MIGRATING
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED

    def endpoint(self, listener: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return endpoint
        return None

    def has_online(self, directory: bytes) -> bool:
        """A replica in this directory can be served; a broker that tells none serves all."""
        if directory == LOST:
            return False
        if directory in (UNASSIGNED, MIGRATING) or not self.directories:
            return True
        return directory in self.directories


def registered(record: RegisterBrokerRecord) -> BrokerImage:
    """The broker that a record begins."""
    return BrokerImage(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        tuple(
            Endpoint(found.name, found.host, found.port, found.security_protocol)
            for found in record.end_points
        ),
        {
            found.name: (found.min_supported_version, found.max_supported_version)
            for found in record.features
        },
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        tuple(record.log_dirs),
        None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        record.is_migrating_zk_broker,
    )


def changed(old: BrokerImage, record: BrokerRegistrationChangeRecord) -> BrokerImage:
    """The broker after a change; no directories, and no cordoned ones, mean: as before."""
    if abs(record.fenced) > 1 or not 0 <= record.in_controlled_shutdown <= 1:
        raise ValueError(f"a change of broker {old.id} that is unknown: {record!r}")
    cordoned = record.cordoned_log_dirs
    return old._replace(
        # 1 fences, -1 unfences.
        fenced=old.fenced if record.fenced == 0 else record.fenced == 1,
        in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=tuple(record.log_dirs) or old.directories,
        cordoned_directories=old.cordoned_directories if cordoned is None else tuple(cordoned),
    )


def broker_record(broker: BrokerImage) -> RegisterBrokerRecord:
    """The broker as a snapshot holds it."""
    cordoned = broker.cordoned_directories
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(
                name=found.name,
                host=found.host,
                port=found.port,
                security_protocol=found.security_protocol,
            )
            for found in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=first, max_supported_version=last)
            for name, (first, last) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )
