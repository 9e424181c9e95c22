"""What ``kelr watch`` does once its options are read: chooses screen or lines, and keeps the story of both."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.commands.watch_reader import Looked, LookJob, Reader, Recoveries, Worker
from kelr.engine.watching import Change, Sight, Story
from kelr.errors import ConnectError, KelrError, UsageError
from kelr.model import Selection
from kelr.sources.watched import Looker
from kelr.view.watch.gaps import late
from kelr.view.watch.model import Silence, Trouble

_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(ms|s|m|h|)", re.ASCII)
_UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_SHORTEST_S = 0.1
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
    """Whether there is a terminal that a screen can be shown on, and keys be read from."""
    try:
        import termios  # noqa: PLC0415, F401 - not on Windows
    except ImportError:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") not in {None, "", "dumb"}


def title_of(session: Session, selection: Selection | None = None) -> str:
    """What is watched, in a few words: the context or the first bootstrap server, and the targets."""
    where = session.settings.context or session.settings.bootstrap_server or "cluster"
    first, _, more = where.partition(",")
    targets = " ".join(map(str, selection.targets)) if selection is not None else ""
    return " ".join(filter(None, (f"{first},..." if more else first, targets)))


def late_look(began_ms: int | None, taken_at_ms: int, took_ms: int) -> Trouble | None:
    """That the look under way goes on for much longer than the one before: a broker hangs, or all are gone and it is
    tried again until the timeout; None: it does not, or none is under way.

    Args:
        began_ms: when it began; None: none is under way.
        taken_at_ms, took_ms: of the newest one that came through.
    """
    if began_ms is None or now_ms() - began_ms <= _LATE_MS + 2 * took_ms:
        return None
    return late(began_ms, taken_at_ms)


class Watching:
    """The looks of one watch: when the next one is due, what they saw, and whether the cluster can be read.

    Args:
        wake: called, in another thread, when a look has ended.
        patient: whether a cluster that cannot be reached at the first look is waited for.
    """

    def __init__(self, session: Session, options: WatchOptions, *, wake: Callable[[], None], patient: bool) -> None:
        self.begun_ms = now_ms()
        self.options = options
        self.story: Story | None = None
        self._failure: Trouble | None = None
        self.looked: Looked | None = None
        self.looking_since_ms: int | None = None
        self._patient = patient
        looker = Looker(options.selection, now_ms, options.exclude_internal)
        self._worker = Worker(
            "look", LookJob(Reader(session.settings), looker, Recoveries(self.begun_ms), options.selection), wake
        )
        self._due_ms = self.begun_ms

    @property
    def ends_ms(self) -> int | None:
        """When the time is up."""
        return None if self.options.for_s is None else self.begun_ms + round(1000 * self.options.for_s)

    @property
    def due_ms(self) -> int:
        """When the next look is to begin."""
        return self._due_ms

    @property
    def trouble(self) -> Trouble | None:
        """Why nothing new comes: the newest look failed, or one goes on for too long; None: neither."""
        if self._failure is not None or self.story is None:
            return self._failure
        sight = self.story.sight
        return late_look(self.looking_since_ms, sight.taken_at_ms, sight.took_ms)

    @property
    def silent(self) -> Silence | None:
        """That no controller answered in the newest look that came through; None: one did, or nobody knows."""
        story = self.story
        why = None if story is None else story.sight.controller_silence
        return None if story is None or why is None else Silence(why, story.heard_ms)

    def look_when_due(self, *, at_once: bool = False) -> bool:
        """Begin a look if it is time, and none is under way; whether one was begun."""
        if self.looking_since_ms is not None or not (at_once or now_ms() >= self._due_ms):
            return False
        self.looking_since_ms = now_ms()
        self._worker.begin(self.story)
        return True

    def take(self, timeout_s: float = 0.0) -> tuple[Sight, Sequence[Change]] | None:
        """A look that has come through, and what it saw change; None where there is none, or it failed (`trouble`).

        Raises:
            KelrError: the first look failed for good, or none of the named topics exists.
        """
        found = self._worker.take(timeout_s)
        if found is None:
            return None
        begun_ms, ended_ms = self.looking_since_ms or now_ms(), now_ms()
        interval_ms = round(1000 * self.options.interval_s)
        # One that took longer than the interval leaves the cluster alone for as long before the next.
        self._due_ms = begun_ms + interval_ms if ended_ms - begun_ms < interval_ms else ended_ms + interval_ms
        self.looking_since_ms = None
        if isinstance(found, BaseException):
            self._failed(found)
            return None
        return self._seen(found)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, KelrError):
            raise error
        if self.story is None and (type(error) is not ConnectError or not self._patient):
            raise error
        since_ms = self.begun_ms if self.story is None else self.story.sight.taken_at_ms
        self._failure = Trouble(since_ms, error.message, error.next_step or "", never_read=self.story is None)

    def _seen(self, looked: Looked) -> tuple[Sight, Sequence[Change]]:
        sight = looked.story.sight
        if self.story is None and sight.topic_errors and not sight.counts.read:
            raise topics_failed(sight.topic_errors, some_worked=False)
        if self.story is None and self.options.until_healthy and not sight.counts.read:
            raise UsageError(
                "no partition was found to watch: of none it can be said that it is healthy",
                next_step="check the names; brokers list no topic that the principal may not describe",
                code="nothing-to-watch",
            )
        self.story, self._failure, self.looked = looked.story, None, looked
        return sight, looked.changes

    @property
    def healthy(self) -> bool:
        """Whether the newest look came through, a controller answering where that can be told, and saw partitions, none
        of them leaderless or unsafe, and no disk that is down with the only copy of records, as far as is on record."""
        if self.story is None or self.trouble is not None or (self.looked is not None and self.looked.unsaved):
            return False
        return self.story.sight.healthy and self.story.sight.counts.read > 0

    @property
    def ends_now(self) -> bool | None:
        """Whether it is to end, and how: False: well; True: the time is up before that; None: it goes on."""
        if self.options.until_healthy and self.healthy:
            return False
        if self.ends_ms is not None and now_ms() >= self.ends_ms:
            return self.options.until_healthy
        return None
