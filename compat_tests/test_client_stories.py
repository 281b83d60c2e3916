"""The stories of the Python clients are right: Apache Kafka passes them."""

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.client_stories.stories import STORIES, topic_of


@pytest.mark.parametrize(("client", "story"), STORIES)
def test_kafka_serves_the_client(kafka: Kafka, client: str, story: str) -> None:
    STORIES[client, story](kafka.bootstrap, topic_of(client, story))
