import pytest

from ottla.replication.metadata_brokers import BrokerImage, Endpoint
from ottla.replication.metadata_topics import LOST, MIGRATING, UNASSIGNED
from tests.controller_rig import directory

HERE, THERE = directory(1, 1), directory(1, 2)


def broker(
    *directories: bytes, cordoned: tuple[bytes, ...] | None = None, **more: bool
) -> BrokerImage:
    fields = {"fenced": False, "in_controlled_shutdown": False, **more}
    endpoints = (Endpoint("A", "host", 9092, 0),)
    return BrokerImage(
        1,
        5,
        b"i" * 16,
        endpoints,
        {},
        None,
        directories=directories,
        cordoned_directories=cordoned,
        **fields,
    )


ONLINE = {
    "its own": (broker(HERE), HERE, True),
    "another": (broker(HERE), THERE, False),
    "not chosen yet": (broker(HERE), UNASSIGNED, True),
    "from before there were ids": (broker(HERE), MIGRATING, True),
    "lost": (broker(HERE), LOST, False),
    "of a broker that tells none": (broker(), THERE, True),
    "lost, of such a broker": (broker(), LOST, False),
}


@pytest.mark.parametrize(("image", "place", "expected"), ONLINE.values(), ids=ONLINE)
def test_a_directory_is_well(image: BrokerImage, place: bytes, expected: bool) -> None:
    assert image.has_online(place) is expected


DEFAULTS = {
    "none told": (broker(), MIGRATING),
    "the only one": (broker(HERE), HERE),
    "one of two": (broker(HERE, THERE), UNASSIGNED),
}


@pytest.mark.parametrize(("image", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_where_a_new_replica_is_put(image: BrokerImage, expected: bytes) -> None:
    assert image.default_directory == expected


CORDONED = {
    "never said": (broker(HERE), True),
    "none": (broker(HERE, cordoned=()), True),
    "some": (broker(HERE, THERE, cordoned=(HERE,)), True),
    "all": (broker(HERE, THERE, cordoned=(THERE, HERE)), False),
    "no directories": (broker(cordoned=(HERE,)), True),
}


@pytest.mark.parametrize(("image", "expected"), CORDONED.values(), ids=CORDONED)
def test_a_broker_takes_replicas_where_something_is_not_cordoned(
    image: BrokerImage, expected: bool
) -> None:
    assert image.takes_replicas is expected


def test_a_broker_is_active_unless_it_is_fenced_or_goes() -> None:
    assert broker().is_active
    assert not broker(fenced=True).is_active
    assert not broker(in_controlled_shutdown=True).is_active


def test_a_broker_is_reached_by_the_name_of_a_listener() -> None:
    assert broker().endpoint("A") == Endpoint("A", "host", 9092, 0)
    assert broker().endpoint("B") is None
