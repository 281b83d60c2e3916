"""Ids for idempotent producers, out of blocks that no broker ever gets again.

Knows no producer. A block is committed in the metadata log before its first id is given away; the
next one is asked for before the last is used up.
"""

from __future__ import annotations

from collections import deque

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.transactions import AllocateProducerIdsRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, Task

    from ottla.broker.broker import Broker

# When so little of a block is left the next one is asked for.
_LEFT_PART = 0.1


class ProducerIds:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next = 0
        self._end = 0
        self._ask_again_at = 0
        self._spare: range | None = None
        self._asking: Task[None] | None = None
        self._waiting: deque[Future[int]] = deque()

    async def take(self) -> int:
        """One that nobody has. Waits only where the metadata log is slower than producers come."""
        if self._next == self._end and self._spare is None:
            waiting: Future[int] = self._broker.world.loop.create_future()
            self._waiting.append(waiting)
            self._ask()
            return await waiting
        return self._taken()

    def _taken(self) -> int:
        if self._next == self._end and self._spare is not None:
            block, self._spare = self._spare, None
            self._next, self._end = block.start, block.stop
            self._ask_again_at = self._end - int(len(block) * _LEFT_PART)
        taken = self._next
        self._next += 1
        if self._next >= self._ask_again_at and self._spare is None:
            self._ask()
        return taken

    def _ask(self) -> None:
        if self._asking is None:
            self._asking = self._broker.begin(self._allocate())

    async def _allocate(self) -> None:
        broker = self._broker
        request = AllocateProducerIdsRequest(
            broker_id=broker.node_id, broker_epoch=broker.broker_epoch
        )
        try:
            found = await broker.controllers.decide(
                lambda controller, now: controller.allocate_producer_ids(request, now)
            )
        except KafkaError:
            self._refuse()
            return
        finally:
            self._asking = None
        first = found.producer_id_start
        self._spare = range(first, first + found.producer_id_len)
        while self._waiting and (self._next < self._end or self._spare is not None):
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(self._taken())

    def _refuse(self) -> None:
        """As Kafka before it has its first block: clients come again."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
