"""A partition's history as a drawing: one row for each replica, time from left to right.

Each column stands for the same span of time and shows how the span ended; a mark above it says what happened within it
and might not be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kelr.model import PartitionState, TopicPartition
from kelr.replay.history import BrokerEntry, ElectedAs, Entry, PartitionEntry
from kelr.view.history_words import lasted, when
from kelr.view.styled import Span, Style, Text, plain

KnownT = TypeVar("KnownT")

IN_A_PIPE = 100
"""Columns of a drawing in a pipe."""
_NARROWEST = 20

_LEADS, _ISR, _ELR, _LAST_KNOWN, _OUT, _FENCED, _NONE = "L", "=", "e", "k", "-", ".", " "
_STYLES: Mapping[str, Style] = {
    _LEADS: Style.GOOD,
    _ELR: Style.NOTICE,
    _LAST_KNOWN: Style.NOTICE,
    _FENCED: Style.QUIET,
    _OUT: Style.QUIET,
    "!": Style.BAD,
    "?": Style.BAD,
    "x": Style.BAD,
    "*": Style.NOTICE,
}
LEGEND = (
    "L leads   = in the ISR   e in the ELR   k last known, in neither   - in none of them   . the same, broker down\n"
    "marks: ! unclean election   k last known leader elected   ? clean or unclean is not told   x no leader"
    "   * another leader"
)


@dataclass(slots=True)
class _Line:
    """What is known of one partition, in the order of time."""

    states: list[tuple[int, PartitionState | None]] = field(default_factory=list)
    marks: list[tuple[int, str]] = field(default_factory=list)


class Drawing:
    """Gathers the entries of named partitions, then draws each.

    Args:
        active: the brokers that could lead when the window began.
    """

    def __init__(self, active: frozenset[int]) -> None:
        self._lines: dict[TopicPartition, _Line] = {}
        self._active: list[tuple[int, frozenset[int]]] = [(0, active)]

    def add(self, entry: Entry) -> None:
        """Take the next entry."""
        at_ms = entry.at.timestamp_ms
        if isinstance(entry, PartitionEntry):
            line = self._lines.setdefault(entry.address, _Line())
            line.states.append((at_ms, entry.after))
            mark = _mark(entry)
            if mark is not None:
                line.marks.append((at_ms, mark))
        elif isinstance(entry, BrokerEntry):
            before = self._active[-1][1]
            may_lead = entry.after is not None and entry.after.active
            self._active.append((at_ms, before | {entry.broker} if may_lead else before - {entry.broker}))

    def texts(self, *, width: int | None, end_ms: int) -> Iterator[Text]:
        """The drawings as lines, sorted by partition, then what the letters mean.

        Args:
            width: columns of the terminal; None for a pipe.
            end_ms: to when the log or the window reaches.
        """
        for address in sorted(self._lines):
            yield from self._drawn(address, self._lines[address], width or IN_A_PIPE, end_ms)
            yield ()
        if self._lines:
            yield from (plain(line) for part in LEGEND.split("\n") for line in _folded(part, width))

    def _drawn(self, address: TopicPartition, line: _Line, width: int, end_ms: int) -> Iterator[Text]:
        replicas = sorted({replica for _, state in line.states if state is not None for replica in state.replicas})
        label = max(len(f"broker {replica}") for replica in replicas) if replicas else 8
        columns = max(_NARROWEST, width - label - 3)
        start_ms = line.states[0][0]
        last_ms = max(end_ms, line.states[-1][0], start_ms + 1)
        scale = _Scale(start_ms, last_ms, columns)
        span = lasted(last_ms - start_ms)
        yield [Span(str(address), Style.HEADING), Span(f"  {when(start_ms)} to {when(last_ms)} UTC, {span}")]
        yield [Span(" " * (label + 2)), *_styled(_marked(line.marks, scale))]
        ends = [scale.end_of(column) for column in range(columns)]
        states = _at_each(line.states, ends)
        active = _at_each(self._active, ends)
        for replica in replicas:
            cells = "".join(
                _NONE if state is None else _cell(replica, state, may_lead=replica in (live or ()))
                for state, live in zip(states, active, strict=True)
            )
            yield [Span(f"{f'broker {replica}':<{label}} |"), *_styled(cells), Span("|")]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Columns of equal time."""

    start_ms: int
    end_ms: int
    columns: int

    def column(self, at_ms: int) -> int:
        """The column that a moment is in."""
        whole = self.end_ms - self.start_ms
        return max(0, min(self.columns - 1, (at_ms - self.start_ms) * self.columns // whole))

    def end_of(self, column: int) -> int:
        """The last moment that is in the column or before it."""
        if column == self.columns - 1:
            return self.end_ms
        whole = self.end_ms - self.start_ms
        return self.start_ms + -(-(column + 1) * whole // self.columns) - 1


def _at_each(known: Sequence[tuple[int, KnownT]], ends: Sequence[int]) -> list[KnownT | None]:
    """What holds at each of these moments, which ascend."""
    found: list[KnownT | None] = []
    number = 0
    for end in ends:
        while number + 1 < len(known) and known[number + 1][0] <= end:
            number += 1
        found.append(known[number][1] if known and known[number][0] <= end else None)
    return found


def _cell(replica: int, state: PartitionState, *, may_lead: bool) -> str:
    if replica == state.leader:
        return _LEADS
    if replica in state.isr:
        return _ISR
    if replica in (state.elr or ()):
        return _ELR
    if replica in (state.last_known_elr or ()):
        return _LAST_KNOWN
    if replica not in state.replicas:
        return _NONE
    return _OUT if may_lead else _FENCED


_MARKS = "!?kx*"
"""The first that there is in a column is shown."""


def _mark(entry: PartitionEntry) -> str | None:
    if entry.election is not None:
        of = {
            ElectedAs.UNCLEAN: "!",
            ElectedAs.UNCLEAN_RECOVERY: "!",
            ElectedAs.LAST_KNOWN_LEADER: "k",
            ElectedAs.UNKNOWN: "?",
        }
        return of.get(entry.election.elected_as, "*")
    lost = entry.before is not None and entry.before.leader is not None
    return "x" if lost and entry.after is not None and entry.after.leader is None else None


def _marked(marks: Iterable[tuple[int, str]], scale: _Scale) -> str:
    cells = [" "] * scale.columns
    for at_ms, mark in marks:
        column = scale.column(at_ms)
        if cells[column] == " " or _MARKS.index(mark) < _MARKS.index(cells[column]):
            cells[column] = mark
    return "".join(cells).rstrip()


def _styled(cells: str) -> Iterator[Span]:
    """The cells in runs of one letter."""
    start = 0
    for end in range(1, len(cells) + 1):
        if end == len(cells) or cells[end] != cells[start]:
            yield Span(cells[start:end], _STYLES.get(cells[start], Style.PLAIN))
            start = end


def _folded(text: str, width: int | None) -> Iterator[str]:
    """A line of the legend, broken between its parts where the terminal is narrow."""
    line = ""
    for part in text.split("   "):
        longer = f"{line}   {part}" if line else part
        if line and width is not None and len(longer) > width:
            yield line
            longer = part
        line = longer
    yield line
