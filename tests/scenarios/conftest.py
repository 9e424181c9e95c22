"""What the scenarios take from the command line."""

from __future__ import annotations

import pytest


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether to write what the scenarios print into their files: ``pytest --rewrite``."""
    return bool(request.config.getoption("--rewrite"))
