"""Records of the metadata log."""

from __future__ import annotations

from ottla.protocol.schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    message,
    part,
    since,
)


@message(key=0, versions=(0, 4), flexible=0)
class RegisterBrokerRecord:
    broker_id: Int32
    is_migrating_zk_broker: Bool = since(2, default=False)
    incarnation_id: Uuid
    broker_epoch: Int64
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]
    rack: String | None
    fenced: Bool = True
    in_controlled_shutdown: Bool = since(1, default=False)
    log_dirs: list[Uuid] = since(3, tag=0, default=[])
    cordoned_log_dirs: list[Uuid] | None = since(4, tag=1, default=None)


@part
class BrokerEndpoint:
    name: String
    host: String
    port: Uint16
    security_protocol: Int16


@part
class BrokerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=1, versions=(0, 0), flexible=0)
class UnregisterBrokerRecord:
    broker_id: Int32
    broker_epoch: Int64


@message(key=2, versions=(0, 0), flexible=0)
class TopicRecord:
    name: String
    topic_id: Uuid


@message(key=3, versions=(0, 2), flexible=0)
class PartitionRecord:
    partition_id: Int32 = -1
    topic_id: Uuid
    replicas: list[Int32]
    isr: list[Int32]
    removing_replicas: list[Int32]
    adding_replicas: list[Int32]
    leader: Int32 = -1
    leader_recovery_state: Int8 = since(tag=0, default=0)
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: list[Uuid] = since(1, default=[])
    eligible_leader_replicas: list[Int32] | None = since(2, tag=1, default=None)
    last_known_elr: list[Int32] | None = since(2, tag=2, default=None)


@message(key=4, versions=(0, 0), flexible=0)
class ConfigRecord:
    resource_type: Int8
    resource_name: String
    name: String
    value: String | None


@message(key=5, versions=(0, 2), flexible=0)
class PartitionChangeRecord:
    partition_id: Int32 = -1
    topic_id: Uuid
    isr: list[Int32] | None = since(tag=0, default=None)
    leader: Int32 = since(tag=1, default=-2)
    replicas: list[Int32] | None = since(tag=2, default=None)
    removing_replicas: list[Int32] | None = since(tag=3, default=None)
    adding_replicas: list[Int32] | None = since(tag=4, default=None)
    leader_recovery_state: Int8 = since(tag=5, default=-1)
    directories: list[Uuid] | None = since(1, tag=8, default=None)
    eligible_leader_replicas: list[Int32] | None = since(2, tag=6, default=None)
    last_known_elr: list[Int32] | None = since(2, tag=7, default=None)


@message(key=7, versions=(0, 0), flexible=0)
class FenceBrokerRecord:
    id: Int32
    epoch: Int64


@message(key=8, versions=(0, 0), flexible=0)
class UnfenceBrokerRecord:
    id: Int32
    epoch: Int64


@message(key=9, versions=(0, 0), flexible=0)
class RemoveTopicRecord:
    topic_id: Uuid


@message(key=10, versions=(0, 0), flexible=0)
class DelegationTokenRecord:
    owner: String
    requester: String
    renewers: list[String]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


@message(key=11, versions=(0, 0), flexible=0)
class UserScramCredentialRecord:
    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


@message(key=12, versions=(0, 0), flexible=0)
class FeatureLevelRecord:
    name: String
    feature_level: Int16


@message(key=14, versions=(0, 0), flexible=0)
class ClientQuotaRecord:
    entity: list[EntityData]
    key: String
    value: Float64
    remove: Bool


@part
class EntityData:
    entity_type: String
    entity_name: String | None


@message(key=15, versions=(0, 0), flexible=0)
class ProducerIdsRecord:
    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


@message(key=17, versions=(0, 3), flexible=0)
class BrokerRegistrationChangeRecord:
    broker_id: Int32
    broker_epoch: Int64
    fenced: Int8 = since(tag=0, default=0)
    in_controlled_shutdown: Int8 = since(1, tag=1, default=0)
    log_dirs: list[Uuid] = since(2, tag=2, default=[])
    cordoned_log_dirs: list[Uuid] | None = since(3, tag=3, default=None)


@message(key=18, versions=(0, 0), flexible=0)
class AccessControlEntryRecord:
    id: Uuid
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@message(key=19, versions=(0, 0), flexible=0)
class RemoveAccessControlEntryRecord:
    id: Uuid


@message(key=20, versions=(0, 0), flexible=0)
class NoOpRecord:
    pass


@message(key=21, versions=(0, 0), flexible=0)
class ZkMigrationStateRecord:
    zk_migration_state: Int8


@message(key=22, versions=(0, 0), flexible=0)
class RemoveUserScramCredentialRecord:
    name: String
    mechanism: Int8


@message(key=23, versions=(0, 0), flexible=0)
class BeginTransactionRecord:
    name: String | None = since(tag=0, default=None)


@message(key=24, versions=(0, 0), flexible=0)
class EndTransactionRecord:
    pass


@message(key=25, versions=(0, 0), flexible=0)
class AbortTransactionRecord:
    reason: String | None = since(tag=0, default=None)


@message(key=26, versions=(0, 0), flexible=0)
class RemoveDelegationTokenRecord:
    token_id: String


@message(key=27, versions=(0, 0), flexible=0)
class RegisterControllerRecord:
    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    end_points: list[ControllerEndpoint]
    features: list[ControllerFeature]


@part
class ControllerEndpoint:
    name: String
    host: String
    port: Uint16
    security_protocol: Int16


@part
class ControllerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=28, versions=(0, 0), flexible=0)
class ClearElrRecord:
    topic_name: String
