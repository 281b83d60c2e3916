"""What a controller writes before it decides anything, and what it must not decide about.

Pure. A new cluster begins with the levels of its features, in one transaction of the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from ottla.replication.config_rules import BROKER
from ottla.replication.controller_state import ControllerState
from ottla.replication.metadata import Image
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import (
    ELR_FEATURE,
    METADATA_VERSION,
    NEWEST,
    OLDEST,
    TRANSACTIONS,
)


def bootstrap_records(level: int = NEWEST) -> list[Versioned]:
    """The features of a new cluster, as `bootstrap.checkpoint` holds them."""
    return [level_record(METADATA_VERSION, level)]


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


def level_record(name: str, level: int) -> Versioned:
    return Versioned(FeatureLevelRecord(name=name, feature_level=level))
