"""Control records of the KRaft log, and the quorum state file."""

from __future__ import annotations

from ottla.protocol.schema import (
    ZERO,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    message,
    part,
    since,
)


@message(versions=(0, 1), flexible=0)
class LeaderChangeMessage:
    version: Int16
    leader_id: Int32
    voters: list[LeaderChangeMessageVoter]
    granting_voters: list[LeaderChangeMessageVoter]


@part
class LeaderChangeMessageVoter:
    voter_id: Int32
    voter_directory_id: Uuid = since(1, default=ZERO)


@message(versions=(0, 0), flexible=0)
class SnapshotHeaderRecord:
    version: Int16
    last_contained_log_timestamp: Int64


@message(versions=(0, 0), flexible=0)
class SnapshotFooterRecord:
    version: Int16


@message(versions=(0, 0), flexible=0)
class KRaftVersionRecord:
    version: Int16
    k_raft_version: Int16


@message(versions=(0, 0), flexible=0)
class VotersRecord:
    version: Int16
    voters: list[VotersRecordVoter]


@part
class VotersRecordVoter:
    voter_id: Int32
    voter_directory_id: Uuid
    endpoints: list[Endpoint]
    k_raft_version_feature: KRaftVersionFeature


@part
class Endpoint:
    name: String
    host: String
    port: Uint16


@part
class KRaftVersionFeature:
    min_supported_version: Int16
    max_supported_version: Int16


@message(versions=(0, 1), flexible=0)
class QuorumStateData:
    cluster_id: String = since(until=0, default="")
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    voted_id: Int32 = -1
    voted_directory_id: Uuid = since(1, default=ZERO)
    applied_offset: Int64 = since(until=0, default=0)
    current_voters: list[QuorumStateDataVoter] | None = since(until=0, default=[])


@part
class QuorumStateDataVoter:
    voter_id: Int32
