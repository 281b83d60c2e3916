"""Kafka's own tools print against Ottla what they print against Apache Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.differences import Differences
from compat_tests.jars import why_no_java
from compat_tests.kafka_tools import KafkaTools
from compat_tests.ottla_server import Ottla
from compat_tests.tools_story import INTENDED, tell
from compat_tests.wire_story.chapters import FEATURES_OFF

NEVER_FAILS = ("topics --list", "topics --describe --topic first", "get-offsets --topic talk")


@pytest.fixture
def tools() -> Iterator[KafkaTools]:
    reason = why_no_java()
    if reason is not None:
        pytest.skip(reason)
    with KafkaTools() as running:
        yield running


@pytest.mark.usefixtures("needs_kafka")
def test_the_tools_print_the_same(tools: KafkaTools, tmp_path: Path) -> None:
    # A broker of its own, and one after the other: the story lists all topics that there are.
    with Kafka(features=FEATURES_OFF) as kafka:
        kafkas = tell(tools, kafka.bootstrap, kafka.data_dir, tmp_path)
    with Ottla() as ottla:
        ours = tell(tools, ottla.bootstrap, ottla.data_dir, tmp_path)
    differences = Differences(known=INTENDED)
    for our, his in zip(ours, kafkas, strict=True):
        differences.expect(our.ran, his.ran, our.line)
    differences.must_be_none()
    assert {each.line for each in kafkas if each.ran.code == 0} >= set(NEVER_FAILS)
