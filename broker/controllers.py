"""The shell around the controller: what it decides is appended, replayed and committed.

Decides nothing. A decision is replayed at once, so that the next one builds on it; its reply leaves
when the log has committed it and this node serves what it says. What the log commits becomes the
next Image, and is applied in the order of the log.
"""

from __future__ import annotations

import logging
from collections import deque

from ottla.broker.config_rules import Rules
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.controller import Controller, ControllerSettings
from ottla.replication.metadata import Delta, Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, Task, TimerHandle
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from ottla.broker.broker import Broker
    from ottla.broker.config import BrokerConfig
    from ottla.replication.controller import Outcome
    from ottla.replication.metadata_records import Versioned
    from ottla.storage.clock import Now

    T = TypeVar("T")
    Decision = Callable[[Controller, Now], Outcome[T]]

logger = logging.getLogger(__name__)

# A moment that has passed already is tried again, not at once and for ever.
_SHORTEST_WAIT_MS = 100


class Controllers:
    """Listens to the metadata log, and asks the controller in its name."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.controller: Controller | None = None
        """None while this node does not lead the quorum."""
        self.image = Image()
        """As committed; `broker.image` follows once this node has applied it."""
        self._to_apply: deque[tuple[Image, Delta]] = deque()
        self._applying: Task[None] | None = None
        self._applied_offset = -1
        self._waiters: list[tuple[int, Future[None]]] = []
        self._is_live = False
        self._timer: TimerHandle | None = None

    # what the log tells

    def load(self, records: Sequence[Versioned], *, offset: int, epoch: int) -> None:
        """A part of a snapshot, which ends at this offset."""
        delta = Delta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(offset=offset, epoch=epoch)

    def commit(
        self,
        base_offset: int,
        last_offset: int,
        epoch: int,
        append_timestamp_ms: int,
        records: Sequence[Versioned],
    ) -> None:
        """A batch of the log that no failure takes back any more."""
        delta = Delta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(offset=last_offset, epoch=epoch)
        if self._is_live:
            self._to_apply.append((self.image, delta))
            if self._applying is None:
                self._applying = self._broker.begin(self._apply_all())

    async def start(self, bootstrap: Sequence[Versioned]) -> None:
        """This node leads the quorum: from now on it decides."""
        broker = self._broker
        controller = self.controller = Controller(
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            random=broker.world.random,
            rules=Rules(lambda: broker.config),
            settings=settings_of(broker.config),
            image=self.image,
        )
        controller.set_kraft_version(broker.quorum.kraft_version)
        outcome = controller.bootstrap(broker.world.now(), bootstrap)
        if outcome.records:
            await self._commit(controller, outcome)

    def go_live(self) -> None:
        """What was read so far is applied by whoever starts the broker; what comes now is here."""
        self._is_live = True
        self._applied_offset = self.image.offset
        self._arm()

    async def _apply_all(self) -> None:
        while self._to_apply:
            image, delta = self._to_apply.popleft()
            await self._broker.apply(image, delta)
            self._applied_offset = image.offset
            self._wake(image.offset)
        self._applying = None

    def _wake(self, offset: int) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter[0] > offset:
                self._waiters.append(waiter)
            elif not waiter[1].done():
                waiter[1].set_result(None)

    # what handlers ask

    async def decide(self, decision: Decision[T]) -> T:
        """The response, once everything that it rests on is committed and served here."""
        controller = self.controller
        if controller is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        outcome = decision(controller, self._broker.world.now())
        if outcome.records:
            await self._commit(controller, outcome)
        else:
            # An answer from what others have decided and the log has not committed yet.
            await self._broker.quorum.committed(controller.image.offset)
            await self._applied(min(controller.image.offset, self.image.offset))
        return outcome.response

    async def _commit(self, controller: Controller, outcome: Outcome[Any]) -> None:
        broker, records = self._broker, outcome.records
        offset = broker.quorum.append(records, is_atomic=outcome.is_atomic)
        # What the log has the controller must have: an error in between may not be survived.
        broker.is_changing = True
        try:
            controller.replay(records, offset=offset, epoch=broker.quorum.leader_epoch)
        except KafkaError as error:
            # Whoever waits may take a refusal for an answer; this is none.
            raise RuntimeError(f"what was decided cannot be replayed: {error}") from error
        broker.is_changing = False
        await broker.quorum.committed(offset)
        await self._applied(offset)

    # time

    def _arm(self) -> None:
        """One timer for all that the controller does by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = None if self.controller is None else self.controller.deadline()
        if due_ms is not None:
            loop, now = self._broker.world.loop, self._broker.world.now()
            delay_ms = max(_SHORTEST_WAIT_MS, due_ms - now.monotonic_ms)
            self._timer = loop.call_later(delay_ms / 1000, self._due)

    def _due(self) -> None:
        self._broker.begin(self._expire())

    async def _expire(self) -> None:
        try:
            await self.decide(lambda controller, now: controller.expire(now))
        except KafkaError as error:
            logger.warning("controller.not_expired error=%s", error)
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def _applied(self, offset: int) -> None:
        if self._is_live and self._applied_offset < offset:
            future = self._broker.world.loop.create_future()
            self._waiters.append((offset, future))
            await future


def settings_of(config: BrokerConfig) -> ControllerSettings:
    return ControllerSettings(
        num_partitions=config["num.partitions"],
        default_replication_factor=config["default.replication.factor"],
        broker_session_timeout_ms=config["broker.session.timeout.ms"],
        auto_leader_rebalance_enable=config["auto.leader.rebalance.enable"],
        leader_imbalance_check_interval_seconds=config["leader.imbalance.check.interval.seconds"],
        min_insync_replicas=config["min.insync.replicas"],
    )
