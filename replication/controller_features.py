"""Deciding the levels of features.

Pure. metadata.version says which records may be written. Other features of Kafka 4.3 stay at level
0 until there is code that acts upon them; a directory in which Kafka raised them keeps them.
"""

from __future__ import annotations

from enum import IntEnum

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.versions import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.replication.controller_bootstrap import level_record
from ottla.replication.controller_state import ControllerState, Outcome
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import (
    CHANGES_OF_RECORDS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    state: ControllerState, request: UpdateFeaturesRequest
) -> Outcome[UpdateFeaturesResponse]:
    """All of them or none."""
    records: list[Versioned] = []
    for update in {update.feature: update for update in request.feature_updates}.values():
        try:
            records += _updated(state, update)
        except KafkaError as error:
            reason = (
                "The update failed for all features since the following feature had an error: "
                f"{error.message}"
            )
            return Outcome(
                UpdateFeaturesResponse(
                    throttle_time_ms=0, error_code=error.code, error_message=reason
                )
            )
    results = [
        UpdatableFeatureResult(
            feature=update.feature, error_code=0, error_message=ErrorCode.NONE.message
        )
        for update in request.feature_updates
    ]
    response = UpdateFeaturesResponse(
        throttle_time_ms=0, error_code=0, error_message=None, results=results
    )
    return Outcome(response, [] if request.validate_only else records)


def _updated(state: ControllerState, update: FeatureUpdateKey) -> list[Versioned]:
    name, level = update.feature, update.max_version_level
    current = _current_level(state, name)

    reason = (
        _why_malformed(update)
        or _why_unsupported(state, name, level)
        or _why_wrong_way(update, current)
    )
    if reason is None and name == KRAFT_VERSION:
        reason = _why_no_other_kraft_version(level, current)
    if reason is not None:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {level} for feature {name}. {reason}",
        )
    if name == METADATA_VERSION:
        _check_metadata_downgrade(current, level, update.upgrade_type)
    # kraft.version is no record of this log.
    return [] if name == KRAFT_VERSION else [level_record(name, level)]


def _why_malformed(update: FeatureUpdateKey) -> str | None:
    if update.upgrade_type not in tuple(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.max_version_level < 0:
        return "A feature version cannot be less than 0."
    return None


def _why_wrong_way(update: FeatureUpdateKey, current: int) -> str | None:
    level = update.max_version_level
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either"
            " safe or unsafe downgrade."
        )
    if level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None


def _why_no_other_kraft_version(level: int, current: int) -> str | None:
    if level > current:
        return "The controller does not support raising it yet."
    return "Can't downgrade the version of this feature." if level < current else None


def _current_level(state: ControllerState, name: str) -> int:
    return (
        state.kraft_version
        if name == KRAFT_VERSION
        else (state.image.features.finalized.get(name, 0))
    )


def _why_unsupported(state: ControllerState, name: str, level: int) -> str | None:
    """Everybody must know the level: this node, all brokers, all controllers."""
    image = state.image
    ranges = [(f"Local controller {state.node_id}", SUPPORTED_FEATURES.get(name, (0, 0)))]
    for broker in image.brokers.values():
        ranges.append((f"Broker {broker.id}", broker.features.get(name, (0, 0))))
    for controller in image.controllers.values():
        if controller.controller_id != state.node_id:
            known = {
                feature.name: (feature.min_supported_version, feature.max_supported_version)
                for feature in controller.features
            }
            ranges.append((f"Controller {controller.controller_id}", known.get(name, (0, 0))))
    for who, (first, last) in ranges:
        if not first <= level <= last:
            if last == 0:
                return f"{who} does not support this feature."
            versions = str(first) if first == last else f"{first}-{last}"
            return f"{who} only supports versions {versions}"
    return None


def _check_metadata_downgrade(current: int, level: int, upgrade_type: int) -> None:
    if not any(level < change <= current for change in CHANGES_OF_RECORDS):
        return
    reason = "Refusing to perform the requested downgrade because it might delete metadata"
    reason = f"{reason} information."
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
    )
