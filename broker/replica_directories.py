"""In which log directories this node's replicas are: moving them, and telling the controller.

A replica moves while it is in use: a future log in the other directory follows the current one, and
takes its place when it has caught up and is on disk. The controller must know where replicas are,
for it has to find other leaders when a directory fails.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError, Task

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import INT32_MAX
from ottla.replication.metadata_versions import DIRECTORIES
from ottla.storage.log import UnexpectedOffsets
from ottla.storage.names import FOLDER_NAME_LENGTH_MAX, FUTURE_FOLDER, folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.protocol.messages.replicas import AssignReplicasToDirsRequest
    from ottla.protocol.wire import Buffer
    from ottla.replication.metadata import Delta
    from ottla.storage.clock import Now
    from ottla.storage.log import Log

logger = logging.getLogger(__name__)

TopicPartition = tuple[str, int]
# By the id of a directory, and by the id of a topic.
Places = dict[bytes, dict[bytes, list[int]]]

_COPIED_AT_ONCE_BYTES = 1 << 20
_COPIED_LAST_BYTES_MAX = 8 << 20
# "-<partition>.<32 digits>-future" must have room behind a topic's name.
_UNIQUE_ID_LENGTH = 32


class ReplicaDirectories:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._moves: dict[TopicPartition, Task[None]] = {}
        self._reports: dict[Task[None], None] = {}

    # coming and going

    def recover(self) -> None:
        """Before logs are made: a future log whose current one is gone had taken its place."""
        logs = self._broker.logs
        for key, future in list(logs.future.items()):
            # In a directory that is offline the current one may still be there.
            if key not in logs.current and key not in logs.refused and not logs.offline:
                future.rename(folder_name(*key))
                logs.current[key] = logs.future.pop(key)

    def start(self) -> None:
        """Goes on with the moves of the process before."""
        for key in list(self._broker.logs.future):
            if key in self._broker.node.partitions:
                self._begin(key)
        self.report(self._broker.node.partitions)

    async def stop(self) -> None:
        tasks = [*self._moves.values(), *self._reports]
        for task in tasks:
            task.cancel()
        for task in tasks:
            try:
                await task
            except CancelledError:
                continue

    # telling the controller

    def applied(self, delta: Delta) -> None:
        """New replicas are wherever there was most room."""
        topics = self._broker.image.topics.by_id
        self.report(
            (topics[topic_id].name, index)
            for topic_id, index in delta.changed_partitions
            if topic_id in topics
        )

    def report(self, keys: Iterable[TopicPartition]) -> None:
        """Tells where these replicas are, as far as the image has it differently."""
        broker = self._broker
        if len(broker.directory_ids) < 2 or broker.image.features.metadata_version < DIRECTORIES:
            return
        misplaced = self._misplaced(keys)
        if misplaced:
            task = broker.world.loop.create_task(self._send(misplaced))
            self._reports[task] = None
            task.add_done_callback(lambda done: self._reports.pop(done, None))

    def _misplaced(self, keys: Iterable[TopicPartition]) -> Places:
        """The partitions that are elsewhere than the image says: by directory, by topic."""
        broker = self._broker
        ids = {path: directory_id for directory_id, path in broker.directory_ids.items()}
        found: Places = {}
        for name, index in keys:
            topic = broker.image.topics.by_name.get(name)
            registration = None if topic is None else topic.partitions.get(index)
            log = broker.logs.current.get((name, index))
            if topic is None or registration is None or log is None:
                continue
            directory = ids.get(log.folder.log_dir.path)
            is_ours = broker.node_id in registration.replicas
            if directory and is_ours and registration.directory(broker.node_id) != directory:
                found.setdefault(directory, {}).setdefault(topic.id, []).append(index)
        return found

    async def _send(self, places: Places) -> None:
        request = assignment(self._broker, places)
        try:
            await self._broker.controllers.decide(
                lambda controller, now: controller.assign_replicas_to_dirs(request, now)
            )
        except KafkaError as error:
            logger.warning("replicas.not_assigned error=%s", error)

    # moving

    def move(self, key: TopicPartition, path: str) -> None:
        """Begins to move a replica to the log directory `path`; where it is, nothing happens."""
        broker = self._broker
        _check_name(key)
        if path not in broker.config.log_dirs:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND)
        if all(log_dir.path != path for log_dir in broker.logs.online):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        try:
            current = broker.node.partition(*key).log
        except KafkaError as error:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE) from None
            raise
        future = broker.logs.future.get(key)
        if future is not None and future.folder.log_dir.path != path:
            self._give_up(key)
            future = None
        if current.folder.log_dir.path == path or future is not None:
            return
        if broker.logs.offline:
            # The future log of this partition may be in there already.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a log directory is offline")
        self._make_future(key, current, path)
        self._begin(key)

    def _make_future(self, key: TopicPartition, current: Log, path: str) -> None:
        now = self._broker.world.now()
        future = self._broker.logs.create(
            *key, current.config, topic_id=current.topic_id, now=now, is_future=True, path=path
        )
        if current.log_start_offset:
            future.truncate_fully_and_start_at(current.log_start_offset, now)
        logger.info("replica.move_begins log=%s path=%s", current, path)

    def _give_up(self, key: TopicPartition) -> None:
        """The replica is to go elsewhere, or nowhere."""
        task = self._moves.pop(key, None)
        if task is not None:
            task.cancel()
        self._broker.logs.future.pop(key).delete()

    def _begin(self, key: TopicPartition) -> None:
        task = self._broker.world.loop.create_task(self._move(key))
        self._moves[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: TopicPartition, task: Task[None]) -> None:
        if self._moves.get(key) is task:
            del self._moves[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def _move(self, key: TopicPartition) -> None:
        logs = self._broker.logs
        current, future = logs.current[key], logs.future[key]
        try:
            while await self._follow(key, current, future):
                if self._catch_up_now(current, future):
                    self._replace(key, current, future)
                    return
        except KafkaError as error:
            # The log directory has taken note of it; the replica stays where it was.
            logger.warning("replica.not_moved log=%s error=%s", current, error)

    async def _follow(self, key: TopicPartition, current: Log, future: Log) -> bool:
        """Copies what there is, and brings it to disk. False if one of the logs is gone."""
        broker = self._broker
        while future.log_end_offset < current.log_end_offset:
            if current.log_start_offset > future.log_end_offset:
                # Retention was faster.
                now = broker.world.now()
                future.truncate_fully_and_start_at(current.log_start_offset, now)
            offset = future.log_end_offset
            fetched = current.read(offset, _COPIED_AT_ONCE_BYTES)
            if fetched is None:
                fetched = await current.read_cold(offset, _COPIED_AT_ONCE_BYTES)
            if not self._is_under_way(key, current, future):
                return False
            _append(future, fetched.data, broker.world.now())
            await broker.pause()
        await future.flush()
        return self._is_under_way(key, current, future)

    def _catch_up_now(self, current: Log, future: Log) -> bool:
        """Copies what has come meanwhile, while nobody appends. False if that would take long."""
        copied_bytes = 0
        while future.log_end_offset < current.log_end_offset:
            fetched = current.read(future.log_end_offset, _COPIED_AT_ONCE_BYTES)
            if fetched is None or copied_bytes > _COPIED_LAST_BYTES_MAX:
                return False
            copied_bytes += len(fetched.data)
            _append(future, fetched.data, self._broker.world.now())
        if self._broker.config["ottla.ack.after.fsync"]:
            # A flush of the old log is under way, and is to find nothing more to do.
            current.flush_now()
        if future.recovery_point < current.recovery_point:
            # What was safe on one disk must be safe on the other.
            future.flush_now()
        return True

    def _is_under_way(self, key: TopicPartition, current: Log, future: Log) -> bool:
        logs = self._broker.logs
        return logs.current.get(key) is current and logs.future.get(key) is future

    def _replace(self, key: TopicPartition, current: Log, future: Log) -> None:
        """Both logs hold the same."""
        broker = self._broker
        now = broker.world.now()
        partition = broker.node.partitions[key]
        broker.upkeep.log_goes(current)
        broker.logs.replace_with_future(key, now)
        if current.log_start_offset > future.log_start_offset:
            future.maybe_increment_log_start_offset(current.log_start_offset)
        future.config = current.config
        partition.log = future
        partition.changed()
        logger.info("replica.moved log=%s", future)
        self.report([key])


def assignment(broker: Broker, places: Places) -> AssignReplicasToDirsRequest:
    # Only nodes with several directories ever need these.
    from ottla.protocol.messages import replicas

    return replicas.AssignReplicasToDirsRequest(
        broker_id=broker.node_id,
        broker_epoch=broker.broker_epoch,
        directories=[
            replicas.AssignReplicasToDirsRequestDirectoryData(
                id=directory,
                topics=[
                    replicas.AssignReplicasToDirsRequestTopicData(
                        topic_id=topic_id,
                        partitions=[
                            replicas.AssignReplicasToDirsRequestPartitionData(partition_index=index)
                            for index in indexes
                        ],
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory, topics in places.items()
        ],
    )


def _append(future: Log, data: Buffer, now: Now) -> None:
    try:
        future.append_as_follower(data, leader_epoch=INT32_MAX, now=now)
    except UnexpectedOffsets as error:
        start = future.log_start_offset
        if future.log_end_offset > start or error.last_offset < start:
            raise
        # The log starts inside of a batch, and readers get it whole.
        future.truncate_fully_and_start_at(error.first_offset, now, log_start_offset=start)
        future.append_as_follower(data, leader_epoch=INT32_MAX, now=now)


def _check_name(key: TopicPartition) -> None:
    name, index = key
    ending = len(f"-{index}.{FUTURE_FOLDER}") + _UNIQUE_ID_LENGTH
    if len(name) + ending > FOLDER_NAME_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
