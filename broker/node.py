"""This node's partitions: opened, led, given up as the Image says.

Decides nothing: the controller has. Changes are applied in the order of the metadata log, one after
the other, in slices; a log directory that fails takes its partitions with it, and no others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import INT64_MAX
from ottla.replication.metadata import TOPIC, Delta, Image
from ottla.replication.metadata_topics import PartitionRegistration, TopicImage
from ottla.replication.partition import Partition
from ottla.storage.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from ottla.broker.broker import Broker
    from ottla.storage.config import LogConfig
    from ottla.storage.log import Log

logger = logging.getLogger(__name__)

TopicPartition = tuple[str, int]
_PARTITIONS_PER_SLICE = 8


class Node:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.partitions: dict[TopicPartition, Partition] = {}
        self._offline: dict[TopicPartition, str] = {}
        self._undeleted: dict[TopicPartition, None] = {}
        self._run = self._run_flush if broker.config["ottla.ack.after.fsync"] else None
        self.flushes_by_time = False
        """Whether any topic has a flush.ms."""

    # asking

    def partition(self, topic: str, index: int) -> Partition:
        """The replica that this node has."""
        found = self.partitions.get((topic, index))
        if found is None:
            raise self._missing(topic, index)
        return found

    def _missing(self, topic: str, index: int) -> KafkaError:
        if (topic, index) in self._offline:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._offline[topic, index])
        if self._broker.image.partition(topic, index) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # configuration

    def log_config(self, topic: str, image: Image) -> LogConfig:
        return self._broker.config.topic(image.topic_config(topic))

    def _min_insync_replicas(self, topic: str, image: Image) -> int:
        value = self._broker.config.topic_value("min.insync.replicas", image.topic_config(topic))
        return int(value)

    # applying the image

    async def start(self, image: Image) -> None:
        """What there is on disk, as the image has it; logs that it does not name are set aside."""
        strays = []
        logs = self._broker.logs
        for (name, index), log in logs.current.items():
            topic = image.topics.by_name.get(name)
            is_ours = topic is not None and self._is_replica(topic.partitions.get(index))
            if topic is None or not is_ours or log.topic_id not in (None, topic.id):
                strays.append((name, index))
        if strays:
            logs.set_aside_strays(strays)
        await self._in_slices(self._start_one, self._all(image), image)
        self._note_flushes()

    def _all(self, image: Image) -> Iterable[tuple[TopicImage, int]]:
        for topic in image.topics.by_name.values():
            for index in topic.partitions:
                yield topic, index

    def _start_one(self, topic: TopicImage, index: int, image: Image) -> None:
        self._apply_one(topic, index, image, is_new=False)

    async def apply(self, image: Image, delta: Delta) -> None:
        """Makes this node's partitions what the image says."""
        deleted = [
            (topic.name, index)
            for topic in delta.deleted_topics.values()
            for index in topic.partitions
        ]
        await self._delete(deleted)
        changed = []
        for topic_id, index in delta.changed_partitions:
            topic = image.topics.by_id.get(topic_id)
            if topic is not None:
                changed.append((topic, index))
        await self._in_slices(self._apply_changed, changed, image)
        self._configure(image, delta)

    def _apply_changed(self, topic: TopicImage, index: int, image: Image) -> None:
        self._apply_one(topic, index, image, is_new=True)

    def _apply_one(self, topic: TopicImage, index: int, image: Image, *, is_new: bool) -> None:
        key = (topic.name, index)
        registration = topic.partitions[index]
        if not self._is_replica(registration):
            self._give_up(key)
            return
        partition = self.partitions.get(key)
        if partition is None:
            partition = self._open(topic, index, registration, image, is_new=is_new)
        if partition is None:
            return
        if registration.leader == self._broker.node_id:
            partition.become_leader(registration, now=self._broker.world.now())
        else:
            partition.become_follower(registration)

    def _open(
        self,
        topic: TopicImage,
        index: int,
        registration: PartitionRegistration,
        image: Image,
        *,
        is_new: bool,
    ) -> Partition | None:
        key = (topic.name, index)
        try:
            log = self._log(topic, index, registration, image, is_new=is_new)
        except KafkaError as error:
            logger.error("partition.offline topic=%s partition=%d reason=%s", *key, error.message)
            self._offline[key] = error.message
            return None
        self._offline.pop(key, None)
        partition = self.partitions[key] = Partition(
            topic.name,
            index,
            topic.id,
            log,
            min_insync_replicas=self._min_insync_replicas(topic.name, image),
            run=self._run,
        )
        return partition

    def _log(
        self,
        topic: TopicImage,
        index: int,
        registration: PartitionRegistration,
        image: Image,
        *,
        is_new: bool,
    ) -> Log:
        broker = self._broker
        found = broker.logs.current.get((topic.name, index))
        if found is not None and found.topic_id in (None, topic.id):
            return found
        if found is not None:
            # Of a topic before this one, whose deletion the disk has refused.
            broker.logs.delete([(topic.name, index)], broker.world.now())
        if (topic.name, index) in self._offline:
            # What was lost with a disk is not begun again elsewhere, empty.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._offline[topic.name, index])
        path = broker.directory_ids.get(registration.directory(broker.node_id))
        if path is not None and all(log_dir.path != path for log_dir in broker.logs.online):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        # A registration that is as the topic was created: its log was never made.
        is_new = is_new or registration.partition_epoch == 0
        return broker.logs.create(
            topic.name,
            index,
            self.log_config(topic.name, image),
            topic_id=topic.id,
            now=broker.world.now(),
            is_new=is_new,
            path=path,
        )

    def _is_replica(self, registration: PartitionRegistration | None) -> bool:
        return registration is not None and self._broker.node_id in registration.replicas

    async def _delete(self, keys: list[TopicPartition]) -> None:
        for first in range(0, len(keys), _PARTITIONS_PER_SLICE):
            part = keys[first : first + _PARTITIONS_PER_SLICE]
            for key in part:
                self._retire(key)
            self._delete_logs(part)
            await self._broker.pause()

    def _give_up(self, key: TopicPartition) -> None:
        if key in self.partitions:
            self._retire(key)
            self._delete_logs([key])

    def _delete_logs(self, keys: list[TopicPartition]) -> None:
        """A disk that refuses it is no reason to apply nothing else."""
        logs = self._broker.logs
        try:
            logs.delete(keys, self._broker.world.now())
        except (KafkaError, StorageError) as error:
            logger.error("partitions.not_deleted count=%d reason=%s", len(keys), error)
            self._undeleted.update(dict.fromkeys(keys))

    def delete_again(self) -> None:
        """What a disk has refused to; to be called now and then."""
        if not self._undeleted:
            return
        keys = [key for key in self._undeleted if key not in self.partitions]
        self._undeleted.clear()
        self._delete_logs(keys)

    def _retire(self, key: TopicPartition) -> None:
        self._offline.pop(key, None)
        partition = self.partitions.pop(key, None)
        if partition is not None:
            partition.retire()
            self._broker.upkeep.log_goes(partition.log)

    def _configure(self, image: Image, delta: Delta) -> None:
        """Settings of topics, and of brokers, from which topics have theirs."""
        if not delta.changed_configs:
            return
        names = {name for kind, name in delta.changed_configs if kind == TOPIC}
        if len(names) < len(delta.changed_configs):
            self._broker.config = self._broker.config.with_dynamic(image.configs)
            names = set(image.topics.by_name)
        for (name, _), partition in self.partitions.items():
            if name in names:
                partition.log.config = self.log_config(name, image)
                partition.rules.min_insync_replicas = self._min_insync_replicas(name, image)
        self._note_flushes()

    def _note_flushes(self) -> None:
        self.flushes_by_time = any(
            log.config.flush_ms < INT64_MAX for log in self._broker.logs.current.values()
        )

    async def _in_slices(
        self,
        apply_one: Callable[[TopicImage, int, Image], None],
        items: Iterable[tuple[TopicImage, int]],
        image: Image,
    ) -> None:
        for number, (topic, index) in enumerate(items, 1):
            apply_one(topic, index, image)
            if number % _PARTITIONS_PER_SLICE == 0:
                await self._broker.pause()

    # disks

    def take_failed_offline(self) -> list[TopicPartition]:
        """A log directory has failed: what was in it is served no more."""
        lost = self._broker.logs.take_failed_offline()
        for key in lost:
            partition = self.partitions.pop(key, None)
            if partition is not None:
                self._offline[key] = "the log directory of this partition has failed"
                partition.retire()
        return lost

    def _run_flush(self, work: Coroutine[Any, Any, None]) -> object:
        return self._broker.begin(work)
