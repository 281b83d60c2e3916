"""Deciding features: the records of a new cluster, changes of levels, and what cannot be served.

Pure. metadata.version says which records may be written. Other features of Kafka 4.3 stay at level
0 until there is code that acts upon them; a directory in which Kafka raised them keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
)
from ottla.protocol.messages.transactions import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ottla.protocol.messages.versions import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.replication.config_rules import BROKER
from ottla.replication.controller_state import ControllerState, Outcome
from ottla.replication.metadata import Image
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import (
    CHANGES_OF_RECORDS,
    ELR_FEATURE,
    KRAFT_VERSION,
    METADATA_VERSION,
    NEWEST,
    OLDEST,
    SUPPORTED_FEATURES,
    TRANSACTIONS,
)

PRODUCER_ID_BLOCK = 1_000
_INT64_MAX = 2**63 - 1


# ---- a new cluster, a new controller


def bootstrap_records(level: int = NEWEST) -> list[Versioned]:
    """The features of a new cluster, as `bootstrap.checkpoint` holds them."""
    return [_level_record(METADATA_VERSION, level)]


def activation_records(
    state: ControllerState, bootstrap: Sequence[Versioned] | None
) -> list[Versioned]:
    """What a controller writes first: nothing, unless the log is empty or ends in mid-transaction.

    `bootstrap` is what the cluster was formatted with.
    """
    aborted: list[Versioned] = []
    if state.image.transaction is not None:
        aborted.append(Versioned(AbortTransactionRecord(reason="Controller failover")))
    if state.level:
        return aborted
    records = list(bootstrap or bootstrap_records(state.settings.metadata_version))
    levels = {
        record.message.name: record.message.feature_level
        for record in records
        if isinstance(record.message, FeatureLevelRecord)
    }
    if levels.get(ELR_FEATURE, 0) > 0:
        # Nobody can remove this one: what is committed must not depend on a node's properties.
        value = str(state.settings.min_insync_replicas)
        record = ConfigRecord(
            resource_type=BROKER, resource_name="", name="min.insync.replicas", value=value
        )
        records.append(Versioned(record))
    if levels.get(METADATA_VERSION, 0) < TRANSACTIONS:
        return aborted + records
    begin = Versioned(BeginTransactionRecord(name="Bootstrap records"))
    return [*aborted, begin, *records, Versioned(EndTransactionRecord())]


def refusals(image: Image) -> str | None:
    """Why this node must not serve what the image says, in one line; None if it may."""
    level = image.features.metadata_version
    if level > NEWEST:
        return f"metadata.version {level} is newer than {NEWEST}, the newest that is known here"
    if image.offset >= 0 and image.features.levels and not level:
        return "the metadata log has no metadata.version"
    if level and level < OLDEST:
        return f"metadata.version {level} is older than {OLDEST}, the oldest that is known here"
    if image.acls:
        return f"the directory holds {len(image.acls)} ACLs, which are not enforced yet"
    return None


# ---- UpdateFeatures


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

    def refused(reason: str) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {level} for feature {name}. {reason}",
        )

    if update.upgrade_type not in tuple(UpgradeType):
        raise refused("The controller does not support the given upgrade type.")
    if level < 0:
        raise refused("A feature version cannot be less than 0.")
    unsupported = _why_unsupported(state, name, level)
    if unsupported is not None:
        raise refused(unsupported)
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if level < current and is_upgrade:
        raise refused(
            "Can't downgrade the version of this feature without setting the upgrade type to either"
            " safe or unsafe downgrade."
        )
    if level > current and not is_upgrade:
        raise refused("Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_downgrade(current, level, update.upgrade_type)
    elif name == KRAFT_VERSION:
        if level != current:
            raise refused("Can't downgrade the version of this feature.")
        return []
    return [_level_record(name, level)]


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


def _level_record(name: str, level: int) -> Versioned:
    return Versioned(FeatureLevelRecord(name=name, feature_level=level))


# ---- AllocateProducerIds


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest
) -> Outcome[AllocateProducerIdsResponse]:
    """A block of ids that no broker ever gets again."""
    state.checked_broker(request.broker_id, request.broker_epoch)
    first = max(state.image.producer_ids.next_producer_id, 0)
    if first > _INT64_MAX - PRODUCER_ID_BLOCK:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64"
            " type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK,
    )
    response = AllocateProducerIdsResponse(
        throttle_time_ms=0, error_code=0, producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK
    )
    return Outcome(response, [Versioned(record)])
