"""All stories of all Python clients, by the client and the story; each is told on its own topic."""

from collections.abc import Callable

from compat_tests.client_stories import aio_kafka, confluent, kafka_python

STORIES: dict[tuple[str, str], Callable[[str, str], None]] = {
    (client.__name__.rpartition(".")[2], name): story
    for client in (kafka_python, aio_kafka, confluent)
    for name, story in client.STORIES.items()
}


def topic_of(client: str, story: str) -> str:
    return f"{client}-{story}".replace(" ", "-")
