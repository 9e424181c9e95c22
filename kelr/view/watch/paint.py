"""Lines to bytes for a terminal: only what changed since the lines before, all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.view.styled import Span, Style, Text, cleaned, width_of, written

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: terminals that know it show the frame in one piece, others ignore it."""
_CLEAR = "\x1b[0m\x1b[2J"
_CLEAR_REST = "\x1b[K"


@dataclass(frozen=True, slots=True)
class _Line:
    written: str
    full: bool
    """Whether it reaches the screen's edge."""


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
        fitted = [cut(line, width) for line in lines[:height]]
        wanted = [_Line(written(line, color=self._color), _width(line) == width) for line in fitted]
        wanted += [_Line("", False)] * (height - len(wanted))
        whole = self._shown is None or self._size != (width, height)
        old = [_Line("", False)] * height if whole else self._shown or []
        parts = [_replaced(row, before, line) for row, (before, line) in enumerate(zip(old, wanted, strict=True), 1)]
        self._shown, self._size = wanted, (width, height)
        text = "".join(parts)
        if whole:
            text = _CLEAR + text
        return f"{_BEGIN}{text}{_END}" if text else ""


def _replaced(row: int, before: _Line, line: _Line) -> str:
    """What turns one line into another; the part that both begin with is left alone, where no colour hangs on it."""
    if before == line:
        return ""
    old, new = before.written, line.written
    same: int | None = 0
    if "\x1b" not in old + new and (old + new).isascii():
        same = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
        same = min(len(old), len(new)) if same is None else same
    # At the edge the cursor stands on the last character: clearing from there would take that away.
    return f"\x1b[{row};{same + 1}H{new[same:]}{'' if line.full else _CLEAR_REST}"


def _width(text: Text) -> int:
    return sum(width_of(span.text) for span in text)


def cut(text: Text, width: int) -> list[Span]:
    """The text up to the screen's edge; what is cut ends in ``>``, so that nobody takes it for the whole."""
    spans: list[Span] = []
    used = 0
    for span in text:
        shown = cleaned(span.text)
        size = width_of(shown)
        if used + size <= width:
            spans.append(Span(shown, span.style))
            used += size
            continue
        room = width - used - 1
        spans += [Span(_within(shown, room), span.style)] if room > 0 else []
        return [*_without_last(spans, room), Span(">", Style.QUIET)] if width > 0 else []
    return spans


def _within(text: str, width: int) -> str:
    used = 0
    for at, character in enumerate(text):
        used += width_of(character)
        if used > width:
            return text[:at]
    return text


def _without_last(spans: list[Span], room: int) -> list[Span]:
    """The edge is reached by the spans alone: the last column is needed for the mark."""
    if room >= 0 or not spans:
        return spans
    return [*spans[:-1], Span(spans[-1].text[:-1], spans[-1].style)]
