"""Fixtures for tests against Apache Kafka; where it cannot run they skip, with one reason."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat_tests.apache_kafka import Kafka, why_no_kafka
from compat_tests.jars import why_no_java
from compat_tests.oracle import Oracle

KAFKA_PYTHON_WARNINGS = (
    r"(read|open)_text is deprecated:DeprecationWarning",  # when it is imported
    r"unclosed <socket\.socket fd=\d+, family=1,:ResourceWarning",  # its wake-up socket pair
)


def pytest_configure(config: pytest.Config) -> None:
    """Lets tests here import `tests`, and forgives the stock clients' own warnings."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    for warning in KAFKA_PYTHON_WARNINGS:
        config.addinivalue_line("filterwarnings", f"ignore:{warning}")


@pytest.fixture(scope="session")
def needs_kafka() -> None:
    reason = why_no_kafka()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def kafka(needs_kafka: None) -> Iterator[Kafka]:
    """One broker for all tests that only talk to it; topics are named after their test."""
    with Kafka() as broker:
        yield broker


@pytest.fixture
def start_kafka(needs_kafka: None) -> Iterator[Callable[..., Kafka]]:
    """Starts a broker of the test's own; takes what `Kafka` takes, ends it with the test."""
    with ExitStack() as brokers:
        yield lambda **options: brokers.enter_context(Kafka(**options))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the log of the broker that it was given."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Kafka):
                report.sections.append((f"log of Apache Kafka {value.version}", value.log_tail()))
    return report


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Apache Kafka's own classes, in one long-running Java program."""
    reason = why_no_java()
    if reason is not None:
        pytest.skip(reason)
    with Oracle() as running:
        yield running
