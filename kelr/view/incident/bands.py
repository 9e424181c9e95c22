"""How partitions stood along time, drawn as bands: one row for each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kelr.model import TopicPartition
from kelr.page.svg import drawing, line, rect, text
from kelr.view.history_words import lasted
from kelr.view.incident.material import Light, Material, Turn

MOST_BANDS = 24
"""So many partitions get a band; the table of all has the others."""
_WIDTH, _LEFT, _RIGHT = 1000, 10, 10
_ROW, _HIGH = 40, 14
_LEAST = 2.0
"""Width of what could not be seen otherwise."""
_TALL = {Light.LEADERLESS: _HIGH, Light.ALONE: 8, Light.LED: 3}
"""Without colours the heights tell the same."""


@dataclass(frozen=True, slots=True)
class Bands:
    """A drawing, and how many partitions it leaves out."""

    svg: str
    about: str
    shown: tuple[TopicPartition, ...]
    left_out: int


def bands(material: Material) -> Bands | None:
    """The bands; None where no metadata log tells of any of the partitions."""
    told = material.told
    if told is None or not told.turns:
        return None
    ranked = sorted(told.turns, key=lambda at: (-_leaderless_ms(told.turns[at], told.ends_ms), at))
    shown = tuple(sorted(ranked[:MOST_BANDS]))
    begins, ends = _span([told.turns[at] for at in shown], told.begins_ms, told.ends_ms)
    parts = list(_legend())
    top = 34.0
    for address in shown:
        parts += _band(address, told.turns[address], begins, ends, top)
        top += _ROW
    parts += _times(begins, ends, top)
    about = (
        f"From {_moment(begins)} to {_moment(ends)} UTC by the controller's clock, to scale. A tall hatched band: no"
        " leader. A middle one: the leader alone in sync. A thin line: led. A triangle: an election that is not sure"
        " to have been clean."
    )
    svg = drawing("bands", "Partitions along time", about, top + 22, parts, width=_WIDTH)
    return Bands(svg, about, shown, len(ranked) - len(shown))


def _span(turns: Sequence[Sequence[Turn]], begins: int, ends: int) -> tuple[int, int]:
    """From shortly before the first trouble to the end: what was before it shows nothing."""
    first = min((turn.at_ms for one in turns for turn in one if turn.light is not Light.LED), default=begins)
    last = max(ends, first + 1)
    return max(begins, first - max(1000, (last - first) // 20)), last


def _leaderless_ms(turns: Sequence[Turn], ends_ms: int) -> int:
    """How long it had no leader."""
    return sum(end - turn.at_ms for turn, end in _lasting(turns, ends_ms) if turn.light is Light.LEADERLESS)


def _lasting(turns: Sequence[Turn], ends_ms: int) -> Iterator[tuple[Turn, int]]:
    """Each turn with its end."""
    for number, turn in enumerate(turns):
        yield turn, max(turn.at_ms, turns[number + 1].at_ms if number + 1 < len(turns) else ends_ms)


def _band(address: TopicPartition, turns: Sequence[Turn], begins: int, ends: int, top: float) -> Iterator[str]:
    without = _leaderless_ms(turns, ends)
    words = f"without a leader for {lasted(without)}" if without else "not without a leader in this time"
    yield text(_LEFT, top + 12, _short(str(address)), "label")
    yield text(_WIDTH - _RIGHT, top + 12, words, "tick", anchor="end")
    base = top + 18 + _HIGH

    def x(at_ms: int) -> float:
        return _LEFT + (max(begins, at_ms) - begins) / (ends - begins) * (_WIDTH - _LEFT - _RIGHT)

    # Thousands of moments in one place are drawn as a few.
    drawn: set[tuple[str, int]] = set()
    for turn, end in _lasting(turns, ends):
        wide = x(end) - x(turn.at_ms)
        place = turn.light.value, int(x(turn.at_ms) / _LEAST)
        if turn.light is Light.DELETED or (wide < _LEAST and place in drawn):
            continue
        drawn.add(place)
        tall = _TALL[turn.light]
        # A moment without a leader is seen, however long the whole.
        least = _LEAST if turn.light is Light.LEADERLESS else 0.0
        yield rect(x(turn.at_ms), base - tall, max(least, wide), tall, turn.light.value)
    for turn in turns:
        at = x(turn.at_ms)
        place = "unclean", int(at / (2 * _LEAST))
        if turn.elected is not None and turn.clean is not True and place not in drawn:
            drawn.add(place)
            yield f'<path d="M{at - 6:.1f} {base - _HIGH - 3:.1f}h12l-6 9z" class="unclean"/>'


def _times(begins: int, ends: int, top: float) -> Iterator[str]:
    yield line(_LEFT, top, _WIDTH - _RIGHT, top)
    for part, anchor in ((0, "start"), (1, "middle"), (2, "end")):
        at_ms = begins + (ends - begins) * part // 2
        yield text(_LEFT + (_WIDTH - _LEFT - _RIGHT) * part / 2, top + 16, _moment(at_ms), "tick", anchor=anchor)


def _legend() -> Iterator[str]:
    x = float(_LEFT)
    for light, words in ((Light.LEADERLESS, "no leader"), (Light.ALONE, "leader alone in sync"), (Light.LED, "led")):
        yield rect(x, 6 + _HIGH - _TALL[light], 26, _TALL[light], light.value)
        yield text(x + 33, 19, words, "tick")
        x += 33 + 7.6 * len(words) + 24
    yield f'<path d="M{x:.1f} 8h12l-6 9z" class="unclean"/>'
    yield text(x + 19, 19, "election not sure to have been clean", "tick")


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _short(name: str, most: int = 80) -> str:
    """A name as long as there is room; the middle goes."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2 - 1) :]}"
