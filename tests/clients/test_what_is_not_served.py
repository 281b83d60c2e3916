"""Transactions are not served yet: clients that ask for them are told at once."""

# mypy: disable-error-code="import-untyped,import-not-found"

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import TransactionalIdAuthorizationFailedError

from compat_tests.ottla_server import Ottla

# Far below what the clients would wait for an answer that may come yet.
TIMEOUT_S = 10


def kafka_python_transaction(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="not-served")
    try:
        producer.init_transactions()
    finally:
        producer.close(timeout=1)


async def started_and_stopped(client: Any) -> None:
    try:
        await asyncio.wait_for(client.start(), TIMEOUT_S)
    finally:
        await client.stop()


def aiokafka_transaction(bootstrap: str) -> None:
    async def tell() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="not-served")
        await started_and_stopped(producer)

    asyncio.run(tell())


def confluent_transaction(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "transactional.id": "not-served", "log_level": 0}
    Producer(settings).init_transactions(TIMEOUT_S)


ASKED: dict[Callable[[str], None], type[Exception]] = {
    kafka_python_transaction: TransactionalIdAuthorizationFailedError,
    aiokafka_transaction: AioKafkaError,
    confluent_transaction: KafkaException,
}


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.__name__)
def test_a_client_is_told_at_once(asked: Callable[[str], None], ottla: Ottla) -> None:
    with pytest.raises(ASKED[asked]) as refused:
        asked(ottla.bootstrap)
    if isinstance(refused.value, KafkaException):
        assert not refused.value.args[0].retriable()
