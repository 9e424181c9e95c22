"""docs/doctor.md lists the checks that there are, as they say themselves."""

from __future__ import annotations

from pathlib import Path

from kelr.engine.checkup.catalogue import CHECKS

DOCUMENT = Path(__file__).parents[2] / "docs" / "doctor.md"


def test_the_table_of_checks_is_current() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.partition("<!-- checks -->")[2].partition("<!-- end of checks -->")[0].strip().splitlines()
    assert table[2:] == [f"| `{one.id}` | {one.severity} | {one.title} | {one.why} |" for one in CHECKS]


def test_ids_are_there_once() -> None:
    assert len({one.id for one in CHECKS}) == len(CHECKS)
