"""What tests of journals have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kelr.files import FILES
from tests.histories.decided import Decided


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No waiting for the disk: these tests kill a process, and never the machine. And nothing is decided twice, however
    often a test begins anew."""
    monkeypatch.setattr(FILES, "fsync", lambda _descriptor: None)
    with Decided():
        yield
