"""What a broker does with its logs in the background: flushing, checkpoints, retention, cleaning.

Decides nothing about a log; storage does. It keeps the times that the configuration gives, and goes
over many logs in slices, between which requests are served.
"""

from __future__ import annotations

import logging
from asyncio import Task, sleep, wait

from ottla.protocol.errors import KafkaError
from ottla.storage.cleaner import Cleaner
from ottla.storage.errors import StorageError
from ottla.storage.long_work import work_on
from ottla.storage.retention import delete_old_segments
from ottla.storage.throttle import Throttle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import TypeVar

    from ottla.broker.broker import Broker
    from ottla.storage.folder import LogDir
    from ottla.storage.log import Log
    from ottla.storage.steps import Slices

    T = TypeVar("T")

logger = logging.getLogger(__name__)

# Kafka flushes by flush.ms only where log.flush.scheduler.interval.ms is set. A topic that asks for
# it gets it here; so often it is looked at.
_FLUSH_LOOK_MS = 1000
_REMOVAL_LOOK_MS = 1000
_METADATA_LOOK_MS = 5000
_LOGS_PER_SLICE = 32


class Upkeep:
    """The tasks of one broker, from `start` to `stop`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[Task[None]] = []
        config = broker.config
        map_bytes_max = config["log.cleaner.dedupe.buffer.size"]
        self.cleaner = Cleaner(broker.world.now, map_bytes_max=map_bytes_max)
        self._flushing: dict[LogDir, Task[None]] = {}

    def start(self) -> None:
        config = self._broker.config
        delay_ms = config["log.initial.task.delay.ms"]
        interval_ms = min(
            config["log.flush.offset.checkpoint.interval.ms"],
            config["replica.high.watermark.checkpoint.interval.ms"],
        )
        self._every(interval_ms, self._checkpoint, delay_ms=interval_ms)
        self._every(_FLUSH_LOOK_MS, self._flush_due, delay_ms=_FLUSH_LOOK_MS)
        self._every(_REMOVAL_LOOK_MS, self._remove_due, delay_ms=_REMOVAL_LOOK_MS)
        self._every(_METADATA_LOOK_MS, self._look_after_metadata, delay_ms=_METADATA_LOOK_MS)
        self._every(
            config["offsets.retention.check.interval.ms"],
            self._broker.coordinators.tidy,
            delay_ms=config["offsets.retention.check.interval.ms"],
        )
        self._every(config["log.retention.check.interval.ms"], self._delete_old, delay_ms=delay_ms)
        self._every(
            config["producer.id.expiration.check.interval.ms"],
            self._expire_producers,
            delay_ms=delay_ms,
        )
        if config["log.cleaner.enable"]:
            self._tasks.append(self._task(self._clean(delay_ms)))
        for log_dir in self._broker.logs.online:
            log_dir.chores.on_flush = self._flusher(log_dir)
            if log_dir.chores.has_flushes:
                log_dir.chores.on_flush()

    async def stop(self) -> None:
        for log_dir in self._broker.logs.online:
            log_dir.chores.on_flush = None
        tasks = [*self._tasks, *self._flushing.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await wait(tasks)

    # what others ask for

    def log_goes(self, log: Log) -> None:
        """It is about to be deleted: nothing may hold it."""
        self.cleaner.forget(log)

    # tasks

    def _task(self, work: Coroutine[object, object, None]) -> Task[None]:
        return self._broker.begin(work)

    def _every(
        self, interval_ms: int, work: Callable[[], Awaitable[None]], *, delay_ms: int
    ) -> None:
        async def repeat() -> None:
            await sleep(delay_ms / 1000)
            while True:
                try:
                    await work()
                except (KafkaError, StorageError) as error:
                    # The log directory has taken note of it.
                    logger.warning("upkeep.refused error=%s", error)
                await sleep(interval_ms / 1000)

        self._tasks.append(self._task(repeat()))

    async def _checkpoint(self) -> None:
        # First what failed half-way, for want of space or descriptors, and may fare better now.
        self._broker.node.delete_again()
        await self._slices(self._broker.logs.reopening(self._broker.world.now()))
        await self._broker.logs.checkpoint()

    async def _flush_due(self) -> None:
        if self._broker.node.flushes_by_time:
            await self._broker.logs.flush_due(self._broker.world.now())

    async def _remove_due(self) -> None:
        self._broker.logs.expire(self._broker.world.now())

    async def _look_after_metadata(self) -> None:
        """A snapshot now and then; without, every start would read the whole log."""
        broker = self._broker
        quorum, now = broker.quorum, broker.world.now()
        quorum.upkeep(now)
        image = broker.controllers.image
        # What an open transaction has brought does not count yet, and cannot be told.
        if quorum.is_snapshot_due(now) and image.transaction is None:
            await work_on(quorum.writing_snapshot(image.records()), self._pause)

    async def _pause(self, moved_bytes: int) -> None:
        await self._broker.pause()

    async def _expire_producers(self) -> None:
        await self._slices(self._broker.logs.expiring_producers(self._broker.world.now()))

    def _tell_readers(self, log: Log) -> None:
        """The log begins later: sessions that watch it are to say so."""
        partition = self._broker.node.partitions.get((log.topic, log.partition))
        if partition is not None and partition.log is log:
            partition.changed()

    async def _delete_old(self) -> None:
        for number, log in enumerate(list(self._broker.logs.current.values()), 1):
            if not self.cleaner.is_cleaning(log) and log.failure is None:
                try:
                    if delete_old_segments(log, self._broker.world.now()):
                        self._tell_readers(log)
                except (KafkaError, StorageError) as error:
                    logger.warning("retention.refused log=%s error=%s", log, error)
            if number % _LOGS_PER_SLICE == 0:
                await self._broker.pause()

    async def _clean(self, delay_ms: int) -> None:
        config = self._broker.config
        await sleep(delay_ms / 1000)
        while True:
            try:
                has_cleaned = await self._clean_one()
            except (KafkaError, StorageError) as error:
                logger.warning("cleaner.refused error=%s", error)
                has_cleaned = False
            if not has_cleaned:
                await sleep(config["log.cleaner.backoff.ms"] / 1000)

    async def _clean_one(self) -> bool:
        """Cleans the log that needs it most. Whether there was one."""
        broker = self._broker
        now = broker.world.now()
        logs = list(broker.logs.current.values())
        to_clean = await self._slices(self.cleaner.dirtiest(logs, now))
        if to_clean is None:
            return False
        throttle = Throttle(
            broker.config["log.cleaner.io.max.bytes.per.second"], monotonic_ms=now.monotonic_ms
        )

        async def pause(moved_bytes: int) -> None:
            delay_ms = throttle.delay_ms(moved_bytes, monotonic_ms=broker.world.now().monotonic_ms)
            await sleep(delay_ms / 1000)

        await work_on(self.cleaner.clean(to_clean), pause)
        return True

    def _flusher(self, log_dir: LogDir) -> Callable[[], None]:
        """Flushes what rolling has put off, in a task of its own that ends when nothing is left."""

        async def flush() -> None:
            try:
                await log_dir.chores.flush_all()
            except (KafkaError, StorageError) as error:
                logger.warning("flush.refused path=%s error=%s", log_dir.path, error)
            finally:
                del self._flushing[log_dir]

        def begin() -> None:
            if log_dir not in self._flushing:
                self._flushing[log_dir] = self._task(flush())

        return begin

    async def _slices(self, slices: Slices[T]) -> T:
        return await self._broker.drive(slices)
