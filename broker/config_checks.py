"""What must hold between several configurations of a broker, and of a topic.

Knows no sources. The texts are Kafka's where Kafka makes the same check.
"""

from __future__ import annotations

from ottla.broker.config_key import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.config import BrokerConfig

_MEBIBYTE = 1 << 20


def check_together(config: BrokerConfig) -> None:
    """Raises InvalidValue or ListenersRefused where values, fine alone, do not go together."""
    _check_alone(config)
    values = config.values
    retention_ms = config.topic_defaults["retention.ms"]
    if retention_ms < 1 and retention_ms != -1:
        raise InvalidValue("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    threads = max(values["log.cleaner.threads"], 1)
    if values["log.cleaner.dedupe.buffer.size"] // threads <= _MEBIBYTE:
        raise InvalidValue(
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
        )
    if 0 < values["queued.max.request.bytes"] < values["socket.request.max.bytes"]:
        raise InvalidValue(
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
        )
    overrides = config.connections_per_ip_overrides
    if values["max.connections.per.ip"] == 0 and not overrides:
        raise InvalidValue(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set."
        )


def _check_alone(config: BrokerConfig) -> None:
    """What names other nodes would start a cluster that is not there."""
    roles, voters = config["process.roles"], config["controller.quorum.voters"]
    if set(roles) != {"broker", "controller"}:
        raise InvalidValue(
            f"process.roles: only broker,controller is supported yet, not {','.join(roles)}"
        )
    ids = [int(voter.partition("@")[0]) for voter in voters]
    if ids and config.node_id not in ids:
        raise InvalidValue(
            "If process.roles contains the 'controller' role, the node id "
            f"{config.node_id} must be included in the set of voters "
            f"controller.quorum.voters={','.join(voters)}"
        )
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if len(config[name]) > 1:
            raise InvalidValue(f"{name}: only one node is supported yet, not {len(config[name])}")
