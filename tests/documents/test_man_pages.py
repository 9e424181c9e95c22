"""Man pages: one for each command, with everything that its help has, and nothing for a linter to say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kelr.commands.cli_model import Command, command_line, every
from kelr.commands.man_pages import man_pages


@pytest.fixture(scope="module")
def kelr() -> Command:
    return command_line()


@pytest.fixture(scope="module")
def pages(kelr: Command) -> dict[str, str]:
    return man_pages(kelr)


@pytest.fixture(scope="module")
def directory(pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man")
    for name, text in pages.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def unescaped(page: str) -> str:
    """The words of a page, its requests left out."""
    lines = [line.removeprefix(".B ") for line in page.splitlines() if not re.match(r"\.[A-Z]{2}|\.n|\.fi|\.ad", line)]
    text = " ".join(lines).replace("\\&", "")
    for escape, character in {"\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(dq": '"', "\\(ha": "^", "\\(ti": "~"}.items():
        text = text.replace(escape, character)
    return " ".join(text.replace("\\e", "\\").split())


def test_every_command_has_a_page(kelr: Command, pages: dict[str, str]) -> None:
    assert set(pages) == {f"{command.path.replace(' ', '-')}.1" for command in every(kelr)}


def test_a_page_has_all_that_the_help_has(kelr: Command, pages: dict[str, str]) -> None:
    """Word for word, but for titles, which are headings, and the line of usage."""
    for command in every(kelr):
        page = unescaped(pages[f"{command.path.replace(' ', '-')}.1"])
        for line in command.help.splitlines()[1:]:
            if line.strip() and not re.fullmatch(r"[A-Z][^\n:]*:", line):
                for part in re.split(r" {2,}", line.strip()):
                    assert " ".join(part.split()) in page, f"{command.path}: {part}"


def test_pages_are_the_same_each_time(kelr: Command, pages: dict[str, str]) -> None:
    assert man_pages(kelr) == pages


def test_pages_name_only_pages_that_are_there(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        named = {found.replace("\\-", "-") for found in re.findall(r"^\.BR (\S+) \(1\)", text, re.MULTILINE)}
        assert named, name
        assert {f"{one}.1" for one in named} <= set(pages), name


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_finds_nothing(directory: Path) -> None:
    command = ["mandoc", "-T", "lint", *map(str, sorted(directory.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_warns_of_nothing(directory: Path) -> None:
    command = ["groff", "-man", "-ww", "-z", "-Tutf8", *map(str, sorted(directory.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
