"""What ``kelr watch`` sends elsewhere: each change with what to do about it, to a command and a webhook."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kelr.alerts import SECRET_VARIABLE, Command, Lane, Outbox, Receiver, Webhook
from kelr.commands.session import Session
from kelr.commands.stock_tools import stock_connection
from kelr.commands.watch_reader import DetailJob, Reader, WatchLook
from kelr.commands.watch_telling import HistoryBuilder
from kelr.commands.watching import Watching, WatchOptions, title_of
from kelr.config.value import Kind, Value
from kelr.engine.watching import Change, PartitionChange
from kelr.engine.words import plural
from kelr.errors import KelrError, UsageError
from kelr.model import TopicPartition
from kelr.view.explain import Explanation
from kelr.view.output import Output
from kelr.view.watch.alerts import News, State, alert_document, alerts_of
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.model import Detail

_ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PLACEHOLDER = "{situation}"
_MOST_LOOKS = 100
"""So many looks wait until their documents are made; then the oldest make room."""
MOST_ADVISED = 10_000
"""Of so many partitions that changed at once logs are read."""
END_S = 10.0
"""How long documents that are under way are waited for when the watch ends."""
QUIET_S = 0.1
"""So much of that is waited without a word."""


def receivers_of(on_change: str | None, webhook: str | None, secret_file: Path | None) -> tuple[Receiver, ...]:
    """Whom the options name.

    A secret comes from a file or from KELR_WEBHOOK_SECRET, and never from the command line, where everybody on the
    machine can read it.

    Raises:
        UsageError: an option says nothing that there is.
        BadInputError: the secret cannot be read.
    """
    if secret_file is not None and webhook is None:
        raise UsageError("--secret-file signs what a webhook gets", next_step="give --webhook URL as well")
    found: list[Receiver] = [] if on_change is None else [Command(on_change)]
    if webhook is not None:
        found.append(Webhook(webhook, _secret(secret_file)))
    return tuple(found)


def _secret(file: Path | None) -> bytes | None:
    if file is None and SECRET_VARIABLE not in os.environ:
        return None
    value = Value(Kind.ENV, SECRET_VARIABLE) if file is None else Value(Kind.FILE, str(file))
    return value.found("the webhook's secret", os.environ).encode()


def checked_runbook(text: str) -> str:
    """A template of links. Raises UsageError where the situation has no place in it."""
    if _PLACEHOLDER not in text:
        raise UsageError(
            f"--runbook {text!r} has no place for the situation",
            next_step="write something like https://wiki.example.com/kelr/{situation}.html",
        )
    return text


@contextmanager
def sending(session: Session, options: WatchOptions) -> Iterator[Alerts]:
    """Documents about a watch, for those whom its options name; at its end what is under way is waited for, unless it
    was interrupted. A command that runs is ended with the watch, whatever ends that."""
    alerts = Alerts(session, options)
    with _raising_signals():
        try:
            yield alerts
        except BaseException:
            alerts.end(session.output, wait=False)
            raise
        alerts.end(session.output, wait=True)


class _EndedBySignalError(BaseException):
    """A signal that ends the process has come."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _raising_signals() -> Iterator[None]:
    """Signals that end the process raise first, and end it then; a second one ends it at once."""
    handled = [one for one in _ENDS if signal.getsignal(one) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> None:
        give_back()
        raise _EndedBySignalError(number)

    def give_back() -> None:
        for one in handled:
            signal.signal(one, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        handled = []  # no other may set handlers
    for one in handled:
        signal.signal(one, end)
    try:
        yield
    except _EndedBySignalError as ended:
        os.kill(os.getpid(), ended.number)
        raise
    finally:
        give_back()


class Alerts:
    """Documents about what a watch sees; whoever watches hands over each look, and waits for nothing."""

    def __init__(self, session: Session, options: WatchOptions) -> None:
        self._outboxes = [Outbox(one) for one in options.receivers]
        self._teller = HistoryBuilder(on_screen=False)
        self._watched = title_of(session, options.selection)
        self._runbook = options.runbook
        self._explanation = Explanation(session.output.next_command, stock_connection(session))
        self._details = DetailJob(Reader(session.settings))
        self._begun = False
        self._defect = ""
        self._noted: Sequence[str] = ()
        self._lane: Lane[News] = Lane("kelr-alerts", self._send, _MOST_LOOKS)

    def tell(self, watching: Watching, look: WatchLook | None) -> None:
        """Send what is new.

        Args:
            look: one that has just come through; None: none has.
        """
        if not self._outboxes:
            return
        before, after = [*self._teller.gaps(watching)], [*self._teller.rest(watching)]
        changes: Sequence[Change] = () if look is None else look.changes
        if look is not None and not self._begun:
            self._begun, found = True, sorted(look.story.sight.partitions.items())
            changes = [PartitionChange(at, None, one) for at, one in found if one.in_trouble]
        lines = [*before, *after]
        if lines or changes:
            at_ms = lines[0].at_ms if look is None else look.story.sight.seen_ms
            self._put(_news(watching, at_ms, before, changes, after))

    @property
    def failures(self) -> tuple[str, ...]:
        """Why documents do not come through now, a line each."""
        return tuple(filter(None, (self._defect, *(one.failure for one in self._outboxes))))

    def note_failures(self, output: Output) -> None:
        """Tell of those that have begun since the last time."""
        failures = self.failures
        for text in failures:
            if text not in self._noted:
                output.note(text)
        self._noted = failures

    def end(self, output: Output, *, wait: bool) -> None:
        """Wait a while for what is under way, and give up the rest; what was not delivered is told."""
        if wait and self._lane.drained(QUIET_S):
            output.note(f"waiting up to {END_S:g} s for alerts that are under way; Ctrl-C gives them up")
        try:
            self._end(output, time.monotonic() + (END_S if wait else 0.0))
        except (KeyboardInterrupt, _EndedBySignalError):
            self._end(output, 0.0)
            raise

    def _end(self, output: Output, deadline: float) -> None:
        left = self._lane.drained(max(0.0, deadline - time.monotonic()))
        self._lane.clear()
        for one in self._outboxes:
            count = one.end(max(0.0, deadline - time.monotonic())) + left
            if count:
                # How many documents a look would have made is not known.
                what = f"{count:,}+ documents" if left else plural(count, "document")
                output.note(f"{one.failure or one.name}: {what} not delivered")

    def _put(self, news: News) -> None:
        if not self._lane.put(news):
            for one in self._outboxes:
                one.missed()

    def _send(self, news: News) -> None:
        try:
            details, no_advice = self._decided(news)
            found = alerts_of(
                news, details, self._explanation, watched=self._watched, runbook=self._runbook, no_advice=no_advice
            )
            documents = [alert_document(alert) for alert in found]
        except Exception as error:  # a defect, in a thread that would swallow it: better a line than silence
            self._defect = f"alerts: internal error: {type(error).__name__}: {error}"
            for one in self._outboxes:
                one.missed()
            return
        for document in documents:
            for one in self._outboxes:
                one.put(document)

    def _decided(self, news: News) -> tuple[Mapping[TopicPartition, Detail], str]:
        """Decisions about what has changed, by its replicas' logs as they are now; or why there are none."""
        addresses = news.addresses
        if not addresses:
            return {}, ""
        many = f"more than {MOST_ADVISED:,} partitions changed at once: kelr explain says what to do"
        try:
            details = self._details(addresses[:MOST_ADVISED]).details
        except KelrError as error:
            return {}, f"the replicas' logs could not be read: {error.message}"
        return details, many if len(addresses) > MOST_ADVISED else ""


def _news(
    watching: Watching, at_ms: int, before: Sequence[WatchLine], changes: Sequence[Change], after: Sequence[WatchLine]
) -> News:
    """With how all stands, as far as that is known."""
    story, newest = watching.story, watching.newest
    counts = None if story is None or watching.trouble or watching.silent else story.sight.counts
    state = State.HEALTHY if watching.healthy else State.UNKNOWN
    if counts is not None and newest is not None and (counts.in_trouble or newest.unsaved):
        state = State.TROUBLE
    cluster_id = None if story is None else story.sight.cluster.cluster_id
    return News(at_ms, state, cluster_id, counts, before, changes, after)
