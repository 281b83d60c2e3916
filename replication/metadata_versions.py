"""What each metadata.version allows, and in which versions records are written under it.

Knows no image. Levels are Kafka's: a cluster at an older level must not meet a record that a
node of that age cannot read.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"

OLDEST = 7
NEWEST = 30
NO_EPOCH_BUMP_ON_ISR_SHRINK = 12
TRANSACTIONS = 13
DIRECTORIES = 17
ELIGIBLE_LEADER_REPLICAS = 23
CORDONED_DIRECTORIES = 30

# What this version of Ottla does, by level. The other features of Kafka 4.3 stay at 0 until there
# is code that acts upon them.
SUPPORTED_FEATURES = {METADATA_VERSION: (OLDEST, NEWEST), KRAFT_VERSION: (0, 1)}
ELR_FEATURE = "eligible.leader.replicas.version"
# What a directory may have finalized, because Kafka 4.3 has written it. Their records are kept.
KNOWN_FEATURES = SUPPORTED_FEATURES | {
    ELR_FEATURE: (0, 1),
    "group.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}

# Levels from which on records could be written that older ones do not know: no way back behind.
CHANGES_OF_RECORDS = (7, 8, 11, 13, 14, 15, 17, 23, 30)

# The name that people know a level by, from the oldest on.
NAMES = dict(
    enumerate(
        (
            *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1"),
            *("3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0"),
            *("3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1"),
            *("4.2-IV0", "4.2-IV1", "4.3-IV0"),
        ),
        start=OLDEST,
    )
)


def register_broker_version(level: int) -> int:
    if level >= CORDONED_DIRECTORIES:
        return 4
    if level >= DIRECTORIES:
        return 3
    return 2 if level > OLDEST else 1


def partition_version(level: int) -> int:
    """The version of PartitionRecord and of PartitionChangeRecord."""
    if level >= ELIGIBLE_LEADER_REPLICAS:
        return 2
    return 1 if level >= DIRECTORIES else 0
