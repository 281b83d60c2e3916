"""Clients in other languages see at Ottla what they see at Apache Kafka."""

from collections.abc import Iterator

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.other_clients import CLIENTS, tell, why_not
from compat_tests.ottla_server import Ottla


@pytest.fixture(scope="module")
def ottla() -> Iterator[Ottla]:
    with Ottla() as broker:
        yield broker


@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_sees_the_same(client: str, kafka: Kafka, ottla: Ottla) -> None:
    reason = why_not(client)
    if reason is not None:
        pytest.skip(reason)
    topic = f"told-by-{client}"
    ours = tell(client, ottla.bootstrap, topic)
    kafkas = tell(client, kafka.bootstrap, topic)
    assert kafkas.endswith("told\n"), kafkas
    assert ours == kafkas
