"""Lines of rows that are alike: what they have in common is written once, and names and epochs are filled in.

A line is written as every other is, with marks in place of the topic, its id, the partition's number and its leader
epoch, and taken apart at the marks. Where the marks do not come out as expected, lines are written one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from kelr.model.rows import Kind, Rows, Run
from kelr.view.columns import RowT
from kelr.view.styled import width_of

# No topic and no id has a tilde, and no number of Kafka's is so large.
TOPIC_MARK = "~topic~"
ID_MARK = "~id~"
NUMBER_MARK = 7_000_000_000_000_000_007
EPOCH_MARK = 8_000_000_000_000_000_008
_MARKS = re.compile(f"({TOPIC_MARK}|{ID_MARK}|{NUMBER_MARK}|{EPOCH_MARK})")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""A name that every format writes as it is."""
_MOST_KINDS = 8_192
"""Kinds of rows whose lines are remembered: some 10 MiB."""
_MOST_NUMBERS = 4_096
"""Numbers whose texts are remembered, for each width."""

_GAP = "  "
RowT_contra = TypeVar("RowT_contra", contravariant=True)

Parts = tuple[str, str, str]
"""What stands between number and epoch, between epoch and topic id, and behind."""


class _Padded(dict[int, str]):
    """Numbers as text; most partitions have the number of one that was written before, and many its epoch.

    Args:
        side: where the text stands, "<" or ">".
        width: what they are filled up to with spaces.
    """

    def __init__(self, side: str, width: int) -> None:
        self._format = f"{side}{width}" if width else ""

    def __missing__(self, number: int) -> str:
        if len(self) >= _MOST_NUMBERS:
            self.clear()
        text = self[number] = format(number, self._format)
        return text


def marked(rows: Rows[RowT], kind: Kind[RowT], *, has_id: bool) -> RowT:
    """A row of this kind with marks in it."""
    return rows.named(kind, TOPIC_MARK, ID_MARK if has_id else None, NUMBER_MARK, EPOCH_MARK)


def is_plain(topic: str) -> bool:
    """Whether lines of this topic can be filled in."""
    return _PLAIN_NAME.fullmatch(topic) is not None


class Lines(Generic[RowT]):
    """Writes rows of a listing.

    Args:
        write: the line of one row.
        separator: what stands between two of them.
    """

    def __init__(self, write: Callable[[RowT], str], separator: str = "") -> None:
        self._write = write
        self._separator = separator
        self._parts: dict[bool, dict[Kind[RowT], Parts]] = {True: {}, False: {}}
        self._numbers = _Padded("", 0)
        self._head: tuple[str, str] | None = None

    def of(self, rows: Iterable[RowT]) -> Iterator[str]:
        """The lines, in their order; several may come in one piece, with separators between them."""
        if isinstance(rows, Rows):
            for run in rows.runs:
                yield self._separator.join(self._of_run(rows, run))
        else:
            yield from map(self._write, rows)

    def _of_run(self, rows: Rows[RowT], run: Run[RowT]) -> Iterable[str]:
        parts = self._known(rows, run) if is_plain(run.topic) else None
        if parts is None or self._head is None:
            return map(self._write, Rows([run], rows.name))
        head, topic_id = self._head[0] + run.topic + self._head[1], run.topic_id or ""
        texts = self._numbers.__getitem__
        numbered = zip(map(texts, run.numbers), map(texts, run.leader_epochs), parts, strict=True)
        return [f"{head}{number}{one}{epoch}{two}{topic_id}{three}" for number, epoch, (one, two, three) in numbered]

    def _known(self, rows: Rows[RowT], run: Run[RowT]) -> list[Parts] | None:
        """The parts of each row's line; None where one cannot be taken apart."""
        has_id = run.topic_id is not None
        known = self._parts[has_id]
        missing = set(run.kinds) - known.keys()
        if len(known) + len(missing) > _MOST_KINDS:
            known.clear()
            missing = set(run.kinds)
        for kind in missing:
            parts = self._taken_apart(self._write(marked(rows, kind, has_id=has_id)), has_id=has_id)
            if parts is None:
                return None
            known[kind] = parts
        return [known[kind] for kind in run.kinds]

    def _taken_apart(self, line: str, *, has_id: bool) -> Parts | None:
        pieces = _MARKS.split(line)
        expected = [TOPIC_MARK, str(NUMBER_MARK), str(EPOCH_MARK), *([ID_MARK] if has_id else [])]
        if pieces[1::2] != expected:
            return None
        before, between, *rest = pieces[0::2]
        if self._head is None:
            self._head = before, between
        if self._head != (before, between):
            return None
        return (rest[0], rest[1], rest[2]) if has_id else (rest[0], rest[1], "")


class Piped(Protocol[RowT_contra]):
    """A table in a pipe whose columns have their widths."""

    def alike_cells(self, row: RowT_contra) -> tuple[list[str], list[int]]: ...


class AlikeRows(Generic[RowT]):
    """Lays out rows of a table in a pipe: the first cell is ``topic:partition``, and any other may be the epoch, the
    topic's id in the last, or what rows of a kind have in common."""

    def __init__(self, table: Piped[RowT]) -> None:
        self._table = table
        self._parts: dict[bool, dict[Kind[RowT], tuple[str, str]]] = {True: {}, False: {}}
        self._texts: dict[tuple[str, int], _Padded] = {}
        self._widths = (0, 0)

    def of_run(self, rows: Rows[RowT], run: Run[RowT]) -> str | None:
        """The lines of a run, but for the last line end; None where they have to be laid out one by one."""
        if not is_plain(run.topic):
            return None
        has_id = run.topic_id is not None
        known = self._parts[has_id]
        if len(known) > _MOST_KINDS:
            known.clear()
        for kind in set(run.kinds) - known.keys():
            laid_out = self._laid_out(*self._table.alike_cells(marked(rows, kind, has_id=has_id)))
            if laid_out is None:
                return None
            known[kind] = laid_out
        parts = map(known.__getitem__, run.kinds)
        (first, wide), name, topic_id = self._widths, run.topic + ":", ""
        if has_id and self._ends_with_id:
            topic_id = run.topic_id or ""
        texts = map(self._padded("<", first - len(name)).__getitem__, run.numbers)
        epochs = map(self._padded(">", wide).__getitem__, run.leader_epochs)
        numbered = zip(texts, epochs, parts, strict=True)
        # What is the same in all lines is put in where they are joined.
        lines = [f"{number}{one}{epoch}{two}" for number, epoch, (one, two) in numbered]
        return name + f"{topic_id}\n{name}".join(lines) + topic_id

    def _padded(self, side: str, width: int) -> _Padded:
        known = self._texts.get((side, width))
        if known is None:
            known = self._texts[side, width] = _Padded(side, max(0, width))
        return known

    _ends_with_id = False

    def _laid_out(self, cells: list[str], widths: list[int]) -> tuple[str, str] | None:
        """What stands between name and epoch, and behind the epoch; None where the marks are elsewhere."""
        epoch = str(EPOCH_MARK)
        if cells[0] != f"{TOPIC_MARK}:{NUMBER_MARK}" or cells.count(epoch) != 1:
            return None
        at = cells.index(epoch)
        self._ends_with_id = cells[-1] == ID_MARK
        others = cells[1:at] + cells[at + 1 : len(cells) - self._ends_with_id]
        if any(_MARKS.search(cell) for cell in others) or widths[at] > 0:
            return None
        padded = [
            " " * (-width - width_of(cell)) + cell if width < 0 else cell + " " * (width - width_of(cell))
            for cell, width in zip(cells, widths, strict=True)
        ]
        self._widths = widths[0], -widths[at]
        behind = _GAP.join(["", *padded[at + 1 : len(padded) - self._ends_with_id]])
        return _GAP.join(["", *padded[1:at], ""]), behind + _GAP if self._ends_with_id else behind.rstrip()
