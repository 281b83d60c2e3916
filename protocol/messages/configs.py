"""Configurations of brokers, topics, groups and clients."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Int8, Int16, Int32, String, message, part, since


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource]
    include_synonyms: Bool = False
    include_documentation: Bool = since(3, default=False)


@part
class DescribeConfigsResource:
    resource_type: Int8
    resource_name: String
    configuration_keys: list[String] | None


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsResponse:
    throttle_time_ms: Int32
    results: list[DescribeConfigsResult]


@part
class DescribeConfigsResult:
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    configs: list[DescribeConfigsResourceResult]


@part
class DescribeConfigsResourceResult:
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: Int8 = since(3, ignorable=True, default=0)
    documentation: String | None = since(3, ignorable=True, default="")


@part
class DescribeConfigsSynonym:
    name: String
    value: String | None
    source: Int8


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsRequest:
    resources: list[AlterConfigsRequestAlterConfigsResource]
    validate_only: Bool


@part
class AlterConfigsRequestAlterConfigsResource:
    resource_type: Int8
    resource_name: String
    configs: list[AlterConfigsRequestAlterableConfig]


@part
class AlterConfigsRequestAlterableConfig:
    name: String
    value: String | None


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsResponse:
    throttle_time_ms: Int32
    responses: list[AlterConfigsResponseAlterConfigsResourceResponse]


@part
class AlterConfigsResponseAlterConfigsResourceResponse:
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest:
    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource]
    validate_only: Bool


@part
class IncrementalAlterConfigsRequestAlterConfigsResource:
    resource_type: Int8
    resource_name: String
    configs: list[IncrementalAlterConfigsRequestAlterableConfig]


@part
class IncrementalAlterConfigsRequestAlterableConfig:
    name: String
    config_operation: Int8
    value: String | None


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Int32
    responses: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse]


@part
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesRequest:
    resource_types: list[Int8] = since(1, default=[])


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesResponse:
    throttle_time_ms: Int32
    error_code: Int16
    config_resources: list[ConfigResource]


@part
class ConfigResource:
    resource_name: String
    resource_type: Int8 = since(1, ignorable=True, default=16)
