"""``kelr describe --watch``: describe's own table, renewed until somebody ends it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.commands.watch_reader import Reader
from kelr.commands.watching import Looks, has_screen, next_step_s, read_time_s, title_of
from kelr.errors import KelrError, UsageError
from kelr.model import TopicError
from kelr.sources.base import silence_of
from kelr.view.output import Output
from kelr.view.watch.model import Gaps, Silence
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
    took_ms: int
    silence: str | None
    """`silence_of` the source."""


class _Looks(Looks[int | None, _Described]):
    """The looks of one describe, each for a terminal of some width; None for a pipe."""

    def __init__(
        self, session: Session, describe: Describe, interval_s: float, *, wake: Callable[[], None], patient: bool
    ) -> None:
        super().__init__(self._look, interval_s, wake=wake, patient=patient)
        self._session, self._describe = session, describe
        self._reader = Reader(session.settings)
        self._heard_ms: int | None = None

    @property
    def silent(self) -> Silence | None:
        """As in `Watching`."""
        newest = self.newest
        if newest is None or newest.silence is None:
            return None
        return Silence(newest.silence, self._heard_ms)

    def take(self, timeout_s: float = 0.0) -> _Described | None:
        found = super().take(timeout_s)
        if found is not None and found.silence is None:
            self._heard_ms = found.taken_at_ms
        return found

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
        return _Described(taken_at_ms, written.getvalue().splitlines(), now_ms() - taken_at_ms, silence_of(source))


def _in_a_pipe(session: Session, describe: Describe, interval_s: float) -> None:
    looks = _Looks(session, describe, interval_s, wake=lambda: None, patient=False)
    told: Sequence[str] | None = None
    gaps = Gaps(steps=True)
    while True:
        looks.look_when_due(None)
        wait_s = _WAIT_S if looks.due_ms is None else (looks.due_ms - now_ms()) / 1000
        came = looks.take(max(0.001, min(_WAIT_S, wait_s)))
        for gap in gaps.lines(looks.trouble, looks.silent, now_ms()):
            session.output.note(f"{clock(gap.at_ms)} {gap.text}")
        if came is not None and came.lines != told:
            told = came.lines
            for line in (f"{clock(came.taken_at_ms)} UTC", *told, ""):
                session.output.line(line)
            session.output.stdout.flush()


def _on_screen(session: Session, describe: Describe, interval_s: float) -> None:
    from kelr.view.watch.app import TableApp  # noqa: PLC0415 - only on a terminal

    class Screen(TableApp):
        """The looks of one describe on one terminal."""

        def __init__(self) -> None:
            super().__init__(title_of(session))
            self._looks = _Looks(session, describe, interval_s, wake=self.wake, patient=True)
            self._looked_for = 0

        def step(self) -> float:
            looks, width = self._looks, self.room
            looks.take()
            # A table is as wide as its terminal was: another width wants another look.
            wanted = self.look_asked or width != self._looked_for
            if (self.look_asked or not self.paused) and looks.look_when_due(width, at_once=wanted):
                self.look_asked, self._looked_for = False, width
            newest = looks.newest
            self.show(
                () if newest is None else newest.lines,
                now_ms(),
                looks.begun_ms if newest is None else newest.taken_at_ms,
                read=newest is not None,
                trouble=looks.trouble,
                silent=looks.silent,
            )
            return next_step_s(None if self.paused else looks.due_ms)

    Screen().run_until_ended()
