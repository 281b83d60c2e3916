"""Which groups this node coordinates: those whose partition of `__consumer_offsets` it leads.

Decides nothing about a group. Makes the topic when a coordinator is first asked for.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task

    from ottla.broker.broker import Broker
    from ottla.broker.group_shard import GroupShard
    from ottla.coordinator.groups import GroupSettings
    from ottla.coordinator.offsets import OffsetSettings
    from ottla.replication.metadata import Delta, Image
    from ottla.replication.partition import Partition

logger = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
_MINUTE_MS = 60_000


class Coordinators:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shards: dict[int, GroupShard] = {}
        self._creating: Task[None] | None = None

    # ---- whose is it?

    def partition_of(self, group_id: str) -> int:
        topic = self._broker.image.topics.by_name.get(OFFSETS_TOPIC)
        count = self._broker.config["offsets.topic.num.partitions"]
        if topic is not None:
            count = len(topic.partitions)
        return java_hash(group_id) % int(count)

    def shard(self, group_id: str) -> GroupShard:
        """Where this group's records are; KafkaError if that is not here, or not yet."""
        found = self._shards.get(self.partition_of(group_id))
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        found.check()
        return found

    def all(self) -> list[GroupShard]:
        """Those that this node coordinates; KafkaError while one of them is being loaded."""
        for shard in self._shards.values():
            if shard.is_loading:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return list(self._shards.values())

    async def coordinator_of(self, group_id: str) -> int:
        """The node that leads the group's partition."""
        if OFFSETS_TOPIC not in self._broker.image.topics.by_name:
            await self._create()
        topic = self._broker.image.topics.by_name.get(OFFSETS_TOPIC)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        registration = topic.partitions.get(self.partition_of(group_id))
        if registration is None or registration.leader < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return registration.leader

    # ---- the topic

    async def _create(self) -> None:
        """Once, however many ask."""
        from asyncio import shield

        if self._creating is None:
            self._creating = self._broker.begin(self._create_topic())
        await shield(self._creating)

    async def _create_topic(self) -> None:
        from ottla.broker.topic_creation import alive_count, creatable
        from ottla.protocol.messages.topics import CreateTopicsRequest

        broker = self._broker
        topic = creatable(OFFSETS_TOPIC, broker.config, brokers=alive_count(broker))
        wanted = broker.config["offsets.topic.replication.factor"]
        if topic.replication_factor != wanted:
            logger.warning(
                "config.eased name=offsets.topic.replication.factor value=%d reason=few_nodes",
                topic.replication_factor,
            )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000, validate_only=False)
        try:
            response = await broker.controllers.decide(
                lambda controller, now: controller.create_topics(request, now)
            )
        except KafkaError as error:
            logger.warning("coordinator.no_topic topic=%s error=%s", OFFSETS_TOPIC, error)
        else:
            for created in response.topics:
                if created.error_code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                    message = created.error_message
                    logger.warning("coordinator.no_topic topic=%s error=%s", OFFSETS_TOPIC, message)
        finally:
            self._creating = None

    # ---- settings

    def group_settings(self) -> GroupSettings:
        from ottla.coordinator.groups import GroupSettings

        config = self._broker.config
        delay_ms = config["group.initial.rebalance.delay.ms"]
        if "group.initial.rebalance.delay.ms" not in config.static and self._is_alone:
            # Nobody else will join a moment later, on a node for development.
            delay_ms = 0
        return GroupSettings(
            min_session_timeout_ms=config["group.min.session.timeout.ms"],
            max_session_timeout_ms=config["group.max.session.timeout.ms"],
            initial_rebalance_delay_ms=delay_ms,
            max_size=config["group.max.size"],
        )

    @property
    def _is_alone(self) -> bool:
        return len(self._broker.image.brokers) <= 1

    def offset_settings(self) -> OffsetSettings:
        from ottla.coordinator.offsets import OffsetSettings

        config = self._broker.config
        return OffsetSettings(
            metadata_max=config["offset.metadata.max.bytes"],
            retention_ms=config["offsets.retention.minutes"] * _MINUTE_MS,
        )

    # ---- the image

    async def apply(self, image: Image, delta: Delta | None = None) -> None:
        """Loads what this node leads by now, and lets go what it does not."""
        topic = image.topics.by_name.get(OFFSETS_TOPIC)
        led = {}
        for index in topic.partitions if topic is not None else ():
            partition = self._broker.node.partitions.get((OFFSETS_TOPIC, index))
            if partition is not None and partition.is_leader:
                led[index] = partition
        for index, shard in list(self._shards.items()):
            partition = led.get(index)
            if partition is not shard.partition or partition.leader_epoch != shard.epoch:
                shard.let_go()
                del self._shards[index]
        for index, partition in led.items():
            if index not in self._shards:
                self._begin(index, partition)
        deleted = delta.deleted_topics.values() if delta is not None else ()
        names = frozenset(topic.name for topic in deleted)
        if names:
            for shard in list(self._shards.values()):
                await shard.topics_deleted(names)

    def _begin(self, index: int, partition: Partition) -> None:
        # Loaded with the first group: a start has no time for what nobody may ask for.
        from ottla.broker.group_shard import GroupShard
        from ottla.coordinator.groups import Groups
        from ottla.coordinator.offsets import Offsets

        groups = Groups(self.group_settings, self._broker.world.random)
        offsets = Offsets(groups, self.offset_settings)
        shard = self._shards[index] = GroupShard(self._broker, partition, groups, offsets)
        shard.load()

    def begin_anew(self, shard: GroupShard) -> None:
        """Its log did not take what its machines had decided."""
        for index, found in list(self._shards.items()):
            if found is shard:
                shard.let_go()
                self._begin(index, shard.partition)

    async def tidy(self) -> None:
        for shard in list(self._shards.values()):
            await shard.tidy()

    def stop(self) -> None:
        for shard in self._shards.values():
            shard.let_go()
        self._shards.clear()


def java_hash(text: str) -> int:
    """The absolute value of Java's String.hashCode, as Kafka takes it: that of the most negative
    number is zero."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    signed = value - (1 << 32) if value & 0x8000_0000 else value
    return 0 if signed == -(1 << 31) else abs(signed)
