"""A screen for people: labelled paragraphs, commands that are copied whole, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kelr.view.columns import Column
from kelr.view.layout import PIPE_WIDTH, Layout
from kelr.view.output import Output
from kelr.view.styled import Span, Style

BAD, WARN, GOOD = Style.BAD, Style.NOTICE, Style.GOOD
LABEL, QUIET = Style.HEADING, Style.QUIET

Part: TypeAlias = str | tuple[str, Style]
"""A piece of text, or one with its style."""


def _span(part: Part) -> Span:
    return Span(part) if isinstance(part, str) else Span(*part)


class Screen:
    """Writes to the output's stdout, as wide as the terminal, 80 columns in a pipe."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.width = output.width or PIPE_WIDTH
        output.end_progress()
        output.begin()

    def blank(self) -> None:
        """An empty line."""
        self._output.line()

    def say(self, *parts: Part, label: str = "", style: Style = LABEL) -> None:
        """A paragraph behind a label of its own, further lines below its first word."""
        text = [_span(part) for part in parts]
        for line in Layout(self.width).paragraph(label, text, style):
            self._output.line(line)

    def command(self, command: str, *, label: str = "", style: Style = LABEL) -> None:
        """A line that is copied: never wrapped."""
        self._output.line([Span(label, style), Span(command, Style.COMMAND)])

    def table(
        self, titles: Sequence[str], rows: Iterable[Sequence[Part]], *, right: Iterable[str] = (), whole: bool = False
    ) -> None:
        """Rows in columns with titles; no word is cut in two, and a list of partitions breaks behind its commas.

        Args:
            right: the titles of columns that are aligned to the right.
            whole: whether each row stays on one line in a pipe.
        """
        columns = [
            Column(title, title, text=lambda row, at=at: [_span(row[at])], right=title in right)  # type: ignore[misc]
            for at, title in enumerate(titles)
        ]
        for line in Layout(self._output.width if whole else self.width).table(columns, rows):
            self._output.line(line)
