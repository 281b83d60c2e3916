"""Client telemetry of KIP-714."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Bytes, Int8, Int16, Int32, String, Uuid, message


@message(key=71, versions=(0, 0), flexible=0)
class GetTelemetrySubscriptionsRequest:
    client_instance_id: Uuid


@message(key=71, versions=(0, 0), flexible=0)
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: list[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: list[String]


@message(key=72, versions=(0, 0), flexible=0)
class PushTelemetryRequest:
    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


@message(key=72, versions=(0, 0), flexible=0)
class PushTelemetryResponse:
    throttle_time_ms: Int32
    error_code: Int16
