"""SASL on the wire, and the SCRAM credentials behind it."""

from __future__ import annotations

from ottla.protocol.schema import Bytes, Int8, Int16, Int32, Int64, String, message, part, since


@message(key=17, versions=(0, 1))
class SaslHandshakeRequest:
    mechanism: String


@message(key=17, versions=(0, 1))
class SaslHandshakeResponse:
    error_code: Int16
    mechanisms: list[String]


@message(key=36, versions=(0, 2), flexible=2)
class SaslAuthenticateRequest:
    auth_bytes: Bytes


@message(key=36, versions=(0, 2), flexible=2)
class SaslAuthenticateResponse:
    error_code: Int16
    error_message: String | None
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = since(1, ignorable=True, default=0)


@message(key=50, versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None


@part
class UserName:
    name: String


@message(key=50, versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: Int32
    error_code: Int16
    error_message: String | None
    results: list[DescribeUserScramCredentialsResult]


@part
class DescribeUserScramCredentialsResult:
    user: String
    error_code: Int16
    error_message: String | None
    credential_infos: list[CredentialInfo]


@part
class CredentialInfo:
    mechanism: Int8
    iterations: Int32


@message(key=51, versions=(0, 0), flexible=0)
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


@part
class ScramCredentialDeletion:
    name: String
    mechanism: Int8


@part
class ScramCredentialUpsertion:
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


@message(key=51, versions=(0, 0), flexible=0)
class AlterUserScramCredentialsResponse:
    throttle_time_ms: Int32
    results: list[AlterUserScramCredentialsResult]


@part
class AlterUserScramCredentialsResult:
    user: String
    error_code: Int16
    error_message: String | None
