"""What Apache Kafka answered to the story at the wire, Ottla answers, too."""

from collections.abc import Iterator

import pytest

from compat_tests.differences import Differences
from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.chapters import CHAPTERS, SETTINGS, read, tell
from compat_tests.wire_story.intended import INTENDED

RECORDED = read()
CASES_LEAST = 500


@pytest.fixture(scope="module")
def listener() -> Iterator[Ottla]:
    with Ottla(settings=SETTINGS) as broker:
        yield broker


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_ottla_answers_as_kafka(listener: Ottla, chapter: str) -> None:
    answers = tell(chapter, listener.bootstrap)
    differences = Differences(known=INTENDED)
    for case in {**RECORDED[chapter], **answers}:
        differences.expect(answers.get(case), RECORDED[chapter].get(case), case)
    differences.must_be_none()


def test_the_story_is_long_and_every_difference_is_one_of_its_cases() -> None:
    cases = [case for chapter in RECORDED.values() for case in chapter]
    assert len(cases) == len(set(cases)) >= CASES_LEAST
    assert set(INTENDED) <= set(cases)
