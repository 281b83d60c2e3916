"""The file quorum-state, as Kafka 4.3.1 wrote it."""

import pytest

from ottla.replication.quorum_state import Election, parse_quorum_state, quorum_state_text
from ottla.replication.voters import ReplicaKey, static_voters
from ottla.storage.errors import CorruptFile

DIRECTORY = bytes(range(16))
VOTED = '"votedId":2,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw"'
UNVOTED = '"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"'

CASES = [  # kraft.version, what is known, the file
    (1, Election(3, 1), f'{{"leaderId":1,"leaderEpoch":3,{UNVOTED},"data_version":1}}'),
    (
        1,
        Election(4, -1, ReplicaKey(2, DIRECTORY)),
        f'{{"leaderId":-1,"leaderEpoch":4,{VOTED},"data_version":1}}',
    ),
    (
        0,
        Election(1, 1),
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}',
    ),
]


@pytest.mark.parametrize(("kraft_version", "election", "text"), CASES)
def test_the_file_is_kafkas(kraft_version: int, election: Election, text: str) -> None:
    voters = static_voters([1, 3])
    data = quorum_state_text(election, kraft_version=kraft_version, voters=voters)
    assert data.decode() == text
    ids = [] if kraft_version else [1, 3]
    assert parse_quorum_state("quorum-state", data) == (election, ids)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "None is unknown"),
        ('{"leaderId":1}', "None is unknown"),
        (CASES[0][2].replace('version":1', 'version":2'), "2 is unknown"),
        (CASES[0][2].replace('version":1', 'version":true'), "True is unknown"),
        (CASES[0][2].replace('"leaderEpoch":3,', ""), "leaderEpoch is missing"),
        (CASES[0][2].replace('Epoch":3', 'Epoch":-3'), "is negative"),
        (CASES[0][2].replace('leaderId":1', 'leaderId":-2'), "is negative"),
    ],
)
def test_what_kafka_would_not_write_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason):
        parse_quorum_state("quorum-state", text.encode())
