"""Apache Kafka and Ottla answer the same to random histories of fetch sessions."""

from collections.abc import Iterator

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.differences import Differences
from compat_tests.fetch_histories import History, Side
from compat_tests.ottla_server import Ottla

SEEDS = 40


@pytest.fixture(scope="module")
def ottla() -> Iterator[Ottla]:
    with Ottla() as broker:
        yield broker


def test_both_brokers_answer_the_same(kafka: Kafka, ottla: Ottla) -> None:
    differences = Differences()
    for seed in range(SEEDS):
        sides = [Side(broker.bootstrap, seed) for broker in (ottla, kafka)]
        for number, (step, (ours, kafkas)) in enumerate(History(seed).tell(sides)):
            differences.expect(ours, kafkas, f"seed {seed}, step {number}:", step)
        for side in sides:
            side.close()
    differences.must_be_none()
    assert differences.compared > 1000
