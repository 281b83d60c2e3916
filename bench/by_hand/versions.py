"""The ApiVersions response of version 4 by hand."""

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.protocol.wire import ProtocolError

from .rare import (
    ONE_BYTE,
    long_size,
    new,
    read_size,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
    skip_value,
    string_size,
)

_ERROR_COUNT = Struct(">hB")
_API = Struct(">hhhB")
_THROTTLE_TAGS = Struct(">iB")
_LEVELS = Struct(">hhB")
_EPOCH = Struct(">q")

_read_api = _API.unpack_from
_read_levels = _LEVELS.unpack_from


def read_response_v4(data: bytes) -> ApiVersionsResponse:
    try:
        message = new(ApiVersionsResponse)
        message.supported_features = []
        message.finalized_features_epoch = -1
        message.finalized_features = []
        message.zk_migration_ready = False
        message.error_code, count = _ERROR_COUNT.unpack_from(data, 0)
        at = 3
        if not 0 < count < 128:
            count, at = read_size(data, 2)
        message.api_keys = apis = []
        for _ in range(count - 1):
            api = new(ApiVersion)
            api.api_key, api.min_version, api.max_version, tags = _read_api(data, at)
            at = skip_tags(data, at + 6) if tags else at + 7
            apis.append(api)
        message.throttle_time_ms, count = _THROTTLE_TAGS.unpack_from(data, at)
        at += 5
        if count > 127:
            count, at = read_tag_count(data, at - 1)
        for _ in range(count):
            tag, size, at = read_tag(data, at)
            if tag == 0:
                message.supported_features, at = _read_supported(data, at)
            elif tag == 1:
                (message.finalized_features_epoch,) = _EPOCH.unpack_from(data, at)
                at += 8
            elif tag == 2:
                message.finalized_features, at = _read_finalized(data, at)
            elif tag == 3:
                message.zk_migration_ready = data[at] != 0
                at += 1
            else:
                at = skip_value(data, at, size)
        return message
    except (IndexError, StructError):
        raise ProtocolError("ApiVersionsResponse is cut short") from None


def _read_supported(data: bytes, at: int) -> tuple[list[SupportedFeatureKey], int]:
    count, at = read_size(data, at)
    features = []
    for _ in range(count - 1):
        feature = new(SupportedFeatureKey)
        size = data[at]
        if 0 < size < 128:
            end = at + size
            feature.name = data[at + 1 : end].decode("utf-8", "replace")
        else:
            feature.name, end = read_string(data, at)
        feature.min_version, feature.max_version, tags = _read_levels(data, end)
        at = skip_tags(data, end + 4) if tags else end + 5
        features.append(feature)
    return features, at


def _read_finalized(data: bytes, at: int) -> tuple[list[FinalizedFeatureKey], int]:
    count, at = read_size(data, at)
    features = []
    for _ in range(count - 1):
        feature = new(FinalizedFeatureKey)
        size = data[at]
        if 0 < size < 128:
            end = at + size
            feature.name = data[at + 1 : end].decode("utf-8", "replace")
        else:
            feature.name, end = read_string(data, at)
        feature.max_version_level, feature.min_version_level, tags = _read_levels(data, end)
        at = skip_tags(data, end + 4) if tags else end + 5
        features.append(feature)
    return features, at


def write_response_v4(message: ApiVersionsResponse) -> bytes:
    count = len(message.api_keys) + 1
    pieces: list[bytes | bytearray] = [
        _ERROR_COUNT.pack(message.error_code, count if count < 128 else 0)
    ]
    if count > 127:
        pieces[0] = pieces[0][:-1] + long_size(count)
    for api in message.api_keys:
        pieces.append(_API.pack(api.api_key, api.min_version, api.max_version, 0))
    fields: list[tuple[int, bytes | bytearray]] = []
    if message.supported_features:
        fields.append((0, _supported(message.supported_features)))
    if message.finalized_features_epoch != -1:
        fields.append((1, _EPOCH.pack(message.finalized_features_epoch)))
    if message.finalized_features:
        fields.append((2, _finalized(message.finalized_features)))
    if message.zk_migration_ready:
        fields.append((3, b"\1"))
    pieces.append(_THROTTLE_TAGS.pack(message.throttle_time_ms, len(fields)))
    for tag, value in fields:
        size = len(value)
        pieces += (ONE_BYTE[tag], ONE_BYTE[size] if size < 128 else long_size(size), value)
    return b"".join(pieces)


def _supported(features: list[SupportedFeatureKey]) -> bytes:
    pieces = [long_size(len(features) + 1)]
    for feature in features:
        name = feature.name.encode("utf-8", "replace")
        size = len(name) + 1
        pieces += (
            ONE_BYTE[size] if size < 128 else string_size(size),
            name,
            _LEVELS.pack(feature.min_version, feature.max_version, 0),
        )
    return b"".join(pieces)


def _finalized(features: list[FinalizedFeatureKey]) -> bytes:
    pieces = [long_size(len(features) + 1)]
    for feature in features:
        name = feature.name.encode("utf-8", "replace")
        size = len(name) + 1
        pieces += (
            ONE_BYTE[size] if size < 128 else string_size(size),
            name,
            _LEVELS.pack(feature.max_version_level, feature.min_version_level, 0),
        )
    return b"".join(pieces)
