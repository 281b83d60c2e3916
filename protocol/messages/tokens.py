"""Delegation tokens."""

from __future__ import annotations

from ottla.protocol.schema import Bytes, Int16, Int32, Int64, String, message, part, since


@message(key=38, versions=(1, 3), flexible=2)
class CreateDelegationTokenRequest:
    owner_principal_type: String | None = since(3, default="")
    owner_principal_name: String | None = since(3, default="")
    renewers: list[CreatableRenewers]
    max_lifetime_ms: Int64


@part
class CreatableRenewers:
    principal_type: String
    principal_name: String


@message(key=38, versions=(1, 3), flexible=2)
class CreateDelegationTokenResponse:
    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = since(3, default="")
    token_requester_principal_name: String = since(3, default="")
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32


@message(key=39, versions=(1, 2), flexible=2)
class RenewDelegationTokenRequest:
    hmac: Bytes
    renew_period_ms: Int64


@message(key=39, versions=(1, 2), flexible=2)
class RenewDelegationTokenResponse:
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32


@message(key=40, versions=(1, 2), flexible=2)
class ExpireDelegationTokenRequest:
    hmac: Bytes
    expiry_time_period_ms: Int64


@message(key=40, versions=(1, 2), flexible=2)
class ExpireDelegationTokenResponse:
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32


@message(key=41, versions=(1, 3), flexible=2)
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None


@part
class DescribeDelegationTokenOwner:
    principal_type: String
    principal_name: String


@message(key=41, versions=(1, 3), flexible=2)
class DescribeDelegationTokenResponse:
    error_code: Int16
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: Int32


@part
class DescribedDelegationToken:
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = since(3, default="")
    token_requester_principal_name: String = since(3, default="")
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes
    renewers: list[DescribedDelegationTokenRenewer]


@part
class DescribedDelegationTokenRenewer:
    principal_type: String
    principal_name: String
