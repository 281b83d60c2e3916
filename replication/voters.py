"""The voters of a quorum (KIP-853): who they are, and where their controllers listen.

Pure and immutable; a change is a new set. A voter is an id together with the directory that holds
its log: the same node with an empty disk is another voter. Where voters are configured
(kraft.version 0), their directories are not known, and any will do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.protocol.messages.raft_records import (
    Endpoint,
    KRaftVersionFeature,
    VotersRecord,
    VotersRecordVoter,
)

UNKNOWN_DIRECTORY = bytes(16)
KRAFT_VERSION_MAX = 1
"""0: voters are configured; 1: they come and go by records."""


class ReplicaKey(NamedTuple):
    id: int
    directory_id: bytes = UNKNOWN_DIRECTORY


class Listener(NamedTuple):
    """Where a controller is reached."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    key: ReplicaKey
    listeners: tuple[Listener, ...] = ()
    kraft_version_min: int = 0
    kraft_version_max: int = KRAFT_VERSION_MAX


@dataclass(slots=True, frozen=True)
class Voters:
    voters: tuple[Voter, ...] = ()

    @property
    def ids(self) -> list[int]:
        return [voter.key.id for voter in self.voters]

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def find(self, key: ReplicaKey) -> Voter | None:
        for voter in self.voters:
            if voter.key.id == key.id and (
                voter.key.directory_id in (key.directory_id, UNKNOWN_DIRECTORY)
            ):
                return voter
        return None

    def others(self, key: ReplicaKey) -> list[Voter]:
        return [voter for voter in self.voters if voter.key.id != key.id]

    def replacing(self, voter: Voter) -> Voters:
        """The same voters, with what is new of this one."""
        return Voters(tuple(voter if old.key == voter.key else old for old in self.voters))

    def record(self) -> VotersRecord:
        return VotersRecord(version=0, voters=[_written(voter) for voter in self.voters])


def voters_of(record: VotersRecord) -> Voters:
    return Voters(tuple(_read(voter) for voter in record.voters))


def static_voters(ids: Iterable[int]) -> Voters:
    """Those that a configuration names, without their directories."""
    return Voters(tuple(Voter(ReplicaKey(id)) for id in ids))


def _written(voter: Voter) -> VotersRecordVoter:
    return VotersRecordVoter(
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        endpoints=[Endpoint(**listener._asdict()) for listener in voter.listeners],
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=voter.kraft_version_min,
            max_supported_version=voter.kraft_version_max,
        ),
    )


def _read(voter: VotersRecordVoter) -> Voter:
    feature = voter.k_raft_version_feature
    return Voter(
        ReplicaKey(voter.voter_id, voter.voter_directory_id),
        tuple(Listener(each.name, each.host, each.port) for each in voter.endpoints),
        feature.min_supported_version,
        feature.max_supported_version,
    )
