"""The cluster as a whole, and the life of a broker or controller in it."""

from __future__ import annotations

from ottla.protocol.schema import (
    INT32_MIN,
    Bool,
    Bytes,
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


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = since(1, default=1)
    include_fenced_brokers: Bool = since(2, default=False)


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None = None
    endpoint_type: Int8 = since(1, default=1)
    cluster_id: String
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = INT32_MIN


@part
class DescribeClusterBroker:
    broker_id: Int32
    host: String
    port: Int32
    rack: String | None = None
    is_fenced: Bool = since(2, default=False)


@message(key=62, versions=(0, 4), flexible=0)
class BrokerRegistrationRequest:
    broker_id: Int32
    cluster_id: String
    incarnation_id: Uuid
    listeners: list[BrokerRegistrationRequestListener]
    features: list[BrokerRegistrationRequestFeature]
    rack: String | None
    is_migrating_zk_broker: Bool = since(1, default=False)
    log_dirs: list[Uuid] = since(2, ignorable=True, default=[])
    previous_broker_epoch: Int64 = since(3, ignorable=True, default=-1)


@part
class BrokerRegistrationRequestListener:
    name: String
    host: String
    port: Uint16
    security_protocol: Int16


@part
class BrokerRegistrationRequestFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=62, versions=(0, 4), flexible=0)
class BrokerRegistrationResponse:
    throttle_time_ms: Int32
    error_code: Int16
    broker_epoch: Int64 = -1


@message(key=63, versions=(0, 2), flexible=0)
class BrokerHeartbeatRequest:
    broker_id: Int32
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64
    want_fence: Bool
    want_shut_down: Bool
    offline_log_dirs: list[Uuid] = since(1, tag=0, default=[])
    cordoned_log_dirs: list[Uuid] | None = since(2, tag=1, default=None)


@message(key=63, versions=(0, 2), flexible=0)
class BrokerHeartbeatResponse:
    throttle_time_ms: Int32
    error_code: Int16
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool


@message(key=64, versions=(0, 0), flexible=0)
class UnregisterBrokerRequest:
    broker_id: Int32


@message(key=64, versions=(0, 0), flexible=0)
class UnregisterBrokerResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None


@message(key=70, versions=(0, 0), flexible=0)
class ControllerRegistrationRequest:
    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    listeners: list[ControllerRegistrationRequestListener]
    features: list[ControllerRegistrationRequestFeature]


@part
class ControllerRegistrationRequestListener:
    name: String
    host: String
    port: Uint16
    security_protocol: Int16


@part
class ControllerRegistrationRequestFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=70, versions=(0, 0), flexible=0)
class ControllerRegistrationResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None


@message(key=58, versions=(0, 0), flexible=0)
class EnvelopeRequest:
    request_data: Bytes
    request_principal: Bytes | None
    client_host_address: Bytes


@message(key=58, versions=(0, 0), flexible=0)
class EnvelopeResponse:
    response_data: Bytes | None = None
    error_code: Int16
