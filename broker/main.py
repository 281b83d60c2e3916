"""A broker from its first file to its last: how it starts, and how it stops.

The order is what counts. The directories are locked before anything in them is read, addresses are
taken before anything is written; this broker is fenced and unfenced in the metadata log, so that
leader epochs rise with every start; clients come in when all of that is committed.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.controllers import Controllers
from ottla.broker.coordinators import Coordinators
from ottla.broker.dispatch import Dispatch
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.membership import Membership
from ottla.broker.node import Node
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.replica_directories import ReplicaDirectories
from ottla.broker.server import Server, limits_of
from ottla.broker.topic_creation import TopicCreation
from ottla.broker.upkeep import Upkeep
from ottla.protocol.errors import KafkaError
from ottla.protocol.records import INT32_MAX
from ottla.replication.controller_bootstrap import bootstrap_records as new_cluster_records
from ottla.replication.controller_bootstrap import refusals
from ottla.replication.quorum import Quorum, QuorumSettings
from ottla.replication.quorum_format import bootstrap_records, format_directories
from ottla.replication.quorum_log import MetadataLogSettings
from ottla.replication.voters import Listener as RaftListener
from ottla.storage.log_dirs import LogDirectories, open_log_directories
from ottla.storage.logs import Logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.config import BrokerConfig
    from ottla.broker.world import World

logger = logging.getLogger(__name__)

# Of larger batches only the header is judged, unless all are to be walked for
# walking records in Python costs more than anything else.
_WALKED_COUNT = 16
# Kafka's usual one.
_CONTROLLER_PORT = 9093
# What is under way when a broker stops may take so long to be answered.
_PATIENCE_S = 5.0


class StartRefused(Exception):
    """This broker cannot start; one line says why."""


class Address(NamedTuple):
    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host or "localhost"
        return f"{host}:{self.port}"


class Running:
    """A broker that serves, until `stop`."""

    def __init__(self, broker: Broker, addresses: list[Address]) -> None:
        self.broker = broker
        self.addresses = addresses

    @property
    def bootstrap(self) -> str:
        return str(self.addresses[0])

    async def stop(self) -> None:
        """Answers what is under way, and leaves what Kafka calls a clean shutdown."""
        broker = self.broker
        await broker.membership.leave()
        broker.controllers.stop()
        broker.coordinators.stop()
        await broker.server.stop(patience_s=_PATIENCE_S)
        await broker.replica_directories.stop()
        await broker.upkeep.stop()
        await broker.drive(broker.logs.closing(broker_epoch=broker.broker_epoch))
        try:
            await broker.drive(broker.quorum.closing())
        except KafkaError as error:
            logger.error("broker.not_closed reason=%s", error)
        broker.directories.release()
        broker.world.files.close()


async def started(
    world: World,
    config: BrokerConfig,
    *,
    descriptors_max: int | None = None,
    on_fatal: Callable[[int, str], None] | None = None,
) -> Running:
    """Opens what is there, or makes it, and serves. `on_fatal` ends the process with an exit code
    and one line; `descriptors_max` is how many descriptors it may have."""
    directories = _locked(world, config)
    broker = Broker(world, config, node_id=config.node_id)
    broker.directories = directories
    broker.on_fatal = on_fatal
    broker.server = Server(
        world, limits_of(config), Dispatch(broker).serve, descriptors_max=descriptors_max
    )
    try:
        return await _Start(broker).run()
    except BaseException as error:
        broker.server.close()
        directories.release()
        if isinstance(error, KafkaError):
            # A log that cannot be written to, or what is decided cannot be committed.
            raise StartRefused(f"cannot start: {error.message}") from error
        raise


def _locked(world: World, config: BrokerConfig) -> LogDirectories:
    paths = dict.fromkeys([*config.log_dirs, config.metadata_log_dir])
    directories = open_log_directories(world.files, list(paths), node_id=config.node_id)
    offline = directories.offline
    for path, reason in offline.items():
        logger.error("log_dir.offline path=%s reason=%s", path, reason)
    if config.metadata_log_dir in offline or all(path in offline for path in config.log_dirs):
        directories.release()
        raise StartRefused(offline.get(config.metadata_log_dir) or offline[config.log_dirs[0]])
    return directories


class _Start:
    """What happens between an open directory and the first client."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(self) -> Running:
        broker = self._broker
        addresses = await self._bind()
        await self._open_metadata_log()
        membership = broker.membership = Membership(broker)
        await self._open_logs()
        broker.fetch_sessions = FetchSessions(
            broker.config["max.incremental.fetch.session.cache.slots"], random=broker.world.random
        )
        broker.producer_ids = ProducerIds(broker)
        broker.topic_creation = TopicCreation(broker)
        broker.coordinators = Coordinators(broker)
        await membership.join(addresses, previous_epoch=broker.logs.previous_broker_epoch)
        await broker.node.start(broker.controllers.image)
        broker.image = broker.controllers.image
        broker.controllers.go_live()
        await membership.serve()
        broker.upkeep.start()
        broker.replica_directories.start()
        await broker.server.start()
        return Running(broker, addresses)

    async def _open_metadata_log(self) -> None:
        broker = self._broker
        config, world = broker.config, broker.world
        broker.controllers = Controllers(broker)
        listeners = controller_listeners(config)
        identity = format_directories(
            world.files,
            broker.directories,
            metadata_path=config.metadata_log_dir,
            node_id=broker.node_id,
            random=world.random,
            now=world.now(),
            bootstrap=new_cluster_records(),
            listeners=listeners,
        )
        broker.cluster_id = identity.cluster_id
        broker.directory_ids = {
            directory_id: path
            for directory_id, path in identity.directory_ids.items()
            if path in config.log_dirs
        }
        broker.quorum = Quorum(
            world.files,
            config.metadata_log_dir,
            node_id=broker.node_id,
            directory_id=identity.metadata_directory_id,
            random=world.random,
            now=world.now,
            loop=world.loop,
            listener=broker.controllers,
            on_failure=self._on_metadata_failure,
            settings=quorum_settings(config),
            configured_voters=voter_ids(config),
            listeners=listeners,
        )
        await broker.drive(broker.quorum.opening())
        reason = refusals(broker.controllers.image)
        if reason is not None:
            raise StartRefused(f"{config.metadata_log_dir}: {reason}")
        await broker.controllers.start(bootstrap_records(world.files, config.metadata_log_dir))

    async def _open_logs(self) -> None:
        broker = self._broker
        config, world = broker.config, broker.world
        image = broker.controllers.image
        broker.config = config = config.with_dynamic(image.configs)
        broker.server.limits = limits_of(config)
        broker.logs = Logs(
            world.files,
            self._log_directories(),
            random=world.random,
            default_config=config.log_config,
            producer_expiration_ms=config["producer.id.expiration.ms"],
            walked_count_max=INT32_MAX if config["ottla.validate.records"] else _WALKED_COUNT,
        )
        broker.node = Node(broker)
        broker.upkeep = Upkeep(broker)
        for log_dir in broker.logs.online:
            log_dir.on_failure = self._on_failure
        await broker.drive(
            broker.logs.opening(lambda topic: broker.node.log_config(topic, image), world.now())
        )
        reason = self._lost()
        if reason is not None:
            raise StartRefused(reason)
        broker.replica_directories = ReplicaDirectories(broker)
        broker.replica_directories.recover()

    def _log_directories(self) -> LogDirectories:
        """Without that of the metadata log, where it has one of its own: there are no topics."""
        every = self._broker.directories
        paths = self._broker.config.log_dirs
        online = {path: found for path, found in every.online.items() if path in paths}
        return LogDirectories(online, every.offline)

    def _on_metadata_failure(self) -> None:
        self._broker.fatal("the disk of the metadata log has failed", exit_code=1)

    def _on_failure(self) -> None:
        """Called in the midst of a write: what follows comes when that has ended."""
        broker = self._broker
        broker.world.loop.call_soon(lambda: broker.begin(self._give_up_failed()))

    async def _give_up_failed(self) -> None:
        broker = self._broker
        lost = broker.node.take_failed_offline()
        offline = broker.logs.offline
        logger.error("node.partitions_offline count=%d directories=%s", len(lost), sorted(offline))
        reason = self._lost()
        if reason is not None:
            broker.fatal(reason, exit_code=1)
            return
        ids = [
            directory_id for directory_id, path in broker.directory_ids.items() if path in offline
        ]
        await broker.membership.directories_failed(ids)

    def _lost(self) -> str | None:
        """Why this node cannot go on, if so: one line."""
        broker = self._broker
        if broker.logs.online and broker.config.metadata_log_dir not in broker.logs.offline:
            return None
        return "no log directory is left that this node can work with"

    async def _bind(self) -> list[Address]:
        broker = self._broker
        addresses = []
        for listener in broker.config.listeners.opened:
            try:
                port = await broker.server.bind(listener.name, listener.host, listener.port)
            except OSError as error:
                reason = _reason(error)
                raise StartRefused(f"cannot listen on {listener}: {reason}") from error
            addresses.append(Address(listener.name, listener.host, port))
        return addresses


def _reason(error: OSError) -> str:
    """Without the address, which asyncio puts before it."""
    text = error.strerror or str(error)
    return text.rpartition("): ")[2]


def quorum_settings(config: BrokerConfig) -> QuorumSettings:
    return QuorumSettings(
        log=MetadataLogSettings(
            segment_bytes=(
                config["internal.metadata.log.segment.bytes"]
                or config["metadata.log.segment.bytes"]
            ),
            segment_ms=config["metadata.log.segment.ms"],
            max_retention_bytes=config["metadata.max.retention.bytes"],
            max_retention_ms=config["metadata.max.retention.ms"],
            file_delete_delay_ms=config["log.segment.delete.delay.ms"],
        ),
        max_record_bytes_between_snapshots=(
            config["metadata.log.max.record.bytes.between.snapshots"]
        ),
        max_snapshot_interval_ms=config["metadata.log.max.snapshot.interval.ms"],
    )


def controller_listeners(config: BrokerConfig) -> list[RaftListener]:
    """Where a controller would be reached, for a Kafka that goes on with this directory."""
    if config.listeners.controller:
        return [RaftListener(*each) for each in config.listeners.controller]
    host = config.listeners.opened[0].host
    return [RaftListener("CONTROLLER", host or "localhost", _CONTROLLER_PORT)]


def voter_ids(config: BrokerConfig) -> list[int]:
    """Of a configuration that names its voters: `1@host:9093,2@...`."""
    return [int(text.partition("@")[0]) for text in config["controller.quorum.voters"]]
