"""Client quotas."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Float64, Int8, Int16, Int32, String, message, part


@message(key=48, versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest:
    components: list[ComponentData]
    strict: Bool


@part
class ComponentData:
    entity_type: String
    match_type: Int8
    match: String | None


@message(key=48, versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None
    entries: list[DescribeClientQuotasResponseEntryData] | None


@part
class DescribeClientQuotasResponseEntryData:
    entity: list[DescribeClientQuotasResponseEntityData]
    values: list[ValueData]


@part
class DescribeClientQuotasResponseEntityData:
    entity_type: String
    entity_name: String | None


@part
class ValueData:
    key: String
    value: Float64


@message(key=49, versions=(0, 1), flexible=1)
class AlterClientQuotasRequest:
    entries: list[AlterClientQuotasRequestEntryData]
    validate_only: Bool


@part
class AlterClientQuotasRequestEntryData:
    entity: list[AlterClientQuotasRequestEntityData]
    ops: list[OpData]


@part
class AlterClientQuotasRequestEntityData:
    entity_type: String
    entity_name: String | None


@part
class OpData:
    key: String
    value: Float64
    remove: Bool


@message(key=49, versions=(0, 1), flexible=1)
class AlterClientQuotasResponse:
    throttle_time_ms: Int32
    entries: list[AlterClientQuotasResponseEntryData]


@part
class AlterClientQuotasResponseEntryData:
    error_code: Int16
    error_message: String | None
    entity: list[AlterClientQuotasResponseEntityData]


@part
class AlterClientQuotasResponseEntityData:
    entity_type: String
    entity_name: String | None
