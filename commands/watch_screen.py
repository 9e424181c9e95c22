"""``kelr watch`` on a terminal: what threads read of the cluster is brought to the screen."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kelr.commands import recover_apply, recover_plan, telling
from kelr.commands.running import error_lines, tried
from kelr.commands.session import Resolved, Session, now_ms
from kelr.commands.stock_tools import stock_connection
from kelr.commands.watch_alerts import Alerts, sending
from kelr.commands.watch_reader import Asked, DetailJob, Reader, Worker
from kelr.commands.watch_telling import HistoryBuilder
from kelr.commands.watching import NOTHING_LEFT, Watching, WatchOptions, next_step_s, title_of
from kelr.engine.watching import Readings
from kelr.engine.words import plural
from kelr.errors import KelrError
from kelr.model import Selection, TopicPartition
from kelr.model.plan import ElectionRequest
from kelr.recovery.plan_file import read_plan
from kelr.replay.history import Window
from kelr.view.explain import Explanation
from kelr.view.log_picture import ink_for
from kelr.view.output import Output
from kelr.view.plan_left import without_them
from kelr.view.watch.app import WatchApp
from kelr.view.watch.lines import WatchLine, counts_in_words
from kelr.view.watch.model import Detail, Order, Printed, Shown, log_lines, silent_since
from kelr.view.watch.words import clock

MOST_LINES = 1000
"""Changes that are remembered."""


def watch_on_screen(session: Session, options: WatchOptions) -> bool:
    """Show the screen until somebody ends it; whether the time ran out before everything was healthy."""
    with sending(session, options) as alerts:
        screen = _Screen(session, options, alerts)
        try:
            return screen.run_until_ended()
        finally:
            _say_at_the_end(session.output, screen.watching)


def _say_at_the_end(output: Output, watching: Watching) -> None:
    """What stays when the screen is gone: how it stood when somebody last looked, and which disks are to be saved."""
    story = watching.story
    if story is None:
        return
    counts = story.sight.counts
    stands = NOTHING_LEFT if story.sight.healthy and counts.read else counts_in_words(counts)
    trouble, silent = watching.trouble, watching.silent
    unread = "" if trouble is None else f"; it could not be read since {clock(trouble.since_ms)}"
    unheard = "" if silent is None else f"; no controller answered {silent_since(silent)}"
    output.note(
        f"at {clock(story.sight.taken_at_ms)} UTC: {stands} of {plural(counts.read, 'partition')}{unread}{unheard}"
    )
    if watching.newest is not None and watching.newest.unsaved:
        output.note(watching.newest.unsaved)


class _Screen(WatchApp):
    """One watch on one terminal."""

    def __init__(self, session: Session, options: WatchOptions, alerts: Alerts) -> None:
        super().__init__()
        self._alerts = alerts
        self.watching = Watching(session, options, wake=self.wake, patient=True)
        self._asker: Worker[Sequence[TopicPartition], Asked] = Worker(
            "logs", DetailJob(Reader(session.settings)), self.wake
        )
        self._settings = session.settings
        self._orders: Worker[Order, Printed] = Worker(
            "command", OrderJob(session.settings, color=session.output.color), self.wake
        )
        self._teller = HistoryBuilder(on_screen=True)
        self._lines: list[WatchLine] = []
        self._forgotten = 0
        self._details: Mapping[TopicPartition, Detail] = {}
        self._readings = Readings()
        self._detail_trouble = ""
        self._asked_for: Sequence[TopicPartition] = ()
        self._asked_at_ms = 0
        self._explanation = Explanation(session.output.next_command, stock_connection(session))
        self._ink = ink_for(sys.stdout)
        self._title = title_of(session, options.selection)

    def step(self) -> float:
        self._take()
        ended = self.watching.ends_now
        if ended is not None:
            self.exit(ended)
        # Asked for while one is under way, a look comes after it: that one may have begun too early.
        if self.look_asked or not self.paused:
            self.look_asked &= not self.watching.look_when_due(self.watching.story, at_once=self.look_asked)
        self.show(self._what_is_known())
        self._ask()
        return next_step_s(None if self.paused else self.watching.due_ms, self.watching.ends_ms)

    def _take(self) -> None:
        """What the threads have brought."""
        seen = self.watching.take()
        self._alerts.tell(self.watching, seen)
        changes = [] if seen is None else log_lines(seen.story.sight.seen_ms, seen.changes)
        self._lines += [*self._teller.gaps(self.watching), *changes, *self._teller.rest(self.watching)]
        self._forgotten += max(0, len(self._lines) - MOST_LINES)
        self._lines = self._lines[-MOST_LINES:]
        printed = self._orders.take()
        if isinstance(printed, BaseException):
            raise printed
        self.printed = printed or self.printed
        if self.ordered is not None and not self._orders.busy:
            order, self.ordered = self.ordered, None
            self._orders.begin(order)
        found = self._asker.take()
        if isinstance(found, KelrError):
            self._detail_trouble = found.message
        elif isinstance(found, BaseException):
            raise found
        elif found is not None:
            self._detail_trouble = ""
            self._details, self._readings = found.details, self._readings.with_answers(found.logs)

    def apply(self, plan: Path) -> None:
        with self.without_screen():
            apply_on_terminal(self._settings, plan)
        self.look_asked = True
        self.renew_later()

    def _what_is_known(self) -> Shown:
        looked = self.watching.newest
        return Shown(
            title=self._title,
            interval_s=self.watching.options.interval_s,
            now_ms=now_ms(),
            explanation=self._explanation,
            ink=self._ink,
            story=self.watching.story,
            log=self._lines,
            forgotten=self._forgotten,
            details=self._details,
            readings=self._readings,
            trouble=self.watching.trouble,
            silent=self.watching.silent,
            detail_trouble="" if self.watching.trouble is not None else self._detail_trouble,
            recovery=None if looked is None else looked.recovery,
            paused=self.paused,
            looking_since_ms=self.watching.looking_since_ms,
            begun_ms=self.watching.begun_ms,
            notes=(*(() if looked is None else looked.notes), *self._alerts.failures),
        )

    def _ask(self) -> None:
        """Have the logs read of what is on the screen, once for each look, or when something else is on it."""
        story, wanted = self.watching.story, self.on_screen
        if story is None or self._asker.busy or self.watching.trouble is not None:
            return
        new = [at for at in wanted if at not in self._details and at not in self._asked_for]
        again = story.sight.taken_at_ms > self._asked_at_ms and not self.paused
        if wanted and (again or new):
            self._asked_for, self._asked_at_ms = wanted, story.sight.taken_at_ms
            self._asker.begin(wanted)


# Orders.


class OrderJob:
    """Runs a command that changes nothing, for the screen; as the job of a `Worker`.

    Args:
        color: whether the screen has colors.
    """

    def __init__(self, settings: Resolved, *, color: bool) -> None:
        self._settings, self._color = replace(settings, verbose=False), color

    def __call__(self, order: Order) -> Printed:
        written = io.StringIO()
        output = replace(
            self._settings.output(),
            stdout=written,
            stderr=written,
            width=order.width,
            color=self._color,
            stderr_color=self._color,
        )
        plan: Path | None = None
        awaited = ""
        try:
            with Session(self._settings, output=output) as session:
                if order.command == "history":
                    telling.tell(session, telling.Wanted(Selection.of([order.at]), Window(None, None)))
                else:
                    plan, awaited = _planned(session, order)
        except KelrError as error:
            for line in error_lines(error):
                output.note(line)
        return Printed(order, written.getvalue().splitlines(), plan, awaited)


def _planned(session: Session, order: Order) -> tuple[Path | None, str]:
    """Print the plan; its file, where it elects somebody, and else whom it waits for. The file stays: what is printed
    names it."""
    path = Path(tempfile.mkdtemp(prefix="kelr-watch-")) / "plan.json"
    selection = Selection.of([order.at])
    wish = ElectionRequest(gone=recover_plan.read_gone((order.gone,) if order.gone else ()))
    wanted = recover_plan.PlanOptions(selection, wish, out=path, full=True)
    recover_plan.plan_and_show(session, wanted)
    plan = read_plan(path)
    if plan.elections:
        return path, ""
    without = without_them(plan.not_planned, wanted.wish.gone)
    return None, without[-1] if without else ""


def apply_on_terminal(settings: Resolved, plan: Path) -> None:
    """``kelr recover apply PLAN`` on the terminal, and a moment to read what came of it; raises nothing."""
    output = settings.output()

    def apply() -> None:
        with Session(settings) as session:
            recover_apply.carry_out(session, recover_apply.ApplyOptions(plan))

    def go_back() -> None:
        output.note("")
        output.note("Enter goes back to kelr watch")
        sys.stdin.readline()

    output.note(f"$ {output.next_command(('recover', 'apply', str(plan)))}")
    with suppress(OSError):
        tried(apply)
        tried(go_back)
