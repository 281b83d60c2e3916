import pytest

from ottla.protocol.errors import ErrorCode, KafkaError

# (code, name, retriable, invalid metadata) as a client of 4.3.1 sees them; a few of each kind.
FACTS = [
    (-1, "UNKNOWN_SERVER_ERROR", False, False),
    (0, "NONE", False, False),
    (1, "OFFSET_OUT_OF_RANGE", False, False),
    (2, "CORRUPT_MESSAGE", True, False),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", True, True),
    (6, "NOT_LEADER_OR_FOLLOWER", True, True),
    (7, "REQUEST_TIMED_OUT", True, False),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", True, False),
    (16, "NOT_COORDINATOR", True, False),
    (27, "REBALANCE_IN_PROGRESS", False, False),
    (32, "INVALID_TIMESTAMP", False, False),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, False),
    (56, "KAFKA_STORAGE_ERROR", True, True),
    (74, "FENCED_LEADER_EPOCH", True, True),
    (75, "UNKNOWN_LEADER_EPOCH", True, False),
    (87, "INVALID_RECORD", False, False),
    (100, "UNKNOWN_TOPIC_ID", True, True),
    (113, "STALE_MEMBER_EPOCH", False, False),
    (123, "INVALID_SHARE_SESSION_EPOCH", True, False),
    (132, "STREAMS_TOPOLOGY_FENCED", False, False),
    (133, "SHARE_SESSION_LIMIT_REACHED", True, False),
]


@pytest.mark.parametrize("code, name, retriable, invalid_metadata", FACTS)
def test_an_error_is_known_by_its_code(
    code: int, name: str, retriable: bool, invalid_metadata: bool
) -> None:
    error = ErrorCode(code)
    assert error.name == name
    assert error is ErrorCode[name]
    assert error == code
    assert error.retriable is retriable
    assert error.invalid_metadata is invalid_metadata


def test_every_code_from_minus_one_to_133_has_an_error_of_its_own() -> None:
    assert [int(error) for error in ErrorCode] == list(range(-1, 134))


def test_every_error_has_a_message_of_its_own() -> None:
    messages = [error.message for error in ErrorCode]
    assert len(set(messages)) == len(messages)
    assert all(message.endswith(".") for message in messages if message != "NONE")


def test_the_number_of_retriable_errors() -> None:
    assert sum(error.retriable for error in ErrorCode) == 32
    assert sum(error.invalid_metadata for error in ErrorCode) == 13


def test_a_code_of_the_future_is_an_unknown_error() -> None:
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_exception_carries_the_code_and_kafkas_message() -> None:
    error = KafkaError(ErrorCode.INVALID_GROUP_ID)
    assert error.code is ErrorCode.INVALID_GROUP_ID
    assert error.message == "The group id is invalid."
    assert str(error) == "INVALID_GROUP_ID: The group id is invalid."


def test_an_exception_may_say_more() -> None:
    error = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'first' already exists.")
    assert error.message == "Topic 'first' already exists."
