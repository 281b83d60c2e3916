"""What a client asks of the controller, answered within the time that it gives.

When the time is up the client hears REQUEST_TIMED_OUT, and what was decided goes on.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ottla.broker.broker import Broker
    from ottla.replication.controller import Controller, Outcome
    from ottla.storage.clock import Now

    T = TypeVar("T")

logger = logging.getLogger(__name__)


async def decided_within(
    broker: Broker, timeout_ms: int, decision: Callable[[Controller, Now], Outcome[T]]
) -> T:
    """The controller's response; with no time at all the client does not want to wait for it."""
    from asyncio import wait

    task = broker.world.loop.create_task(broker.controllers.decide(decision))
    if timeout_ms > 0:
        await wait([task], timeout=timeout_ms / 1000)
    if task.done():
        return task.result()
    task.add_done_callback(_ended_late)
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def _ended_late(task: Task[Any]) -> None:
    """Nobody waits for it any more. What is not an answer to a client must not go unnoticed."""
    if task.cancelled():
        return
    error = task.exception()
    if isinstance(error, KafkaError):
        logger.info("decision.ended_late error=%s", error)
    elif error is not None:
        raise error
