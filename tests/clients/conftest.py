"""Brokers for the tests of this folder, which share their stories with `compat_tests`."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from compat_tests.ottla_server import Ottla

with warnings.catch_warnings():
    # It reads its schemas in a deprecated way when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

# kafka-python's wake-up socket pair.
CLIENTS_WARNINGS = (r"unclosed <socket\.socket fd=\d+, family=1,:ResourceWarning",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Forgives the stock clients' own warnings."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in CLIENTS_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{warning}"))


@pytest.fixture(scope="session")
def ottla() -> Iterator[Ottla]:
    """One broker for all tests that only talk to it; topics are named after their test."""
    with Ottla() as broker:
        yield broker
