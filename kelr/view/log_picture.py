"""The logs of one partition's replicas, drawn for a terminal: a line for each replica, offsets from left to right.

Every kind of cell has a character of its own, so that nothing is told by colour alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TextIO

from kelr.engine.words import plural
from kelr.view.log_bars import Bar, Holds, LogBars
from kelr.view.log_cells import ASCII, BLOCKS, Ink, Line, Picture, picture
from kelr.view.log_scale import Scale
from kelr.view.styled import Span, Style, Text, plain, styled, width_of
from kelr.view.table import wrap

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
    Holds.SAME: "as in the best log",
    Holds.DIFFERENT: "other records than the best log",
    Holds.UNSURE: "held; whether the best log has the same is not known",
    Holds.CUT: "as in the best log, and would be truncated",
    Holds.CUT_DIFFERENT: "other records, and would be truncated",
    Holds.CUT_UNSURE: "would be truncated; whether the best log has the same is not known",
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
        yield from wrap(
            [Span("Logs: ", Style.HEADING), Span("no replica's log was heard: nothing can be drawn")], whole
        )
        return
    yield from wrap([Span("Logs: ", Style.HEADING), Span(bars.title)], whole)
    labels = {bar.replica: _label(bar, imagined=bars.imagined) for bar in bars.bars}
    facts = {bar.replica: _facts(bar, wide=whole >= _WIDE) for bar in bars.bars}
    label = max((width_of(text) for text in labels.values()), default=0)
    room = whole - label - 6 - max((len(facts[bar.replica]) for bar in bars.heard), default=0)
    drawn = picture(bars, max(_NARROWEST_BARS, room), ink)
    if drawn.scale is None:
        yield from wrap(
            plain("  (their offsets differ at more places than there are columns: use a wider terminal)"), whole
        )
    for line in drawn.lines:
        yield from _line(line, labels[line.bar.replica].ljust(label), facts[line.bar.replica], drawn.columns, whole)
    if drawn.scale is not None and drawn.columns:
        yield plain(" " * (label + 2) + _ruler(drawn))
    yield from (text for remark in remarks(bars) for text in _indented(remark, whole))
    yield from (text for remark in _legend(drawn, ink) for text in _indented(remark, whole, Style.QUIET))


def _indented(text: str, width: int, style: Style = Style.PLAIN) -> Iterator[Text]:
    for number, line in enumerate(wrap(styled(text, style), width - 4)):
        yield [Span("  " if number == 0 else "    "), *line]


def _label(bar: Bar, *, imagined: bool) -> str:
    tags = [tag for tag, holds in (("elected" if imagined else "leads", bar.leads), ("best", bar.best)) if holds]
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


def _line(line: Line, label: str, facts: str, columns: int, width: int) -> Iterator[Text]:
    bar = line.bar
    head = Span(label, Style.GOOD if bar.leads else Style.PLAIN)
    if bar.unheard is not None:
        for number, text in enumerate(wrap(styled(f"not heard: {bar.unheard}", Style.NOTICE), width - len(label) - 2)):
            yield [head if number == 0 else Span(" " * len(label)), Span("  "), *text]
        return
    cells: list[Span] = []
    for cell in line.cells:
        style = Style.HEADING if cell.holds is None else _STYLES[cell.holds]
        if cells and cells[-1].style is style:
            cells[-1] = Span(cells[-1].text + cell.character, style)
        else:
            cells.append(Span(cell.character, style))
    yield [head, Span("  "), *cells, Span(" " * (columns - len(line.cells)) + "  " + facts)]


def _ruler(drawn: Picture) -> str:
    """Offsets under the columns at which they begin, as many as find room; ends first."""
    scale, columns = drawn.scale, drawn.columns
    assert scale is not None
    offsets = [scale.stretches[0].start, *(one.end for one in scale.stretches)] if scale.stretches else []
    places = {at: scale.column(at) + sum(mark < at for mark in drawn.marks) for at in offsets}
    wanted = [*offsets[:1], *offsets[:-3:-1], *offsets[1:-2]]
    cells = [" "] * (columns + 24)
    for at in wanted:
        text, place = f"^{at}", places[at]
        if all(cell == " " for cell in cells[max(0, place - 1) : place + len(text) + 1]):
            cells[place : place + len(text)] = text
    return "".join(cells).rstrip()


def remarks(bars: LogBars) -> Iterator[str]:
    """What the bars show, in words: where logs part, and what would be cut off."""
    best = next((bar.replica for bar in bars.bars if bar.best), None)
    for bar in bars.heard:
        if bar.parts_at is not None:
            epochs = f": epoch {bar.parts_in[0]} here, {bar.parts_in[1]} there" if bar.parts_in is not None else ""
            yield f"{bar.replica} parts from the best log ({best}) at offset {bar.parts_at}{epochs}"
        elif bar.same_to is None:
            yield f"{bar.replica} cannot be compared with the best log: where they part is not known"
    for bar in bars.heard:
        if bar.cut:
            first = max(bar.cut_from or 0, bar.start)
            offsets = f"{plural(bar.cut, 'offset')} ({first}..{bar.end - 1})"
            yield f"{bar.replica} would truncate {offsets} to follow {bars.leads}"
        elif not bar.cut_known:
            yield f"what {bar.replica} would truncate to follow {bars.leads} is not known"
    unheard = [str(bar.replica) for bar in bars.bars if bar.unheard is not None]
    if unheard:
        yield f"of {', '.join(unheard)} nothing is drawn: each may hold more than all others"


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
