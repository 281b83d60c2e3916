"""Random requests are answered by Ottla as by Apache Kafka."""

from collections.abc import Callable

import pytest

from compat_tests import lockstep, lockstep_admin
from compat_tests.apache_kafka import Kafka
from compat_tests.ottla_server import Ottla
from compat_tests.wire_story.chapters import FEATURES_OFF, SETTINGS

STEPS = 3000
STORIES = {"records": lockstep.run, "administration": lockstep_admin.run}


@pytest.mark.parametrize("story", STORIES)
def test_random_requests_are_answered_as_by_kafka(
    story: str, start_kafka: Callable[..., Kafka]
) -> None:
    kafka = start_kafka(properties=SETTINGS, features=FEATURES_OFF)
    with Ottla(settings=SETTINGS) as ottla:
        found = STORIES[story](kafka.bootstrap, ottla.bootstrap, steps=STEPS, seed=1)
    assert found == []
