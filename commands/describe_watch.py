"""``kelr describe --watch``: describe's own table, renewed until somebody ends it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.commands.watch_reader import Reader, Worker
from kelr.commands.watching import has_screen, late_look, read_time_s, title_of
from kelr.errors import ConnectError, KelrError, UsageError
from kelr.model import TopicError
from kelr.sources.base import silence_of
from kelr.view.output import Output
from kelr.view.watch.gaps import Gaps
from kelr.view.watch.model import Silence, Trouble
from kelr.view.watch.paint import Painter, spans_of
from kelr.view.watch.state import Around, Mode, WatchState, press
from kelr.view.watch.table import Renewed, table_lines, table_screen
from kelr.view.watch.terminal import Ended, Terminal, end_by_signal
from kelr.view.watch.words import clock

_DEFAULT_INTERVAL = "2s"
_WAIT_S = 0.25
"""So long at a time is waited in a pipe: Ctrl-C comes through in between."""


class Result(Protocol):
    """What one describe counted."""

    read: int
    errors: list[TopicError]


Describe = Callable[[Session], Result]
"""Describes once, to the session's output."""


def keep_describing(session: Session, describe: Describe, *, interval: str | None, check: bool) -> None:
    """Describe again and again: on a terminal on a screen of its own, in a pipe whenever the table has changed.

    Raises:
        UsageError: the options say nothing that can be watched.
        KelrError: the first look failed.
    """
    if check or not session.output.format.for_people or session.settings.saved is not None:
        what = "--check ends after one look" if check else f"-o {session.output.format} is one document"
        what = session.settings.saved or what
        raise UsageError(
            f"--watch renews a table: {what}",
            next_step="leave --watch out; for changes as they come: kelr watch -o ndjson",
        )
    interval_s = read_time_s(interval or _DEFAULT_INTERVAL, "--interval")
    (_on_screen if has_screen() else _in_a_pipe)(session, describe, interval_s)


@dataclass(frozen=True, slots=True)
class _Described:
    """One look as lines of text."""

    taken_at_ms: int
    lines: Sequence[str]
    silence: str | None
    """`silence_of` the source."""


class _Looks:
    """One look after another in a thread, with when the next is due.

    Args:
        wake: called, in another thread, when a look has ended.
        patient: whether a cluster that cannot be reached at the first look is waited for.
    """

    def __init__(
        self, session: Session, describe: Describe, interval_s: float, *, wake: Callable[[], None], patient: bool
    ) -> None:
        self._patient = patient
        self._session, self._describe, self._interval_ms = session, describe, round(1000 * interval_s)
        self._reader = Reader(session.settings)
        self._worker: Worker[int | None, _Described] = Worker("describe", self._look, wake)
        self._due_ms = now_ms()
        self._begun_ms: int | None = None
        self._watched_ms = self._due_ms
        self._heard_ms: int | None = None
        self.newest: _Described | None = None
        self._took_ms = 0
        self._failure: Trouble | None = None

    @property
    def trouble(self) -> Trouble | None:
        """As in `Watching`."""
        if self._failure is not None or self.newest is None:
            return self._failure
        return late_look(self._begun_ms, self.newest.taken_at_ms, self._took_ms)

    @property
    def silent(self) -> Silence | None:
        """As in `Watching`."""
        why = None if self.newest is None else self.newest.silence
        return None if why is None else Silence(why, self._heard_ms)

    @property
    def busy(self) -> bool:
        return self._begun_ms is not None

    @property
    def due_ms(self) -> int:
        return self._due_ms

    def look_when_due(self, width: int | None, *, at_once: bool = False) -> bool:
        """Begin a look for a terminal of this width if it is time; whether one was begun."""
        if self.busy or not (at_once or now_ms() >= self._due_ms):
            return False
        self._begun_ms = now_ms()
        self._worker.begin(width)
        return True

    def take(self, timeout_s: float = 0.0) -> bool:
        """Whether a look has come through. Raises KelrError where the first one failed."""
        found = self._worker.take(timeout_s)
        if found is None or self._begun_ms is None:
            return False
        begun_ms, ended_ms, self._begun_ms = self._begun_ms, now_ms(), None
        took_long = ended_ms - begun_ms >= self._interval_ms
        self._due_ms = (ended_ms if took_long else begun_ms) + self._interval_ms
        if isinstance(found, _Described):
            self.newest, self._failure, self._took_ms = found, None, ended_ms - begun_ms
            self._heard_ms = found.taken_at_ms if found.silence is None else self._heard_ms
            return True
        waited_for = self.newest is not None or (self._patient and type(found) is ConnectError)
        if not isinstance(found, KelrError) or not waited_for:
            raise found
        since_ms = self._watched_ms if self.newest is None else self.newest.taken_at_ms
        self._failure = Trouble(since_ms, found.message, found.next_step or "", never_read=self.newest is None)
        return False

    def _look(self, width: int | None) -> _Described:
        """One look; raises KelrError where the cluster cannot be read."""
        taken_at_ms, written = now_ms(), io.StringIO()
        shown = self._session.output
        output = Output(
            written,
            written,
            format=shown.format,
            width=width,
            color=shown.color,
            stderr_color=shown.color,
            connection_flags=shown.connection_flags,
        )
        try:
            source = self._reader.source()
            source.forget()
            session = Session(self._session.settings, output=output, source=source)
            session.silence_told = True  # above the table, with since when
            result = self._describe(session)
        except KelrError:
            self._reader.close()
            raise
        if result.errors and not result.read:
            raise topics_failed(result.errors, some_worked=False)
        return _Described(taken_at_ms, written.getvalue().splitlines(), silence_of(source))


def _in_a_pipe(session: Session, describe: Describe, interval_s: float) -> None:
    looks = _Looks(session, describe, interval_s, wake=lambda: None, patient=False)
    told: Sequence[str] | None = None
    gaps = Gaps(steps=True)
    while True:
        looks.look_when_due(None)
        wait_s = _WAIT_S if looks.busy else (looks.due_ms - now_ms()) / 1000
        came = looks.take(max(0.001, min(_WAIT_S, wait_s)))
        for gap in gaps.lines(looks.trouble, looks.silent, now_ms()):
            session.output.note(f"{clock(gap.at_ms)} {gap.text}")
        if came and looks.newest is not None and looks.newest.lines != told:
            told = looks.newest.lines
            for line in table_lines(looks.newest.taken_at_ms, told):
                session.output.line(line)
            session.output.stdout.flush()


def _on_screen(session: Session, describe: Describe, interval_s: float) -> None:
    try:
        with Terminal(sys.stdin, sys.stdout) as terminal:
            _run(session, _Looks(session, describe, interval_s, wake=terminal.wake, patient=True), terminal)
    except Ended as ended:
        end_by_signal(ended.number)


def _run(session: Session, looks: _Looks, terminal: Terminal) -> None:
    painter, state = Painter(color=session.output.color), WatchState(mode=Mode.EXPLAIN)
    title = title_of(session)
    asked = redraws = 0
    looked_for: int | None = None
    begun_ms = now_ms()
    while not state.quits:
        looks.take()
        width, height = terminal.size
        if terminal.changed or state.redraws > redraws:
            terminal.changed, redraws = False, state.redraws
            painter.forget()
        wanted = state.asked > asked
        # A table is as wide as its terminal was: another width wants another look.
        if (wanted or not state.paused) and looks.look_when_due(width, at_once=wanted or width != looked_for):
            asked, looked_for = state.asked, width
        newest = looks.newest
        renewed = Renewed(
            title,
            now_ms(),
            begun_ms if newest is None else newest.taken_at_ms,
            () if newest is None else [spans_of(line) for line in newest.lines],
            read=newest is not None,
            trouble=looks.trouble,
            silent=looks.silent,
            paused=state.paused,
        )
        lines, page = table_screen(renewed, state.scroll, width, height)
        terminal.write(painter.frame(lines, width, height))
        until_tick_s = 1 - now_ms() % 1000 / 1000
        wait_s = until_tick_s if looks.busy or state.paused else min(until_tick_s, (looks.due_ms - now_ms()) / 1000)
        for key in terminal.wait(max(0.0, wait_s)):
            pressed = press(state, key, Around((), page, len(renewed.lines)))
            state = replace(pressed, mode=Mode.EXPLAIN, scroll=state.scroll if key in _NO_KEYS else pressed.scroll)


_NO_KEYS = frozenset({"?", "esc", "enter", "backspace"})
"""Keys that leave an explanation, where there is none to leave."""
