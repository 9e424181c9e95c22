"""What tests of journals have in common."""

from __future__ import annotations

import pytest

from kelr.files import FILES


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: these tests kill a process, and never the machine."""
    monkeypatch.setattr(FILES, "fsync", lambda _descriptor: None)
