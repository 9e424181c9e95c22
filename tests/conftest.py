"""What holds for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests do not depend on the KELR_* variables, the contexts or the terminal of whoever runs them."""
    for name in os.environ:
        if name.startswith("KELR_") and name not in {"KELR_CACHE_DIR"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path / "no-contexts"))
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
