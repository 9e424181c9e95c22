"""Tables for people: aligned, streamed, never cutting a name in two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Generic

from kelr.view.columns import Column, RowT
from kelr.view.styled import Span, Style, Text, cleaned, plain, styled, width_of, written

_GAP = "  "
NOTHING = plain("-")
"""What people see where there is nothing, and that is known."""


class Table(Generic[RowT]):
    """Lays out rows in columns whose widths the first batch decides, so that rows can be printed as they come.

    On a terminal that is too narrow, columns that yield are left out (and named in `left_out`); what still does not
    fit is wrapped between words, and a first cell that is too long gets a line of its own.

    Args:
        width: columns of the terminal; None for a pipe, where nothing is wrapped or left out.
        may_leave_out: False where every column was asked for.
    """

    def __init__(
        self,
        columns: Sequence[Column[RowT]],
        *,
        width: int | None,
        color: bool = False,
        may_leave_out: bool = True,
        header: bool = True,
    ) -> None:
        self._columns = tuple(columns)
        self._header = header
        self._may_leave_out = may_leave_out
        self._width = width
        self._color = color
        self._widths: list[int] = []
        self.left_out: tuple[str, ...] = ()

    @property
    def started(self) -> bool:
        return bool(self._widths)

    def lines(self, rows: Sequence[RowT]) -> Iterator[str]:
        """The rows as lines without line ends; the first batch is preceded by the header."""
        return (written(text, color=self._color) for text in self.texts(rows))

    def texts(self, rows: Sequence[RowT]) -> Iterator[Text]:
        """The same lines before they are written, for views that put a table among other text."""
        cells = [[cell_text(column, row) for column in self._columns] for row in rows]
        if not self.started:
            cells = self._fit(cells)
        if self._header:
            self._header = False
            yield from self._laid_out([styled(column.title, Style.HEADING) for column in self._columns])
        for row_cells in cells:
            yield from self._laid_out(row_cells)

    def _fit(self, cells: list[list[Text]]) -> list[list[Text]]:
        widths = [
            max([width_of(column.title), *(_text_width(row[index]) for row in cells)])
            for index, column in enumerate(self._columns)
        ]
        if self._width is None:
            self._widths = widths
            return cells
        keep = list(range(len(widths)))
        if self._may_leave_out:
            keep = _columns_that_fit(self._columns, widths, self._width)
        self.left_out = tuple(column.title for index, column in enumerate(self._columns) if index not in keep)
        self._columns = tuple(self._columns[index] for index in keep)
        cells = [[row[index] for index in keep] for row in cells]
        narrowest = [
            max(_narrowest(column, [row[index] for row in cells]), 1) for index, column in enumerate(self._columns)
        ]
        self._widths = _squeezed([widths[index] for index in keep], narrowest, self._width)
        return cells

    def _laid_out(self, cells: Sequence[Text]) -> Iterator[Text]:
        if self._width is None:
            yield self._line(cells)
            return
        wrapped = [
            [cell] if _text_width(cell) <= width else wrap(cell, width)
            for cell, width in zip(cells, self._widths, strict=True)
        ]
        if len(wrapped) > 1 and _text_width(wrapped[0][0]) > self._widths[0]:
            yield wrapped[0][0]
            wrapped[0] = [()]
        for number in range(max(len(lines) for lines in wrapped)):
            yield self._line([lines[number] if number < len(lines) else () for lines in wrapped])

    def _line(self, cells: Sequence[Text]) -> Text:
        line: list[Span] = []
        last = len(cells) - 1
        for index, (cell, width, column) in enumerate(zip(cells, self._widths, self._columns, strict=True)):
            padding = Span(" " * max(width - _text_width(cell), 0))
            line += [padding, *cell] if column.right else cell if index == last else [*cell, padding]
            if index != last:
                line.append(Span(_GAP))
        return _trimmed(line)


def cell_text(column: Column[RowT], row: RowT) -> Text:
    """What people see of one fact of one row."""
    if column.text is not None:
        text = column.text(row)
        return text if any(span.text for span in text) else NOTHING
    value = None if column.value is None else column.value(row)
    if isinstance(value, list | tuple):
        return plain(" ".join(str(member) for member in value)) if value else NOTHING
    if isinstance(value, bool):
        return plain("yes" if value else "no")
    return NOTHING if value is None or value == "" else plain(str(value))


def wrap(text: Text, width: int) -> list[Text]:
    """Break text at spaces, and after hyphens, so that lines are at most `width` wide where its words allow."""
    lines: list[list[Span]] = [[]]
    used = 0
    for word in _words(text):
        size = width_of(word.text.rstrip())
        if used and used + size > width:
            lines.append([])
            used = 0
        lines[-1].append(word)
        used += width_of(word.text)
    return [_trimmed(line) for line in lines]


def _words(text: Text) -> Iterator[Span]:
    for span in text:
        for part in re.findall(r"[^\s-]*-+(?=[^\s])|\S+\s*|\s+", cleaned(span.text)):
            yield Span(part, span.style)


def _trimmed(line: list[Span]) -> Text:
    while line and not line[-1].text.strip():
        line.pop()
    if line:
        line[-1] = Span(line[-1].text.rstrip(), line[-1].style)
    return line


def _text_width(text: Text) -> int:
    return sum(width_of(cleaned(span.text)) for span in text)


def _columns_that_fit(columns: Sequence[Column[RowT]], widths: Sequence[int], width: int) -> list[int]:
    keep = list(range(len(columns)))
    for index in sorted(keep, key=lambda index: -columns[index].yields):
        if columns[index].yields == 0 or sum(widths[kept] + len(_GAP) for kept in keep) - len(_GAP) <= width:
            break
        keep.remove(index)
    return keep


def _narrowest(column: Column[RowT], cells: Sequence[Text]) -> int:
    """The width of the longest word of the column: below that a name would be cut."""
    words = (width_of(word.text.rstrip()) for cell in cells for word in _words(cell))
    return max([width_of(column.title), *words])


def _squeezed(widths: list[int], narrowest: Sequence[int], width: int) -> list[int]:
    """Take the excess from the columns that can give most, and at last from the first, which can have its own line."""
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    for index in sorted(range(1, len(widths)), key=lambda index: narrowest[index] - widths[index]):
        if excess <= 0:
            return widths
        given = min(excess, widths[index] - narrowest[index])
        widths[index] -= given
        excess -= given
    if excess > 0:
        widths[0] = max(widths[0] - excess, 4)
    return widths
