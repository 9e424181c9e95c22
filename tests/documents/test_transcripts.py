"""What the pages show is what kelr prints, and every command that they name is one that kelr takes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
import typer

from kelr.commands.app import build
from kelr.model import Situation
from tests.documents.blocks import DOCS, ROOT, RUNBOOKS, Block, blocks, kelr_words, write_anew
from tests.documents.terminal import see

PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "tutorial.md",
    DOCS / "install.md",
    *sorted(RUNBOOKS.glob("*.md")),
]
TRANSCRIPTS = [block for page in PAGES for block in blocks(page)]
SHOWN = [block for block in TRANSCRIPTS if block.how == "shown"]


def parse(words: list[str]) -> None:
    """Has the command line take these words, down to the last option, and carries nothing out."""
    command, name, rest, context = build(), "kelr", words[1:], None
    while True:
        try:
            context = command.make_context(name, rest, parent=context)
        except typer.Exit:
            # --version, --help
            return
        command = context.command  # of a command that was found by its name alone, the command itself
        if not hasattr(command, "commands"):
            return
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize("situation", Situation)
def test_every_situation_has_a_runbook_that_is_in_the_list(situation: Situation) -> None:
    text = (RUNBOOKS / f"{situation}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {situation}\n")
    for heading in ("How it looks", "What is going on", "What to check", "What not to do", "How to verify"):
        assert f"\n## {heading}\n" in text, heading
    assert f"]({situation}.md)" in (RUNBOOKS / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", TRANSCRIPTS, ids=lambda block: block.place)
def test_every_transcript_says_where_it_comes_from(block: Block) -> None:
    assert block.how in {"shown", "run", "told"}, "a comment above the fence says how it is checked"
    assert block.what
    assert block.typed, "a transcript begins with a command"


@pytest.mark.parametrize("block", TRANSCRIPTS, ids=lambda block: block.place)
def test_kelr_takes_every_command(block: Block) -> None:
    for typed in block.typed:
        calls = kelr_words(typed.command)
        assert calls or not typed.command.startswith("kelr"), typed.command
        for words in calls:
            parse(words)


def test_a_command_that_kelr_does_not_take_is_found() -> None:
    for wrong in ("kelr describe --leaderles", "kelr recover aply plan.json", "kelr nonsense"):
        with pytest.raises(Exception, match=r"(?i)no such|leaderles|aply|nonsense"):
            parse(shlex.split(wrong))


def shown_anew(block: Block) -> str:
    """The block's text as kelr prints it now."""
    screens = (f"$ {one.command}\n{see(one.command, RUNBOOKS / block.what)[1].rstrip()}\n" for one in block.typed)
    return "".join(screens)


@pytest.fixture(scope="module")
def anew() -> Iterator[list[tuple[Block, str]]]:
    """Takes bodies that differ, and writes them into the pages in the end."""
    found: list[tuple[Block, str]] = []
    yield found
    write_anew(found)


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.place)
def test_a_block_shows_what_kelr_prints_for_its_snapshot(
    block: Block, pytestconfig: pytest.Config, anew: list[tuple[Block, str]]
) -> None:
    printed = shown_anew(block)
    if printed != block.body and pytestconfig.getoption("rewrite"):
        anew.append((block, printed))
    else:
        assert block.body == printed, "pytest --rewrite tests/documents writes it anew; read the difference"
