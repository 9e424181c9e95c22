"""Numbers, times and names as a page has them."""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def number(value: float) -> str:
    """With commas between thousands; at most one digit behind the point, and that only below 100."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return f"{value:.1f}"


def sentence(text: str) -> str:
    """With a capital letter in front; the rest stays, ELR and all."""
    return text[:1].upper() + text[1:]


def full(text: str) -> str:
    """A whole sentence, with a capital letter and a full stop."""
    return sentence(text.rstrip(".")) + "."


def count(value: int, noun: str) -> str:
    """``1 partition``, ``1,200 partitions``."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def duration(seconds: float) -> str:
    """In the two largest units: ``3 d 4 h``, ``12 min 5 s``, ``0.4 s``."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two(whole // _MINUTE, "min", whole % _MINUTE, "s")
    if whole < _DAY:
        return _two(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "min")
    return _two(whole // _DAY, "d", whole % _DAY // _HOUR, "h")


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first:,} {unit} {second} {smaller}" if second else f"{first:,} {unit}"


def moment(at: datetime | None) -> str:
    """A time in UTC, to the minute; ``?`` where it is not known."""
    return "?" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def share(part: float) -> str:
    """A share in per cent; a little is not said to be nothing, nor nearly all to be all."""
    percent = part * 100
    if 0 < percent < 0.1:
        return "under 0.1%"
    if 99.9 < percent < 100:
        return "over 99.9%"
    return f"{percent:.1f}%" if percent % 1 else f"{percent:.0f}%"


def listed(names: tuple[str, ...], *, most: int, of: int | None = None) -> str:
    """Names with commas between, and how many more there are."""
    shown = names[:most]
    more = (len(names) if of is None else of) - len(shown)
    text = ", ".join(shown)
    return f"{text} and {more:,} more" if more > 0 and shown else text


def harmless(text: str) -> str:
    r"""Text that cannot reorder or hide what stands beside it: control characters and marks of direction are shown as
    ``\u202e``.

    Racks, users and reasons come from a network or a file, so they may hold anything.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else character.encode("unicode_escape").decode()
        for character in text
    )
