"""Where a log lives: a partition's folder, in a log directory that may fail.

A `LogDir` holds what the logs of one directory share; the first failure of its disk is kept there,
and nothing is acknowledged afterwards. A `Folder` may be renamed under its log, so that paths are
made when they are needed.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.chores import Chores
from ottla.storage.config import LogConfig
from ottla.storage.errors import DiskFailed, StorageError
from ottla.storage.files import Files
from ottla.storage.index_memory import IndexMemory

logger = logging.getLogger(__name__)


class LogDir:
    """A log directory: the disk, and what the logs on it share."""

    __slots__ = (
        "chores",
        "failure",
        "files",
        "indexes",
        "on_failure",
        "on_truncation",
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
        self.on_truncation: Callable[[], None] | None = None
        """Called when a log was cut below its recovery point."""

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

    __slots__ = ("config", "log_dir", "name")

    def __init__(self, log_dir: LogDir, name: str, config: LogConfig) -> None:
        self.log_dir = log_dir
        self.name = name
        self.config = config

    @property
    def files(self) -> Files:
        return self.log_dir.files

    @property
    def path(self) -> str:
        return f"{self.log_dir.path}/{self.name}"

    def file(self, name: str) -> str:
        return f"{self.log_dir.path}/{self.name}/{name}"

    def segment_jitter_ms(self) -> int:
        """How much earlier than `segment.ms` a new segment rolls, lest all roll at once."""
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self.log_dir.random.randrange(jitter_ms) if jitter_ms > 0 else 0
