"""The transcripts in README.md and docs/: what is typed in them, what they show, and how a test may see it again.

A block of ``console`` has, on the line above its fence, a comment that says where what it shows comes from:

``<!-- shown: incidents/NAME.kelr -->``: every command, asked of that saved snapshot in place of ``-b kafka-1:9092``,
prints what the block shows, on a terminal of 110 columns. ``<!-- run: NAME -->``: the block is a part of the story
NAME, which is run, one command after the other, in a shell (`stories.py`). ``<!-- told: WHY -->``: it is not run here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUNBOOKS = DOCS / "runbooks"
_BLOCK = re.compile(
    r"^(?:<!-- (?P<how>[a-z]+): (?P<what>[^\n]*?) -->\n)?^```(?P<language>[a-z]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ENDS_A_COMMAND = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "2>"})


@dataclass(frozen=True, slots=True)
class Typed:
    """A command as it was typed, and what the block shows below it."""

    command: str
    shown: str


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and what is said of it."""

    page: Path
    line: int
    how: str
    """``shown``, ``run`` or ``told``; empty where nothing is said."""
    what: str
    language: str
    body: str
    begin: int
    """Where in the page's text the body begins."""

    @property
    def place(self) -> str:
        """Page and line, as tests name it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def typed(self) -> list[Typed]:
        """The commands of a transcript."""
        found: list[Typed] = []
        for part in re.split(r"^(?=\$ )", self.body, flags=re.MULTILINE):
            if part.startswith("$ "):
                command, _, shown = part[2:].partition("\n")
                found.append(Typed(command.strip(), shown.rstrip("\n")))
        return found


def blocks(page: Path, language: str = "console") -> list[Block]:
    """The blocks of a page in this language, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start("language")) + 1,
            match["how"] or "",
            match["what"] or "",
            match["language"],
            match["body"],
            match.start("body"),
        )
        for match in _BLOCK.finditer(text)
        if match["language"] == language
    ]


def write_anew(bodies: Iterable[tuple[Block, str]]) -> None:
    """Give blocks other bodies in their pages."""
    for block, body in sorted(bodies, key=lambda pair: (str(pair[0].page), -pair[0].begin)):
        text = block.page.read_text(encoding="utf-8")
        end = block.begin + len(block.body)
        assert text[block.begin : end] == block.body
        block.page.write_text(text[: block.begin] + body + text[end:], encoding="utf-8")


def kelr_words(command: str) -> list[list[str]]:
    """The calls of kelr in a line of shell: the words of each, its pipes, redirections and comments left out."""
    inner = re.findall(r"\$\((kelr [^)]*)\)", command)
    outer = re.sub(r"\$\(.*?\)", "substituted", command)
    lexer = shlex.shlex(outer, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    calls = [shlex.split(one) for one in inner]
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in _ENDS_A_COMMAND:
            if words[:1] == ["kelr"]:
                calls.append(words)
            words = []
        else:
            words.append(word)
    return calls
