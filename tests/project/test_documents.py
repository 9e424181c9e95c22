"""What is generated is current, what is written agrees with the code."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kelr import __version__
from kelr.commands.cli_model import Command, command_line, every
from kelr.commands.completions import completion_scripts
from kelr.commands.generate import generated_docs
from kelr.commands.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def root_command() -> Command:
    return command_line()


def test_documents_are_current() -> None:
    for path, text in generated_docs(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make docs`"


def test_completions_are_current(root_command: Command) -> None:
    for name, text in completion_scripts(root_command).items():
        assert (ROOT / "completions" / name).read_text(encoding="utf-8") == text, f"{name}: run `make completions`"


def test_documents_would_notice_a_change(root_command: Command) -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for command in every(root_command):
        assert command.help in text


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
    said = {command.name: command.sentence for command in root_command.commands}
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


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["kelr", "desc"], {"describe"}),
        (["kelr", "-b", "host:1", "log"], {"log-info"}),
        (["kelr", "describe", "--situation", "waiting-for-e"], {"waiting-for-elr"}),
        (["kelr", "-o", "y"], {"yaml"}),
        (["kelr", "describe", "--leaderl"], {"--leaderless"}),
        (["kelr", "describe", "-b", ""], set()),
        (["kelr", "lab", "inc"], {"incident"}),
        (["kelr", "explain", "--why", "last"], {"last-known-leader"}),
        (["kelr", "explain", "--compare-rules", "kip966-a"], {"kip966-aggressive"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str]) -> None:
    script = ROOT / "completions" / "kelr.bash"
    array = " ".join(f"'{word}'" for word in words)
    set_words = f"COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; COMP_LINE='{' '.join(words)}'; COMP_POINT=999"
    program = f'source "{script}"; {set_words}; _kelr; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run([BASH or "bash", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize(("shell", "name"), [("zsh", "_kelr"), ("fish", "kelr.fish"), ("bash", "kelr.bash")])
def test_shells_can_read_their_script(shell: str, name: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([found, "-n", str(ROOT / "completions" / name)], check=True, capture_output=True)
