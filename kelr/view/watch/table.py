"""The screen of ``kelr describe --watch``: a table that was laid out already, with its age above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.view.styled import Span, Style, Text, plain, styled
from kelr.view.watch.head import first_line, gap_lines
from kelr.view.watch.model import Silence, Trouble
from kelr.view.watch.words import clock, duration


@dataclass(frozen=True, slots=True)
class Renewed:
    """The newest table, and what is to be said of it."""

    title: str
    now_ms: int
    taken_at_ms: int
    """When its reading began; where nothing was read, when the watch began."""
    lines: Sequence[Text]
    read: bool
    trouble: Trouble | None = None
    silent: Silence | None = None
    """As in `Shown`."""
    paused: bool = False


def table_screen(renewed: Renewed, scroll: int, width: int, height: int) -> tuple[list[Text], int]:
    """The whole screen, and how many lines of the table are on it."""
    head = [_head(renewed, width), *gap_lines(renewed.trouble, renewed.silent, width)]
    page = max(1, height - len(head) - 1)
    first = max(0, min(scroll, len(renewed.lines) - page))
    body = list(renewed.lines[first : first + page])
    body += [plain("")] * (page - len(body))
    return [*head, *body, _foot(renewed, first, page)], page


def table_lines(taken_at_ms: int, lines: Sequence[str]) -> Iterator[str]:
    """The table for a pipe: a line with the time before it, an empty one behind."""
    yield f"{clock(taken_at_ms)} UTC"
    yield from lines
    yield ""


def _head(renewed: Renewed, width: int) -> Text:
    age = duration((renewed.now_ms - renewed.taken_at_ms) / 1000)
    style = Style.BAD if renewed.trouble is not None or renewed.silent is not None else Style.PLAIN
    read = f"  {clock(renewed.taken_at_ms)} UTC, {age} ago" if renewed.read else f"  nothing read yet, for {age}"
    paused = [Span("  PAUSED", Style.NOTICE)] if renewed.paused else []
    return first_line("kelr describe --watch", renewed.title, [Span(read, style), *paused], width)


def _foot(renewed: Renewed, first: int, page: int) -> Text:
    count = len(renewed.lines)
    where = f"  lines {first + 1:,} to {min(first + page, count):,} of {count:,}" if count > page else ""
    return styled(f"q quit  up, down, PgUp, PgDn  p pause  r now{where}", Style.QUIET)
