"""Paragraphs and tables, laid out by Rich as lines of kelr's own text, which stand among other lines on any screen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.style import Style as RichStyle
from rich.table import Table
from rich.text import Text as RichText

from kelr.view.columns import Column, RowT
from kelr.view.styled import Span, Style, Text, cleaned, plain, styled
from kelr.view.table import cell_text

PIPE_WIDTH, WIDE_PIPE_WIDTH = 80, 160
"""Columns where there is no terminal; the second for what nobody reads in a hurry."""
_NO_LIMIT = 10_000
_GAP = 2
_READABLE = 30
"""The width below which sentences are broken only where nothing else is left."""
_SHORTEST_NAME = 12
"""The width of a first column whose names do not fit."""
_RICH: Mapping[Style, RichStyle] = {
    Style.PLAIN: RichStyle.null(),
    Style.HEADING: RichStyle(bold=True),
    Style.GOOD: RichStyle(color="green"),
    Style.NOTICE: RichStyle(color="yellow"),
    Style.BAD: RichStyle(bold=True, color="red"),
    Style.QUIET: RichStyle(dim=True),
    Style.COMMAND: RichStyle(color="cyan"),
}
_OWN = {rich: own for own, rich in _RICH.items()}


@dataclass(frozen=True, slots=True)
class Layout:
    """How wide lines may be: `width` is the terminal's columns, None for a pipe, where they have `in_a_pipe`."""

    width: int | None = None
    in_a_pipe: int = WIDE_PIPE_WIDTH

    @property
    def line_width(self) -> int:
        return self.width or self.in_a_pipe

    def lines(self, text: Text) -> list[Text]:
        """The text in lines that fit."""
        return wrapped(text, self.line_width)

    def paragraph(self, head: str, text: str | Text, style: Style = Style.HEADING) -> Iterator[Text]:
        """A text behind a head of its own, its further lines below its first."""
        shown = plain(text) if isinstance(text, str) else text
        for number, line in enumerate(wrapped(shown, self.line_width - cell_len(head))):
            yield [Span(head, style) if number == 0 else Span(" " * cell_len(head)), *line]

    def table(self, columns: Sequence[Column[RowT]], rows: Iterable[RowT], *, header: bool = True) -> Iterator[Text]:
        """Rows with all their columns, in a pipe each on one line."""
        return table_lines(columns, rows, width=self.width or _NO_LIMIT, header=header)


def table_lines(
    columns: Sequence[Column[RowT]], rows: Iterable[RowT], *, width: int, header: bool = True
) -> Iterator[Text]:
    """Rows in columns, cells of kelr's own. Where they do not fit they are broken between words, sentences first, and a
    name that leaves the others no room gets a line of its own; nothing is cut off, and no word in two."""
    cells = [[rich_text(cell_text(column, row)) for column in columns] for row in rows]
    titles = [RichText(column.title if header else "", style="bold") for column in columns]
    if not all(sum(cell.cell_len + _GAP for cell in row) - _GAP <= width for row in (titles, *cells)):
        cells = [[_breakable(cell, width // 3) for cell in row] for row in cells]
    rows_with_title = [titles, *cells] if header else cells
    widths = _widths(columns, [[row[at] for row in rows_with_title] for at in range(len(columns))], width)
    for row in rows_with_title:
        if _measured(row[0]).minimum > widths[0]:
            name, *further = row[0].split("\n")
            yield from _lines_of(name, width=name.cell_len)
            row[0] = RichText("\n").join(further)
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        for column, wide in zip(columns, widths, strict=True):
            grid.add_column(justify="right" if column.right else "left", width=wide)
        grid.add_row(*row)
        yield from _lines_of(grid, width=_NO_LIMIT)


def _widths(columns: Sequence[Column[RowT]], cells: Sequence[Sequence[RichText]], width: int) -> list[int]:
    """How wide columns are: as their cells; else sentences give way down to what can still be read, then names in the
    first column, which get lines of their own, then all that can be broken between words."""
    measured = [[_measured(cell) for cell in column] for column in cells]
    natural = [max((one.maximum for one in column), default=0) for column in measured]
    words = [max((one.minimum for one in column), default=0) for column in measured]
    readable = [
        max(word, min(whole, _READABLE)) if column.prose else whole
        for column, whole, word in zip(columns, natural, words, strict=True)
    ]
    short = min(words[0], _SHORTEST_NAME)
    by_name, narrowest = [short, *readable[1:]], [short, *words[1:]]
    for wanted, least in ((natural, readable), (readable, by_name), (by_name, narrowest)):
        left = width - _GAP * (len(columns) - 1) - sum(least)
        if left >= 0:
            more = [most - less for most, less in zip(wanted, least, strict=True)]
            share = min(left, sum(more))
            return [less + one * share // max(sum(more), 1) for less, one in zip(least, more, strict=True)]
    return narrowest


def wrapped(text: Text, width: int) -> list[Text]:
    """In lines of this width, none of its words cut in two; a long list of partitions breaks behind its commas."""
    shown = _breakable(rich_text(text), width)
    return list(_lines_of(shown, width=max(width, _measured(shown).minimum, 1)))


def rich_text(text: Text) -> RichText:
    """Text for Rich, control characters made harmless: Rich passes them on."""
    return RichText.assemble(*((cleaned(span.text), _RICH[span.style]) for span in text))


def cut(text: Text, width: int) -> Text:
    """The text up to this width; what is cut ends in an ellipsis, so that it is not taken for the whole."""
    shown = rich_text(text)
    shown.truncate(max(0, width), overflow="ellipsis")
    return next(_lines_of(shown, width=_NO_LIMIT), [])


def _breakable(text: RichText, width: int) -> RichText:
    """Text whose long lists of partitions are broken behind commas, never within a number."""
    if not any("," in word and cell_len(word) > width for word in text.plain.split()):
        return text
    breaks, used = [], 0
    for piece in re.finditer(r"[^,\s]*[,\s]+|[^,\s]+$", text.plain):
        if used and used + cell_len(piece[0].rstrip()) > width:
            breaks.append(piece.start())
            used = 0
        used += cell_len(piece[0])
    return RichText("\n").join(text.divide(breaks))


def _measured(text: RichText) -> Measurement:
    """Its longest word, and its longest line."""
    return Measurement.get(_console(_NO_LIMIT), _console(_NO_LIMIT).options, text)


@cache
def _console(width: int) -> Console:
    return Console(width=width, color_system=None, legacy_windows=False, highlight=False)


def _lines_of(renderable: RenderableType, *, width: int) -> Iterator[Text]:
    for segments in _console(width).render_lines(renderable, pad=False):
        spans = [Span(one.text, _OWN.get(one.style or RichStyle.null(), Style.PLAIN)) for one in segments if one.text]
        while spans and not spans[-1].text.strip():
            spans.pop()
        yield [*spans[:-1], Span(spans[-1].text.rstrip(), spans[-1].style)] if spans else []


# All that there is to say of one thing.


@dataclass(frozen=True, slots=True)
class NamedFact:
    """A fact, and what it is called."""

    name: str
    text: str


_COLUMNS: tuple[Column[NamedFact], ...] = (
    Column("name", "", text=lambda fact: plain(fact.name)),
    Column("text", "", text=lambda fact: plain(fact.text)),
)


def told_in_full(layout: Layout, heading: str, text: str, facts: Iterable[NamedFact]) -> Iterator[Text]:
    """The lines, as wide as the layout."""
    yield styled(heading, Style.HEADING)
    yield plain("")
    yield from layout.lines(plain(text))
    yield plain("")
    yield from layout.table(_COLUMNS, tuple(facts), header=False)
