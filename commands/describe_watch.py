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
from kelr.commands.watching import has_screen, read_time_s, title_of
from kelr.errors import ConnectError, KelrError, UsageError
from kelr.model import TopicError
from kelr.view.output import Output
from kelr.view.watch.model import Trouble
from kelr.view.watch.paint import Painter, spans_of
from kelr.view.watch.state import Around, Mode, WatchState, press
from kelr.view.watch.table import Renewed, table_lines, table_screen
from kelr.view.watch.terminal import Ended, Terminal, end_by_signal

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


class _Looks:
    """One look after another in a thread, with when the next is due."""

    def __init__(self, session: Session, describe: Describe, interval_s: float, wake: Callable[[], None]) -> None:
        self._session, self._describe, self._interval_ms = session, describe, round(1000 * interval_s)
        self._reader = Reader(session.settings)
        self._worker: Worker[int | None, _Described] = Worker("describe", self._look, wake)
        self._due_ms = now_ms()
        self._begun_ms: int | None = None
        self.newest: _Described | None = None
        self.trouble: Trouble | None = None

    @property
    def busy(self) -> bool:
        return self._begun_ms is not None

    @property
    def due_ms(self) -> int:
        return self._due_ms

    def look_when_due(self, width: int | None, *, at_once: bool = False) -> None:
        """Begin a look for a terminal of this width if it is time."""
        if not self.busy and (at_once or now_ms() >= self._due_ms):
            self._begun_ms = now_ms()
            self._worker.begin(width)

    def take(self, timeout_s: float = 0.0) -> bool:
        """Whether a look has come through. Raises KelrError where the first one failed."""
        found = self._worker.take(timeout_s)
        if found is None or self._begun_ms is None:
            return False
        begun_ms, ended_ms, self._begun_ms = self._begun_ms, now_ms(), None
        took_long = ended_ms - begun_ms >= self._interval_ms
        self._due_ms = (ended_ms if took_long else begun_ms) + self._interval_ms
        if isinstance(found, _Described):
            self.newest, self.trouble = found, None
            return True
        if not isinstance(found, KelrError) or (self.newest is None and type(found) is not ConnectError):
            raise found
        since_ms = begun_ms if self.trouble is None else self.trouble.since_ms
        self.trouble = Trouble(since_ms, found.message, found.next_step or "")
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
            result = self._describe(Session(self._session.settings, output=output, source=source))
        except KelrError:
            self._reader.close()
            raise
        if result.errors and not result.read:
            raise topics_failed(result.errors, some_worked=False)
        return _Described(taken_at_ms, written.getvalue().splitlines())


def _in_a_pipe(session: Session, describe: Describe, interval_s: float) -> None:
    looks = _Looks(session, describe, interval_s, lambda: None)
    told: Sequence[str] | None = None
    trouble = ""
    while True:
        looks.look_when_due(None)
        wait_s = _WAIT_S if looks.busy else (looks.due_ms - now_ms()) / 1000
        came = looks.take(max(0.001, min(_WAIT_S, wait_s)))
        if looks.newest is None and looks.trouble is not None:
            raise ConnectError(looks.trouble.message, next_step=looks.trouble.next_step)
        if looks.trouble is not None and looks.trouble.message != trouble:
            session.output.note(f"not renewed: {looks.trouble.message}")
        trouble = "" if looks.trouble is None else looks.trouble.message
        if came and looks.newest is not None and looks.newest.lines != told:
            told = looks.newest.lines
            for line in table_lines(looks.newest.taken_at_ms, told):
                session.output.line(line)
            session.output.stdout.flush()


def _on_screen(session: Session, describe: Describe, interval_s: float) -> None:
    try:
        with Terminal(sys.stdin, sys.stdout) as terminal:
            _run(session, _Looks(session, describe, interval_s, terminal.wake), terminal)
    except Ended as ended:
        end_by_signal(ended.number)


def _run(session: Session, looks: _Looks, terminal: Terminal) -> None:
    painter, state = Painter(color=session.output.color), WatchState(mode=Mode.EXPLAIN)
    title = title_of(session)
    asked = redraws = 0
    begun_ms = now_ms()
    while not state.quits:
        looks.take()
        width, height = terminal.size
        resized = terminal.changed
        if resized or state.redraws > redraws:
            terminal.changed, redraws = False, state.redraws
            painter.forget()
        if not state.paused or state.asked > asked:
            # A table is as wide as its terminal was: another width wants another look.
            looks.look_when_due(width, at_once=state.asked > asked or resized)
            asked = state.asked
        newest = looks.newest
        renewed = Renewed(
            title,
            now_ms(),
            begun_ms if newest is None else newest.taken_at_ms,
            () if newest is None else [spans_of(line) for line in newest.lines],
            read=newest is not None,
            trouble=looks.trouble,
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
