"""Access control lists."""

from __future__ import annotations

from ottla.protocol.schema import Int8, Int16, Int32, String, message, part


@message(key=29, versions=(1, 3), flexible=2)
class DescribeAclsRequest:
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


@message(key=29, versions=(1, 3), flexible=2)
class DescribeAclsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None
    resources: list[DescribeAclsResource]


@part
class DescribeAclsResource:
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    acls: list[AclDescription]


@part
class AclDescription:
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@message(key=30, versions=(1, 3), flexible=2)
class CreateAclsRequest:
    creations: list[AclCreation]


@part
class AclCreation:
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@message(key=30, versions=(1, 3), flexible=2)
class CreateAclsResponse:
    throttle_time_ms: Int32
    results: list[AclCreationResult]


@part
class AclCreationResult:
    error_code: Int16
    error_message: String | None


@message(key=31, versions=(1, 3), flexible=2)
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter]


@part
class DeleteAclsFilter:
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


@message(key=31, versions=(1, 3), flexible=2)
class DeleteAclsResponse:
    throttle_time_ms: Int32
    filter_results: list[DeleteAclsFilterResult]


@part
class DeleteAclsFilterResult:
    error_code: Int16
    error_message: String | None
    matching_acls: list[DeleteAclsMatchingAcl]


@part
class DeleteAclsMatchingAcl:
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8
