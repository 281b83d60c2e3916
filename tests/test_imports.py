"""What a process has loaded once it has read its first Produce: no more than that takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PRODUCE = "0000 0009 00000001 0001 61 00  00 0001 00000100 02 02 74 02 00000000 03 7878 00 00 00"
FIRST_PRODUCE = f"""
from ottla.protocol.frames import FrameReader, read_request
from ottla.protocol.schema import decode
content = bytes.fromhex("{PRODUCE}")
shared = bytearray(1000)
reader = FrameReader(memoryview(shared))
sent = len(content).to_bytes(4, "big") + content
reader.buffer()[:len(sent)] = sent
(frame,) = reader.received(len(sent))
request = read_request(frame)
message = decode(request.api.request(), request.version, request.body)
assert message.topic_data[0].partition_data[0].records == b"xx"
"""
# What makes an error or a tool, and what takes time to load: none of it belongs to a start.
TOO_DEAR = {
    *("asyncio", "typing", "construct", "yaml", "json", "base64", "argparse", "random", "socket"),
    *("cramjam", "crc32c", "zlib", "ssl", "logging", "ottla.protocol.jsonform"),
    *("ottla.protocol.compression", "ottla.protocol.records", "ottla.protocol.encoder"),
}


def loaded_by(program: str) -> list[str]:
    """The modules that a bare interpreter loads for a program; json is loaded after the look."""
    text = f"import sys\nbefore = set(sys.modules)\n{program}"
    text += "\nafter = sorted(set(sys.modules) - before)\nimport json\nprint(json.dumps(after))"
    found: list[str] = json.loads(run(text))
    return found


def run(program: str) -> str:
    """Run a program without what the site adds, and give what it prints."""
    command = [sys.executable, "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    return done.stdout


def test_the_first_produce_loads_no_family_but_its_own() -> None:
    ours = [name for name in loaded_by(FIRST_PRODUCE) if name.startswith("ottla")]
    assert [name for name in ours if "messages" in name] == [
        "ottla.protocol.messages",
        "ottla.protocol.messages.produce",
    ]
    assert len(ours) < 15


def test_the_first_produce_loads_nothing_dear() -> None:
    assert [name for name in loaded_by(FIRST_PRODUCE) if name in TOO_DEAR] == []


FAMILIES = [  # program, families that it loads
    ("import ottla.protocol.frames", []),
    ("from ottla.protocol.apis import APIS; APIS[3].request()", ["metadata"]),
    ("from ottla.protocol.apis import APIS; APIS[18].response()", ["versions"]),
    (
        "from ottla.protocol.apis import message_class; message_class('VotersRecord')",
        ["raft_records"],
    ),
]


@pytest.mark.parametrize("program, families", FAMILIES)
def test_a_family_is_loaded_when_it_is_asked_for(program: str, families: list[str]) -> None:
    prefix = "ottla.protocol.messages."
    loaded = [name for name in loaded_by(program) if name.startswith(prefix)]
    assert [name.removeprefix(prefix) for name in loaded] == families


def test_a_module_that_is_loaded_is_seen() -> None:
    """The lists above would be empty as well if nothing were looked at."""
    assert {"asyncio", "typing"} <= set(loaded_by("import asyncio, typing"))
