"""Paragraphs and tables among other text, as wide as the terminal, or whole in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kelr.view.columns import Column, RowT
from kelr.view.styled import Span, Style, Text, plain
from kelr.view.table import Table, wrap

_IN_A_PIPE = 160
"""In a pipe, lines as long as a wide terminal's keep every sentence whole for grep."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How wide lines may be: `width` is the terminal's columns, None for a pipe."""

    width: int | None = None

    @property
    def line_width(self) -> int:
        return self.width or _IN_A_PIPE

    def lines(self, text: Text) -> list[Text]:
        """The text in lines that fit."""
        return wrap(text, self.line_width)

    def paragraph(self, head: str, text: str, style: Style) -> Iterator[Text]:
        """A text behind a head of its own, its further lines below its first."""
        for number, line in enumerate(wrap(plain(text), self.line_width - len(head))):
            yield [Span(head, style) if number == 0 else Span(" " * len(head)), *line]

    def table(self, columns: tuple[Column[RowT], ...], rows: Iterable[RowT], *, header: bool = True) -> Iterator[Text]:
        """A table with all its columns, a space from the margin."""
        width = None if self.width is None else self.width - 1
        table = Table(columns, width=width, may_leave_out=False, header=header)
        for line in table.texts(list(rows)):
            yield [Span(" "), *line]
