"""``kelr watch`` without a screen: a line for each change, as it is seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.commands.session import Session, now_ms
from kelr.commands.watching import NOTHING_LEFT, Watching, WatchOptions
from kelr.engine.watching import Change, Sight
from kelr.view.columns import Json
from kelr.view.output import Listing
from kelr.view.styled import Style, styled
from kelr.view.watch.head import recovery_words
from kelr.view.watch.lines import WatchLine, begin_lines, change_lines, watch_view
from kelr.view.watch.model import RecoveryProgress, Trouble

_AT_MOST_S = 0.25
"""So long at a time is waited for a look: Ctrl-C comes through in between."""

Seen = tuple[Sight, Sequence[Change]]


def watch_in_lines(session: Session, options: WatchOptions) -> bool:
    """Print what changes until it is to end; whether the time ran out before everything was healthy."""
    watching = Watching(session, options, wake=_nobody, patient=False)
    first = _waited_for(watching)
    if first is None:
        session.output.note("the time is up, and nothing was read so far")
        return options.until_healthy
    head: dict[str, Json] = {
        "cluster_id": first[0].cluster.cluster_id,
        "targets": [str(one) for one in options.selection.targets],
        "interval_s": options.interval_s,
    }
    with session.output.listing(watch_view(), head) as listing:
        teller = _Teller(listing)
        listing.add(begin_lines(first[0]))
        while True:
            teller.tell(watching)
            ended = watching.ends_now
            if ended is not None:
                teller.end(watching)
                listing.finish()
                return ended
            seen = _waited_for(watching)
            if seen is not None:
                sight, changes = seen
                listing.add(change_lines(sight, changes))


def _nobody() -> None:
    """Nobody is to be woken: the result is waited for."""


def _waited_for(watching: Watching) -> Seen | None:
    """The next look, waited for; None where it failed, or where the time is up."""
    while watching.ends_ms is None or now_ms() < watching.ends_ms:
        watching.look_when_due()
        begun = watching.looking_since_ms is not None
        wait_s = _AT_MOST_S if begun else (watching.due_ms - now_ms()) / 1000
        seen = watching.take(max(0.001, min(_AT_MOST_S, wait_s)))
        if seen is not None or (begun and watching.looking_since_ms is None):
            return seen
    return None


class _Teller:
    """Tells once what goes on for longer: that nothing can be read, that nothing is left, how a recovery comes on."""

    def __init__(self, listing: Listing[WatchLine]) -> None:
        self._listing = listing
        self._trouble: Trouble | None = None
        self._healthy = False
        self._recovery: RecoveryProgress | None = None

    def tell(self, watching: Watching) -> None:
        """What is new since the last time."""
        self._listing.add(self._lines(watching))

    def end(self, watching: Watching) -> None:
        """The last line."""
        why = NOTHING_LEFT if watching.options.until_healthy and watching.healthy else "the time is up"
        self._listing.add([_line(now_ms(), "end", f"ended: {why}", Style.PLAIN, watching)])

    def _lines(self, watching: Watching) -> Iterator[WatchLine]:
        trouble, before = watching.trouble, self._trouble
        self._trouble = trouble
        if trouble is not None and (before is None or before.message != trouble.message):
            step = f"; {trouble.next_step}" if trouble.next_step else ""
            yield _line(now_ms(), "not-read", f"the cluster cannot be read: {trouble.message}{step}", Style.BAD, None)
        if trouble is not None:
            return
        at_ms = now_ms() if watching.story is None else watching.story.sight.seen_ms
        if before is not None:
            lasted_s = (at_ms - before.since_ms) / 1000
            words = f"the cluster can be read again, after {lasted_s:.0f} s in which nobody looked"
            yield _line(at_ms, "read-again", words, Style.NOTICE, watching)
        recovery = None if watching.looked is None else watching.looked.recovery
        if recovery is not None and _progress(recovery) != _progress(self._recovery):
            yield _line(at_ms, "recovery", recovery_words(recovery), Style.HEADING, watching)
        self._recovery = recovery
        if watching.healthy and not self._healthy:
            yield _line(at_ms, "healthy", NOTHING_LEFT, Style.GOOD, watching)
        self._healthy = watching.healthy


def _progress(recovery: RecoveryProgress | None) -> tuple[object, ...] | None:
    if recovery is None:
        return None
    return recovery.journal, recovery.good, recovery.bad, recovery.ending


def _line(at_ms: int, what: str, text: str, style: Style, watching: Watching | None) -> WatchLine:
    counts = None if watching is None or watching.story is None else watching.story.sight.counts
    return WatchLine(at_ms, what, "", styled(text, style), counts=counts)
