"""Rich's tables and paragraphs as lines of kelr's own text, which stand among other lines on any screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.style import Style as RichStyle
from rich.table import Table
from rich.text import Text as RichText

from kelr.view.columns import Column, RowT
from kelr.view.styled import Span, Style, Text, cleaned
from kelr.view.table import cell_text

IN_A_PIPE, WIDE_IN_A_PIPE = 80, 160
"""Columns where there is no terminal; the second for what nobody reads in a hurry."""
_RICH: Mapping[Style, RichStyle] = {
    Style.PLAIN: RichStyle.null(),
    Style.HEADING: RichStyle(bold=True),
    Style.GOOD: RichStyle(color="green"),
    Style.NOTICE: RichStyle(color="magenta"),
    Style.BAD: RichStyle(bold=True, color="red"),
    Style.QUIET: RichStyle(dim=True),
    Style.COMMAND: RichStyle(color="cyan"),
}
_OWN = {rich: own for own, rich in _RICH.items()}


def rich_text(text: Text) -> RichText:
    """Text for Rich, control characters made harmless: Rich passes them on."""
    return RichText.assemble(*((cleaned(span.text), _RICH[span.style]) for span in text))


def table_lines(
    columns: Sequence[Column[RowT]], rows: Iterable[RowT], *, width: int, header: bool = True
) -> Iterator[Text]:
    """Rows in columns, cells of kelr's own. Where they do not fit they are broken between words, and words only where
    not even the longest ones fit side by side; nothing is cut off."""
    cells = [[rich_text(cell_text(column, row)) for column in columns] for row in rows]
    titles = [column.title if header else "" for column in columns]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header, header_style="bold")
    shown = [[title, *(row[at].plain for row in cells)] for at, title in enumerate(titles)]
    for column, title, least in zip(columns, titles, _widths(shown, width), strict=True):
        table.add_column(title, justify="right" if column.right else "left", overflow="fold", width=least)
    for row in cells:
        table.add_row(*row)
    return lines_of(table, width=width)


def _widths(columns: Sequence[Sequence[str]], width: int) -> list[int | None]:
    """How wide columns are that do not fit as they are: each as its longest word, and its share of what is left over.
    Rich decides (None) where they fit, and where not even the words do."""
    natural = [max(map(cell_len, cells)) for cells in columns]
    words = [max((cell_len(word) for cell in cells for word in cell.split()), default=0) for cells in columns]
    gaps = 2 * (len(columns) - 1)
    left = width - gaps - sum(words)
    if left < 0 or sum(natural) + gaps <= width:
        return [None] * len(columns)
    more = [whole - word for whole, word in zip(natural, words, strict=True)]
    return [word + share * left // sum(more) for word, share in zip(words, more, strict=True)]


def labelled(label: str, text: Text, *, width: int) -> Iterator[Text]:
    """A paragraph behind its label, its further lines below its first."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", min_width=4, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(label, rich_text(text))
    return lines_of(grid, width=width)


def lines_of(renderable: RenderableType, *, width: int) -> Iterator[Text]:
    """A table or a paragraph, laid out by Rich in so many columns."""
    console = Console(width=width, color_system=None, legacy_windows=False, highlight=False)
    for segments in console.render_lines(renderable, pad=False):
        spans = [Span(one.text, _OWN.get(one.style or RichStyle.null(), Style.PLAIN)) for one in segments if one.text]
        while spans and not spans[-1].text.strip():
            spans.pop()
        yield [*spans[:-1], Span(spans[-1].text.rstrip(), spans[-1].style)] if spans else []
