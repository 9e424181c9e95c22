"""What is generated is current, what is written agrees with the code."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kelr import __version__
from kelr.commands.generate import SHELLS, Command, command_line, completion_script, every, generated_docs
from kelr.commands.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def root_command() -> Command:
    return command_line()


def test_documents_are_current() -> None:
    for path, text in generated_docs(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make docs`"


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_current(shell: str) -> None:
    found = (ROOT / "completions" / SHELLS[shell]).read_text(encoding="utf-8")
    assert found == completion_script(shell), "run `make completions`"


def test_documents_would_notice_a_change(root_command: Command) -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (kelr .*)\n((?s:.*?))(?=^## |\Z)", text, re.MULTILINE))
    for command in every(root_command):
        if command.commands:
            continue
        section = sections[command.path]
        assert f"\n{command.sentence}.\n" in section
        for example in command.examples:
            assert f"\n{example}\n" in section
        for parameter in command.parameters:
            assert parameter.item in section or parameter.item in text.partition("## kelr ")[0], command.path


def test_every_command_has_a_sentence_and_an_example(root_command: Command) -> None:
    for command in every(root_command):
        assert command.sentence, command.path
        if not command.commands:
            assert "Examples:\n" in command.help or "Example:\n" in command.help, command.path
            assert "Exit codes:\n" in command.help, command.path


def test_no_help_is_wider_than_a_terminal(root_command: Command) -> None:
    for command in every(root_command):
        wide = [line for line in command.help.splitlines() if len(line) > 80]
        assert wide == [], command.path


def test_the_registry_says_what_the_commands_say(root_command: Command) -> None:
    said = {command.path.removeprefix("kelr "): command.sentence for command in root_command.commands}
    assert said == {registered.name: registered.summary for registered in COMMANDS}


def test_the_changelog_knows_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert headings[0].startswith("Unreleased")
    assert any(__version__ in heading for heading in headings)


def test_documents_that_are_named_exist() -> None:
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for name in re.findall(r"`(docs/[a-z-]+\.md)`", document.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{document.name} names {name}"


def test_the_readme_begins_with_the_two_commands() -> None:
    first = re.search(r"^```[a-z]*\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert first is not None
    assert [line.partition("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]


@pytest.mark.parametrize(("shell", "name"), [("zsh", "_kelr"), ("fish", "kelr.fish"), ("bash", "kelr.bash")])
def test_shells_can_read_their_script(shell: str, name: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([found, "-n", str(ROOT / "completions" / name)], check=True, capture_output=True)
