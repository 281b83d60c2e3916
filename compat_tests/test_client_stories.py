"""The stories of the Python clients are right: Apache Kafka passes them; and the Java client."""

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.client_stories.stories import STORIES, topic_of
from compat_tests.kafka_tools import KafkaTools
from compat_tests.ottla_server import Ottla


@pytest.mark.parametrize(("client", "story"), STORIES)
def test_kafka_serves_the_client(kafka: Kafka, client: str, story: str) -> None:
    STORIES[client, story](kafka.bootstrap, topic_of(client, story))


def test_the_java_client_sees_the_same_at_ottla(kafka: Kafka) -> None:
    with Ottla() as ottla, KafkaTools() as java:
        kafkas = java.run("JavaClient", kafka.bootstrap, "java-client")
        ours = java.run("JavaClient", ottla.bootstrap, "java-client")
    assert kafkas.code == 0, kafkas
    assert "\ndeleted\n" in kafkas.out
    assert ours == kafkas
