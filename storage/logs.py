"""All logs of a node, in all its log directories.

Knows what logs there are, not who leads them. Opening and closing thousands of them are generators
that pause; a directory that fails goes offline with its logs, and the others go on. Once none is
left, `online` is empty: a broker then ends with exit code 1, as Kafka does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.storage.checkpoints import UNKNOWN_BROKER_EPOCH
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptFile, DiskFailed, DiskFull, StorageError
from ottla.storage.files import Files
from ottla.storage.folder import Folder, LogDir
from ottla.storage.index_memory import IndexMemory
from ottla.storage.log import Log
from ottla.storage.log_checkpoints import LogCheckpoints
from ottla.storage.log_dirs import LogDirectories
from ottla.storage.names import (
    DELETE_FOLDER,
    FUTURE_FOLDER,
    STRAY_FOLDER,
    folder_name,
    parse_folder_name,
)
from ottla.storage.recovery import create_log, open_log, reopen_log
from ottla.storage.steps import Slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

logger = logging.getLogger(__name__)

Partition = tuple[str, int]
METADATA_TOPIC = "__cluster_metadata"
_REMOVED_AT_ONCE = 32


class DuplicateFolder(StorageError):
    """A partition has a folder in two log directories."""


class Logs:
    """The logs by partition. `future` are those that are about to replace one in another directory,
    `refused` those that cannot be opened, with the reason."""

    def __init__(
        self,
        files: Files,
        directories: LogDirectories,
        *,
        random: Random,
        default_config: LogConfig,
        producer_expiration_ms: int = 24 * 60 * 60 * 1000,
        walked_count_max: int = 16,
        verifies_transactions: bool = True,
    ) -> None:
        self._files = files
        self._directories = directories
        self._random = random
        self.default_config = default_config
        self.current: dict[Partition, Log] = {}
        self.future: dict[Partition, Log] = {}
        self.refused: dict[Partition, str] = {}
        indexes = IndexMemory()
        self._log_dirs = {
            path: LogDir(
                files,
                path,
                random=random,
                indexes=indexes,
                producer_expiration_ms=producer_expiration_ms,
                walked_count_max=walked_count_max,
                verifies_transactions=verifies_transactions,
            )
            for path in directories.online
        }
        self._checkpoints = {
            path: LogCheckpoints(log_dir, self._logs_in) for path, log_dir in self._log_dirs.items()
        }

    # opening

    def opening(self, config_of: Callable[[str], LogConfig], now: Now) -> Slices[None]:
        """Opens what is there. `config_of` gives a topic's settings."""
        for path, log_dir in list(self._log_dirs.items()):
            try:
                yield from self._opening_in(log_dir, self._checkpoints[path], config_of, now)
            except DiskFailed as error:
                log_dir.fail(str(error))
        self.take_failed_offline()

    def _opening_in(
        self,
        log_dir: LogDir,
        checkpoints: LogCheckpoints,
        config_of: Callable[[str], LogConfig],
        now: Now,
    ) -> Slices[None]:
        checkpoints.read()
        checkpoints.is_loaded = True
        for name in self._files.list(log_dir.path):
            found = parse_folder_name(name)
            if found is None or found.topic == METADATA_TOPIC:
                continue
            if not self._files.is_directory(f"{log_dir.path}/{name}"):
                continue
            if found.state == DELETE_FOLDER:
                self._remove_later(log_dir, f"{log_dir.path}/{name}", now)
            elif found.state != STRAY_FOLDER:
                folder = Folder(log_dir, name, config_of(found.topic))
                yield from self._opening_one(folder, checkpoints, now)
            yield

    def _opening_one(self, folder: Folder, checkpoints: LogCheckpoints, now: Now) -> Slices[None]:
        found = parse_folder_name(folder.name)
        if found is None:
            raise ValueError(f"{folder.path} is no partition's folder")
        partition = found.topic, found.partition
        logs = self.future if found.state == FUTURE_FOLDER else self.current
        if (other := logs.get(partition)) is not None:
            raise DuplicateFolder(folder.path, f"{other.folder.path} is of the same partition")
        try:
            log = yield from open_log(
                folder,
                log_start_offset=checkpoints.log_starts.get(partition, 0),
                recovery_point=checkpoints.recovery_points.get(partition, 0),
                is_clean=checkpoints.was_clean,
                now=now,
            )
        except (CorruptFile, DiskFull) as error:
            logger.error("log.refused reason=%s", error)
            self.refused[partition] = str(error)
            checkpoints.keep(partition)
            checkpoints.is_loaded = False
            return
        log.update_high_watermark(checkpoints.high_watermarks.get(partition, 0))
        logs[partition] = log

    # coming and going

    def create(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: bytes | None,
        now: Now,
        is_new: bool = True,
        is_future: bool = False,
        path: str | None = None,
    ) -> Log:
        """A new log, in the directory `path` or the one with the fewest logs. Where it is not new,
        it may be in a directory that is offline, and is not made a second time. A future log is to
        take the place of the current one, in another directory."""
        if not is_new and self.offline:
            raise _storage_error(f"{topic}-{partition} may be in a directory that is offline")
        if (topic, partition) in self.refused:
            raise _storage_error(self.refused[topic, partition])
        logs = self.future if is_future else self.current
        if (topic, partition) in logs:
            raise ValueError(f"the log of {topic}-{partition} is there already")
        name = folder_name(topic, partition)
        if is_future:
            name = folder_name(topic, partition, self._unique_id(), FUTURE_FOLDER)
        failure = _storage_error("no log directory is left")
        for log_dir in self._emptiest() if path is None else [self._log_dirs[path]]:
            try:
                # A checkpoint that still knows an older log of this name would cut the new one.
                self._checkpoints[log_dir.path].forget((topic, partition))
                log = create_log(
                    log_dir, topic, partition, config, topic_id=topic_id, now=now, name=name
                )
            except StorageError as error:
                failure = log_dir.refused(error)
                continue
            logs[topic, partition] = log
            return log
        raise failure

    def replace_with_future(self, partition: Partition, now: Now) -> None:
        """Puts the future log in the place of the current one, which is deleted."""
        future = self.future[partition]
        high_watermark = self.current[partition].high_watermark
        for log, path in self._set_aside([partition], DELETE_FOLDER, [self.current]):
            log.let_go()
            self._remove_later(log.folder.log_dir, path, now)
        future.rename(folder_name(*partition))
        future.update_high_watermark(high_watermark)
        self.current[partition] = self.future.pop(partition)

    def _emptiest(self) -> list[LogDir]:
        counts = dict.fromkeys(self._log_dirs, 0)
        for log in [*self.current.values(), *self.future.values()]:
            counts[log.folder.log_dir.path] += 1
        return [self._log_dirs[path] for path in sorted(counts, key=lambda path: counts[path])]

    def delete(self, partitions: Iterable[Partition], now: Now) -> None:
        """Takes logs away at once; their folders go after file.delete.delay.ms."""
        for log, path in self._set_aside(partitions, DELETE_FOLDER, [self.current, self.future]):
            log.let_go()
            self._remove_later(log.folder.log_dir, path, now)

    def set_aside_strays(self, partitions: Iterable[Partition]) -> None:
        """Takes logs away that nobody claims; their folders stay, for a person to look at."""
        for log, path in self._set_aside(partitions, STRAY_FOLDER, [self.current, self.future]):
            log.let_go()
            logger.warning("log.stray path=%s", path)

    def _set_aside(
        self, partitions: Iterable[Partition], state: str, among: list[dict[Partition, Log]]
    ) -> list[tuple[Log, str]]:
        gone = []
        for partition in partitions:
            for logs in among:
                log = logs.get(partition)
                if log is None:
                    continue
                log.rename(folder_name(*partition, self._unique_id(), state))
                del logs[partition]
                gone.append((log, log.folder.path))
        for log_dir in {log.folder.log_dir.path: log.folder.log_dir for log, _ in gone}.values():
            self._checkpoints[log_dir.path].write_now()
        return gone

    def _unique_id(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def _remove_later(self, log_dir: LogDir, path: str, now: Now) -> None:
        files, chores = self._files, log_dir.chores
        due_ms = now.monotonic_ms + self.default_config.file_delete_delay_ms

        def remove() -> None:
            """A few files at a time: there may be thousands."""
            if not files.exists(path):
                return
            names = files.list(path)
            for name in names[:_REMOVED_AT_ONCE]:
                files.remove(f"{path}/{name}")
            if len(names) > _REMOVED_AT_ONCE:
                chores.remove(remove, due_ms=due_ms)
                return
            files.remove_directory(path)
            logger.info("log.deleted path=%s", path)

        chores.remove(remove, due_ms=due_ms)

    # directories

    @property
    def previous_broker_epoch(self) -> int:
        """That of the process before, if it has stopped cleanly everywhere; else -1."""
        epochs = {
            each.broker_epoch if each.was_clean else UNKNOWN_BROKER_EPOCH
            for each in self._checkpoints.values()
        }
        return epochs.pop() if len(epochs) == 1 else UNKNOWN_BROKER_EPOCH

    @property
    def online(self) -> list[LogDir]:
        return list(self._log_dirs.values())

    @property
    def offline(self) -> dict[str, str]:
        """The reason, by path."""
        return self._directories.offline

    def _logs_in(self, log_dir: LogDir) -> list[Log]:
        logs = [*self.current.values(), *self.future.values()]
        return [log for log in logs if log.folder.log_dir is log_dir]

    def take_failed_offline(self) -> list[Partition]:
        """Gives up directories that failed, and names the partitions that go with them."""
        lost = []
        for path, log_dir in list(self._log_dirs.items()):
            if log_dir.failure is None:
                continue
            del self._log_dirs[path], self._checkpoints[path]
            for logs in (self.current, self.future):
                for partition, log in list(logs.items()):
                    if log.folder.log_dir is log_dir:
                        log.let_go()
                        del logs[partition]
                        lost.append(partition)
            self._directories.take_offline(path, log_dir.failure)
        return lost

    # time

    def reopening(self, now: Now) -> Slices[list[Partition]]:
        """Opens what a change has left that failed half-way, for want of space or descriptors; to
        be called now and then. Names the partitions that go on. Kafka gives up the directory."""
        again = []
        for log in [*self.current.values(), *self.future.values()]:
            log_dir = log.folder.log_dir
            if log.failure is None or log_dir.failure is not None:
                continue
            try:
                yield from reopen_log(log, now)
            except KafkaError:
                continue
            except StorageError as error:
                log_dir.refused(error)
                continue
            logger.info("log.reopened log=%s", log)
            again.append((log.topic, log.partition))
        return again

    async def checkpoint(self) -> None:
        """Writes what a start after a crash goes by; to be called now and then."""
        for checkpoints in list(self._checkpoints.values()):
            await checkpoints.write()

    async def flush_due(self, now: Now) -> None:
        """Flushes logs by flush.ms, which is off by default."""
        for log in [*self.current.values(), *self.future.values()]:
            if now.monotonic_ms - log.last_flush_ms >= log.config.flush_ms:
                log.last_flush_ms = now.monotonic_ms
                await log.flush()

    def expiring_producers(self, now: Now) -> Slices[None]:
        """Forgets producers that have not written for producer.id.expiration.ms."""
        for log in [*self.current.values(), *self.future.values()]:
            log.producers.remove_expired(now.wall_ms)
            yield

    def deadline_ms(self) -> int | None:
        """When files are due to be removed, by the monotonic clock."""
        due = [log_dir.chores.deadline_ms() for log_dir in self._log_dirs.values()]
        return min((each for each in due if each is not None), default=None)

    def expire(self, now: Now) -> None:
        """Removes a few of the files that are due."""
        for log_dir in self._log_dirs.values():
            try:
                log_dir.chores.expire(now.monotonic_ms)
            except StorageError as error:
                log_dir.refused(error)

    # the end

    def closing(self, *, broker_epoch: int) -> Slices[None]:
        """Stops cleanly: all is on disk, and the next start need not look at it."""
        for path, log_dir in self._log_dirs.items():
            checkpoints = self._checkpoints[path]
            try:
                for log in self._logs_in(log_dir):
                    log.close()
                    yield
                checkpoints.write_now()
                checkpoints.write_clean_shutdown(broker_epoch)
            except KafkaError as error:
                logger.error("log_dir.not_closed path=%s reason=%s", path, error)
            yield
        self._directories.release()


def _storage_error(message: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
