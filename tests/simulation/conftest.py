"""The option of the simulations: `pytest tests/simulation --seed 1234` runs one seed, whole."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="the one seed to simulate, whole")
