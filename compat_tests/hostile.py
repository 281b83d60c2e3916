"""Inputs at the edge of what may be read, each to be taken or refused as Apache Kafka does.

Bytes with odd tags, varints, lengths, nulls and texts; JSON with odd types and members.
"""

from typing import Any, NamedTuple


class HostileBytes(NamedTuple):
    """Bytes of one message; the name says what is odd."""

    name: str
    message: str
    version: int
    hex: str


class HostileJson(NamedTuple):
    """JSON of one message; the name says what is odd."""

    name: str
    message: str
    version: int
    json: Any


# ApiVersionsResponse v4: error, an empty array of APIs, throttle time; then tags: an int64 is 1,
# a bool is 3, arrays are 0 and 2.
_VERSIONS = "0000 01 00000000"
_TAGS = [
    ("no tags", "00"),
    ("a tag twice: the last counts", "02 01 08 0000000000000005 01 08 0000000000000006"),
    ("a tag thrice, the last at its default", "03 03 01 01 03 01 00 03 01 00"),
    ("an array tag twice", "02 00 08 02 02 61 0001 0002 00 00 08 02 02 62 0003 0004 00"),
    ("tags in descending order", "02 03 01 01 01 08 0000000000000005"),
    ("a tag sent with its default", "01 01 08 ffffffffffffffff"),
    ("an unknown tag", "01 64 03 aabbcc"),
    ("an unknown tag twice", "02 64 01 aa 64 01 bb"),
    ("an unknown tag before a known one", "02 64 00 03 01 01"),
    ("the highest tag number", "01 ffffffff07 01 aa"),
    ("a negative tag number", "01 ffffffff0f 01 aa"),
    ("a tag number below zero twice", "02 8080808008 00 8080808008 00"),
    ("an unknown tag longer than the bytes left", "01 64 03 aabb"),
    ("an unknown tag of negative size", "01 64 ffffffff0f"),
    ("an unknown tag of the lowest size", "01 64 8080808008"),
    ("a known tag with too small a size", "01 01 01 0000000000000005"),
    ("a known tag with too large a size", "01 01 09 0000000000000005"),
    ("a known tag of size zero", "01 01 00 0000000000000005"),
    ("a known tag of negative size", "01 01 ffffffff0f 0000000000000005"),
    ("a known tag cut short", "01 01 08 00000000000005"),
    ("fewer tags than counted", "02 03 01 01"),
    ("a negative count of tags", "ffffffff0f 03 01 01"),
    ("a huge count of tags", "ffffffff07 03 01 01"),
    ("more tags than counted", "01 03 01 01 01 08 0000000000000005"),
    ("padded varints around a tag", "8100 8380808000 818000 01"),
    ("a varint of six bytes", "808080808000"),
    ("a fifth byte with bits above the 32nd", "80808080 10"),
    ("a fifth byte with all bits but the top one", "81808080 70 03 01 01"),
    ("a varint cut short", "80"),
    ("a null array in a tag", "01 00 01 00"),
    ("a bool of 2 in a tag", "01 03 01 02"),
    ("a bool of 255 in a tag", "01 03 01 ff"),
    ("bytes left over", "00 aabb"),
]

_TEXTS = {
    "a lone continuation": "80",
    "two lone continuations": "8080",
    "a two-byte text cut short": "c3",
    "an overlong slash": "c0af",
    "an overlong three-byte text": "e08080",
    "an overlong three-byte text cut short": "e080",
    "a three-byte text cut short": "61e282",
    "a three-byte text broken in the middle": "e228a1",
    "a surrogate": "eda080",
    "a surrogate cut short": "eda0",
    "a surrogate and a letter": "edbfbf78",
    "a surrogate pair": "eda0bdedba80",
    "an overlong four-byte text": "f0808080",
    "a four-byte text cut to three": "f09f9a",
    "a four-byte text cut to two": "f09f",
    "a four-byte text broken by a letter": "f09f41",
    "above the last code point": "f4908080",
    "above the last code point, cut to three": "f49080",
    "above the last code point, cut to two": "f490",
    "a lead of a five-byte text": "f888808080",
    "f5": "f5808080",
    "fe and ff": "feff",
    "a zero": "00",
    "a byte order mark": "efbbbf61",
    "good, bad and good": "e697a5ffe69cac80f09f9a80",
}

_HEARTBEAT = "00000000 0000 00 00 00000000 00000000"  # ConsumerGroupHeartbeatResponse to its struct
_MARKS = ("ff", "fe", "80", "00", "01", "02", "7f")

# ConsumerGroupMemberMetadataValue to its tags: nulls and empty texts, a timeout, no topics.
_MEMBER = "00 00 01 01 01 00 00000000 01"


def _at(name: str, message: str, version: int, *parts: str) -> HostileBytes:
    return HostileBytes(name, message, version, "".join(parts).replace(" ", ""))


def hostile_bytes() -> list[HostileBytes]:
    cases = [_at(name, "ApiVersionsResponse", 4, _VERSIONS, tags) for name, tags in _TAGS]
    for name, text in _TEXTS.items():
        size = len(text) // 2
        cases.append(_at(f"text: {name}", "SaslHandshakeRequest", 0, f"{size:04x}", text))
        compact = _at(f"compact text: {name}", "ApiVersionsRequest", 3, f"{size + 1:02x}", text)
        cases.append(compact._replace(hex=compact.hex + "0100"))
    for mark in _MARKS:
        struct = "01 00" if int(mark, 16) < 0x80 else ""
        name = f"a nullable struct behind {mark}"
        cases.append(_at(name, "ConsumerGroupHeartbeatResponse", 0, _HEARTBEAT, mark, struct, "00"))
    return cases + _tagged_structs() + _lengths() + _versions_of_tags() + _others()


def _tagged_structs() -> list[HostileBytes]:
    message = "ConsumerGroupMemberMetadataValue"
    content = "00000007 01 00"  # a timeout, no protocols, no tags
    cases = [_at("a struct tag that is absent", message, 0, _MEMBER, "00")]
    for mark in ("00", "01", "02", "7f", "8100", "8000", "ff", "ffffffff0f"):
        is_null = mark in ("00", "8000")
        body = mark if is_null else mark + content
        size = len(body.replace(" ", "")) // 2
        name = f"a struct tag behind {mark}"
        cases.append(_at(name, message, 0, _MEMBER, f"01 00 {size:02x}", body))
    return cases


def _lengths() -> list[HostileBytes]:
    long_text = "78" * 32767
    coordinator = "00000000 0000"  # FindCoordinatorResponse to its nullable message
    node = "00000000 0000 00000000"
    produce = "ffff 0001 00000000 00000001 0001 61 00000001 00000000"
    return [
        *_group(
            ("SaslHandshakeRequest", 0),
            ("nothing at all", ""),
            ("a null text where none may be", "ffff"),
            ("a text of length -2 where none may be null", "fffe"),
            ("a text longer than the bytes left", "0002 61"),
        ),
        *_group(
            ("ApiVersionsRequest", 3),
            ("a compact null text where none may be", "00 01 00"),
            ("a compact text of length -2", "ffffffff0f 01 00"),
            ("a compact text of the lowest length", "8080808008 01 00"),
            ("the longest compact text", f"808002 {long_text} 01 00"),
            ("too long a compact text", f"818002 {long_text} 78 01 00"),
        ),
        *_group(
            ("FindCoordinatorResponse", 1),
            ("a nullable text of length -2", f"{coordinator} fffe {node}"),
            ("a nullable text of length -32768", f"{coordinator} 8000 {node}"),
        ),
        *_group(
            ("MetadataRequest", 1),
            ("all topics", "ffffffff"),
            ("a nullable array of length -2", "fffffffe"),
            ("a nullable array of the lowest length", "80000000"),
            ("an array longer than the bytes left", "00000003 0000 0000"),
            ("an array of two billion", "7fffffff 0001 61"),
        ),
        *_group(("MetadataRequest", 0), ("a null array where none may be", "ffffffff")),
        *_group(
            ("MetadataRequest", 9),
            ("a compact array of two billion", "ffffffff07 02 61 00"),
            ("a compact array of length -2", "ffffffff0f 00 00 00 00"),
            ("a compact null array", "00 01 01 01 00"),
            ("a padded compact null array", "808000 01 01 01 00"),
        ),
        *_group(
            ("ProduceRequest", 3),
            ("null records", f"{produce} ffffffff"),
            ("records of length -2", f"{produce} fffffffe"),
            ("records longer than the bytes left", f"{produce} 00000002 aa"),
        ),
        *_group(
            ("SaslAuthenticateRequest", 0),
            ("null bytes where none may be", "ffffffff"),
            ("bytes of length -2 where none may be null", "fffffffe"),
            ("bytes left over", "00000001 aa bb"),
        ),
        *_group(("SaslAuthenticateRequest", 2), ("compact null bytes where none may be", "00 00")),
    ]


def _versions_of_tags() -> list[HostileBytes]:
    # FetchRequest v12-14: a replica id, wait, bytes, isolation, session, empty arrays, rack.
    replica = "ffffffff"
    rest = "00000000 00000000 00000000 00 00000000 00000000 01 01 01"
    state = "01 0d 00000001 0000000000000002 00"
    return [
        _at("a tag of its first version", "FetchRequest", 15, rest, "01", state),
        *_group(
            ("FetchRequest", 14),
            ("a tag of a later version", f"{replica} {rest} 01 {state}"),
            ("a tag of a later version and a good one", f"{replica} {rest} 02 {state} 00 02 02 61"),
            ("a tag above all versions", f"{replica} {rest} 01 0a 01 00"),
            ("a text tag that is null", f"{replica} {rest} 01 00 01 00"),
            ("a text tag that is empty", f"{replica} {rest} 01 00 01 01"),
            ("a text tag of length -2", f"{replica} {rest} 01 00 05 ffffffff0f"),
        ),
        *_group(
            ("RequestHeader", 2),
            ("a header with a tag", "0012 0003 00000001 0001 61 01 00 01 aa"),
            ("a header without a client id", "0012 0003 00000001 ffff 00"),
        ),
        *_group(
            ("RequestHeader", 1),
            ("a header with a client id of length -2", "0012 0003 00000001 fffe"),
            ("a header of v1 with bytes of v2", "0012 0003 00000001 0001 61 00"),
        ),
    ]


def _others() -> list[HostileBytes]:
    quota = "02 02 02 61 00 00 02 02 62"  # one entity of type a, one operation on key b
    return _group(
        ("AlterClientQuotasRequest", 1),
        ("a bool of 2", f"{quota} 3ff0000000000000 02 00 00 02 00"),
        ("a bool of 128", f"{quota} 8000000000000000 80 00 00 80 00"),
        ("a float that is no number", f"{quota} 7ff8000000000000 00 00 00 00 00"),
        ("an infinite float", f"{quota} 7ff0000000000000 00 00 00 00 00"),
        ("a float of minus infinity", f"{quota} fff0000000000000 00 00 00 00 00"),
    )


def _group(pair: tuple[str, int], *cases: tuple[str, str]) -> list[HostileBytes]:
    return [_at(name, *pair, data) for name, data in cases]


INTEGERS: tuple[Any, ...] = (
    *(7, "7", 5.0, 5e2, True, None, [7], 0, -1),
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, 2**64),
)
TEXTS: tuple[Any, ...] = (
    *("text", "", None, 7, True, ["a"], {}),
    *("\ud800", "a\udfffb", "\ude80\ud83d", "x" * 32767, "x" * 32768, "é" * 16384),
)
BYTES: tuple[Any, ...] = (
    *("AAE=", "AAE", "AA E=", "_-8=", "/+8=", "AAE=\n", "=", "A", "AAF=", "AB==", "AAEC="),
    *("AAEC====", "A===", "AAECAw==", "AAECAw=", "é", "", None, 7),
)
BOOLS: tuple[Any, ...] = (True, False, 1, 0, "true", None)
UUIDS: tuple[Any, ...] = (
    *("A" * 22, "A" * 22 + "==", "A" * 22 + "=", "A" * 21, "A" * 20, "A" * 23, "A" * 24, "A" * 26),
    *("_" * 21 + "w", "-" * 21 + "A", "/" * 21 + "w", "A" * 21 + "B", "A" * 21 + "="),
    *(" " + "A" * 22, "", None, 7),
)
FLOATS: tuple[Any, ...] = (1.0, 1, 0, "1.0", "NaN", None, True, 1e300, -0.0)


def hostile_json() -> list[HostileJson]:
    heartbeat = {"groupId": "g", "memberId": "m"}
    metadata: dict[str, Any] = {"topics": []}
    topic: dict[str, Any] = {"errorCode": 0, "name": None, "isInternal": False, "partitions": []}
    topic["topicAuthorizedOperations"] = 0
    topics: dict[str, Any] = {"throttleTimeMs": 0, "nextCursor": None}
    quota: dict[str, Any] = {"entity": [], "key": "k", "remove": False}
    endpoint = {"name": "n", "host": "h", "securityProtocol": 0}
    controller = {"controllerId": 1, "incarnationId": "A" * 22, "zkMigrationReady": False}
    rows: list[tuple[str, str, int, Any, Any]] = []
    for value in INTEGERS:
        json: Any = {**heartbeat, "generationId": value}
        rows.append(("an int32", "HeartbeatRequest", 0, value, json))
    for value in TEXTS:
        rows.append(("a text", "SaslHandshakeRequest", 0, value, {"mechanism": value}))
    for value in BYTES:
        rows.append(("bytes", "SaslAuthenticateRequest", 0, value, {"authBytes": value}))
    for value in BOOLS:
        json = {**metadata, "allowAutoTopicCreation": value}
        rows.append(("a bool", "MetadataRequest", 4, value, json))
    for value in UUIDS:
        json = {**topics, "topics": [{**topic, "topicId": value}]}
        rows.append(("a uuid", "DescribeTopicPartitionsResponse", 0, value, json))
    for value in FLOATS:
        rows.append(("a float", "ClientQuotaRecord", 0, value, {**quota, "value": value}))
    for value in (0, 65535, 65536, -1):
        json = {**controller, "endPoints": [{**endpoint, "port": value}], "features": []}
        rows.append(("a uint16", "RegisterControllerRecord", 0, value, json))
    for value in (0, 2**32 - 1, 2**32, -1):
        json = {"crc": value, "producerEntries": []}
        rows.append(("a uint32", "ProducerSnapshot", 1, value, json))
    return [
        HostileJson(f"for {kind}, {ascii(value)[:20]}", message, version, json)
        for kind, message, version, value, json in rows
    ] + _members()


def _members() -> list[HostileJson]:
    heartbeat = {"groupId": "g", "generationId": 7, "memberId": "m"}
    fetch: dict[str, Any] = {"maxWaitMs": 1, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0}
    fetch |= {"sessionId": 0, "sessionEpoch": 0, "topics": [], "forgottenTopicsData": []}
    fetch |= {"rackId": ""}
    state = {"replicaId": 1, "replicaEpoch": 2}
    heartbeats: list[tuple[str, Any]] = [
        ("a member is missing", {"groupId": "g"}),
        ("an unknown member", {**heartbeat, "more": 1}),
        ("a member of a later version", {**heartbeat, "groupInstanceId": "i"}),
        ("a member of a later version at its default", {**heartbeat, "groupInstanceId": None}),
        ("a member of a later version of a wrong type", {**heartbeat, "groupInstanceId": 7}),
        ("an array for the message", []),
        ("null for the message", None),
        ("a text for the message", "HeartbeatRequest"),
    ]
    fetches: list[tuple[str, Any]] = [
        ("a tagged member at its default", {"clusterId": None}),
        ("a tagged struct of defaults", {"replicaState": {"replicaId": -1, "replicaEpoch": -1}}),
        ("a tagged struct that is null", {"replicaState": None}),
        ("a tagged struct without a member", {"replicaState": {"replicaId": 1}}),
        ("a member of an earlier version", {"replicaId": 5}),
        ("a member of an earlier version at its default", {"replicaId": -1}),
        ("an object for an array", {"topics": {}}),
        ("null for an array", {"topics": None}),
        ("null for an element", {"topics": [None]}),
    ]
    old = {**fetch, "replicaId": 1}
    return [
        *(HostileJson(name, "HeartbeatRequest", 0, json) for name, json in heartbeats),
        *(HostileJson(name, "FetchRequest", 15, {**fetch, **json}) for name, json in fetches),
        HostileJson(
            "a struct of a later version", "FetchRequest", 12, {**old, "replicaState": state}
        ),
        HostileJson("an ignorable member of a later version", "FetchRequest", 4, old),
    ]
