"""Lines to bytes for a terminal: only what changed since the lines before, all of it at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kelr.view.styled import Span, Style, Text, cleaned, width_of, written

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: terminals that know it show the frame in one piece, others ignore it."""
_CLEAR = "\x1b[0m\x1b[2J"
_CLEAR_REST = "\x1b[K"
_STYLED = re.compile(r"\x1b\[([0-9;]+)m(.*?)\x1b\[0m")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that fits, and where each of its spans begins; the last place is its end."""

    spans: tuple[Span, ...] = ()
    places: tuple[int, ...] = (0,)


_EMPTY = _Line()


class Painter:
    """Remembers what is on the screen.

    Args:
        color: whether styles are written; without, text alone.
    """

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._shown: list[_Line] | None = None
        self._size = (0, 0)

    def forget(self) -> None:
        """Somebody else wrote on the screen: the next frame is written whole."""
        self._shown = None

    def frame(self, lines: Sequence[Text], width: int, height: int) -> str:
        """What turns the screen into these lines; empty where it shows them already.

        Args:
            lines: as many as the screen has, or fewer; each is cut at the screen's width.
        """
        wanted = [_placed(cut(line, width)) for line in lines[:height]]
        wanted += [_EMPTY] * (height - len(wanted))
        whole = self._shown is None or self._size != (width, height)
        old = [_EMPTY] * height if whole else self._shown or []
        pairs = enumerate(zip(old, wanted, strict=True), 1)
        text = "".join(self._replaced(row, before, line, width) for row, (before, line) in pairs if before != line)
        self._shown, self._size = wanted, (width, height)
        if whole:
            text = _CLEAR + text
        return f"{_BEGIN}{text}{_END}" if text else ""

    def _replaced(self, row: int, before: _Line, line: _Line, width: int) -> str:
        """What turns one line into another: the spans that both begin with are left alone, and those that both end
        with, where they stand in the same place."""
        old, new = before.spans, line.spans
        first = 0
        while first < min(len(old), len(new)) and old[first] == new[first]:
            first += 1
        last, last_old = len(new), len(old)
        if before.places[-1] == line.places[-1]:
            while last > first and last_old > first and old[last_old - 1] == new[last - 1]:
                last, last_old = last - 1, last_old - 1
            # What is in between has the same width then, since all else has.
        text = written(new[first:last], color=self._color)
        shorter = line.places[-1] < before.places[-1]
        # At the edge the cursor stands on the last character: clearing from there would take that away.
        clear = _CLEAR_REST if shorter and line.places[-1] < width else ""
        return f"\x1b[{row};{line.places[first] + 1}H{text}{clear}"


def spans_of(line: str) -> list[Span]:
    """A line that was `written` in colour, as spans again."""
    spans: list[Span] = []
    at = 0
    for match in _STYLED.finditer(line):
        spans += [Span(line[at : match.start()])] if match.start() > at else []
        spans.append(Span(match[2], Style(match[1])))
        at = match.end()
    return [*spans, Span(line[at:])] if at < len(line) else spans


def _placed(spans: Sequence[Span]) -> _Line:
    places = [0]
    for span in spans:
        places.append(places[-1] + width_of(span.text))
    return _Line(tuple(spans), tuple(places))


def cut(text: Text, width: int) -> list[Span]:
    """The text up to the screen's edge; what is cut ends in ``>``, so that nobody takes it for the whole."""
    shown = [Span(cleaned(span.text), span.style) for span in text]
    if sum(width_of(span.text) for span in shown) <= width:
        return shown
    if width <= 0:
        return []
    spans: list[Span] = []
    room = width - 1
    for span in shown:
        kept = _within(span.text, room)
        spans += [Span(kept, span.style)] if kept else []
        room -= width_of(kept)
        if len(kept) < len(span.text):
            break
    return [*spans, Span(">", Style.QUIET)]


def _within(text: str, width: int) -> str:
    used = 0
    for at, character in enumerate(text):
        used += width_of(character)
        if used > width:
            return text[:at]
    return text
