"""``kelr watch`` without a screen: a line for each change, as it is seen."""

from __future__ import annotations

from kelr.commands.session import Session, now_ms
from kelr.commands.watch_alerts import Alerts, sending
from kelr.commands.watch_reader import WatchLook
from kelr.commands.watch_telling import HistoryBuilder
from kelr.commands.watching import NOTHING_LEFT, Watching, WatchOptions
from kelr.view.columns import Json
from kelr.view.styled import plain
from kelr.view.watch.lines import WatchLine, begin_lines, change_lines, watch_view

_AT_MOST_S = 0.25
"""So long at a time is waited for a look: Ctrl-C comes through in between."""


def watch_in_lines(session: Session, options: WatchOptions) -> bool:
    """Print what changes until it is to end; whether the time ran out before everything was healthy."""
    with sending(session, options) as alerts:
        return _watch(session, options, alerts)


def _watch(session: Session, options: WatchOptions, alerts: Alerts) -> bool:
    watching = Watching(session, options, wake=lambda: None, patient=False)
    first: WatchLook | None = None
    while first is None and watching.ends_now is None:
        first = _next(watching)
    if first is None:
        session.output.note("the time is up, and nothing was read so far")
        return options.until_healthy
    head: dict[str, Json] = {
        "cluster_id": first.story.sight.cluster.cluster_id,
        "targets": [str(one) for one in options.selection.targets],
        "interval_s": options.interval_s,
    }
    teller = HistoryBuilder(on_screen=False)
    with session.output.listing(watch_view(), head) as listing:
        begin, *found = begin_lines(first.story.sight)
        listing.add([begin, *teller.gaps(watching), *found, *teller.rest(watching)])
        alerts.tell(watching, first)
        while (ended := watching.ends_now) is None:
            seen = _next(watching)
            alerts.tell(watching, seen)
            alerts.note_failures(session.output)
            changes = () if seen is None else change_lines(seen.story.sight, seen.changes)
            lines = [*teller.gaps(watching), *changes, *teller.rest(watching)]
            if lines:
                listing.add(lines)
        listing.add([_end(watching)])
        listing.finish()
        return ended


def _next(watching: Watching) -> WatchLook | None:
    """A look that comes through in a moment; None where none does, or it failed."""
    watching.look_when_due(watching.story)
    wait_s = _AT_MOST_S if watching.due_ms is None else (watching.due_ms - now_ms()) / 1000
    return watching.take(max(0.001, min(_AT_MOST_S, wait_s)))


def _end(watching: Watching) -> WatchLine:
    why = NOTHING_LEFT if watching.options.until_healthy and watching.healthy else "the time is up"
    story, fresh = watching.story, watching.trouble is None and watching.silent is None
    counts = story.sight.counts if story is not None and fresh else None
    return WatchLine(now_ms(), "end", "", plain(f"ended: {why}"), counts=counts)
