"""One replica's part in its partition: role, epochs, in-sync replicas, and how far all have come.

Pure: knows no log, no request, and no time but what it is told. The high watermark is what every
in-sync replica has; a leader that is alone has it at once. `partition.py` beside it owns the log.
"""

from __future__ import annotations

from enum import Enum

from ottla.protocol.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.replication.metadata_topics import PartitionRegistration
    from ottla.storage.clock import Now

NO_LEADER = -1
NO_EPOCH = -1
_UNKNOWN_OFFSET = -1


class Role(Enum):
    NONE = "none"
    """Not told yet, or not to serve any more."""
    LEADER = "leader"
    FOLLOWER = "follower"


class Follower:
    """What a leader knows of another replica, in this epoch."""

    __slots__ = ("caught_up_ms", "log_end_offset", "log_start_offset")

    def __init__(self) -> None:
        self.log_end_offset = _UNKNOWN_OFFSET
        self.log_start_offset = _UNKNOWN_OFFSET
        self.caught_up_ms = 0
        """When it last had everything, by the monotonic clock."""


class ReplicaRules:
    __slots__ = (
        "epoch_start_offset",
        "followers",
        "isr",
        "leader",
        "leader_epoch",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
        "role",
    )

    def __init__(self, *, min_insync_replicas: int = 1) -> None:
        self.role = Role.NONE
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.epoch_start_offset = 0
        """Where the log ended when this replica became the leader."""
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.followers: dict[int, Follower] = {}
        self.min_insync_replicas = min_insync_replicas

    # role and epochs

    def lead(self, registration: PartitionRegistration, *, log_end_offset: int) -> bool:
        """Whether that is news: a new epoch, in which nothing is known of the followers yet."""
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        if not self._take(registration, Role.LEADER):
            return False
        if is_new_epoch:
            self.epoch_start_offset = log_end_offset
            self.followers = {}
        self.followers = {
            replica: self.followers.get(replica) or Follower()
            for replica in registration.replicas
            if replica != registration.leader
        }
        return is_new_epoch

    def follow(self, registration: PartitionRegistration) -> bool:
        """Whether there is a new leader to follow."""
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        if not self._take(registration, Role.FOLLOWER):
            return False
        self.followers = {}
        return is_new_epoch

    def _take(self, registration: PartitionRegistration, role: Role) -> bool:
        """Whether the registration is not older than what is known."""
        if registration.leader_epoch < self.leader_epoch or (
            registration.leader_epoch == self.leader_epoch
            and registration.partition_epoch < self.partition_epoch
        ):
            return False
        self.role = role
        self.leader = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.partition_epoch = registration.partition_epoch
        self.replicas = registration.replicas
        self.isr = registration.isr
        return True

    def check_epoch(self, current_leader_epoch: int) -> None:
        """A client that names an epoch must know the same leader as this replica."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # how far the replicas are

    @property
    def has_enough_in_sync(self) -> bool:
        """min.insync.replicas asks for no more replicas than there are."""
        return len(self.isr) >= min(self.min_insync_replicas, len(self.replicas))

    def fetched(
        self,
        replica: int,
        *,
        offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        now: Now,
    ) -> bool:
        """A follower asks for what comes at `offset`, so it has all before. Whether it got on."""
        follower = self.followers.get(replica)
        if follower is None:
            # Kafka's answer to brokers that are no replica, or not yet.
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if offset >= leader_end_offset:
            follower.caught_up_ms = now.monotonic_ms
        follower.log_start_offset = log_start_offset
        if offset == follower.log_end_offset:
            return False
        follower.log_end_offset = offset
        return True

    def high_watermark(self, own_end_offset: int) -> int | None:
        """What all in-sync replicas have; None while it may not move."""
        if not self.has_enough_in_sync:
            return None
        offset = own_end_offset
        for replica in self.isr:
            if replica != self.leader:
                follower = self.followers.get(replica)
                end_offset = _UNKNOWN_OFFSET if follower is None else follower.log_end_offset
                offset = min(offset, end_offset)
        return offset if offset >= 0 else None

    def low_watermark(self, own_start_offset: int) -> int:
        """Below it no replica has anything any more."""
        starts = [each.log_start_offset for each in self.followers.values()]
        return min([own_start_offset, *starts])
