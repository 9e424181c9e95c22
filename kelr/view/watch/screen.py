"""The screen as lines of text: what is shown, the keys' state and the terminal's size in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelr.view.layout import Layout, wrapped
from kelr.view.styled import Span, Style, Text, plain, styled
from kelr.view.watch.head import head_lines
from kelr.view.watch.model import Listed, Shown
from kelr.view.watch.partition import detail_lines, explanation_lines, rule
from kelr.view.watch.rows import row_lines, title_line
from kelr.view.watch.state import Around, Mode, WatchState, place_of
from kelr.view.watch.words import clock

NARROWEST, LOWEST = 40, 10
_MOST_DETAIL = 9
_KEYS = (
    ("up, down, k, j", "select a partition"),
    ("PgUp, PgDn, space", "a page up or down; Home, End, g, G go to the ends"),
    ("Enter", "the explanation of the selected partition; Esc goes back"),
    ("s", "sort by the next column"),
    ("/", "show topics whose names hold what you type; Enter keeps that, Esc gives it up, and in the list ends it"),
    ("p", "pause: the cluster is left alone, and the screen stays as it is; p goes on"),
    ("r", "look now"),
    ("?", "this help, and back"),
    ("Ctrl-L", "draw the screen anew"),
    ("q, Ctrl-C", "end"),
)
_ABOUT = (
    "The list has partitions that are leaderless or under min ISR, and those that were so while you watched, until"
    " all their replicas are in sync. * stands before what the last look did not renew. SINCE begins with > where it"
    " was so already when the watch began. Times are UTC. Changes are counted since the start, in brackets.",
    "LOGS, and what is below the list: the log ends of the replicas that answered, how many offsets of the best log"
    " each lacks (? where that is not known), and how fast it grows. 2~ is fenced or shutting down, 3! is offline or"
    " not registered.",
    "An election is told by what the look before it saw. A leader that was live, and in ISR or ELR, is clean unless it"
    " left them between the two looks. One that was away is clean only if its shutdown was: kelr history can tell from"
    " the metadata log. One that was in neither is not clean. Where more happened than two looks tell, clean or"
    " not is not known.",
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One frame, and what keys need to know of it."""

    lines: Sequence[Text]
    around: Around
    visible: Sequence[int]
    """Places of the list that are on the screen."""


def draw(shown: Shown, state: WatchState, rows: Listed, width: int, height: int) -> Drawn:
    """The whole screen."""
    if width < NARROWEST or height < LOWEST:
        text = f"{width}x{height} is too small; {NARROWEST}x{LOWEST} is enough (q ends)"
        return Drawn(list(wrapped(plain(text), max(1, width)))[:height], Around(rows.rows, 1), ())
    head = head_lines(shown, state, width)[: height - 4]
    foot = _foot(shown, state, rows)
    room = height - len(head) - 1
    if state.mode is not Mode.LIST:
        told = _help(width) if state.mode is Mode.HELP else explanation_lines(shown, state.selected, width)
        first = max(0, min(state.scroll, len(told) - room))
        around = Around(rows.rows, room, len(told))
        part = _filled(told[first : first + room], room)
        return Drawn([*head, *part, _below(foot, first, room, len(told))], around, ())
    body, around, visible = _with_list(shown, state, rows, width=width, room=room)
    return Drawn([*head, *body, foot], around, visible)


def _with_list(
    shown: Shown, state: WatchState, rows: Listed, *, width: int, room: int
) -> tuple[list[Text], Around, Sequence[int]]:
    """The list, what the selected partition's replicas told, and the newest changes."""
    place = place_of(state, rows.rows)
    selected = rows.rows[place] if rows.rows else None
    detail = [] if selected is None or room < 12 else detail_lines(shown, selected, width)[:_MOST_DETAIL]
    detail = detail[: max(0, room // 3)]
    left = room - len(detail)
    log_room = max(2, left // 3) if left >= 6 else 0
    nothing = [] if rows.rows else [[Span("  "), *line] for line in wrapped(_nothing(shown, state, rows), width - 2)]
    list_room = min(left - log_room, 1 + max(len(nothing), len(rows.rows)))
    log_room = left - list_room
    page = max(1, list_room - 1)
    first = max(0, min(place - page // 2, len(rows.rows) - page))
    visible = range(first, min(first + page, len(rows.rows)))
    body: list[Text] = [title_line(state, rows, width)]
    if rows.rows:
        body += row_lines(shown, [rows.rows[at] for at in visible], rows, width, selected=selected)
    else:
        body += nothing
    lines = [*_filled(body, list_room), *detail, *_log(shown, log_room, width)]
    return lines, Around(rows.rows, page), visible


def _nothing(shown: Shown, state: WatchState, rows: Listed) -> Text:
    if shown.story is None:
        return styled("nothing was read so far", Style.NOTICE)
    if rows.of:
        return styled(f"no topic of the {rows.of:,} partitions here holds {state.wanted!r}", Style.NOTICE)
    sight = shown.story.sight
    if not sight.counts.read:
        words = "could be read" if sight.topic_errors else "was found; topics without DESCRIBE are not listed"
        return styled(f"no partition {words}", Style.NOTICE)
    of_what = " of what could be read" if sight.topic_errors else ""
    if shown.silent is not None:
        # When brokers learnt it, nobody knows: not even of the look's own time can anything be said.
        words = f"nothing is leaderless or unsafe{of_what} by what brokers told; it may be out of date"
        return styled(words, Style.NOTICE)
    if shown.stale:
        at = clock(sight.taken_at_ms)
        words = f"nothing was leaderless or unsafe{of_what} at {at}; how it stands now is not known"
        return styled(words, Style.NOTICE)
    return styled(f"nothing is leaderless or unsafe{of_what}", Style.NOTICE if of_what else Style.GOOD)


def _log(shown: Shown, room: int, width: int) -> list[Text]:
    """The newest changes, the last one lowest, each with a hanging indent."""
    if room <= 0:
        return []
    since = "" if shown.story is None else f" since {clock(shown.story.begun_ms)}"
    begin = f"changes{since}"
    lines: list[Text] = []
    for entry in reversed(shown.log):
        name = [Span(f"{entry.name}: ", Style.HEADING)] if entry.name else []
        parts = wrapped([*name, *entry.text], width - 9)
        told = [
            [Span(f"{clock(entry.at_ms)} " if not at else " " * 9, Style.QUIET), *one] for at, one in enumerate(parts)
        ]
        if len(lines) + len(told) > room - 1:
            if not lines and room > 1:
                # The newest one is always there, as far as there is room.
                lines = [*told[: room - 2], [*told[room - 2], Span(" >", Style.QUIET)]]
            break
        lines = [*told, *lines]
    hidden = shown.forgotten + len(shown.log) - sum(1 for line in lines if line[0].text.strip())
    more = f" ({hidden:,} earlier)" if hidden else ""
    if not shown.log:
        lines = [styled("none so far", Style.QUIET)]
    return [rule(begin + more, width), *_filled(lines, room - 1)]


def _foot(shown: Shown, state: WatchState, rows: Listed) -> Text:
    if state.typing is not None:
        return [
            *styled("topics that hold: ", Style.HEADING),
            Span(f"{state.typing}_"),
            Span("  (Enter, Esc)", Style.QUIET),
        ]
    if state.mode is not Mode.LIST:
        return styled("up, down, PgUp, PgDn  Esc back  q quit", Style.QUIET)
    spans: list[Span] = []
    if shown.story is not None and (shown.stale or shown.story.sight.not_renewed):
        spans.append(Span("* not renewed  ", Style.NOTICE))
    if state.filter:
        spans.append(Span(f"{state.filter!r}: {len(rows.rows):,} of {rows.of:,}  ", Style.NOTICE))
    return [
        *spans,
        Span(f"q quit  s sort ({state.sort.value})  / filter  Enter explain  p pause  r now  ? help", Style.QUIET),
    ]


def _below(foot: Text, first: int, room: int, lines: int) -> Text:
    if lines <= room:
        return foot
    return [*foot, Span(f"  lines {first + 1} to {min(first + room, lines)} of {lines}", Style.QUIET)]


def _help(width: int) -> list[Text]:
    layout = Layout(width)
    lines = [line for keys, text in _KEYS for line in layout.paragraph(f"{keys:<19}", text, Style.HEADING)]
    for text in _ABOUT:
        lines += [plain(""), *layout.lines(plain(text))]
    return lines


def _filled(lines: Iterable[Text], room: int) -> list[Text]:
    """Exactly so many lines."""
    kept = list(lines)[:room]
    return [*kept, *([plain("")] * (room - len(kept)))]
