"""Every message in every version, ours against Apache Kafka's generated classes and converters.

Both make random values, both read what the other made; bytes and JSON must be equal.
"""

import json
import random
import subprocess
import sys

import pytest

from compat_tests.catalogue import Pair, pairs, question, seed_of
from compat_tests.differences import Differences
from compat_tests.oracle import Answer, Oracle
from compat_tests.random_messages import RandomMessages, mutated
from ottla.protocol.apis import message_class, message_names
from ottla.protocol.jsonform import from_json, to_json
from ottla.protocol.schema import decode_prefix, encode, schema_of
from tests.answers import REFUSED, canonical, converted_or_refused, kafkas, read_or_refused

MESSAGES = 272
PAIRS = 728
VALUES = 24
MUTANTS = 4


@pytest.fixture(scope="session")
def catalogue(oracle: Oracle) -> dict[str, Answer]:
    return {each["name"]: each for each in oracle.ask("catalogue")["messages"]}


@pytest.fixture(scope="session")
def made_by_kafka(oracle: Oracle, catalogue: dict[str, Answer]) -> dict[Pair, list[Answer]]:
    """Random values as Kafka's classes read and write them, for every message and version."""
    asked = list(pairs(catalogue))
    values = oracle.made(
        question("random", pair, seed=seed_of(pair), count=VALUES) for pair in asked
    )
    return dict(zip(asked, values, strict=True))


def test_every_message_and_every_version_is_there(
    catalogue: dict[str, Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    ours = {}
    for name in message_names():
        schema = schema_of(message_class(name))
        lowest, highest = schema.versions
        ours[name] = {"name": name, "lowest": lowest, "highest": highest, "key": schema.key}
        flexible = schema.flexible
        if flexible is not None:
            flexible = max(flexible, lowest) if flexible <= highest else None
        ours[name]["flexible"] = flexible
    count = len(list(pairs(catalogue)))
    with capsys.disabled():
        print(f"\n{len(catalogue)} messages, {count} pairs of message and version")
    assert ours == catalogue
    assert (len(catalogue), count) == (MESSAGES, PAIRS)


def test_we_read_and_write_what_kafka_makes(made_by_kafka: dict[Pair, list[Answer]]) -> None:
    differences = Differences()
    for pair, values in made_by_kafka.items():
        name, version = pair
        cls = message_class(name)
        for value in values:
            json_text = canonical(value["json"])
            for form in ("wire", "hex"):
                message, size = decode_prefix(cls, version, bytes.fromhex(value[form]))
                differences.expect(size, len(value[form]) // 2, pair, "read bytes of", value[form])
                differences.expect(
                    canonical(to_json(message, version)), json_text, pair, "read", value[form]
                )
                differences.expect(
                    encode(message, version).hex(), value["hex"], pair, "rewrote", value[form]
                )
            message = from_json(cls, version, value["json"])
            differences.expect(
                encode(message, version).hex(), value["hex"], pair, "from", json_text
            )
    differences.must_be_none()
    assert all(len(values) >= 20 for values in made_by_kafka.values())
    assert len(made_by_kafka) == PAIRS


def test_kafka_reads_and_writes_what_we_make(
    oracle: Oracle, catalogue: dict[str, Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    made = []
    for pair in pairs(catalogue):
        source = RandomMessages(seed_of(pair))
        schema = schema_of(message_class(pair[0]))
        made += [(pair, source.message(schema, pair[1])) for _ in range(VALUES)]
    questions = [question("encode", pair, json=to_json(value, pair[1])) for pair, value in made]
    differences = Differences()
    for (pair, value), answer in zip(made, oracle.ask_all(questions), strict=True):
        where = (pair, "from our", value)
        differences.expect(encode(value, pair[1]).hex(), answer.get("hex", answer), *where)
        differences.expect(
            canonical(to_json(value, pair[1])), canonical(answer.get("json")), *where
        )
    with capsys.disabled():
        print(f"\n{len(made)} random values of ours, {len(differences.found)} differences")
    differences.must_be_none()


def test_a_value_goes_from_one_version_to_another_as_in_kafka(
    oracle: Oracle, catalogue: dict[str, Answer], made_by_kafka: dict[Pair, list[Answer]]
) -> None:
    """What an older version does not say gets its default; what a newer cannot say is refused."""
    source = random.Random(1)
    asked = []
    for (name, version), values in made_by_kafka.items():
        others = [other for other in pairs({name: catalogue[name]}) if other[1] != version]
        for value in values if others else []:
            asked.append(((name, version), source.choice(others)[1], value["hex"]))
    questions = [question("convert", pair, to=to, hex=hex_) for pair, to, hex_ in asked]
    differences = Differences()
    for (pair, to, hex_), answer in zip(asked, oracle.ask_all(questions), strict=True):
        ours = converted_or_refused(pair, to, bytes.fromhex(hex_))
        differences.expect(ours, answer.get("hex", REFUSED), pair, "to", to, hex_, answer)
    differences.must_be_none()


def test_harmed_bytes_are_read_or_refused_as_in_kafka(
    oracle: Oracle, made_by_kafka: dict[Pair, list[Answer]]
) -> None:
    source = random.Random(2)
    asked = [
        (pair, mutated(bytes.fromhex(value["wire"]), source))
        for pair, values in made_by_kafka.items()
        for value in values
        for _ in range(MUTANTS)
        if len(value["wire"]) < 20_000
    ]
    questions = [question("decode", pair, hex=data.hex()) for pair, data in asked]
    differences = Differences()
    for (pair, data), answer in zip(asked, oracle.ask_all(questions), strict=True):
        ours = read_or_refused(pair, data)
        differences.expect(ours, kafkas(answer), pair, data.hex(), answer)
    differences.must_be_none()


def test_the_filter_says_the_same(made_by_kafka: dict[Pair, list[Answer]]) -> None:
    lines, expected = [], []
    for pair, values in made_by_kafka.items():
        for known, wanted in (("hex", "json"), ("json", "hex")):
            asked = {"message": pair[0], "version": pair[1], known: values[0][known]}
            lines.append(json.dumps(asked))
            expected.append({wanted: values[0][wanted]})
    done = subprocess.run(
        [sys.executable, "-m", "ottla.protocol"],
        input="\n".join(lines) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(expected) == 2 * PAIRS
    differences = Differences()
    for line, answer, said in zip(lines, answers, expected, strict=True):
        differences.expect(canonical(answer), canonical(said), line)
    differences.must_be_none()
