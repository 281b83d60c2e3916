"""This broker's place in the cluster: it registers, says that it lives, and takes its leave.

Decides nothing: the controller answers what becomes of it. A new incarnation registers fenced, is
unfenced once it has read what the log says of it, and asks to be let go before it stops.
"""

from __future__ import annotations

import logging

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
    BrokerRegistrationResponse,
)
from ottla.replication.metadata_versions import KNOWN_FEATURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.main import Address

logger = logging.getLogger(__name__)

# Two heartbeats let a broker go that leads something; more than these mean that nobody answers.
_FAREWELLS_MAX = 5


class Membership:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._timer: TimerHandle | None = None
        self._offline_directories: dict[bytes, None] = {}

    async def join(self, addresses: Sequence[Address], *, previous_epoch: int) -> None:
        """Registers, fenced; `previous_epoch` is that of a clean stop, else -1. A directory in
        which Kafka has finalized more features than are served here opens all the same."""
        broker = self._broker
        advertised = broker.config.advertised
        online = [
            directory_id
            for directory_id, path in broker.directory_ids.items()
            if path not in broker.logs.offline
        ]
        request = BrokerRegistrationRequest(
            broker_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation_id=broker.world.random.getrandbits(128).to_bytes(16, "big"),
            listeners=[
                _listener(name, *advertised.get(name, (host, port)))
                for name, host, port in addresses
            ],
            features=[
                BrokerRegistrationRequestFeature(
                    name=name, min_supported_version=first, max_supported_version=last
                )
                for name, (first, last) in KNOWN_FEATURES.items()
            ],
            rack=broker.config["broker.rack"],
            log_dirs=sorted(online),
            previous_broker_epoch=previous_epoch,
        )
        response: BrokerRegistrationResponse = await broker.controllers.decide(
            lambda controller, now: controller.register_broker(
                request, now, next_offset=broker.quorum.log_end_offset
            )
        )
        broker.broker_epoch = response.broker_epoch

    async def serve(self) -> None:
        """Asks to be unfenced, and stays alive from then on."""
        await self._heartbeat()
        self._arm()

    async def leave(self) -> None:
        """Gives up what it leads."""
        self._disarm()
        try:
            for _ in range(_FAREWELLS_MAX):
                response = await self._heartbeat(want_shut_down=True)
                if response.should_shut_down:
                    return
        except KafkaError as error:
            logger.warning("broker.not_let_go error=%s", error)

    async def directories_failed(self, directory_ids: Sequence[bytes]) -> None:
        """Others must know what cannot be served here any more: at once, or when it is served."""
        self._offline_directories.update(dict.fromkeys(directory_ids))
        if self._timer is not None:
            await self._beat_on()

    async def _heartbeat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        broker = self._broker
        request = BrokerHeartbeatRequest(
            broker_id=broker.node_id,
            broker_epoch=broker.broker_epoch,
            current_metadata_offset=broker.image.offset,
            want_fence=False,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline_directories),
        )
        response: BrokerHeartbeatResponse = await broker.controllers.decide(
            lambda controller, now: controller.broker_heartbeat(request, now)
        )
        return response

    def _arm(self) -> None:
        broker = self._broker
        interval_s = broker.config["broker.heartbeat.interval.ms"] / 1000
        if self._timer is not None:
            self._timer.cancel()
        self._timer = broker.world.loop.call_later(interval_s, self._beat)

    def _beat(self) -> None:
        self._broker.begin(self._beat_on())

    async def _beat_on(self) -> None:
        try:
            await self._heartbeat()
        except KafkaError as error:
            logger.warning("broker.no_heartbeat error=%s", error)
        if self._timer is not None:
            self._arm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _listener(name: str, host: str, port: int) -> BrokerRegistrationRequestListener:
    return BrokerRegistrationRequestListener(name=name, host=host, port=port, security_protocol=0)
