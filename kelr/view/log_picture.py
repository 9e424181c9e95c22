"""The logs of one partition's replicas, drawn for a terminal: a line for each replica, offsets from left to right.

Every kind of cell has a character of its own, so that nothing is told by colour alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from kelr.engine.words import agree, joined, plural
from kelr.view.layout import wrapped
from kelr.view.log_bars import Bar, Holds, LogBars
from kelr.view.log_scale import ASCII, BLOCKS, Ink, Line, Picture, Scale, picture
from kelr.view.styled import Span, Style, Text, plain, styled, width_of

IN_A_PIPE = 120
"""Columns of a picture in a pipe."""
_WIDE = 110
"""From so many columns on, a line says everything about its log."""
_NARROWEST_BARS = 16
_STYLES: Mapping[Holds, Style] = {
    Holds.SAME: Style.GOOD,
    Holds.DIFFERENT: Style.NOTICE,
    Holds.UNSURE: Style.NOTICE,
    Holds.CUT: Style.BAD,
    Holds.CUT_DIFFERENT: Style.BAD,
    Holds.CUT_UNSURE: Style.BAD,
    Holds.LACKS: Style.QUIET,
    Holds.NOT_KEPT: Style.PLAIN,
}
WORDS: Mapping[Holds, str] = {
    Holds.SAME: "as in the most complete log",
    Holds.DIFFERENT: "other records than the most complete log",
    Holds.UNSURE: "held; whether the most complete log has the same is not known",
    Holds.CUT: "as in the most complete log, and would be truncated",
    Holds.CUT_DIFFERENT: "other records, and would be truncated",
    Holds.CUT_UNSURE: "would be truncated; whether the most complete log has the same is not known",
    Holds.LACKS: "not there",
}
"""What a legend says of each kind of cell."""


def ink_for(stream: TextIO, environ: Mapping[str, str] | None = None) -> Ink:
    """Block characters where the stream can write them; ASCII where it cannot, or where NO_UNICODE is set or the locale
    is C."""
    variables = os.environ if environ is None else environ
    locale = next((variables[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if variables.get(name)), "")
    if variables.get("NO_UNICODE") or variables.get("TERM") == "dumb" or locale in {"C", "POSIX"}:
        return ASCII
    try:
        every = "".join((*BLOCKS.cells.values(), BLOCKS.high_watermark, BLOCKS.break_))
        every.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def picture_texts(bars: LogBars, *, width: int | None, ink: Ink = BLOCKS) -> Iterator[Text]:
    """The picture with its labels, offsets and legend.

    Args:
        width: columns of the terminal; None for a pipe.
    """
    whole = width or IN_A_PIPE
    if not bars.heard:
        yield from wrapped(
            [Span("Logs: ", Style.HEADING), Span("no replica's log was read: nothing can be drawn")], whole
        )
        return
    yield from wrapped([Span("Logs: ", Style.HEADING), Span(bars.title)], whole)
    labels = {bar.replica: _label(bar, imagined=bars.imagined) for bar in bars.bars}
    facts = {bar.replica: _facts(bar, wide=whole >= _WIDE) for bar in bars.bars}
    place = _place(list(labels.values()), [facts[bar.replica] for bar in bars.heard], whole)
    drawn = picture(bars, place.columns, ink)
    if drawn.scale is None:
        yield from wrapped(
            plain("  (their offsets differ at more places than there are columns: use a wider terminal)"), whole
        )
    for line in drawn.lines:
        yield from _line(line, labels[line.bar.replica], facts[line.bar.replica], drawn.columns, place)
    if drawn.scale is not None and drawn.columns:
        yield plain(" " * place.left + _ruler(drawn, whole - place.left))
    yield from (text for remark in remarks(bars) for text in _indented(remark, whole))
    yield from (text for remark in _legend(drawn, ink) for text in _indented(remark, whole, Style.QUIET))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the bars stand: beside their labels and in front of the facts, as far as there is room for that."""

    width: int
    """Of the terminal."""
    left: int
    """The column in which they begin."""
    columns: int
    """Cells of a bar at most."""
    labels_beside: bool
    facts_beside: bool


def _place(labels: Sequence[str], facts: Sequence[str], width: int) -> _Place:
    """Facts that leave the bars too little room go on a line of their own below, and labels on one above."""
    label, fact = max(map(width_of, labels), default=0), max(map(width_of, facts), default=0)
    if width - label - 6 - fact >= _NARROWEST_BARS:
        return _Place(width, label + 2, width - label - 6 - fact, labels_beside=True, facts_beside=True)
    # Behind the last cell stands the mark of the end.
    if width - label - 3 >= _NARROWEST_BARS:
        return _Place(width, label + 2, width - label - 3, labels_beside=True, facts_beside=False)
    return _Place(width, 2, max(_NARROWEST_BARS, width - 3), labels_beside=False, facts_beside=False)


def _indented(text: str, width: int, style: Style = Style.PLAIN, left: int = 2) -> Iterator[Text]:
    room = width - left - 2
    # Ranges of long offsets have no space at which they could be broken.
    words = (word if len(word) <= room else word.replace("..", ".. ") for word in text.split(" "))
    for number, line in enumerate(wrapped(styled(" ".join(words), style), room)):
        yield [Span(" " * (left if number == 0 else left + 2)), *line]


def _label(bar: Bar, *, imagined: bool) -> str:
    leads = "would lead" if imagined else "leads"
    tags = [tag for tag, holds in ((leads, bar.leads), ("most complete", bar.best)) if holds]
    return f" {bar.replica} {bar.status}" + (f" ({', '.join(tags)})" if tags else "")


def _facts(bar: Bar, *, wide: bool) -> str:
    if bar.unheard is not None:
        return ""
    mark = "?" if bar.high_watermark is None else bar.high_watermark
    if not wide:
        return f"end {bar.end} HW {mark}"
    start = bar.start if bar.start_known else "?"
    epoch = "?" if bar.last_epoch is None else bar.last_epoch
    parts = [f"start {start}", f"end {bar.end}", f"HW {mark}", "no records" if bar.empty else f"epoch {epoch}"]
    return "  ".join(parts)


def _line(line: Line, label: str, facts: str, columns: int, place: _Place) -> Iterator[Text]:
    bar, left = line.bar, place.left
    style = Style.GOOD if bar.leads else Style.PLAIN
    head = [Span(label + " " * (left - width_of(label)) if place.labels_beside else " " * left, style)]
    if not place.labels_beside:
        yield from ([Span(" "), *text] for text in wrapped(styled(label.strip(), style), place.width - 1))
    if bar.unheard is not None:
        for number, text in enumerate(wrapped(styled(f"not read: {bar.unheard}", Style.NOTICE), place.width - left)):
            yield [*(head if number == 0 else [Span(" " * left)]), *text]
        return
    cells: list[Span] = []
    for cell in line.cells:
        style = Style.HEADING if cell.holds is None else _STYLES[cell.holds]
        if cells and cells[-1].style is style:
            cells[-1] = Span(cells[-1].text + cell.character, style)
        else:
            cells.append(Span(cell.character, style))
    if place.facts_beside:
        yield [*head, *cells, Span(" " * (columns - len(line.cells)) + "  " + facts)]
        return
    if cells or place.labels_beside:
        yield [*head, *cells]
    yield from _indented(facts, place.width, left=min(left, 4))


def _ruler(drawn: Picture, width: int) -> str:
    """Offsets under the columns at which they begin, as many as find room; ends first. Those that would not fit behind
    their mark stand in front of it."""
    scale, columns = drawn.scale, drawn.columns
    assert scale is not None
    offsets = [scale.stretches[0].start, *(one.end for one in scale.stretches)] if scale.stretches else []
    places = {at: scale.column(at) + sum(mark < at for mark in drawn.marks) for at in offsets}
    wanted = [*offsets[:1], *offsets[:-3:-1], *offsets[1:-2]]
    cells = [" "] * min(columns + 24, width)
    for at in wanted:
        text, place = f"^{at}", places[at]
        if place + len(text) > len(cells):
            text, place = f"{at}^", place - len(str(at))
        if place >= 0 and all(cell == " " for cell in cells[max(0, place - 1) : place + len(text) + 1]):
            cells[place : place + len(text)] = text
    return "".join(cells).rstrip()


def remarks(bars: LogBars) -> Iterator[str]:
    """What the bars show, in words: where logs part, and what would be cut off."""
    best = next((bar.replica for bar in bars.bars if bar.best), None)
    for bar in bars.heard:
        if bar.parts_at is not None:
            epochs = f": epoch {bar.parts_in[0]} here, {bar.parts_in[1]} there" if bar.parts_in is not None else ""
            yield f"{bar.replica} diverges from the most complete log ({best}) at offset {bar.parts_at}{epochs}"
        elif bar.same_to is None:
            yield f"{bar.replica} cannot be compared with the most complete log: where they diverge is not known"
    for bar in bars.heard:
        if bar.cut:
            first = max(bar.cut_from or 0, bar.start)
            offsets = f"{plural(bar.cut, 'offset')} ({first}..{bar.end - 1})"
            yield f"{bar.replica} would truncate {offsets} to follow {bars.leads}"
        elif not bar.cut_known:
            yield f"what {bar.replica} would truncate to follow {bars.leads} is not known"
    unheard = [bar.replica for bar in bars.bars if bar.unheard is not None]
    if unheard:
        are, each = agree(len(unheard), "is", "are"), agree(len(unheard), "it", "each")
        yield f"{joined(unheard)} {are} not drawn: {each} may hold more than all others"


def _legend(drawn: Picture, ink: Ink) -> Iterator[str]:
    scale = drawn.scale
    if scale is None or not drawn.columns:
        return
    seen = {cell.holds for line in drawn.lines for cell in line.cells}
    parts = [f"{ink.cells[holds]} {words}" for holds, words in WORDS.items() if holds in seen]
    parts += [f"{ink.high_watermark} high watermark"] if drawn.marks else []
    yield "   ".join(parts)
    yield scale_in_words(scale, ink.break_)


def scale_in_words(scale: Scale, mark: str, noun: str = "column") -> str:
    """How far the drawing is to scale."""
    words = []
    if scale.per_column is not None:
        per = f"{scale.per_column:.1f}".removesuffix(".0") if scale.per_column < 100 else f"{scale.per_column:,.0f}"
        words.append(f"one {noun} is {per} offset{'' if per == '1' else 's'}")
    if scale.squeezed:
        ranges = ", ".join(f"{one.start}..{one.end - 1}" for one in scale.squeezed)
        words.append(f"{mark} squeezed, not to scale: {ranges}")
    if scale.widened:
        words.append("what would be too narrow to be seen is drawn wider")
    return "scale: " + "; ".join(words)
