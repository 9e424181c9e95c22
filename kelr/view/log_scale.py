"""Offsets as columns: the scale by which replicas' logs are drawn, in a terminal and on a page.

Logs are mostly alike and differ at their ends, so one scale for a whole log would show nothing of what matters. Long
stretches without anything to see are squeezed, and say so; the rest is to scale, but for parts that would vanish: those
keep a least width. What is drawn is therefore always in the order of the offsets, and nothing is too small to be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kelr.view.log_bars import Bar, Holds, LogBars

_FAR_LONGER = 6
"""A stretch is far longer than the others where it has more than so many times their offsets."""
_FEW = 6
"""Parts that come to less than one in so many columns are looked at more closely."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets `[start, end)`, drawn in columns `[left, right)`; nothing happens within it."""

    start: int
    end: int
    left: int
    right: int
    squeezed: bool = False
    """Not to scale: far longer than what is drawn beside it."""
    widened: bool = False
    """Not to scale: it would be too narrow to be seen."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where each offset is drawn."""

    stretches: tuple[Stretch, ...]
    """In their order, without gaps, each at least one column wide."""
    per_column: float | None
    """Offsets in one column of what is to scale; None: nothing is."""

    @property
    def columns(self) -> int:
        return self.stretches[-1].right if self.stretches else 0

    @property
    def squeezed(self) -> tuple[Stretch, ...]:
        return tuple(one for one in self.stretches if one.squeezed)

    @property
    def widened(self) -> bool:
        """Whether something is drawn wider than it is."""
        return any(one.widened for one in self.stretches)

    def column(self, offset: int) -> int:
        """The column at whose left edge an offset is; beyond the scale, its nearer end.

        It never falls as offsets rise, and rises from the beginning of a stretch to its end.
        """
        if not self.stretches or offset <= self.stretches[0].start:
            return 0
        if offset >= self.stretches[-1].end:
            return self.columns
        one = self.stretches[bisect_right([stretch.start for stretch in self.stretches], offset) - 1]
        return one.left + (offset - one.start) * (one.right - one.left) // (one.end - one.start)


def scale_of(offsets: Iterable[int], columns: int, *, least: int = 1, widest: int = 1) -> Scale | None:
    """A scale on which all of these offsets are apart from each other.

    Args:
        offsets: where logs begin, end, part, ... ; the scale reaches from the lowest to the highest.
        columns: how many there are.
        least: columns that each stretch has at least.
        widest: columns that one offset has at most, where `least` does not ask for more.

    Returns:
        None where there are too many different offsets for so many columns.
    """
    ends = sorted(set(offsets))
    lengths = [end - start for start, end in pairwise(ends)]
    if len(lengths) * least > columns:
        return None
    if not lengths:
        return Scale((), None)
    long = _long_ones(lengths, columns, least)
    shown = [index for index in range(len(lengths)) if index not in long]
    seen = sum(lengths[index] for index in shown)
    # What is squeezed gets a quarter of the columns, and what nothing else needs.
    squeezed = max(len(long) * least, columns // 4) if long else 0
    room = max(min(columns - squeezed, seen * widest), len(shown) * least)
    widths = dict(zip(shown, _shares([lengths[index] for index in shown], room, least), strict=True))
    widths.update(zip(sorted(long), _shares([1] * len(long), columns - room, least), strict=True))
    return _placed(ends, [widths[index] for index in range(len(lengths))], long, seen)


def _long_ones(lengths: Sequence[int], columns: int, least: int) -> frozenset[int]:
    """The stretches beside which the others could hardly be seen; none where even a single offset can be."""
    if sum(lengths) * least <= 2 * columns:
        return frozenset()
    ranked = sorted(range(len(lengths)), key=lambda index: lengths[index])
    whole, shorter = sum(lengths), 0
    for place, index in enumerate(ranked):
        if place and lengths[index] > _FAR_LONGER * shorter and shorter * columns < whole * (columns // _FEW):
            return frozenset(ranked[place:])
        shorter += lengths[index]
    return frozenset()


def _shares(lengths: Sequence[int], columns: int, least: int) -> list[int]:
    """Columns in proportion to lengths, each at least `least`; they come to `columns`."""
    if not lengths:
        return []
    widths = [least] * len(lengths)
    free = set(range(len(lengths)))
    while True:
        # Those that would come out too narrow keep the least; the others share what they leave.
        room, whole = columns - least * (len(lengths) - len(free)), sum(lengths[index] for index in free)
        narrow = {index for index in free if lengths[index] * room < least * whole}
        if not narrow:
            break
        free -= narrow
    rest = columns - least * (len(lengths) - len(free))
    for index in free:
        widths[index] = lengths[index] * rest // whole
    over = columns - sum(widths)
    by_fraction = sorted(free, key=lambda index: (-(lengths[index] * rest % whole), index))
    for index in by_fraction[:over]:
        widths[index] += 1
    return widths


def _placed(ends: Sequence[int], widths: Sequence[int], long: frozenset[int], seen: int) -> Scale:
    to_scale = sum(width for index, width in enumerate(widths) if index not in long)
    per_column = seen / to_scale if to_scale else None
    stretches, left = [], 0
    for index, ((start, end), width) in enumerate(zip(pairwise(ends), widths, strict=True)):
        wide = per_column is not None and index not in long and (end - start) / per_column < width - 1
        stretches.append(Stretch(start, end, left, left + width, index in long, wide))
        left += width
    return Scale(tuple(stretches), per_column)


# Cells of a terminal.


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
