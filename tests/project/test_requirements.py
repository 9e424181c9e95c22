"""docs/requirements.md names nothing that is not there: no row is kept by belief."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.commands.generate import Command, command_line, every
from kelr.controller import RULE_SETS
from kelr.engine.checkup.catalogue import BY_ID
from kelr.engine.rule_docs import RULES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "requirements.md"
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d+ \|", line)
]
CELLS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
"""Those, and the rows without numbers."""
SHIPPED = {file.stem for file in (ROOT / "kelr" / "simulation" / "scenarios").glob("*.txt")}
SCENARIOS = SHIPPED | {file.stem for file in (ROOT / "tests" / "scenarios").glob("*.txt")}
CODE = re.compile(r"`([^`]+)`")


@pytest.fixture(scope="module")
def commands() -> dict[str, Command]:
    return {command.path: command for command in every(command_line())}


def _named(before: str) -> Iterator[str]:
    """What stands in backticks behind a word, one or several: ``scenarios `a`, `b` ``."""
    for cell in CELLS:
        for found in re.finditer(rf"\b{before}s? ((?:`[^`]+`(?:,? and |, )?)+)", cell):
            yield from CODE.findall(found[1])


def test_rows_are_numbered_and_whole() -> None:
    assert [row[0] for row in ROWS] == [str(number) for number in range(1, len(ROWS) + 1)]
    assert len(ROWS) >= 163
    assert {len(row) for row in ROWS} == {5}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_row_names_where_it_is_and_how_it_was_seen(row: tuple[str, ...]) -> None:
    _, _, _, kelr, seen = row
    assert CODE.search(kelr), "which command, or module?"
    assert CODE.search(seen) or seen.startswith("the scenario"), "seen how?"
    assert "Otherwise" not in kelr or len(kelr.partition("Otherwise: ")[2]) > 40, "otherwise, and why?"
    assert not re.search(r"\b(missing|partly|todo)\b", " ".join(row), re.IGNORECASE)


def test_files_and_tests_are_there() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")]
    tests = Counter(name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))
    for row in CELLS:
        for name in CODE.findall(row):
            path, _, test = name.partition("::")
            if "/" in path:
                assert (ROOT / path).exists(), name
            if test:
                assert re.search(rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), name
            elif name.startswith("test_"):
                assert tests[name] == 1, f"{name}: one test has this name, or its file stands before it"


def test_commands_and_options_are_there(commands: dict[str, Command]) -> None:
    told = [name for row in ROWS for name in CODE.findall(" ".join(row)) if name.startswith("kelr ")]
    assert told
    for name in told:
        words = name.split()
        known = max(at for at in range(1, len(words) + 1) if " ".join(words[:at]) in commands)
        assert known > 1, name
        command = commands[" ".join(words[:known])]
        for option in (word for word in words if word.startswith("--")):
            assert option in command.help, name
        if words[1] == "simulate" and words[2:]:
            assert words[2] in SHIPPED, name


def test_scenarios_rules_and_checks_are_there() -> None:
    assert set(_named("scenario")) <= SCENARIOS
    assert set(_named("rule")) <= set(RULES)
    assert {one for one in _named("rule set") if "*" not in one} <= set(RULE_SETS)
    assert set(_named("check")) <= set(BY_ID)


def test_no_scenario_that_comes_with_kelr_is_left_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in sorted(SHIPPED) if f"`{name}`" not in text and f"simulate {name}`" not in text] == []
