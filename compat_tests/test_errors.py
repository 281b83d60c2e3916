"""The table of errors, ours against Apache Kafka's."""

from compat_tests.oracle import Oracle
from ottla.protocol.errors import ErrorCode


def test_every_error_is_kafkas(oracle: Oracle) -> None:
    ours = [
        {
            "code": int(error),
            "name": error.name,
            "message": error.message,
            "retriable": error.retriable,
            "invalid_metadata": error.invalid_metadata,
        }
        for error in sorted(ErrorCode)
    ]
    kafkas = oracle.ask("errors")["errors"]
    assert len(kafkas) > 130
    assert ours == kafkas
