"""Every configuration, beside what was recorded from Apache Kafka 4.3.1."""

import gzip
import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from ottla.broker import config_keys
from ottla.broker.config_key import InvalidValue, Key
from ottla.broker.config_rules import group_synonym

RECORDING = Path(__file__).parent / "data" / "kafka-4.3.1-configs.jsonl.gz"
README = Path(__file__).parent.parent / "README.md"
UPDATES = {None: "", "cluster-wide": "cluster", "per-broker": "broker"}
KINDS = {
    "broker": config_keys.BROKER,
    "topic": config_keys.TOPIC,
    "group": config_keys.GROUP,
    "client metrics": config_keys.CLIENT_METRICS,
    "only dynamic": config_keys.ONLY_DYNAMIC,
}


def recorded() -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


RECORDED = recorded()
SAID = {f"{each['kind']} {each['name']}": each["said"] for each in RECORDED if "said" in each}


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_exactly_kafkas_configurations(kind: str) -> None:
    names = {each["name"] for each in RECORDED if each["kind"] == kind}
    assert KINDS[kind].keys() - config_keys.OWN.keys() == names


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_what_kafka_says_it_is(kind: str) -> None:
    for each in RECORDED:
        if each["kind"] == kind:
            key = KINDS[kind][each["name"]]
            facts = (key.type, key.text(key.default), key.importance, key.is_internal)
            wanted = tuple(each.get(name) for name in ("type", "default", "importance", "internal"))
            assert facts == wanted, key.name


def test_what_a_running_broker_takes_is_what_kafka_says() -> None:
    for each in RECORDED:
        if each["kind"] == "broker":
            assert config_keys.BROKER[each["name"]].update == UPDATES[each["update"]], each["name"]


def test_topics_take_their_defaults_from_where_kafka_takes_them() -> None:
    synonyms = {
        each["name"]: each["synonym"]
        for each in RECORDED
        if each["kind"] == "topic" and each["synonym"]
    }
    assert synonyms == config_keys.TOPIC_SYNONYMS


def test_groups_take_their_defaults_from_where_kafka_takes_them() -> None:
    for each in RECORDED:
        if each["kind"] == "group":
            named = group_synonym(each["name"])
            wanted = f"Optional[{named}]" if named else "Optional.empty"
            assert each["synonym"] == wanted, each["name"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_means_to_each_what_it_means_to_kafka(kind: str) -> None:
    for each in RECORDED:
        if each["kind"] != kind:
            continue
        key = KINDS[kind][each["name"]]
        said = SAID[each.get("says_as", f"{kind} {key.name}")]
        for text, wanted in said.items():
            if "error" in wanted:
                wanted = {"error": wanted["error"].replace("<name>", key.name)}
            assert told(key, text) == wanted, (key.name, text)


def told(key: Key, text: str) -> dict[str, str | None]:
    try:
        return {"value": key.text(key.parsed(text))}
    except InvalidValue as error:
        return {"error": str(error)}


def test_every_sort_is_for_itself() -> None:
    sorts = [config_keys.HONOURED, config_keys.ACCEPTED, config_keys.REFUSED]
    assert sum(map(len, sorts)) == len(config_keys.BROKER)


def test_the_readme_lists_what_is_accepted_without_effect() -> None:
    text = README.read_text(encoding="utf-8")
    paragraph = text.split("accepted and have no effect", 1)[1].split("Of topics:", 1)[0]
    listed = [word for word in paragraph.split("`") if "." in word or "*" in word]

    def is_listed(name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in listed)

    assert [name for name in config_keys.ACCEPTED if not is_listed(name)] == []
    assert [name for name in config_keys.HONOURED if is_listed(name)] == []


def test_our_own_names_begin_with_ours() -> None:
    assert all(name.startswith("ottla.") for name in config_keys.OWN)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("max.connections", "max.connections"),
        ("listener.name.internal.max.connections", "max.connections"),
        ("listener.name.a.ssl.keystore.type", "ssl.keystore.type"),
        ("listener.name.", ""),
    ],
)
def test_a_listeners_configuration_is_found_by_its_base(name: str, base: str) -> None:
    assert config_keys.base_name(name) == base
