"""How far the comparison with Apache's classes goes."""

from __future__ import annotations

import pytest


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> int:
    """Random runs for each Kafka version: ``pytest tests/differential --steps 200000``."""
    return int(request.config.getoption("--steps"))


@pytest.fixture
def sequences(request: pytest.FixtureRequest) -> int:
    """Random histories for each Kafka version: ``pytest tests/differential --sequences 2000``."""
    return int(request.config.getoption("--sequences"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of the random runs; a failure prints it."""
    return int(request.config.getoption("--seed"))
