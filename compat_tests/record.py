"""Records what Apache Kafka's classes say, for `tests/test_recorded_messages.py`.

    .venv/bin/python -m compat_tests.record

writes tests/data/kafka-4.3.1-*; needs Java and Maven. The same jars give the same bytes: a change
in a recording is a change in Kafka, in our generators or in what is picked, and is to be explained.
"""

import gzip
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat_tests.catalogue import pairs, question, seed_of
from compat_tests.hostile import hostile_bytes, hostile_json
from compat_tests.jars import KAFKA_VERSION
from compat_tests.oracle import Answer, Oracle
from compat_tests.random_messages import mutated

DATA = Path(__file__).parent.parent / "tests" / "data"
CANDIDATES = 24
BYTES_PICKED_MAX = 400
BATCHES = 400
BATCH_BYTES_MAX = 800
LONGEST_HOSTILE = 2000


def main() -> None:
    with Oracle() as oracle:
        write("messages", messages(oracle))
        write("hostile-input", hostile(oracle))
        write("record-batches", record_batches(oracle))
        write("errors", oracle.ask("errors")["errors"])


def write(name: str, lines: Iterable[Any]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path = DATA / f"kafka-{KAFKA_VERSION}-{name}.jsonl.gz"
    # Without the time of writing, or every recording would differ.
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{path.name}: {text.count(chr(10))} lines, {path.stat().st_size} bytes")


def messages(oracle: Oracle) -> list[dict[str, Any]]:
    """One line for each message and version: values, one in another version, and harmed ones."""
    catalogue = {each["name"]: each for each in oracle.ask("catalogue")["messages"]}
    asked = list(pairs(catalogue))
    made = oracle.made(
        question("random", pair, seed=seed_of(pair), count=CANDIDATES) for pair in asked
    )
    lines = []
    for pair, values in zip(asked, made, strict=True):
        name, version = pair
        versions = [other for _, other in pairs({name: catalogue[name]}) if other != version]
        line = {"message": name, "version": version, "values": picked(values)}
        line["converted"] = {"to": random.Random(seed_of(pair)).choice(versions or [version])}
        lines.append(line)
    add_converted(oracle, lines)
    add_harmed(oracle, lines)
    return lines


def picked(values: list[Answer]) -> list[Answer]:
    """The smallest, the fullest that is not too large, and one that Kafka would write otherwise."""
    by_size = sorted(values, key=lambda value: len(value["wire"]))
    small = [value for value in by_size if len(value["wire"]) <= 2 * BYTES_PICKED_MAX]
    odd = [value for value in small if value["wire"] != value["hex"]]
    chosen = [by_size[0], *small[-1:], *odd[-1:]]
    return [value for at, value in enumerate(chosen) if value not in chosen[:at]]


def add_converted(oracle: Oracle, lines: list[dict[str, Any]]) -> None:
    questions = [
        question(
            "convert",
            (line["message"], line["version"]),
            to=line["converted"]["to"],
            hex=line["values"][-1]["hex"],
        )
        for line in lines
    ]
    for line, answer in zip(lines, oracle.ask_all(questions), strict=True):
        line["converted"]["hex"] = answer.get("hex")


def add_harmed(oracle: Oracle, lines: list[dict[str, Any]]) -> None:
    asked = []
    for line in lines:
        line["harmed"] = []
        pair = (line["message"], line["version"])
        source = random.Random(seed_of(pair))
        wire = bytes.fromhex(line["values"][-1]["wire"])
        asked += [(line, pair, mutated(wire, source).hex()) for _ in range(2)]
    questions = [question("decode", pair, hex=data) for _, pair, data in asked]
    for (line, _, data), answer in zip(asked, oracle.ask_all(questions), strict=True):
        line["harmed"].append({"bytes": data, "answer": answer})


def hostile(oracle: Oracle) -> list[dict[str, Any]]:
    questions = [{"op": "decode", **case._asdict()} for case in hostile_bytes()]
    questions += [{"op": "encode", **case._asdict()} for case in hostile_json()]
    answers = oracle.ask_all(questions)
    lines = [{**asked, "answer": said} for asked, said in zip(questions, answers, strict=True)]
    return [line for line in lines if len(str(line)) < LONGEST_HOSTILE]


def record_batches(oracle: Oracle) -> list[dict[str, Any]]:
    answers = oracle.made([{"op": "random batches", "seed": 0, "count": BATCHES}])
    return [value for value in next(answers) if len(value["hex"]) <= 2 * BATCH_BYTES_MAX]


if __name__ == "__main__":
    main()
