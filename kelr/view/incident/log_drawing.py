"""The logs of one partition's replicas, drawn for a page: a bar for each replica."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.page.svg import drawing, line, rect, text
from kelr.page.words import sentence
from kelr.view.log_bars import Bar, Holds, LogBars
from kelr.view.log_picture import remarks, scale_in_words
from kelr.view.log_scale import Scale, scale_of

_WIDTH, _LEFT = 700, 12
_INNER = _WIDTH - 2 * _LEFT
_ROW, _BAR = 52, 16
_LEAST, _WIDEST = 6, 14
_NARROW = 9.0
"""Room of a letter of a tick."""


def draw_logs(id: str, title: str, bars: LogBars) -> str:
    """The drawing; empty where no log was heard."""
    if not bars.heard:
        return ""
    scale = scale_of(bars.offsets(), _INNER, least=_LEAST, widest=_WIDEST)
    parts, top = _legend(bars, scale)
    for bar in bars.bars:
        parts += _bar(bar, scale, top, imagined=bars.imagined)
        top += _ROW
    if scale is not None and scale.stretches:
        parts += _ticks(scale, top)
        top += 22
    return drawing(id, title, in_words(bars, scale), top, parts, width=_WIDTH)


def in_words(bars: LogBars, scale: Scale | None = None) -> str:
    """What the drawing shows, for whoever does not see it."""
    said = [f"{sentence(bars.title)}.", *(f"{sentence(remark)}." for remark in remarks(bars))]
    return " ".join(said if scale is None else [*said, scale_in_words(scale, "≈", "unit")])


def note(bars: LogBars) -> str:
    """How far the drawing is to scale."""
    scale = scale_of(bars.offsets(), _INNER, least=_LEAST, widest=_WIDEST)
    if scale is None:
        return "The logs differ at more places than can be drawn: the table has the figures."
    squeezed = ", ".join(f"{one.start:,} to {one.end - 1:,}" for one in scale.squeezed)
    words = f"Offsets {squeezed} are squeezed, and not to scale (≈); the rest is to scale" if squeezed else "To scale"
    return f"{words}{'; what would be too narrow to be seen is drawn wider' if scale.widened else ''}."


def _bar(bar: Bar, scale: Scale | None, top: float, *, imagined: bool) -> Iterator[str]:
    tags = [tag for tag, holds in (("elected" if imagined else "leads", bar.leads), ("best log", bar.best)) if holds]
    words = f"broker {bar.replica} · {bar.status}" + "".join(f" · {tag}" for tag in tags)
    yield text(_LEFT, top + 14, words, "label")
    base = top + 20
    if bar.unheard is not None:
        yield f'<rect x="{_LEFT}" y="{base}" width="{_INNER}" height="{_BAR}" class="unheard"/>'
        yield text(_LEFT + 8, base + 12.5, f"not read: {bar.unheard[:70]}", "tick")
        return
    end = f"end {bar.end:,}" + ("" if bar.high_watermark is None else f" · HW {bar.high_watermark:,}")
    yield text(_WIDTH - _LEFT, top + 14, end, "tick", anchor="end")
    if scale is None:
        yield text(_LEFT, base + 12.5, "cannot be drawn: too many different offsets", "tick")
        return
    if bar.empty:
        yield text(_LEFT + 8, base + 12.5, "no records", "tick")
    for one in scale.stretches:
        holds = bar.holds(one.start)
        x, wide = _LEFT + one.left, one.right - one.left
        if holds is Holds.LACKS:
            yield _nothing(x, base + _BAR / 2, wide)
        elif holds is not Holds.NOT_KEPT:
            yield rect(x, base, wide, _BAR, holds.value)
            if one.squeezed and wide > 24:
                yield text(x + wide / 2, base + 13, "≈", "break", anchor="middle")
    if bar.high_watermark is not None and bar.high_watermark in _range(scale):
        x = _LEFT + scale.column(bar.high_watermark)
        yield f'<path d="M{x:.1f} {base - 4:.1f}v{_BAR + 8}" class="mark"/>'


def _range(scale: Scale) -> range:
    """The offsets that a scale reaches over, its end included."""
    return range(scale.stretches[0].start, scale.stretches[-1].end + 1) if scale.stretches else range(0)


def _ticks(scale: Scale, top: float) -> Iterator[str]:
    """Offsets below the bars; those that would overlap are left out, the ends never."""
    yield line(_LEFT, top, _LEFT + scale.columns, top)
    offsets = [scale.stretches[0].start, *(one.end for one in scale.stretches)]
    taken: list[tuple[float, float]] = []
    for at in (offsets[0], offsets[-1], *reversed(offsets[1:-1])):
        x = float(_LEFT + scale.column(at))
        words = f"{at:,}"
        anchor = "start" if at == offsets[0] else "end" if x > _WIDTH / 2 else "middle"
        wide = len(words) * _NARROW
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if all(left + wide + 6 < one or left > other + 6 for one, other in taken):
            taken.append((left, left + wide))
            yield text(x, top + 16, words, "tick", anchor=anchor)


def _legend(bars: LogBars, scale: Scale | None) -> tuple[list[str], float]:
    """What the patterns mean, and where the bars begin below."""
    if scale is None:
        return [], 10.0
    seen = {bar.holds(one.start) for bar in bars.heard for one in scale.stretches}
    entries: list[tuple[Holds | None, str]] = [(holds, words) for holds, words in _SHORT.items() if holds in seen]
    if any(bar.high_watermark is not None for bar in bars.heard):
        entries.append((None, "high watermark"))
    parts, x, y = list[str](), float(_LEFT), 0.0
    for holds, words in entries:
        wide = 28 + 7.2 * len(words)
        if x + wide > _WIDTH - _LEFT:
            x, y = float(_LEFT), y + 22
        parts += (_sample(holds, x, y), text(x + 28, y + 18, words, "tick"))
        x += wide + 14
    return parts, y + 30


def _sample(holds: Holds | None, x: float, y: float) -> str:
    """A piece of what an entry of the legend stands for; None: a high watermark."""
    if holds is None:
        return f'<path d="M{x + 18:.1f} {y + 5:.1f}v18" class="mark"/>'
    if holds is Holds.LACKS:
        return _nothing(x, y + 14, 22)
    return rect(x, y + 7, 22, 13, holds.value)


def _nothing(x: float, y: float, wide: float) -> str:
    """Where a log has no records, and another one has."""
    return f'<path d="M{x:.1f} {y:.1f}h{wide:.1f}" class="lacks"/>'


_SHORT = {
    Holds.SAME: "as in best log",
    Holds.DIFFERENT: "other records",
    Holds.UNSURE: "not comparable",
    Holds.CUT: "truncated",
    Holds.CUT_DIFFERENT: "other, truncated",
    Holds.CUT_UNSURE: "truncated, not comparable",
    Holds.LACKS: "not there",
}
