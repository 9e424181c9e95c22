"""Tables for people: aligned, streamed, never cutting a name in two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic

from kelr.model.rows import Rows
from kelr.view.alike import AlikeRows
from kelr.view.columns import Column, RowT
from kelr.view.styled import Span, Style, Text, cleaned, joined, plain, width_of, written

_GAP = "  "
NOTHING = plain("-")
"""What people see where there is nothing, and that is known."""


class Table(Generic[RowT]):
    """Lays out rows in columns whose widths the first batch decides, so that rows can be printed as they come.

    On a terminal that is too narrow, columns that yield are left out (and named in `left_out`); what still does not
    fit is wrapped between words, and a first cell that is too long gets a line of its own. Where not even the longest
    words fit side by side, the cells of a row come below each other, each with its title.

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
        self._header = self._titled = header
        self._stacked = False
        self._may_leave_out = may_leave_out
        self._width = width
        self._color = color
        self._widths: list[int] = []
        self._alike = AlikeRows[RowT](self)
        self.left_out: tuple[str, ...] = ()

    @property
    def started(self) -> bool:
        return bool(self._widths)

    def lines(self, rows: Sequence[RowT]) -> Iterator[str]:
        """The rows as lines without line ends, some perhaps joined; the first batch is preceded by the header."""
        if self._width is None and not self._color:
            if self.started and isinstance(rows, Rows):
                return self._for_pipe_alike(rows)
            return self._for_pipe(rows)
        return (written(text, color=self._color) for text in self.texts(rows))

    def _for_pipe(self, rows: Sequence[RowT]) -> Iterator[str]:
        """Nothing is wrapped, left out or coloured here: a cell is its text, and long listings go quickly."""
        cells = [[written(cell_text(column, row), color=False) for column in self._columns] for row in rows]
        if not self.started:
            shown = [[width_of(row[index]) for row in cells] for index in range(len(self._columns))]
            self._widths = _pipe_widths(self._columns, shown)
        if self._header:
            self._header = False
            cells.insert(0, [column.title for column in self._columns])
        yield from map(self._piped, cells)

    def _piped(self, cells: Sequence[str]) -> str:
        rights = [column.right for column in self._columns]
        padded = [
            " " * (width - width_of(cell)) + cell if right else cell + " " * (width - width_of(cell))
            for cell, width, right in zip(cells, self._widths, rights, strict=True)
        ]
        return _GAP.join(padded).rstrip()

    def _for_pipe_alike(self, rows: Rows[RowT]) -> Iterator[str]:
        """The same, each kind of row laid out once."""
        for run in rows.runs:
            lines = self._alike.of_run(rows, run)
            yield from self._for_pipe(list(Rows([run], rows.name))) if lines is None else (lines,)

    def texts(self, rows: Sequence[RowT]) -> Iterator[Text]:
        """The same lines before they are written, for views that put a table among other text."""
        cells = [[cell_text(column, row) for column in self._columns] for row in rows]
        if not self.started:
            cells = self._fit(cells)
        if self._stacked:
            for row_cells in cells:
                yield from self._below_each_other(row_cells)
            return
        if self._header:
            self._header = False
            yield from self._laid_out([_title(column) for column in self._columns])
        for row_cells in cells:
            yield from self._laid_out(row_cells)

    def _fit(self, cells: list[list[Text]]) -> list[list[Text]]:
        shown = [[row[index] for row in cells] for index in range(len(self._columns))]
        if self._width is None:
            self._widths = _pipe_widths(self._columns, [list(map(_text_width, column)) for column in shown])
            return cells
        keep = list(range(len(self._columns)))
        if self._may_leave_out:
            _, _, by_sentence, *_, narrowest = _floors(self._columns, shown)
            keep = _columns_that_fit(self._columns, [narrowest[0], *by_sentence[1:]], self._width)
        kept = tuple(self._columns[index] for index in keep)
        self._widths = _squeezed(_floors(kept, [shown[index] for index in keep]), self._width)
        self._stacked = len(keep) > 1 and sum(self._widths) + len(_GAP) * (len(keep) - 1) > self._width
        if self._stacked:
            return cells
        self.left_out = tuple(column.title for index, column in enumerate(self._columns) if index not in keep)
        self._columns = kept
        return [[row[index] for index in keep] for row in cells]

    def _laid_out(self, cells: Sequence[Text]) -> Iterator[Text]:
        if self._width is None:
            yield self._line(cells)
            return
        wrapped = [
            [cell] if _text_width(cell) <= width else wrap(cell, width, hyphens=column.hyphenated)
            for cell, width, column in zip(cells, self._widths, self._columns, strict=True)
        ]
        if len(wrapped) > 1 and _text_width(wrapped[0][0]) > self._widths[0]:
            yield wrapped[0][0]
            wrapped[0] = [()]
        for number in range(max(len(lines) for lines in wrapped)):
            yield self._line([lines[number] if number < len(lines) else () for lines in wrapped])

    def _below_each_other(self, cells: Sequence[Text]) -> Iterator[Text]:
        """A row as a paragraph for each cell, or as one paragraph where the columns have no titles."""
        width = self._width or 0
        paragraphs = [[*_title(column), Span(": "), *cell] for column, cell in zip(self._columns, cells, strict=True)]
        if not self._titled:
            paragraphs = [[span for cell in cells for span in (*cell, Span(_GAP))]]
        for number, paragraph in enumerate(paragraphs):
            indent = [Span(_GAP)] * (number > 0)
            text = _trimmed(paragraph)
            fits = _text_width(text) + len(_GAP) * len(indent) <= width
            lines = [text] if fits else wrap(text, width - 2 * len(_GAP))
            yield [*indent, *lines[0]]
            yield from ([Span(_GAP * 2), *line] for line in lines[1:])

    def _line(self, cells: Sequence[Text]) -> Text:
        line: list[Span] = []
        last = len(cells) - 1
        for index, (cell, width, column) in enumerate(zip(cells, self._widths, self._columns, strict=True)):
            padding = Span(" " * max(width - _text_width(cell), 0))
            line += [padding, *cell] if column.right else cell if index == last else [*cell, padding]
            if index != last:
                line.append(Span(_GAP))
        return _trimmed(line)

    def alike_cells(self, row: RowT) -> tuple[list[str], list[int]]:
        """The texts of a row's cells in a pipe, and the columns' widths; those on the right have negative ones."""
        cells = [written(cell_text(column, row), color=False) for column in self._columns]
        return cells, [
            -width if column.right else width for column, width in zip(self._columns, self._widths, strict=True)
        ]


def _title(column: Column[RowT]) -> Text:
    return joined(Span(word, Style.HEADING) for word in column.title.split())


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


def wrap(text: Text, width: int, *, hyphens: bool = False) -> list[Text]:
    """Break text at spaces, and behind `hyphens` if they may be, so that lines fit `width` where words allow."""
    lines: list[list[Span]] = [[]]
    used = 0
    for word in _words(text, hyphens=hyphens):
        size = width_of(word.text.rstrip())
        if used and used + size > width:
            lines.append([])
            used = 0
        lines[-1].append(word)
        used += width_of(word.text)
    return [_trimmed(line) for line in lines]


def _words(text: Text, *, hyphens: bool = False) -> Iterator[Span]:
    pattern = r"[^\s-]*-+(?=[^\s])|\S+\s*|\s+" if hyphens else r"\S+\s*|\s+"
    for span in text:
        for part in re.findall(pattern, cleaned(span.text)):
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


_NEVER_STICKS_OUT = 40
"""The width up to which names in a pipe always widen their column."""
_OWN_LINE_FROM = (16, 8)
"""Widths below which the first column is not squeezed: names that are longer get a line of their own. The second only
where all else that can be wrapped is."""

_READABLE = 30
"""The width below which sentences are wrapped only where nothing else is left."""


def _floors(columns: Sequence[Column[RowT]], cells: Sequence[Sequence[Text]]) -> tuple[list[int], ...]:
    """How narrow each column can be, in the order of what hurts least.

    As it is; with titles of several words wrapped; with sentences wrapped; with long names on a line of their own; with
    lists wrapped between their members and hyphenated words behind their hyphens; with shorter names on a line of their
    own, too.
    """
    widest = [max([0, *map(_text_width, column)]) for column in cells]
    words = [_longest_word(column, hyphens=columns[index].hyphenated) for index, column in enumerate(cells)]
    titles = [_in_two_lines(column.title) for column in columns]
    whole = _whole_widths(columns, ([cell] for cell in widest))
    by_title = [max(title, cell) for title, cell in zip(titles, widest, strict=True)]
    names = all(len(list(_words(cell))) <= 1 for cell in cells[0])
    by_sentence = [
        max(title, word, min(cell, _READABLE)) if column.prose else cell
        for column, title, word, cell in zip(columns, titles, words, by_title, strict=True)
    ]
    first = [min(by_sentence[0], max(titles[0], floor)) if names else by_sentence[0] for floor in _OWN_LINE_FROM]
    rest = [max(title, word) for title, word in zip(titles[1:], words[1:], strict=True)]
    own_line = [first[0], *by_sentence[1:]]
    return whole, by_title, by_sentence, own_line, *([one, *rest] for one in first)


def _in_two_lines(title: str) -> int:
    """How narrow a title can be that has at most two lines."""
    words = title.split()
    breaks = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words) + 1))
    return min((max(map(width_of, lines)) for lines in breaks), default=0)


def _whole_widths(columns: Sequence[Column[RowT]], cells: Iterable[Iterable[int]]) -> list[int]:
    """How wide each column is where nothing is wrapped, from the widths of its cells."""
    return [max([width_of(column.title), *widths]) for column, widths in zip(columns, cells, strict=True)]


def _pipe_widths(columns: Sequence[Column[RowT]], cells: Sequence[Sequence[int]]) -> list[int]:
    """How wide each column is in a pipe: as its widest cell, but that one long name does not pad all other rows.

    Names far above the usual length stick out of the first column and push the rest of their own rows aside.
    """
    names = sorted(cells[0])
    usual = max(_NEVER_STICKS_OUT, 2 * names[len(names) // 2]) if names else 0
    return _whole_widths(columns, [[width for width in names if width <= usual], *cells[1:]])


def _squeezed(floors: tuple[list[int], ...], width: int) -> list[int]:
    """Column widths that fit the terminal, if any do."""
    widths = floors[0]
    for floor in floors[1:]:
        widths = _narrowed(widths, floor, width)
    return widths


def _narrowed(widths: list[int], floors: Sequence[int], width: int) -> list[int]:
    """Take what is too much from the columns that can give most, none below its floor."""
    result = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    for index in sorted(range(len(widths)), key=lambda index: floors[index] - widths[index]):
        given = max(0, min(excess, result[index] - floors[index]))
        result[index] -= given
        excess -= given
    return result


def _longest_word(cells: Sequence[Text], *, hyphens: bool) -> int:
    return max([0, *(width_of(word.text.rstrip()) for cell in cells for word in _words(cell, hyphens=hyphens))])
