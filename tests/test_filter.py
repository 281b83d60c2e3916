"""`python -m ottla.protocol`: one answer a line, whatever the line is."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.protocol.__main__ import answer, main
from ottla.protocol.schema import encode
from tests.random_messages import NAMES, PAIRS, random_message, schema_named

COMMAND = [sys.executable, "-m", "ottla.protocol"]
REPOSITORY = Path(__file__).parent.parent
HEARTBEAT = {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None}
HEARTBEAT_HEX = "026700000001026d0000"
# An answer must come though nothing else makes Python write it at once.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def line_of(**query: Any) -> str:
    return json.dumps(query)


def ask(**query: Any) -> dict[str, Any]:
    return answer(line_of(**query))


def test_json_becomes_bytes_and_bytes_json() -> None:
    told = ask(message="HeartbeatRequest", version=4, json=HEARTBEAT)
    assert told == {"hex": HEARTBEAT_HEX}
    assert ask(message="HeartbeatRequest", version=4, **told) == {"json": HEARTBEAT}


def test_a_message_of_no_bytes_is_one() -> None:
    assert ask(message="ApiVersionsRequest", version=0, hex="") == {"json": {}}
    assert ask(message="ApiVersionsRequest", version=0, json={}) == {"hex": ""}


def test_bytes_left_over_are_reported() -> None:
    told = ask(message="HeartbeatRequest", version=4, hex=HEARTBEAT_HEX + "aabb")
    assert told == {"json": HEARTBEAT, "trailing": 2}


def test_hex_may_have_spaces_and_capitals() -> None:
    spaced = " ".join(HEARTBEAT_HEX[at : at + 2] for at in range(0, len(HEARTBEAT_HEX), 2))
    told = ask(message="HeartbeatRequest", version=4, hex=spaced.upper())
    assert told == {"json": HEARTBEAT}


def test_headers_are_messages_of_their_own() -> None:
    told = ask(message="RequestHeader", version=2, hex="0003000c00000007000161 00")
    assert told["json"]["clientId"] == "a"


@pytest.mark.parametrize("name, version", PAIRS[::7])
def test_every_message_is_told_there_and_back(name: str, version: int) -> None:
    message = random_message(name, version, Random(f"{name} {version}"))
    raw = encode(message, version).hex()
    told = ask(message=name, version=version, hex=raw)
    assert list(told) == ["json"]
    assert ask(message=name, version=version, **told) == {"hex": raw}


NO_QUERIES = [  # line, what the error says
    ("", "not JSON"),
    ("\n", "not JSON"),
    ("{", "not JSON"),
    ("nonsense", "not JSON"),
    ("[]", "a line is an object"),
    ("null", "a line is an object"),
    ("5", "a line is an object"),
    ('"text"', "a line is an object"),
    ("9" * 5000, "not JSON"),
    ("[" * 100_000, "nested too deeply"),
    ('{"a":' * 100_000, "nested too deeply"),
    ("\udcff", "not JSON"),
    ('{"message": "\udcff"}', "not JSON"),
    ("{}", "message is missing"),
    ('{"message": 5, "version": 0, "json": {}}', "message is missing"),
    ('{"message": "Nothing", "version": 0, "json": {}}', "no message of Kafka"),
    ('{"message": "\\ud800", "version": 0, "json": {}}', "no message of Kafka"),
    ('{"message": "ApiVersionsRequest", "json": {}}', "version is missing"),
    ('{"message": "ApiVersionsRequest", "version": "0", "json": {}}', "version is missing"),
    ('{"message": "ApiVersionsRequest", "version": 0.0, "json": {}}', "version is missing"),
    ('{"message": "ApiVersionsRequest", "version": true, "json": {}}', "version is missing"),
    ('{"message": "ApiVersionsRequest", "version": 5, "json": {}}', "is not one of 0-4"),
    ('{"message": "ApiVersionsRequest", "version": -1, "hex": ""}', "is not one of 0-4"),
    ('{"message": "ProduceRequest", "version": 2, "json": {}}', "is not one of 3-13"),
    ('{"message": "ApiVersionsRequest", "version": 0}', "exactly one of json and hex"),
    (
        '{"message": "ApiVersionsRequest", "version": 0, "json": {}, "hex": ""}',
        "exactly one of json and hex",
    ),
    ('{"message": "ApiVersionsRequest", "version": 0, "json": []}', "an object is expected"),
    ('{"message": "ApiVersionsRequest", "version": 0, "hex": 5}', "hex: "),
    ('{"message": "ApiVersionsRequest", "version": 0, "hex": null}', "hex: "),
    ('{"message": "ApiVersionsRequest", "version": 0, "hex": "a"}', "hex: "),
    ('{"message": "ApiVersionsRequest", "version": 0, "hex": "zz"}', "hex: "),
    ('{"message": "ApiVersionsRequest", "version": 0, "hex": "\\u0660"}', "hex: "),
    (
        '{"message": "HeartbeatRequest", "version": 4, "hex": "0267"}',
        "HeartbeatRequest.generation_id: the bytes end here",
    ),
    (
        '{"message": "HeartbeatRequest", "version": 4, "json": {"groupId": "g"}}',
        "HeartbeatRequest: the member generationId is missing",
    ),
]


@pytest.mark.parametrize("line, error", NO_QUERIES, ids=range(len(NO_QUERIES)))
def test_anything_wrong_is_an_error_of_its_line(line: str, error: str) -> None:
    told = answer(line)
    assert list(told) == ["error"] and error in told["error"]
    json.dumps(told).encode()


@pytest.mark.parametrize("name", NAMES)
def test_random_bytes_get_an_answer(name: str) -> None:
    dice = Random(name)
    for version in range(schema_named(name).versions[0], schema_named(name).versions[1] + 1):
        raw = dice.randbytes(dice.randrange(40))
        told = ask(message=name, version=version, hex=raw.hex())
        assert told.keys() <= {"json", "trailing", "error"}


def run(lines: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**BUFFERED, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    return subprocess.run(
        [*COMMAND, *arguments], input=lines, capture_output=True, env=environment, cwd=REPOSITORY
    )


def test_the_command_answers_line_by_line_and_goes_on() -> None:
    query = line_of(message="HeartbeatRequest", version=4, hex=HEARTBEAT_HEX)
    long = line_of(message="SaslAuthenticateRequest", version=0, hex="00" * 4_000_000)
    name = line_of(message="SaslHandshakeRequest", version=0, json={"mechanism": "日"})
    foreign = '{"message": "日"}'
    lines = [query, "", "\xff", long, foreign, name, query]
    done = run("\n".join(lines).encode("utf-8").replace("\xff".encode(), b"\xff"))
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    kinds = [next(iter(each)) for each in told]
    assert kinds == ["json", "error", "error", "json", "error", "hex", "json"]
    assert told[3]["trailing"] == 4_000_000 - 4
    assert told[5]["hex"] == "0003" + "日".encode().hex()


def test_an_answer_comes_before_the_next_line_is_sent() -> None:
    line = line_of(message="ApiVersionsRequest", version=0, hex="") + "\n"
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY, env=BUFFERED
    ) as process:
        assert process.stdin and process.stdout
        for _ in range(3):
            process.stdin.write(line.encode())
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {"json": {}}
        process.stdin.close()
        assert process.wait() == 0


def test_the_command_lists_every_message() -> None:
    lines = run(b"", "--list").stdout.decode().splitlines()
    assert len(lines) == 272
    assert "ProduceRequest 3-13" in lines and "TransactionLogValue 0-1" in lines


def test_help_says_what_to_send(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    told = capsys.readouterr().out
    assert caught.value.code == 0
    assert '{"message": "HeartbeatRequest", "version": 4, "json": {...}}' in told


def test_a_wrong_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--nonsense"])
    assert caught.value.code == 2 and "--nonsense" in capsys.readouterr().err


def test_a_reader_that_goes_away_ends_the_command() -> None:
    line = line_of(message="ApiVersionsRequest", version=0, hex="") + "\n"
    with subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        try:
            process.stdin.write(line.encode() * 5000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert b"Traceback" not in process.stderr.read()
        assert process.wait() == 1
