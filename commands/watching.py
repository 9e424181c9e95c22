"""What ``kelr watch`` does once its options are read: chooses screen or lines, and keeps the story of both."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kelr.alerts import Receiver
from kelr.commands.session import Session, now_ms
from kelr.commands.watch_reader import LookJob, Reader, Recoveries, WatchLook, Worker
from kelr.engine.watching import Story
from kelr.errors import ConnectError, KelrError, UsageError
from kelr.model import Selection
from kelr.sources.watched import Looker
from kelr.view.watch.alerts import RUNBOOK
from kelr.view.watch.model import Silence, Trouble, late

_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(ms|s|m|h|)", re.ASCII)
_UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_SHORTEST_S = 0.1
_TICK_MS = 1000
_LATE_MS = 4000
"""Longer than the silence of a controller holds a look up."""
NOTHING_LEFT = "nothing is leaderless or unsafe"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options of ``kelr watch``, read."""

    selection: Selection
    interval_s: float
    for_s: float | None = None
    until_healthy: bool = False
    exclude_internal: bool = False
    receivers: Sequence[Receiver] = ()
    """Who is sent a document for each change."""
    runbook: str = RUNBOOK
    """The link to a situation's page."""


def read_time_s(text: str, flag: str) -> float:
    """``500ms``, ``2s`` or ``2``, ``1m``, ``1h`` in seconds. Raises UsageError."""
    match = _TIME.fullmatch(text.strip().lower())
    seconds = 0.0 if match is None else float(match[1]) * _UNITS_S[match[2]]
    if seconds < _SHORTEST_S:
        raise UsageError(
            f"{flag} is {text!r}, not a length of time of {_SHORTEST_S:g} s or more", next_step="write 500ms, 2s or 5m"
        )
    return seconds


def watch_cluster(session: Session, options: WatchOptions) -> bool:
    """Watch until somebody ends it; whether it ran out of time before everything was healthy.

    Raises:
        KelrError: the first look failed in a way that waiting does not mend.
    """
    if session.output.format.for_people and has_screen():
        from kelr.commands.watch_screen import watch_on_screen  # noqa: PLC0415 - only on a terminal

        return watch_on_screen(session, options)
    from kelr.commands.watch_lines import watch_in_lines  # noqa: PLC0415

    return watch_in_lines(session, options)


def has_screen() -> bool:
    """Whether there is a terminal that a screen can be shown on (Textual writes to stderr), and keys be read from."""
    try:
        import termios  # noqa: PLC0415, F401 - not on Windows
    except ImportError:
        return False
    return all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)) and os.environ.get("TERM") not in {
        None,
        "",
        "dumb",
    }


def title_of(session: Session, selection: Selection | None = None) -> str:
    """What is watched, in a few words: the context or the first bootstrap server, and the targets."""
    where = session.settings.context or session.settings.bootstrap_server or "cluster"
    first, _, more = where.partition(",")
    targets = " ".join(map(str, selection.targets)) if selection is not None else ""
    return " ".join(filter(None, (f"{first},..." if more else first, targets)))


def next_step_s(due_ms: int | None, ends_ms: int | None = None) -> float:
    """In how many seconds a screen is to be drawn anew: ages are drawn once a second.

    Args:
        due_ms: when the next look is to begin; None: none is.
        ends_ms: when the time is up.
    """
    now = now_ms()
    until = [now - now % _TICK_MS + _TICK_MS, *(at for at in (due_ms, ends_ms) if at is not None)]
    return max(0, min(until) - now) / 1000


class Looked(Protocol):
    """What a look brought."""

    @property
    def taken_at_ms(self) -> int:
        """When it began."""

    @property
    def took_ms(self) -> int: ...


JobT = TypeVar("JobT")
LookedT = TypeVar("LookedT", bound=Looked)


class Looks(Generic[JobT, LookedT]):
    """One look after another in a thread: when the next one is due, what the newest one brought, and whether the
    cluster can be read.

    Args:
        look: one look.
        wake: called, in another thread, when a look has ended.
        patient: whether a cluster that cannot be reached at the first look is waited for.
    """

    def __init__(
        self, look: Callable[[JobT], LookedT], interval_s: float, *, wake: Callable[[], None], patient: bool
    ) -> None:
        self.begun_ms = self._due_ms = now_ms()
        self.newest: LookedT | None = None
        self.looking_since_ms: int | None = None
        self._interval_ms, self._patient = round(1000 * interval_s), patient
        self._failure: Trouble | None = None
        self._worker = Worker("look", look, wake)

    @property
    def due_ms(self) -> int | None:
        """When the next look is to begin; None while one is under way."""
        return self._due_ms if self.looking_since_ms is None else None

    @property
    def trouble(self) -> Trouble | None:
        """Why nothing new comes: the newest look failed, or one goes on for much longer than the one before (a broker
        hangs, or all are gone and it is tried again until the timeout); None: neither."""
        newest, since_ms = self.newest, self.looking_since_ms
        if self._failure is not None or newest is None or since_ms is None:
            return self._failure
        return late(since_ms, newest.taken_at_ms) if now_ms() - since_ms > _LATE_MS + 2 * newest.took_ms else None

    def look_when_due(self, job: JobT, *, at_once: bool = False) -> bool:
        """Begin a look if it is time, and none is under way; whether one was begun."""
        if self.looking_since_ms is not None or not (at_once or now_ms() >= self._due_ms):
            return False
        self.looking_since_ms = now_ms()
        self._worker.begin(job)
        return True

    def take(self, timeout_s: float = 0.0) -> LookedT | None:
        """A look that has come through; None where there is none, or it failed (`trouble`).

        Raises:
            KelrError: the first look failed for good.
        """
        found = self._worker.take(timeout_s)
        if found is None:
            return None
        begun_ms, ended_ms = self.looking_since_ms or now_ms(), now_ms()
        # One that took longer than the interval leaves the cluster alone for as long before the next.
        self._due_ms = (begun_ms if ended_ms - begun_ms < self._interval_ms else ended_ms) + self._interval_ms
        self.looking_since_ms = None
        if isinstance(found, BaseException):
            self._failed(found)
            return None
        self.newest, self._failure = found, None
        return found

    def _failed(self, error: BaseException) -> None:
        waited_for = self.newest is not None or (self._patient and type(error) is ConnectError)
        if not isinstance(error, KelrError) or not waited_for:
            raise error
        since_ms = self.begun_ms if self.newest is None else self.newest.taken_at_ms
        self._failure = Trouble(since_ms, error.message, error.next_step or "", never_read=self.newest is None)


class Watching(Looks[Story | None, WatchLook]):
    """The looks of one watch, as `Looks`."""

    def __init__(self, session: Session, options: WatchOptions, *, wake: Callable[[], None], patient: bool) -> None:
        looker = Looker(options.selection, now_ms, options.exclude_internal)
        recoveries = Recoveries(now_ms())
        job = LookJob(Reader(session.settings), looker, recoveries, options.selection, options.until_healthy)
        super().__init__(job, options.interval_s, wake=wake, patient=patient)
        self.options = options

    @property
    def story(self) -> Story | None:
        return None if self.newest is None else self.newest.story

    @property
    def ends_ms(self) -> int | None:
        """When the time is up."""
        return None if self.options.for_s is None else self.begun_ms + round(1000 * self.options.for_s)

    @property
    def silent(self) -> Silence | None:
        """That no controller answered in the newest look that came through; None: one did, or nobody knows."""
        story = self.story
        why = None if story is None else story.sight.controller_silence
        return None if story is None or why is None else Silence(why, story.heard_ms)

    @property
    def healthy(self) -> bool:
        """Whether the newest look came through, a controller answering where that can be told, and saw partitions, none
        of them leaderless or unsafe, and no disk that is down with the only copy of records, as far as is on record."""
        if self.newest is None or self.trouble is not None or self.newest.unsaved:
            return False
        return self.newest.story.sight.healthy and self.newest.story.sight.counts.read > 0

    @property
    def ends_now(self) -> bool | None:
        """Whether it is to end, and how: False: well; True: the time is up before that; None: it goes on."""
        if self.options.until_healthy and self.healthy:
            return False
        if self.ends_ms is not None and now_ms() >= self.ends_ms:
            return self.options.until_healthy
        return None
