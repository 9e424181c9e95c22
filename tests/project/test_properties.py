"""Every property follows the profile, so that `make properties` tries fifty times as many examples of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.properties import LONG, REPEATABLE, TIMES_AS_MANY

ROOT = Path(__file__).resolve().parents[2]


def directories() -> list[str]:
    """Those of `make properties`."""
    found = re.search(r"^PROPERTIES := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_the_long_profile_tries_as_many_as_the_documents_say() -> None:
    few, many = settings.get_profile(REPEATABLE).max_examples, settings.get_profile(LONG).max_examples
    assert many == TIMES_AS_MANY * few == 50 * few
    for name in ("Makefile", "docs/testing.md"):
        assert "fifty times as many" in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("directory", directories())
def test_no_property_has_a_number_of_its_own(directory: str) -> None:
    paths = sorted((ROOT / directory).rglob("test_*.py"))
    assert paths
    assert [path.name for path in paths if "max_examples" in path.read_text(encoding="utf-8")] == []
