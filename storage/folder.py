"""Where a log lives: a partition's folder, in a log directory that may fail.

A `LogDir` holds what the logs of one directory share; the first failure of its disk is kept there,
and nothing is acknowledged afterwards. A `Folder` may be renamed under its log, so that paths are
made when they are needed.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.chores import Chores
from ottla.storage.config import LogConfig
from ottla.storage.errors import DiskFailed, StorageError
from ottla.storage.files import Files
from ottla.storage.index_memory import IndexMemory

logger = logging.getLogger(__name__)

Partition = tuple[str, int]


class Promise(NamedTuple):
    """What the checkpoints of a log directory must say of one log, as far as it matters."""

    recovery_point: int | None = None
    """All below is safe on disk, and no start looks at it again."""
    log_start_offset: int | None = None
    """What is below is gone, whatever is still there of it."""


class LogDir:
    """A log directory: the disk, and what the logs on it share."""

    __slots__ = (
        "chores",
        "failure",
        "files",
        "indexes",
        "on_failure",
        "on_promise",
        "path",
        "producer_expiration_ms",
        "random",
        "verifies_transactions",
        "walked_count_max",
    )

    def __init__(
        self,
        files: Files,
        path: str,
        *,
        random: random.Random,
        indexes: IndexMemory,
        producer_expiration_ms: int = 24 * 60 * 60 * 1000,
        walked_count_max: int = 16,
        verifies_transactions: bool = True,
    ) -> None:
        self.files = files
        self.path = path
        self.random = random
        self.indexes = indexes
        self.producer_expiration_ms = producer_expiration_ms
        self.walked_count_max = walked_count_max
        """Produced batches of more records are judged by their header alone."""
        self.verifies_transactions = verifies_transactions
        """transaction.partition.verification.enable; it may change at any time."""
        self.chores = Chores()
        self.failure: str | None = None
        self.on_failure: Callable[[], None] | None = None
        self.on_promise: Callable[[Partition, Promise], None] | None = None
        """Brings to disk what a start after a crash will go by, before a log relies on it."""

    def promise(self, partition: Partition, promise: Promise) -> None:
        """Returns when the disk has it."""
        if self.on_promise is not None:
            self.on_promise(partition, promise)

    def fail(self, reason: str) -> None:
        """Takes the directory offline, for good: what the disk holds is not known any more."""
        if self.failure is None:
            self.failure = reason
            logger.error("log_dir.offline path=%s reason=%s", self.path, reason)
            if self.on_failure is not None:
                self.on_failure()

    def check(self) -> None:
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory {self.path} failed")

    def refused(self, error: StorageError) -> KafkaError:
        """What a client is told when the disk did not do it; a failed disk is remembered."""
        if isinstance(error, DiskFailed):
            self.fail(str(error))
        else:
            logger.warning("log_dir.refused reason=%s", error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


class Folder:
    """A partition's folder, and what is set for its topic."""

    __slots__ = ("_names_made", "_names_synced", "config", "log_dir", "name")

    def __init__(self, log_dir: LogDir, name: str, config: LogConfig) -> None:
        self.log_dir = log_dir
        self.name = name
        self.config = config
        # Whoever had the folder before may have left names behind that never reached the disk.
        self._names_made = 1
        self._names_synced = 0

    @property
    def files(self) -> Files:
        return self.log_dir.files

    @property
    def path(self) -> str:
        return f"{self.log_dir.path}/{self.name}"

    def file(self, name: str) -> str:
        return f"{self.log_dir.path}/{self.name}/{name}"

    # names

    def names_are_on_disk(self) -> None:
        """A clean stop vouches for them."""
        self._names_synced = self._names_made

    def names_changed(self) -> None:
        """A file was made, renamed or removed, and a crash must not undo that for ever."""
        self._names_made += 1

    def sync_names_now(self) -> None:
        """Blocks until the names in the folder are on disk."""
        made = self._names_made
        if self._names_synced < made:
            self.files.sync_directory_now(self.path)
            self._names_synced = made

    async def sync_names(self) -> None:
        made = self._names_made
        if self._names_synced < made:
            await self.files.sync_directory(self.path)
            self._names_synced = max(self._names_synced, made)

    def segment_jitter_ms(self) -> int:
        """How much earlier than `segment.ms` a new segment rolls, lest all roll at once."""
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self.log_dir.random.randrange(jitter_ms) if jitter_ms > 0 else 0
