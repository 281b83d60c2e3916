"""Every configuration says what it is for, and whether it has an effect."""

import pytest

from ottla.broker import config_keys
from ottla.broker.config_documentation import NO_EFFECT, ONLY_DEFAULT, documentation

KINDS = {
    "broker": config_keys.BROKER | config_keys.ONLY_DYNAMIC,
    "topic": config_keys.TOPIC,
    "group": config_keys.GROUP,
    "client metrics": config_keys.CLIENT_METRICS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_configuration_is_documented_in_sentences(kind: str) -> None:
    for name in KINDS[kind]:
        text = documentation(kind, name)
        assert text is not None, name
        assert text[0].isupper() or text[0] == "-", name
        assert text.endswith("."), name


def test_no_text_is_left_over() -> None:
    from ottla.broker import config_documentation as module

    assert module._BROKERS.keys() <= KINDS["broker"].keys()
    assert module._TOPICS.keys() == KINDS["topic"].keys()
    assert module._GROUPS.keys() == KINDS["group"].keys()
    assert module._CLIENT_METRICS.keys() == KINDS["client metrics"].keys()


SAID = [  # kind, name, a part of what is said
    ("broker", "log.retention.ms", "For topics without retention.ms of their own. How long"),
    ("broker", "group.share.heartbeat.interval.ms", "For groups without share.heartbeat"),
    (
        "broker",
        "group.streams.max.standby.replicas",
        "The largest streams.num.standby.replicas that a group may have.",
    ),
    (
        "broker",
        "group.consumer.min.session.timeout.ms",
        "The smallest consumer.session.timeout.ms that a group may have.",
    ),
    ("broker", "listener.name.internal.ssl.keystore.type", "The format of the file with the key."),
    ("broker", "num.io.threads", NO_EFFECT),
    ("broker", "authorizer.class.name", ONLY_DEFAULT),
    ("topic", "remote.log.copy.disable", NO_EFFECT),
]


@pytest.mark.parametrize(("kind", "name", "part"), SAID)
def test_what_is_said(kind: str, name: str, part: str) -> None:
    assert part in (documentation(kind, name) or "")


def test_what_has_an_effect_does_not_say_otherwise() -> None:
    assert NO_EFFECT not in (documentation("broker", "num.partitions") or "")


def test_what_nobody_knows_has_no_documentation() -> None:
    assert documentation("broker", "no.such.config") is None
