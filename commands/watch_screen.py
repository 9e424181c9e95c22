"""``kelr watch`` on a terminal: keys in, frames out, while threads read the cluster."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.commands.session import Session, now_ms
from kelr.commands.stock_tools import stock_connection
from kelr.commands.watch_reader import Asked, DetailJob, Reader, Worker
from kelr.commands.watch_telling import Teller
from kelr.commands.watching import NOTHING_LEFT, Watching, WatchOptions, title_of
from kelr.engine.watching import Readings
from kelr.errors import KelrError
from kelr.model import TopicPartition
from kelr.view.explain import Explanation
from kelr.view.output import Output
from kelr.view.watch.gaps import silent_since
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.model import Detail, Listed, LogLine, Shown, listed, log_lines
from kelr.view.watch.paint import Painter
from kelr.view.watch.screen import Drawn, draw
from kelr.view.watch.state import Mode, WatchState, kept, place_of, press
from kelr.view.watch.terminal import Ended, Terminal, end_by_signal
from kelr.view.watch.words import clock

MOST_LINES = 5000
"""Lines of the log that are remembered."""
_TICK_MS = 1000
"""How often ages are drawn anew."""


def watch_on_screen(session: Session, options: WatchOptions) -> bool:
    """Show the screen until somebody ends it; whether the time ran out before everything was healthy."""
    screen: _Screen | None = None
    try:
        with Terminal(sys.stdin, sys.stdout) as terminal:
            screen = _Screen(session, options, terminal)
            return screen.run()
    except Ended as ended:
        end_by_signal(ended.number)
        return False
    finally:
        if screen is not None:
            _say_at_the_end(session.output, screen.watching)


def _say_at_the_end(output: Output, watching: Watching) -> None:
    """What stays when the screen is gone: how it stood when somebody last looked, and which disks are to be saved."""
    story = watching.story
    if story is None:
        return
    counts = story.sight.counts
    stands = (
        NOTHING_LEFT
        if story.sight.healthy
        else f"{counts.leaderless:,} leaderless, {counts.in_trouble:,} leaderless or unsafe"
    )
    trouble, silent = watching.trouble, watching.silent
    unread = "" if trouble is None else f"; it could not be read since {clock(trouble.since_ms)}"
    unheard = "" if silent is None else f"; no controller answered {silent_since(silent)}"
    output.note(f"at {clock(story.sight.taken_at_ms)} UTC: {stands} of {counts.read:,} partitions{unread}{unheard}")
    if watching.looked is not None and watching.looked.unsaved:
        output.note(watching.looked.unsaved)


@dataclass(slots=True)
class _Log:
    """The newest lines of the log."""

    lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    forgotten: int = 0

    def add(self, lines: Sequence[LogLine]) -> None:
        self.forgotten += max(0, len(self.lines) + len(lines) - MOST_LINES)
        self.lines.extend(lines)


class _Screen:
    """One watch on one terminal."""

    def __init__(self, session: Session, options: WatchOptions, terminal: Terminal) -> None:
        self._terminal = terminal
        self._session = session
        self.watching = Watching(session, options, wake=terminal.wake, patient=True)
        self._asker: Worker[Sequence[TopicPartition], Asked] = Worker(
            "logs", DetailJob(Reader(session.settings)), terminal.wake
        )
        self._painter = Painter(color=session.output.color)
        self._state = WatchState()
        self._log = _Log()
        self._teller = Teller(on_screen=True)
        self._details: Mapping[TopicPartition, Detail] = {}
        self._readings = Readings()
        self._detail_trouble = ""
        self._asked_for: Sequence[TopicPartition] = ()
        self._asked_at_ms = 0
        self._rows: tuple[tuple[object, ...], Listed] | None = None
        self._explanation = Explanation(session.output.next_command, stock_connection(session))
        self._title = title_of(session, options.selection)

    def run(self) -> bool:
        """Until a key, the time, or everything being healthy ends it."""
        asked = redraws = 0
        while True:
            self._take()
            ended = self.watching.ends_now
            if ended is not None:
                return ended
            wanted = self._state.asked > asked
            # Asked for while one is under way, a look comes after it: that one may have begun too early.
            if (wanted or not self._state.paused) and self.watching.look_when_due(at_once=wanted):
                asked = self._state.asked
            if self._terminal.changed or self._state.redraws > redraws:
                self._terminal.changed, redraws = False, self._state.redraws
                self._painter.forget()
            drawn = self._draw()
            self._ask(drawn)
            for key in self._terminal.wait(self._wait_s()):
                self._state = press(self._state, key, drawn.around)
            if self._state.quits:
                return False

    def _take(self) -> None:
        """What the threads have brought."""
        seen = self.watching.take()
        changes = [] if seen is None else log_lines(seen[0].seen_ms, seen[1])
        self._log.add([*self._told(self._teller.gaps), *changes, *self._told(self._teller.rest)])
        found = self._asker.take()
        if isinstance(found, KelrError):
            self._detail_trouble = found.message
        elif isinstance(found, BaseException):
            raise found
        elif found is not None:
            self._detail_trouble = ""
            self._details, self._readings = found.details, self._readings.with_answers(found.logs)

    def _told(self, tell: Callable[[Watching], Iterable[WatchLine]]) -> list[LogLine]:
        return [LogLine(line.at_ms, line.name, line.words) for line in tell(self.watching)]

    def _draw(self) -> Drawn:
        rows = self._listed()
        self._state = kept(self._state, rows.rows)
        width, height = self._terminal.size
        drawn = draw(self._shown(), self._state, rows, width, height)
        self._terminal.write(self._painter.frame(drawn.lines, width, height))
        return drawn

    def _listed(self) -> Listed:
        """The list; made anew only when what it is made of has changed."""
        story = self.watching.story
        key = (story, self._state.sort, self._state.wanted)
        if self._rows is None or self._rows[0][0] is not story or self._rows[0][1:] != key[1:]:
            self._rows = (key, listed(story, self._state.sort, self._state.wanted))
        return self._rows[1]

    def _shown(self) -> Shown:
        looked = self.watching.looked
        return Shown(
            title=self._title,
            interval_s=self.watching.options.interval_s,
            now_ms=now_ms(),
            explanation=self._explanation,
            story=self.watching.story,
            log=self._log.lines,
            forgotten=self._log.forgotten,
            details=self._details,
            readings=self._readings,
            trouble=self.watching.trouble,
            silent=self.watching.silent,
            detail_trouble="" if self.watching.trouble is not None else self._detail_trouble,
            recovery=None if looked is None else looked.recovery,
            looking_since_ms=self.watching.looking_since_ms,
            begun_ms=self.watching.begun_ms,
            notes=() if looked is None else looked.notes,
        )

    def _ask(self, drawn: Drawn) -> None:
        """Have the logs read of what is on the screen, once for each look, or when something else is on it."""
        story, rows = self.watching.story, drawn.around.rows
        if story is None or self._asker.busy or self.watching.trouble is not None:
            return
        wanted = [rows[at] for at in drawn.visible]
        selected = self._state.selected or (rows[place_of(self._state, rows)] if rows else None)
        if selected is not None and selected not in wanted:
            wanted.append(selected)
        if self._state.mode is Mode.EXPLAIN:
            wanted = [] if selected is None else [selected]
        new = [at for at in wanted if at not in self._details and at not in self._asked_for]
        again = story.sight.taken_at_ms > self._asked_at_ms and not self._state.paused
        if wanted and (again or new):
            self._asked_for, self._asked_at_ms = wanted, story.sight.taken_at_ms
            self._asker.begin(wanted)

    def _wait_s(self) -> float:
        """Until the next thing is to be done without a key."""
        now = now_ms()
        until = now - now % _TICK_MS + _TICK_MS
        if self.watching.looking_since_ms is None and not self._state.paused:
            until = min(until, max(now, self.watching.due_ms))
        if self.watching.ends_ms is not None:
            until = min(until, max(now, self.watching.ends_ms))
        return (until - now) / 1000
