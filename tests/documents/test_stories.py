"""README.md and the tutorial, typed in: each command, and what the page shows of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kelr import __version__
from tests.documents.blocks import DOCS, ROOT, Block, blocks, write_anew
from tests.documents.stories import run_story, same

README, TUTORIAL = ROOT / "README.md", DOCS / "tutorial.md"
UP = "kelr lab up --simulated --rules elr-4.3 --log-info off"


def story(page: Path, name: str) -> list[Block]:
    found = [block for block in blocks(page) if (block.how, block.what) == ("run", name)]
    assert found, f"{page.name} has no story {name}"
    return found


def differences(told: list[Block], printed: list[list[str]]) -> list[str]:
    return [
        f"{block.place}: $ {typed.command}\n--- the page\n{typed.shown}\n--- now\n{now}"
        for block, lines in zip(told, printed, strict=True)
        for typed, now in zip(block.typed, lines, strict=True)
        if not same(typed.shown, now)
    ]


def rewrite(told: list[Block], printed: list[list[str]]) -> None:
    bodies = []
    for block, lines in zip(told, printed, strict=True):
        pairs = zip(block.typed, lines, strict=True)
        bodies.append(
            (block, "".join(f"$ {typed.command}\n{now}\n" if now else f"$ {typed.command}\n" for typed, now in pairs))
        )
    write_anew(bodies)


@pytest.mark.parametrize(
    ("page", "name"), [(README, "first minutes"), (TUTORIAL, "tutorial")], ids=["README", "tutorial"]
)
def test_a_page_shows_what_its_commands_print(
    page: Path, name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    told = story(page, name)
    printed = run_story(told, tmp_path)
    found = differences(told, printed)
    if found and pytestconfig.getoption("rewrite"):
        rewrite(told, printed)
    else:
        assert not found, "\n\n".join(found)


@pytest.mark.longer
def test_the_tutorial_shows_the_same_on_real_kafka(tmp_path: Path) -> None:
    """But for the cluster's own lines, and where a config is set: the real lab's brokers have it in their files."""
    told = story(TUTORIAL, "tutorial")
    assert told[0].typed[0].command == UP
    printed = run_story(told, tmp_path, swapped={UP: "kelr lab up"})
    printed = [[text.replace("(broker's file)", "(Kafka's default)") for text in lines] for lines in printed]
    found = differences(told[1:], printed[1:])
    assert not found, "\n\n".join(found)


@pytest.mark.longer
def test_kelr_is_installed_as_the_readme_says(tmp_path: Path) -> None:
    """In an environment of its own, from a copy of the sources; takes a package index."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=ignored)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    told = story(README, "install")
    printed = run_story(told, tmp_path / "clone", programs=tmp_path / "venv" / "bin")
    assert [lines[-1] for lines in printed] == [f"kelr {__version__}"]
    assert told[-1].typed[-1].shown == f"kelr {__version__}"


@pytest.mark.parametrize("page", [README, TUTORIAL])
def test_every_block_of_shell_is_run(page: Path) -> None:
    languages = {language for language in ("console", "bash", "sh", "shell") if blocks(page, language)}
    assert languages == {"console"}
    told = [block.place for block in blocks(page) if block.how not in {"run", "shown"}]
    assert told == []
