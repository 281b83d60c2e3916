"""Apache Kafka answers the story at the wire as it did when its answers were recorded."""

from collections.abc import Iterator

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.differences import Differences
from compat_tests.wire_story.chapters import CHAPTERS, FEATURES_OFF, SETTINGS, read, tell


@pytest.fixture(scope="module")
def listener(needs_kafka: None) -> Iterator[Kafka]:
    with Kafka(properties=SETTINGS, features=FEATURES_OFF) as broker:
        yield broker


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_kafka_answers_as_it_was_recorded(listener: Kafka, chapter: str) -> None:
    answers = tell(chapter, listener.bootstrap)
    recorded = read()[chapter]
    differences = Differences()
    for case in {**recorded, **answers}:
        differences.expect(recorded.get(case), answers.get(case), case)
    differences.must_be_none()
