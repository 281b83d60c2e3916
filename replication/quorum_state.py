"""The file `quorum-state`: what a voter must not forget of elections, as Kafka writes it.

Pure: bytes in and out. It is on disk before any message that tells of it leaves, or a node could
vote twice in one epoch. Version 0 is of quorums whose voters are configured.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.messages.raft_records import QuorumStateData, QuorumStateDataVoter
from ottla.protocol.wire import ProtocolError
from ottla.replication.voters import UNKNOWN_DIRECTORY, ReplicaKey, Voters
from ottla.storage.errors import CorruptFile

QUORUM_STATE = "quorum-state"
NOBODY = -1
_VERSION_MAX = 1


class Election(NamedTuple):
    """The newest epoch that a replica knows, its leader, and whom the replica voted for in it."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted: ReplicaKey | None = None


def parse_quorum_state(path: str, data: bytes) -> tuple[Election, list[int]]:
    """And the ids of the voters, where the file names them (version 0)."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        raise CorruptFile(path, where="", reason="is no JSON") from None
    version = fields.get("data_version") if isinstance(fields, dict) else None
    if type(version) is not int or not 0 <= version <= _VERSION_MAX:
        raise CorruptFile(path, where="data_version", reason=f"{str(version)[:40]} is unknown")
    try:
        state = from_json(QuorumStateData, version, fields)
    except ProtocolError as error:
        raise CorruptFile(path, where="", reason=str(error)) from None
    if state.leader_epoch < 0 or min(state.leader_id, state.voted_id) < NOBODY:
        raise CorruptFile(path, where="", reason="an epoch or an id is negative")
    voted = None
    if state.voted_id != NOBODY:
        voted = ReplicaKey(state.voted_id, state.voted_directory_id)
    voter_ids = [voter.voter_id for voter in state.current_voters or []]
    return Election(state.leader_epoch, state.leader_id, voted), voter_ids


def quorum_state_text(election: Election, *, kraft_version: int, voters: Voters) -> bytes:
    voted = election.voted or ReplicaKey(NOBODY)
    is_static = kraft_version == 0
    state = QuorumStateData(
        leader_id=election.leader_id,
        leader_epoch=election.epoch,
        voted_id=voted.id,
        voted_directory_id=UNKNOWN_DIRECTORY if is_static else voted.directory_id,
        current_voters=[QuorumStateDataVoter(voter_id=id) for id in voters.ids]
        if is_static
        else [],
    )
    version = 0 if is_static else 1
    fields = {**to_json(state, version), "data_version": version}
    return json.dumps(fields, separators=(",", ":")).encode()
