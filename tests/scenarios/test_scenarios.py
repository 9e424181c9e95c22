"""Every scenario file prints what it says that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

import kelr.simulation
from kelr.simulation.language import parse, render, run
from kelr.simulation.session import Session

SHIPPED = Path(kelr.simulation.__file__).parent / "scenarios"
FILES = sorted([*Path(__file__).parent.glob("*.txt"), *SHIPPED.glob("*.txt")])


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_scenario(file: Path, rewrite: bool) -> None:
    text = file.read_text(encoding="utf-8")
    scenario = parse(text)
    actual = render(scenario, run(scenario, Session().perform))
    if rewrite and actual != text:
        file.write_text(actual, encoding="utf-8")
        return
    assert actual == text, f"{file.name}: another output than expected; look at it, then pytest --rewrite"


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_rendering_what_was_expected_changes_nothing(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    scenario = parse(text)
    assert render(scenario, [block.expected or () for block in scenario.blocks]) == text


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_scenario_tells_its_story(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith("# ")
