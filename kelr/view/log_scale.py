"""Offsets as columns: the scale by which replicas' logs are drawn, in a terminal and on a page.

Logs are mostly alike and differ at their ends, so one scale for a whole log would show nothing of what matters. Long
stretches without anything to see are squeezed, and say so; the rest is to scale, but for parts that would vanish: those
keep a least width. What is drawn is therefore always in the order of the offsets, and nothing is too small to be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
