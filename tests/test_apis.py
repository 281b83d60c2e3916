"""The table of APIs: it must say what the messages themselves say."""

import subprocess
import sys

import pytest

from ottla.protocol.apis import (
    API_VERSIONS,
    APIS,
    BOTH,
    BROKER,
    CONTROLLER,
    DATA,
    Api,
    message_class,
    message_names,
    module_of,
)
from ottla.protocol.schema import schema_of
from ottla.protocol.wire import ProtocolError


def named(name: str) -> Api:
    (found,) = (api for api in APIS.values() if api.name == name)
    return found


def test_the_table_holds_every_api_of_kafka() -> None:
    # 4 to 7 were for the controllers of ZooKeeper's time; their schemas have no versions left.
    assert list(APIS) == [key for key in range(93) if key not in (4, 5, 6, 7)]
    assert len({api.name for api in APIS.values()}) == len(APIS) == 89
    assert len(message_names()) == 272


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_row_says_what_its_messages_say(api: Api) -> None:
    for cls, suffix in ((api.request(), "Request"), (api.response(), "Response")):
        schema = schema_of(cls)
        assert schema.name == api.name + suffix
        assert (schema.key, schema.versions) == (api.key, (api.first, api.last))
        for version in range(api.first, api.last + 1):
            assert schema.is_flexible(version) == api.is_flexible(version)
        assert cls.__module__ == f"ottla.protocol.messages.{api.module}"


def test_the_lowest_version_is_not_zero_everywhere() -> None:
    later = {api.name: api.first for api in APIS.values() if api.first}
    assert len(later) == 24
    assert (later["Produce"], later["Fetch"], later["CreateTopics"]) == (3, 4, 2)


def test_the_unstable_version_of_init_producer_id_can_be_encoded() -> None:
    assert named("InitProducerId").last == 6


def test_apis_without_tagged_fields() -> None:
    never = {api.name for api in APIS.values() if api.flexible is None}
    assert never == {"SaslHandshake", "OffsetDelete"}


HEADERS = [  # API, version, version of the request's header, of the response's header
    ("Produce", 8, 1, 0),
    ("Produce", 9, 2, 1),
    ("Metadata", 0, 1, 0),
    ("SaslHandshake", 1, 1, 0),
    ("ApiVersions", 2, 1, 0),
    ("ApiVersions", 3, 2, 0),
    ("ApiVersions", 99, 2, 0),
    ("ApiVersions", -1, 1, 0),
    ("OffsetDelete", 0, 1, 0),
    ("Vote", 0, 2, 1),
]


@pytest.mark.parametrize("name, version, of_request, of_response", HEADERS)
def test_the_headers_of_an_api(name: str, version: int, of_request: int, of_response: int) -> None:
    api = named(name)
    assert api.request_header_version(version) == of_request
    assert api.response_header_version(version) == of_response


def test_each_api_is_served_somewhere() -> None:
    assert {api.listeners for api in APIS.values()} == {BROKER, CONTROLLER, BOTH}
    served = [(name, named(name).listeners) for name in ("Produce", "Vote", "ApiVersions")]
    assert served == [("Produce", BROKER), ("Vote", CONTROLLER), ("ApiVersions", BOTH)]
    assert APIS[API_VERSIONS].name == "ApiVersions"


def test_every_message_is_found_by_its_name() -> None:
    for name in message_names():
        assert message_class(name).__name__ == name
    assert module_of("ZkMigrationStateRecord") == "metadata_records"
    assert sum(map(len, DATA.values())) == 272 - 2 * 89


NO_MESSAGES = [
    "",
    "Produce",
    "produceRequest",
    "ProduceRequestRequest",
    "Request",
    "StopReplicaRequest",
    "../schema",
    "Int32",
    "TopicProduceData",
]


@pytest.mark.parametrize("name", NO_MESSAGES)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ProtocolError, match="no message of Kafka is called"):
        message_class(name)


def test_the_table_loads_no_message() -> None:
    program = (
        "import sys, ottla.protocol.apis as apis; apis.APIS[0].is_flexible(9);"
        "sys.exit('ottla.protocol.messages' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
