"""Where a broker listens, and under which addresses it is to be reached.

Knows no socket. A listener has a name, which stands for a purpose (clients, other brokers, the
controller), and a security protocol, of which only PLAINTEXT is served.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

PLAINTEXT = "PLAINTEXT"
_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_HOST = r"[0-9a-zA-Z\-%._:\[\]]+"
_LISTENER = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"


class ListenersRefused(Exception):
    """Listeners that cannot be opened, in one line."""


class Listener(NamedTuple):
    name: str
    host: str
    """Empty: on every interface."""
    port: int
    """0: any that is free."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listeners(NamedTuple):
    opened: tuple[Listener, ...]
    """What `listeners` says, those of the controller left out: a node alone asks itself."""
    controller: tuple[Listener, ...]
    advertised: Mapping[str, Listener]
    """By the listener's name; empty where nothing is configured: clients come back to the address
    at which they found us."""
    inter_broker: str


def parse_listener(text: str) -> Listener:
    found = re.fullmatch(_LISTENER, text)
    if found is None:
        raise ListenersRefused(f"Unable to parse {text} to a broker endpoint")
    port = int(found[3][:12])
    if not 0 <= port <= 65535:
        raise ListenersRefused(f"{text}: a port is a number from 0 to 65535")
    return Listener(found[1].upper(), found[2], port)


def resolved_listeners(values: Mapping[str, Any], *, is_map_set: bool) -> Listeners:
    """What all configurations that concern listeners amount to."""
    listeners = _distinct("listeners", values["listeners"])
    controller_names = [name.upper() for name in values["controller.listener.names"] or ()]
    _check_protocols(listeners, values, controller_names, is_map_set=is_map_set)
    opened = tuple(each for each in listeners if each.name not in controller_names)
    if not opened:
        raise ListenersRefused(
            "There must be at least one broker advertised listener. Perhaps all listeners appear "
            "in controller.listener.names?"
        )
    names = [each.name for each in listeners]
    advertised = _distinct("advertised.listeners", values["advertised.listeners"] or ())
    _check_advertised(advertised, names)
    inter_broker = (
        values["inter.broker.listener.name"] or values["security.inter.broker.protocol"]
    ).upper()
    broker_names = [each.name for each in advertised or listeners]
    broker_names = [name for name in broker_names if name not in controller_names]
    if inter_broker not in broker_names:
        if values["inter.broker.listener.name"]:
            raise ListenersRefused(
                "inter.broker.listener.name must be a listener name defined in "
                "advertised.listeners. The valid options based on currently configured listeners "
                f"are {','.join(broker_names)}"
            )
        # Kafka demands that PLAINTEXT is among them. Alone, nobody asks.
        inter_broker = broker_names[0]
    return Listeners(
        opened,
        tuple(each for each in listeners if each.name in controller_names),
        {each.name: each for each in advertised},
        inter_broker,
    )


def _distinct(config: str, texts: Sequence[str]) -> list[Listener]:
    listeners = [parse_listener(text) for text in texts]
    names = [each.name for each in listeners]
    if len(set(names)) != len(names):
        raise ListenersRefused(f"{config}: Each listener must have a different name")
    if config != "listeners":
        return listeners
    # The same port twice is fine for an IPv4 and an IPv6 address, and for any free port.
    places = [(each.port, ":" in each.host) for each in listeners if each.port]
    if len(set(places)) != len(places):
        raise ListenersRefused(f"{config}: Each listener must have a different port")
    return listeners


def _check_protocols(
    listeners: Sequence[Listener],
    values: Mapping[str, Any],
    controller_names: Sequence[str],
    *,
    is_map_set: bool,
) -> None:
    protocols = protocol_map(values["listener.security.protocol.map"])
    if not is_map_set:
        for name in controller_names:
            protocols.setdefault(name, PLAINTEXT)
    for each in listeners:
        protocol = protocols.get(each.name)
        if protocol is None:
            raise ListenersRefused(f"No security protocol defined for listener {each.name}")
        if protocol != PLAINTEXT:
            raise ListenersRefused(
                f"listener {each.name}: the security protocol {protocol} is not supported yet, "
                f"only {PLAINTEXT} is"
            )


def protocol_map(text: str) -> dict[str, str]:
    """The security protocol of each listener, by its name."""
    protocols = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        protocol = protocol.strip().upper()
        if not colon or protocol not in _PROTOCOLS:
            raise ListenersRefused(
                f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map"
            )
        protocols[name.strip().upper()] = protocol
    return protocols


def _check_advertised(advertised: Sequence[Listener], names: Sequence[str]) -> None:
    for each in advertised:
        if each.host == "0.0.0.0":
            raise ListenersRefused(
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
                "Use a routable IP address."
            )
    if any(each.name not in names for each in advertised):
        raise ListenersRefused(
            "advertised.listeners listener names must be equal to or a subset of the ones defined "
            f"in listeners. Found {','.join(each.name for each in advertised)}. The valid options "
            f"based on the current configuration are {','.join(names)}"
        )


def address_counts(text: str) -> dict[str, int]:
    """`ADDRESS:COUNT,...`; the address may be an IPv6 one."""
    counts = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, colon, count = entry.rpartition(":")
        if not colon or not count.strip().isdecimal():
            raise ListenersRefused(
                f"Error parsing configuration property 'max.connections.per.ip.overrides': {entry}"
            )
        if not re.fullmatch(_HOST, address.strip()):
            raise ListenersRefused(
                f"max.connections.per.ip.overrides contains invalid addresses : {address}"
            )
        counts[address.strip().strip("[]")] = int(count)
    return counts
