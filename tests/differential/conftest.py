"""How far the comparison with Apache's classes goes."""

from __future__ import annotations

import pytest

from tests.differential.versions import VERSIONS


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`kafka` is each release that is compared, or the one of ``--kafka`` alone; some tests name their own."""
    own = any("kafka" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "kafka" in metafunc.fixturenames and not own:
        chosen = metafunc.config.getoption("--kafka")
        metafunc.parametrize("kafka", [chosen] if chosen else list(VERSIONS))
