"""ApiVersions: what this broker speaks; and the features of the cluster."""

from __future__ import annotations

import re

from ottla.broker.dispatch import HANDLERS, LISTED_FIRST, served
from ottla.protocol.apis import API_VERSIONS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

# What Kafka takes for the name and the version of a client's software (KIP-511).
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(
    broker: Broker, context: Context, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    if context.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    image = broker.image
    return ApiVersionsResponse(
        error_code=0,
        api_keys=_listed(),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=first, max_version=last)
            for name, (first, last) in broker.supported_features.items()
            # A client that knows no level 0 would take it for a mistake.
            if first > 0 or context.version >= 4
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in broker.finalized_features.items()
        ],
    )


def unsupported() -> ApiVersionsResponse:
    """To a client that asked in a version that we do not know: version 0 of the answer."""
    keys = [each for each in _listed() if each.api_key == API_VERSIONS]
    return ApiVersionsResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=keys)


def _listed() -> list[ApiVersion]:
    listed = []
    for key in sorted(HANDLERS):
        versions = served(key)
        if versions is None:
            raise ValueError(f"API {key} has a handler and no versions")
        first = LISTED_FIRST.get(key, versions[0])
        listed.append(ApiVersion(api_key=key, min_version=first, max_version=versions[1]))
    return listed


async def update_features(
    broker: Broker, context: Context, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    return await broker.controllers.decide(
        lambda controller, now: controller.update_features(request, now)
    )
