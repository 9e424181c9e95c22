"""A screen for people, laid out by Rich: labelled paragraphs, commands that are copied whole, and tables.

As wide as the terminal, 80 columns in a pipe. Colour is an addition: words alone carry everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from kelr.view.output import Output
from kelr.view.styled import cleaned

PIPE_WIDTH = 80
"""How wide lines are where no terminal says."""
_NO_LIMIT = 10_000

BAD = "bold red"
WARN = "yellow"
GOOD = "green"
LABEL = "bold"
COMMAND = "cyan"
QUIET = "dim"

Part: TypeAlias = str | tuple[str, str]
"""A piece of text, or one with its style."""


def assembled(parts: Iterable[Part]) -> Text:
    """Pieces of text one after the other, control characters made harmless: names come from the network."""
    clean = (cleaned(part) if isinstance(part, str) else (cleaned(part[0]), part[1]) for part in parts)
    return Text.assemble(*clean)


class Screen:
    """Writes to the output's stdout."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.width = output.width or PIPE_WIDTH
        # Everything is given, so that Rich takes nothing from the environment that the output has decided on.
        self._console = Console(
            file=output.stdout,
            width=self.width,
            height=25,
            force_terminal=output.color,
            color_system="standard" if output.color else None,
            no_color=not output.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        output.end_progress()
        output.begin()

    def blank(self) -> None:
        """An empty line."""
        self._write(Text())

    def say(self, *parts: Part, label: str = "", style: str = LABEL, indent: int | None = None) -> None:
        """A paragraph behind a label of its own, further lines below its first word, or `indent` columns in."""
        hanging = len(label) if indent is None else indent
        head, text = Text(cleaned(label), style=style), assembled(parts)
        if indent is not None:
            head, text = Text(), Text.assemble(head, text)
        for line in self._wrapped(text, self.width - hanging):
            line.rstrip()
            self._write(Text.assemble(head, line))
            head = Text(" " * hanging)

    def command(self, command: str, *, label: str = "", style: str = LABEL) -> None:
        """A line that is copied: never wrapped."""
        self._write(assembled([(label, style), (command, COMMAND)]))

    def table(
        self, titles: Sequence[str], rows: Iterable[Sequence[Text]], *, right: Iterable[str] = (), whole: bool = False
    ) -> None:
        """Rows in columns with titles; no word is cut in two, and a list of partitions breaks behind its commas.

        Args:
            right: the titles of columns that are aligned to the right.
            whole: whether each row stays on one line in a pipe.
        """
        whole = whole and self._output.width is None
        cells = [[cell if whole else _breakable(cell, self.width // 3) for cell in row] for row in rows]
        columns = [
            Column(
                header=Text(title, style=LABEL),
                justify="right" if title in right else "left",
                min_width=max(map(self._longest_word, (Text(title), *(row[at] for row in cells)))),
            )
            for at, title in enumerate(titles)
        ]
        table = Table(*columns, box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for row in cells:
            table.add_row(*row)
        options = self._console.options
        if whole:
            options = options.update(width=_NO_LIMIT)
        for line in Segment.split_lines(self._console.render(table, options)):
            text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
            text.rstrip()
            self._write(text)

    def _wrapped(self, text: Text, width: int) -> Iterable[Text]:
        """In lines of this width, none of its words cut in two."""
        text = _breakable(text, width)
        return text.wrap(self._console, max(width, self._longest_word(text)))

    def _longest_word(self, text: Text) -> int:
        return Measurement.get(self._console, self._console.options.update(width=_NO_LIMIT), text).minimum

    def _write(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)


def _breakable(text: Text, width: int) -> Text:
    """Text whose long lists of partitions are broken behind commas, never within a number."""
    if not any("," in word and cell_len(word) > width for word in text.plain.split()):
        return text
    breaks, used = [], 0
    for piece in re.finditer(r"[^,\s]*[,\s]+|[^,\s]+$", text.plain):
        if used and used + cell_len(piece[0].rstrip()) > width:
            breaks.append(piece.start())
            used = 0
        used += cell_len(piece[0])
    return Text("\n").join(text.divide(breaks))
