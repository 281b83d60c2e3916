"""Listeners: where a broker listens, and what it says of its addresses."""

import pytest

from ottla.broker.config import BrokerConfig
from ottla.broker.config_sources import load
from ottla.broker.listeners import (
    Listener,
    Listeners,
    ListenersRefused,
    address_counts,
    parse_listener,
    protocol_map,
)

PARSED = [  # text, name, host, port
    ("PLAINTEXT://:9092", "PLAINTEXT", "", 9092),
    ("plaintext://127.0.0.1:0", "PLAINTEXT", "127.0.0.1", 0),
    ("PLAINTEXT://[::1]:9092", "PLAINTEXT", "::1", 9092),
    ("PLAINTEXT://[fe80::1%eth0]:9092", "PLAINTEXT", "fe80::1%eth0", 9092),
    ("MY_NAME-1://my-host.example:65535", "MY_NAME-1", "my-host.example", 65535),
]


@pytest.mark.parametrize(("text", "name", "host", "port"), PARSED)
def test_a_listener_is_read(text: str, name: str, host: str, port: int) -> None:
    assert parse_listener(text) == Listener(name, host, port)


def test_a_listener_is_written_as_it_is_read() -> None:
    for text, *_ in PARSED:
        listener = parse_listener(text)
        assert parse_listener(str(listener)) == listener


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "PLAINTEXT://",
        "PLAINTEXT://host",
        "PLAINTEXT://a b:1",
        "PLAINTEXT://:65536",
        "PLAINTEXT://:-1",
        "PLAINTEXT://:" + "9" * 100_000,
    ],
)
def test_what_is_no_listener_is_refused(text: str) -> None:
    with pytest.raises(ListenersRefused):
        parse_listener(text)


def listeners(**settings: str) -> Listeners:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    return BrokerConfig({**load().config.static, **given}).listeners


def test_a_listener_of_the_controller_is_set_apart() -> None:
    found = listeners(listeners="PLAINTEXT://:9092,CONTROLLER://:9093")
    assert found.opened == (Listener("PLAINTEXT", "", 9092),)
    assert found.controller == (Listener("CONTROLLER", "", 9093),)


def test_nothing_is_advertised_that_was_not_configured() -> None:
    assert listeners().advertised == {}
    found = listeners(advertised_listeners="PLAINTEXT://kafka.example:19092")
    assert found.advertised == {"PLAINTEXT": Listener("PLAINTEXT", "kafka.example", 19092)}


def test_listeners_may_have_names_of_their_own() -> None:
    found = listeners(
        listeners="INSIDE://:9092,OUTSIDE://:9094",
        listener_security_protocol_map="inside:PLAINTEXT, OUTSIDE:plaintext",
        inter_broker_listener_name="INSIDE",
    )
    assert [each.name for each in found.opened] == ["INSIDE", "OUTSIDE"]
    assert found.inter_broker == "INSIDE"


def test_two_listeners_may_share_a_port_across_address_families() -> None:
    found = listeners(
        listeners="A://127.0.0.1:9092,B://[::1]:9092",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
    )
    assert len(found.opened) == 2


REFUSED = [  # settings, what is said
    ({"listeners": "SASL_SSL://:9092"}, "SASL_SSL is not supported yet"),
    ({"listeners": "A://:9092"}, "No security protocol defined for listener A"),
    ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "must have a different name"),
    (
        {
            "listeners": "PLAINTEXT://:1,B://:1",
            "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
        },
        "must have a different port",
    ),
    ({"listeners": "CONTROLLER://:9093"}, "at least one broker advertised listener"),
    ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "nonroutable meta-address 0.0.0.0"),
    ({"advertised_listeners": "OTHER://a:1"}, "Found OTHER. The valid options"),
    ({"inter_broker_listener_name": "OTHER"}, "inter.broker.listener.name must be"),
    ({"listener_security_protocol_map": "PLAINTEXT:TELNET"}, "Invalid security protocol `TELNET`"),
]


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_listeners_that_cannot_be_opened_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ListenersRefused) as refusal:
        listeners(**settings)
    assert said in str(refusal.value)


def test_a_map_of_protocols_may_have_spaces() -> None:
    assert protocol_map(" a : ssl ,B:PLAINTEXT") == {"A": "SSL", "B": "PLAINTEXT"}


def test_connections_are_counted_per_address() -> None:
    assert address_counts("") == {}
    assert address_counts("127.0.0.1:50, ::1:7,[fe80::1]:8") == {
        "127.0.0.1": 50,
        "::1": 7,
        "fe80::1": 8,
    }
    for text in ("a", "127.0.0.1:x", "b!:2", ":3"):
        with pytest.raises(ListenersRefused):
            address_counts(text)
