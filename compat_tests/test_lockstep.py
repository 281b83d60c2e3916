"""Random requests are answered by Ottla as by Apache Kafka."""

from collections.abc import Callable

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.lockstep import run
from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.chapters import FEATURES_OFF, SETTINGS


@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_are_answered_as_by_kafka(
    seed: int, start_kafka: Callable[..., Kafka]
) -> None:
    kafka = start_kafka(properties=SETTINGS, features=FEATURES_OFF)
    with Ottla(settings=SETTINGS) as ottla:
        found = run(kafka.bootstrap, ottla.bootstrap, steps=3000, seed=seed)
    assert found == []
