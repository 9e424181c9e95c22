"""docs/scenarios.md: its examples print what it says, and every directive is in one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kelr.simulation.language import Scenario, directives_of, parse, render, run
from kelr.simulation.session import SPECS, Session

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
EXAMPLES: list[str] = re.findall(r"^```scenario\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def parsed(example: str) -> Scenario:
    return parse(example)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_what_the_page_says(example: str) -> None:
    scenario = parsed(example)
    assert render(scenario, run(scenario, Session().perform)) == example


@pytest.mark.parametrize("name", [spec.name for spec in SPECS])
def test_a_directive_is_in_an_example(name: str) -> None:
    used = {directive.name for example in EXAMPLES for _, directive in directives_of(parsed(example))}
    assert name in used


def test_no_two_directives_have_one_name() -> None:
    assert len({spec.name for spec in SPECS}) == len(SPECS)
