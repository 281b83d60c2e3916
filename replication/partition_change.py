"""One partition's change: who leads, who is in sync, which replicas it has.

Pure. What is wanted is set on a PartitionChange; `record()` completes a reassignment that can end,
elects, and says what differs, or None. Leader epochs rise with every record that names a leader,
even the same one; partition epochs with every record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from ottla.protocol.messages.metadata_records import PartitionChangeRecord
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_STATE_CHANGE,
    RECOVERING,
    PartitionRegistration,
)
from ottla.replication.metadata_versions import (
    DIRECTORIES,
    NO_EPOCH_BUMP_ON_ISR_SHRINK,
    partition_version,
)
from ottla.replication.reassignment import Reassignment, completed


class Election(Enum):
    PREFERRED = auto()
    """The first replica, if it is in sync."""
    ONLINE = auto()
    """Any that is in sync; the leader stays if it can."""
    UNCLEAN = auto()
    """At need also one that is not in sync: data is lost."""


class PartitionChange:
    __slots__ = (
        "adding",
        "default_directory",
        "directories",
        "election",
        "elr",
        "index",
        "is_acceptable",
        "isr",
        "level",
        "min_isr",
        "old",
        "recovery_state",
        "removing",
        "replicas",
        "topic_id",
        "unclean",
    )

    def __init__(
        self,
        topic_id: bytes,
        index: int,
        old: PartitionRegistration,
        *,
        is_acceptable: Callable[[int], bool],
        default_directory: Callable[[int], bytes],
        level: int,
        min_isr: int | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.index = index
        self.old = old
        self.is_acceptable = is_acceptable
        """This broker may lead: it is alive, and its directory is."""
        self.default_directory = default_directory
        self.level = level
        """Of metadata.version."""
        self.min_isr = min_isr
        """None while there are no eligible leader replicas (KIP-966)."""
        self.isr: Sequence[int] = old.isr
        self.replicas: Sequence[int] = old.replicas
        self.removing: Sequence[int] = old.removing_replicas
        self.adding: Sequence[int] = old.adding_replicas
        self.elr: Sequence[int] = old.elr
        self.recovery_state = old.leader_recovery_state
        self.directories: dict[int, bytes] = {}
        """Directories that change, by broker."""
        self.election = Election.ONLINE
        self.unclean: tuple[int, ...] = ()
        """Brokers that were shut down uncleanly: what they have may have lost its end."""

    def record(self) -> Versioned | None:
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        if self.removing or self.adding:
            self._complete_reassignment()
        if self.min_isr is not None:
            self._fill_elr(self.min_isr)
        self._elect(record)
        self._put_elr(record)
        if record.isr is None and self._isr_changes():
            record.isr = list(self.isr)
        self._bump_epoch(record)
        self._put_last_known_leader(record)
        self._put_assignment(record)
        if self.recovery_state != self.old.leader_recovery_state:
            record.leader_recovery_state = self.recovery_state
        if _says_nothing(record):
            return None
        return Versioned(record, partition_version(self.level))

    def _complete_reassignment(self) -> None:
        done = completed(Reassignment(self.replicas, self.removing, self.adding), self.isr)
        if done is not None:
            (self.replicas, self.isr), self.removing, self.adding = done, (), ()

    # ---- election

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, is_unclean = self._leader()
        if leader == self.old.leader:
            return
        if leader in self.elr:
            self.isr = [leader]
            self.elr = [replica for replica in self.elr if replica != leader]
        record.leader = leader
        if is_unclean:
            # Nobody else has what the new leader will say it has.
            record.isr = [leader]
            if self.old.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _leader(self) -> tuple[int, bool]:
        """Who is to lead, and whether that may lose data."""
        is_preferred = self.election is Election.PREFERRED
        candidates = [self.old.leader, *self.replicas]
        if is_preferred:
            candidates.insert(0, self.replicas[0])
        for replica in candidates:
            if self._is_valid_leader(replica):
                return replica, False
        last_known = self._last_known_leader()
        if last_known is not None:
            return last_known, True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self.is_acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_valid_leader(self, replica: int) -> bool:
        in_sync = replica in self.isr or (not self.isr and replica in self.elr)
        return in_sync and self.is_acceptable(replica)

    def _last_known_leader(self) -> int | None:
        """The one that led last, if nobody else is left and it is back."""
        if self.min_isr is None or self.isr or self.elr or len(self.old.last_known_elr) != 1:
            return None
        leader = self.old.last_known_elr[0]
        return leader if self.is_acceptable(leader) else None

    # ---- what else the record says

    def _isr_changes(self) -> bool:
        # Without eligible leader replicas the last one in sync is remembered by the ISR.
        may_be_empty = self.min_isr is not None
        return (bool(self.isr) or may_be_empty) and tuple(self.isr) != self.old.isr

    def _bump_epoch(self, record: PartitionChangeRecord) -> None:
        """A replica that leaves must notice: the same leader again, in a new epoch."""
        if record.leader != NO_LEADER_CHANGE:
            return
        leaves = self.replicas is not self.old.replicas and (
            not set(self.old.replicas) <= set(self.replicas)
        )
        if self.level < NO_EPOCH_BUMP_ON_ISR_SHRINK and record.isr is not None:
            leaves = leaves or not set(self.old.isr) <= set(record.isr)
        if leaves:
            record.leader = self.old.leader

    def _put_assignment(self, record: PartitionChangeRecord) -> None:
        old = self.old
        replicas = tuple(self.replicas)
        if self.level >= DIRECTORIES and (self.directories or replicas != old.replicas):
            known = dict(zip(old.replicas, old.directories, strict=True)) | self.directories
            directories = [
                known[replica] if replica in known else self.default_directory(replica)
                for replica in replicas
            ]
            if tuple(directories) != old.directories:
                record.directories = directories
        if replicas != old.replicas:
            record.replicas = list(replicas)
        if tuple(self.removing) != old.removing_replicas:
            record.removing_replicas = list(self.removing)
        if tuple(self.adding) != old.adding_replicas:
            record.adding_replicas = list(self.adding)

    # ---- eligible leader replicas (KIP-966)

    def _fill_elr(self, min_isr: int) -> None:
        """Who left a small ISR still has all that was ever committed, unless it broke down."""
        if len(self.isr) >= min_isr:
            self.elr = []
            return
        candidates = dict.fromkeys((*self.elr, *self.old.isr))
        gone = (*self.isr, *self.unclean)
        self.elr = [
            # Kafka keeps those here that a reassignment has taken away.
            replica
            for replica in candidates
            if replica in self.replicas and replica not in gone
        ]

    def _put_elr(self, record: PartitionChangeRecord) -> None:
        if record.isr is not None or self.min_isr is None:
            self.elr = ()
        if tuple(self.elr) != self.old.elr:
            record.eligible_leader_replicas = list(self.elr)

    def _put_last_known_leader(self, record: PartitionChangeRecord) -> None:
        if self.min_isr is None:
            return
        if record.leader == NO_LEADER and not self.old.last_known_elr:
            record.last_known_elr = [self.old.leader]
        elif record.leader >= 0 and self.old.last_known_elr:
            record.last_known_elr = []


def _says_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state == NO_RECOVERY_STATE_CHANGE
    )
