"""ApiVersions, and the finalized features that it reports."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Int64, String, message, part, since


@message(key=18, versions=(0, 4), flexible=3)
class ApiVersionsRequest:
    client_software_name: String = since(3, ignorable=True, default="")
    client_software_version: String = since(3, ignorable=True, default="")


@message(key=18, versions=(0, 4), flexible=3)
class ApiVersionsResponse:
    error_code: Int16
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = since(1, ignorable=True, default=0)
    supported_features: list[SupportedFeatureKey] = since(3, tag=0, ignorable=True, default=[])
    finalized_features_epoch: Int64 = since(3, tag=1, ignorable=True, default=-1)
    finalized_features: list[FinalizedFeatureKey] = since(3, tag=2, ignorable=True, default=[])
    zk_migration_ready: Bool = since(3, tag=3, ignorable=True, default=False)


@part
class ApiVersion:
    api_key: Int16
    min_version: Int16
    max_version: Int16


@part
class SupportedFeatureKey:
    name: String
    min_version: Int16
    max_version: Int16


@part
class FinalizedFeatureKey:
    name: String
    max_version_level: Int16
    min_version_level: Int16


@message(key=57, versions=(0, 2), flexible=0)
class UpdateFeaturesRequest:
    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = since(1, default=False)


@part
class FeatureUpdateKey:
    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = since(until=0, default=False)
    upgrade_type: Int8 = since(1, default=1)


@message(key=57, versions=(0, 2), flexible=0)
class UpdateFeaturesResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None
    results: list[UpdatableFeatureResult] = since(until=1, ignorable=True, default=[])


@part
class UpdatableFeatureResult:
    feature: String
    error_code: Int16
    error_message: String | None
