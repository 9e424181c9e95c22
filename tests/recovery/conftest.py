"""What tests of journals have in common."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: these tests kill a process, and never the machine."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
