"""Tells the story to Apache Kafka and keeps its answers for `tests/clients/test_wire_story.py`.

    .venv/bin/python -m compat_tests.wire_story

needs Java and Maven. The same broker gives the same answers: a change in the recording is a change
in Kafka or in the story.
"""

from compat_tests.apache_kafka import Kafka
from compat_tests.wire_story.chapters import (
    CHAPTERS,
    FEATURES_OFF,
    RECORDING,
    SETTINGS,
    tell,
    write,
)


def main() -> None:
    with Kafka(properties=SETTINGS, features=FEATURES_OFF) as kafka:
        answers = {chapter: tell(chapter, kafka.bootstrap) for chapter in CHAPTERS}
    write(answers)
    cases = sum(map(len, answers.values()))
    print(f"{RECORDING.name}: {cases} cases, {RECORDING.stat().st_size} bytes")


if __name__ == "__main__":
    main()
