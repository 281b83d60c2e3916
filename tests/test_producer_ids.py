"""Blocks of producer ids, from a controller that answers late, or not."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.handlers.transactions import init_producer_id
from ottla.broker.producer_ids import ProducerIds
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.transactions import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    InitProducerIdRequest,
)
from tests.data_rig import Broker

BLOCK = 10


class Controllers:
    """Gives block after block, each after a second."""

    def __init__(self) -> None:
        self.requests: list[AllocateProducerIdsRequest] = []
        self.code: ErrorCode | None = None

    async def decide(self, decision: Any) -> AllocateProducerIdsResponse:
        await asyncio.sleep(1)
        answer = decision(self, None)
        assert isinstance(answer, AllocateProducerIdsResponse)
        return answer

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, now: object
    ) -> AllocateProducerIdsResponse:
        if self.code is not None:
            raise KafkaError(self.code)
        self.requests.append(request)
        first = 1000 + BLOCK * (len(self.requests) - 1)
        return AllocateProducerIdsResponse(
            throttle_time_ms=0, error_code=0, producer_id_start=first, producer_id_len=BLOCK
        )


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    broker.controllers = Controllers()  # type: ignore[attr-defined]
    broker.broker_epoch = 44  # type: ignore[attr-defined]
    broker.producer_ids = ProducerIds(broker)  # type: ignore[attr-defined, arg-type]
    yield broker
    broker.loop.close()


def take(broker: Broker, count: int) -> list[int]:
    async def taken() -> list[int]:
        ids = broker.producer_ids  # type: ignore[attr-defined]
        return list(await asyncio.gather(*[ids.take() for _ in range(count)]))

    return broker.run(broker.loop.create_task(taken()))  # type: ignore[no-any-return]


def test_ids_rise_and_the_next_block_is_there_in_time(broker: Broker) -> None:
    assert take(broker, 1) == [1000]
    assert broker.loop.time() == 1
    assert take(broker, 8) == list(range(1001, 1009))
    broker.loop.run_until_complete(asyncio.sleep(2))
    assert len(broker.controllers.requests) == 2  # type: ignore[attr-defined]
    before = broker.loop.time()
    assert take(broker, 8) == list(range(1009, 1017))
    assert broker.loop.time() == before, "nobody waited"


def test_a_crowd_gets_an_id_each(broker: Broker) -> None:
    assert take(broker, 35) == list(range(1000, 1035))
    (first, *_) = broker.controllers.requests  # type: ignore[attr-defined]
    assert (first.broker_id, first.broker_epoch) == (1, 44)


def test_a_controller_that_refuses_makes_clients_come_again(broker: Broker) -> None:
    broker.controllers.code = ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]
    answer = ask(broker)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
    broker.controllers.code = None  # type: ignore[attr-defined]
    assert ask(broker).producer_id == 1000


def ask(broker: Broker, version: int = 5, **fields: Any) -> Any:
    request = InitProducerIdRequest(
        transactional_id=fields.pop("transactional_id", None),
        transaction_timeout_ms=60_000,
        **fields,
    )
    answer = broker.ask(init_producer_id, request, version)
    return broker.run(answer) if hasattr(answer, "done") else answer


@pytest.mark.parametrize("version", range(6))
def test_an_idempotent_producer_gets_an_id_and_epoch_0(broker: Broker, version: int) -> None:
    answer = ask(broker, version)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 1000, 0)


def test_a_producer_that_has_an_id_gets_another(broker: Broker) -> None:
    answer = ask(broker, producer_id=7, producer_epoch=3)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 1000, 0)


@pytest.mark.parametrize(("producer", "epoch"), [(7, -1), (-1, 3)])
def test_half_an_identity_is_an_invalid_request(broker: Broker, producer: int, epoch: int) -> None:
    answer = ask(broker, producer_id=producer, producer_epoch=epoch)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_a_transactional_id_is_refused_for_good(broker: Broker) -> None:
    code = ErrorCode(ask(broker, transactional_id="tx").error_code)
    assert code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert not code.retriable
