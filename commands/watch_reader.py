"""What reads the cluster while it is watched: in threads of their own, so that a broker that hangs stops no key."""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from kelr.apart import Arrivals
from kelr.commands.elections_on_record import on_record, unsaved_in_words, unsaved_on_record
from kelr.commands.session import Resolved, Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.engine.watching import Change, Sight, Story
from kelr.errors import KelrError, UsageError
from kelr.model import LogAnswer, Selection, TopicPartition
from kelr.recovery.places import state_directory
from kelr.sources.base import Source
from kelr.sources.decisions import decide_partitions
from kelr.sources.quorum_source import without_log
from kelr.sources.watched import Looker, selection_of
from kelr.view.output import Output
from kelr.view.watch.model import Detail, RecoveryProgress

PATIENCE_S = 10.0
"""How long brokers are waited for, where nobody said how long: a screen that stands still for longer helps nobody."""

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


class Reader:
    """A source that is opened anew after it failed: brokers that come back may be at other addresses, and a file with
    credentials may have been renewed.

    Args:
        settings: of the run; where nobody gave a timeout, a shorter one is taken.
    """

    def __init__(self, settings: Resolved) -> None:
        given = "--timeout" in settings.connection_flags or os.environ.get("KELR_TIMEOUT")
        timeout_s = settings.timeout_s if given else min(PATIENCE_S, settings.timeout_s)
        # What --verbose tells would be told again at each new connection, across the screen.
        self._settings = replace(settings, timeout_s=timeout_s, verbose=False)
        self._session: Session | None = None
        self._told = io.StringIO()

    def source(self) -> Source:
        """The cluster. Raises as `Session.source`."""
        if self._session is None:
            # What it has to tell (of a metadata log) must not be written across the screen.
            output = Output(io.StringIO(), self._told, format=self._settings.format)
            self._session = Session(self._settings, output=output)
        return self._session.source()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd, a sentence each."""
        return tuple(dict.fromkeys(self._told.getvalue().splitlines()))

    def close(self) -> None:
        """End the connections; the next question opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            session.__exit__(None, None, None)


class Worker(Generic[JobT, ResultT]):
    """Does one job after another in a thread; what it comes to, or the error that ended it, is fetched with `take`.

    Args:
        wake: called in that thread when there is something to fetch.
    """

    def __init__(self, name: str, do: Callable[[JobT], ResultT], wake: Callable[[], None]) -> None:
        self._do, self._wake = do, wake
        self._jobs: queue.SimpleQueue[JobT] = queue.SimpleQueue()
        self._results: Arrivals[ResultT | BaseException] = Arrivals()
        self.busy = False
        """Whether a job was given whose end was not fetched yet."""
        # A look at a broker that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin(self, job: JobT) -> None:
        """Give it a job; one at a time."""
        self.busy = True
        self._jobs.put(job)

    def take(self, timeout_s: float = 0.0) -> ResultT | BaseException | None:
        """What the job came to; None where it goes on."""
        try:
            found = self._results.get(timeout_s)
        except queue.Empty:
            return None
        self.busy = False
        return found

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                self._results.put(self._do(job))
            except BaseException as error:
                self._results.put(error)
            self._wake()


@dataclass(frozen=True, slots=True)
class WatchLook:
    """What a look of a watch brought."""

    story: Story
    """With this look."""
    changes: tuple[Change, ...]
    """That it saw since the look before."""
    recovery: RecoveryProgress | None
    notes: tuple[str, ...]
    unsaved: str = ""
    """Of records that disks of brokers that are down may hold alone, one of the notes; empty: nothing is on record."""

    @property
    def taken_at_ms(self) -> int:
        return self.story.sight.taken_at_ms

    @property
    def took_ms(self) -> int:
        return self.story.sight.took_ms


class LookJob:
    """One look after another; as the job of a `Worker`."""

    def __init__(
        self,
        reader: Reader,
        looker: Looker,
        recoveries: Callable[[str | None], RecoveryProgress | None],
        selection: Selection,
        until_healthy: bool,
    ):
        self._reader, self._looker, self._recoveries = reader, looker, recoveries
        self._selection, self._until_healthy = selection, until_healthy

    def __call__(self, story: Story | None) -> WatchLook:
        """The story up to now, with one more look.

        Raises KelrError where the cluster cannot be read; the next look begins with new connections. The first look
        raises where none of the named topics exists, or there is nothing that could be healthy.
        """
        notes: list[str] = []
        try:
            source = self._reader.source()
            sight = self._looker.look(without_log(source), None if story is None else story.sight)
            unsaved = unsaved_on_record(source, self._selection, notes.append)
        except KelrError:
            self._reader.close()
            raise
        if story is None:
            self._check(sight)
        after, changes = (Story.beginning(sight), ()) if story is None else story.after(sight)
        words = unsaved_in_words(unsaved) if unsaved else ""
        recovery = self._recoveries(sight.cluster.cluster_id)
        return WatchLook(after, changes, recovery, tuple(filter(None, (*self._reader.notes, *notes, words))), words)

    def _check(self, sight: Sight) -> None:
        if sight.topic_errors and not sight.counts.read:
            raise topics_failed(sight.topic_errors, some_worked=False)
        if self._until_healthy and not sight.counts.read:
            raise UsageError(
                "no partition was found to watch: of none it can be said that it is healthy",
                next_step="check the names; brokers list no topic that the principal may not describe",
                code="nothing-to-watch",
            )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the replicas of some partitions told."""

    details: Mapping[TopicPartition, Detail]
    logs: Mapping[TopicPartition, Sequence[LogAnswer]]


class DetailJob:
    """Asks replicas what their logs hold, and decides; as the job of a `Worker`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __call__(self, addresses: Sequence[TopicPartition]) -> Asked:
        """Raises KelrError where the cluster cannot be read."""
        details: dict[TopicPartition, Detail] = {}
        logs: dict[TopicPartition, Sequence[LogAnswer]] = {}
        try:
            source = self._reader.source()
            source.forget()
            # As kelr explain does: what is on record here decides on advice, too.
            record = on_record(source, lambda _: None)
            for page in decide_partitions(
                source,
                selection_of(addresses),
                clock_ms=now_ms,
                elections=record.elections,
                cleared=record.cleared,
                saved=record.saved,
            ):
                logs.update(page.snapshot.logs)
                for one in page.decisions:
                    at = TopicPartition(one.topic, one.partition)
                    details[at] = Detail(one, page.snapshot.taken_at_ms, tuple(page.snapshot.logs.get(at, ())))
        except KelrError:
            self._reader.close()
            raise
        return Asked(details, logs)


class Recoveries:
    """How far the newest recovery of a cluster has come, by the journals of this machine's state directory.

    A journal is read again only when its file has changed.

    Args:
        since_ms: journals that ended before are of no interest.
    """

    def __init__(self, since_ms: int, state: Path | None = None) -> None:
        self._since_ms = since_ms
        self._state = state
        self._read: dict[Path, tuple[tuple[int, int], RecoveryProgress | None]] = {}

    def __call__(self, cluster_id: str | None) -> RecoveryProgress | None:
        """The newest one that is open, or that ended while somebody watched; None where there is none."""
        from kelr.recovery.journal_store import journal_files  # noqa: PLC0415 - only where somebody watches

        try:
            found = [self._progress(path) for path in journal_files(self._state or state_directory(), cluster_id)]
        except OSError:
            return None
        known = [one for one in found if one is not None]
        if not known:
            return None
        still = [one for one in known if one.ending is None]
        newest = max(still or known, key=lambda one: one.last_ms)
        return replace(newest, others=len(still) - (newest.ending is None))

    def _progress(self, path: Path) -> RecoveryProgress | None:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if path not in self._read or self._read[path][0] != stamp:
            old = status.st_mtime_ns // 1_000_000 < self._since_ms
            self._read[path] = (stamp, _progress_of(path, old=old))
        return self._read[path][1]


def _progress_of(path: Path, *, old: bool) -> RecoveryProgress | None:
    from kelr.recovery.journal_reader import read_journal  # noqa: PLC0415 - only where there is a journal
    from kelr.recovery.journal_store import is_blank, is_ended  # noqa: PLC0415

    if is_blank(path) or (old and is_ended(path)):
        return None
    try:
        journal = read_journal(path)
    except KelrError:
        return None  # kelr recover status tells of it
    results = [one.applied for one in journal.partitions.values() if one.applied is not None]
    good = sum(one.good for one in results)
    return RecoveryProgress(
        journal=path.stem,
        command=journal.command,
        who=f"{journal.who.user}@{journal.who.host}",
        total=0 if journal.plan is None else len(journal.plan.elections),
        good=good,
        bad=len(results) - good,
        last_ms=journal.last_ms,
        ending=None if journal.ending is None else journal.ending.value,
    )
