"""Replicas' logs as cells of a terminal: a pure layout, whose characters tell everything without colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.view.log_bars import Bar, Holds, LogBars
from kelr.view.log_scale import Scale, scale_of


@dataclass(frozen=True, slots=True)
class Ink:
    """The characters that a picture is drawn with."""

    cells: Mapping[Holds, str]
    high_watermark: str
    break_: str
    """In the middle of what is not to scale."""


BLOCKS = Ink(
    {
        Holds.SAME: "█",
        Holds.DIFFERENT: "▓",
        Holds.UNSURE: "?",
        Holds.CUT: "░",
        Holds.CUT_DIFFERENT: "x",
        Holds.CUT_UNSURE: "!",
        Holds.LACKS: "·",
        Holds.NOT_KEPT: " ",
    },
    "┃",
    "≈",
)
ASCII = Ink(
    {
        Holds.SAME: "=",
        Holds.DIFFERENT: "#",
        Holds.UNSURE: "?",
        Holds.CUT: "-",
        Holds.CUT_DIFFERENT: "x",
        Holds.CUT_UNSURE: "!",
        Holds.LACKS: ".",
        Holds.NOT_KEPT: " ",
    },
    "|",
    "~",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of one bar."""

    character: str
    holds: Holds | None
    """None: a mark that stands between offsets."""
    offset: int
    """The first offset that it stands for; of a mark, the offset that it marks."""


@dataclass(frozen=True, slots=True)
class Line:
    """One replica."""

    bar: Bar
    cells: tuple[Cell, ...]
    """Empty where its log was not heard."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn, cell by cell."""

    lines: tuple[Line, ...]
    scale: Scale | None
    """None: there are too many different offsets for so few columns, or no log was heard."""
    marks: tuple[int, ...] = ()
    """High watermarks, each in a column of its own in front of its offset."""

    @property
    def columns(self) -> int:
        return max((len(line.cells) for line in self.lines), default=0)


def picture(bars: LogBars, columns: int, ink: Ink = BLOCKS) -> Picture:
    """Lay the bars out.

    Every stretch of offsets in which some log holds what another does not is at least one cell wide, and cells are in
    the order of their offsets.

    Args:
        columns: cells of each bar at most, marks included.
    """
    marks = bars.high_watermarks
    scale = scale_of(bars.offsets(), columns - len(marks)) if bars.heard else None
    if scale is None:
        return Picture(tuple(Line(bar, ()) for bar in bars.bars), None)
    lines = [Line(bar, tuple(_cells(bar, scale, marks, ink)) if bar.unheard is None else ()) for bar in bars.bars]
    return Picture(tuple(lines), scale, marks)


def _cells(bar: Bar, scale: Scale, marks: Sequence[int], ink: Ink) -> Iterator[Cell]:
    left = set(marks)
    for one in scale.stretches:
        if one.start in left:
            left.discard(one.start)
            yield _mark(bar, one.start, ink)
        holds = bar.holds(one.start)
        middle = (one.left + one.right) // 2
        for column in range(one.left, one.right):
            offset = one.start + (column - one.left) * (one.end - one.start) // (one.right - one.left)
            broken = one.squeezed and column == middle and holds not in {Holds.LACKS, Holds.NOT_KEPT}
            yield Cell(ink.break_ if broken and one.right - one.left > 2 else ink.cells[holds], holds, offset)
    for mark in sorted(left):
        yield _mark(bar, mark, ink)


def _mark(bar: Bar, at: int, ink: Ink) -> Cell:
    """The column before an offset that is the high watermark of some replica."""
    if bar.high_watermark == at:
        return Cell(ink.high_watermark, None, at)
    # What is on both sides of it goes on through it.
    before = bar.holds(at - 1) if at > bar.start else Holds.NOT_KEPT
    through = before if before is bar.holds(at) else Holds.NOT_KEPT
    return Cell(ink.cells[through], None if through is Holds.NOT_KEPT else through, at)
