"""The option that says how far the comparison with Apache's classes goes."""

from __future__ import annotations

import pytest

DEFAULT_STEPS = 5_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--steps", type=int, help=f"random controller runs compared for each Kafka ({DEFAULT_STEPS})")
    parser.addoption("--seed", type=int, help="seed of the random controller runs (966)")


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> int:
    """Random runs for each Kafka version: ``pytest tests/differential --steps 200000``."""
    return int(request.config.getoption("--steps", default=None) or DEFAULT_STEPS)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    chosen = request.config.getoption("--seed", default=None)
    return 966 if chosen is None else int(chosen)
