"""How ``kelr history`` reads a metadata log and shows what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kelr.commands.metadata_logs import counted, opened_log
from kelr.commands.session import Session
from kelr.commands.topic_errors import fail_unseen
from kelr.errors import PartlyDoneError, UsageError
from kelr.interrupts import taken
from kelr.model import Selection, TopicPartition
from kelr.replay.history import Entry, History, Interest, PartitionEntry, Window, grouped
from kelr.sources.metadata_log.replaying import check_understood
from kelr.view.columns import Json
from kelr.view.formats import OutputFormat
from kelr.view.history import history_view
from kelr.view.history_draw import Drawing
from kelr.view.history_summary import SummaryRow, quorum_words, summary_objects, summary_view
from kelr.view.history_words import when

if TYPE_CHECKING:
    from kelr.sources.live.metadata_log import LiveMetadataLog
    from kelr.sources.metadata_log.log import MetadataLogReader
    from kelr.view.output import Output

ROWS_AT_ONCE = 500
"""So many rows are laid out together, and then shown."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of the history is to be shown, and how."""

    selection: Selection
    window: Window
    brokers: frozenset[int] = frozenset()
    unclean: bool = False
    summary: bool = False
    draw: bool = False
    every_partition: bool = False
    """A row for each partition's change, although none was named."""
    follow: bool = False
    """Go on with what a live controller writes, until somebody interrupts it."""

    @property
    def named(self) -> bool:
        return not self.selection.is_everything

    @property
    def groups(self) -> bool:
        """Whether what one cause did to several partitions is one row."""
        return not self.named and not self.every_partition and not self.unclean

    def interest(self) -> Interest:
        selection = self.selection

        @lru_cache(maxsize=1 << 20)
        def matches(address: TopicPartition) -> bool:
            return selection.matches(address.topic, address.partition)

        every = Interest(named=False, brokers=self.brokers, unclean_only=self.unclean)
        if not self.named:
            return every
        return Interest(matches, named=True, brokers=self.brokers, unclean_only=self.unclean)


@dataclass
class _Reading:
    """One run over the log."""

    log: MetadataLogReader
    history: History
    live: LiveMetadataLog | None = None
    """The same log, where it is to be followed."""
    worst: TopicPartition | None = None
    """The first partition that was led uncleanly, or lost its leader."""
    since: bool = False
    """Whether a beginning was asked for."""

    @property
    def reaches(self) -> bool:
        """Whether the log tells of the window, and of any partition of interest."""
        return self.history.saw_any and self.history.begins_ms is not None

    @property
    def end_ms(self) -> int | None:
        """Where what was read ends."""
        as_of = self.history.as_of or self.history.image.at
        return None if as_of is None else as_of.timestamp_ms

    def check(self) -> list[str]:
        """What weakens what is told. Raises BadInputError where records are not understood that tell of leaders."""
        return check_understood(self.history.image, name=self.log.name)

    def notice(self, entry: Entry) -> None:
        for one in (entry,) if isinstance(entry, PartitionEntry) else getattr(entry, "entries", ()):
            unclean = one.election is not None and one.election.elected_as.clean is False
            lost = one.after is not None and one.after.leader is None
            if self.worst is None and (unclean or lost):
                self.worst = one.address


def tell(session: Session, wanted: Wanted) -> None:
    """Read the log and show what is wanted of it.

    Raises:
        UsageError: nothing says where the log is, or none of the named topics is in it.
        BadInputError: the log cannot be read.
    """
    history = History(wanted.interest(), wanted.window, keep_all=wanted.named, quorums=wanted.named or wanted.summary)
    _check_format(session, wanted)
    with opened_log(session.settings, by_brokers=True) as log:
        if log is None:
            raise UsageError(
                "nothing says which metadata log to read",
                next_step="give --metadata-log PATH (a node's __cluster_metadata-0 directory, files out of it, or a"
                " bundle), --bootstrap-controller HOST:PORT, or --bootstrap-server HOST:PORT",
            )
        reading = _Reading(log, history, _live(log) if wanted.follow else None, since=wanted.window.since is not None)
        if wanted.draw:
            _draw(session, wanted, reading)
        elif wanted.summary:
            _summarize(session, wanted, reading)
        else:
            _list(session, wanted, reading)


def _check_format(session: Session, wanted: Wanted) -> None:
    output = session.output.format
    if wanted.draw and not output.for_people:
        raise UsageError("--draw is for people", next_step="leave out -o, or --draw")
    if wanted.follow and output.is_document:
        raise UsageError(
            f"-o {output} is one document, which --follow never ends", next_step="use -o ndjson, csv or table"
        )


def _live(log: MetadataLogReader) -> LiveMetadataLog:
    from kelr.sources.live.metadata_log import LiveMetadataLog  # noqa: PLC0415 - only for --follow

    if isinstance(log, LiveMetadataLog):
        return log
    raise UsageError(
        "--follow goes on with what a live controller writes, and files do not go on",
        next_step="give --bootstrap-controller HOST:PORT or --bootstrap-server HOST:PORT in place of --metadata-log",
    )


def _entries(session: Session, reading: _Reading, *, groups: bool) -> Iterator[list[Entry]]:
    """The entries in batches for the output, in order."""
    history, waiting = reading.history, list[Entry]()
    with session.progress(counted(reading.log)) as progress:
        for batch in reading.log.batches(progress):
            if history.over(batch):
                break
            found: Iterable[Entry] = history.take(batch)
            waiting.extend(grouped(found) if groups else found)
            reading.check()
            if len(waiting) >= ROWS_AT_ONCE:
                yield waiting
                waiting = []
        if reading.live is not None:
            if waiting:
                yield waiting
            waiting = []
            yield from _as_it_comes(reading, reading.live, session.output.note, groups=groups)
        rest = history.finish()
        waiting.extend(grouped(rest) if groups else rest)
    if waiting:
        yield waiting


def _as_it_comes(
    reading: _Reading, live: LiveMetadataLog, note: Callable[[str], None], *, groups: bool
) -> Iterator[list[Entry]]:
    """What is written from now on, until somebody interrupts it."""
    warned = len(reading.check())
    try:
        for batch in live.follow(note):
            found: Iterable[Entry] = reading.history.take(batch)
            entries = list(grouped(found) if groups else found)
            found_out = reading.check()
            for text in found_out[warned:]:
                note(text)
            warned = len(found_out)
            if entries:
                yield entries
    except KeyboardInterrupt:
        taken()
        return


def _list(session: Session, wanted: Wanted, reading: _Reading) -> None:
    output = session.output
    with output.listing(history_view(_width(output)), _head(reading)) as listing:
        for entries in _entries(session, reading, groups=wanted.groups):
            for entry in entries:
                reading.notice(entry)
            listing.add(entries)
        missing = _missing(wanted, reading.history)
        rows = _summary_rows(reading.history) if wanted.named else []
        following = _next(wanted, reading, rows)
        told = None if following is None else output.next_command(following)
        listing.finish({"partitions": summary_objects(rows), **_tail(reading, told)})
    if not output.format.is_document:
        _note_quorums(output, rows)
        if not listing.rows and reading.reaches:
            output.note("nothing of this is in the log")
        _note(session, reading, following)
    _end_with(missing, reading)


def _note_quorums(output: Output, rows: Iterable[SummaryRow]) -> None:
    """Who holds what was committed, for people."""
    for row in rows if output.format.for_people else ():
        words = quorum_words(row)
        if words is not None:
            output.note(words)


def _width(output: Output) -> int | None:
    """The terminal's columns, where entries may be set to its width; -o wide is a table, however wide."""
    return None if output.format is OutputFormat.WIDE else output.width


def _summarize(session: Session, wanted: Wanted, reading: _Reading) -> None:
    output = session.output
    with output.listing(summary_view(), _head(reading)) as listing:
        for entries in _entries(session, reading, groups=False):
            for entry in entries:
                reading.notice(entry)
        missing = _missing(wanted, reading.history)
        rows = _summary_rows(reading.history)
        shown = [row for row in rows if wanted.named or row.summary.eventful]
        if wanted.unclean:
            shown = [row for row in shown if row.summary.unsafe]
        listing.add(shown)
        following = _next(wanted, reading, rows)
        listing.finish(_tail(reading, None if following is None else output.next_command(following)))
    if not output.format.is_document:
        if not shown and reading.reaches:
            output.note(_none(reading, unclean=wanted.unclean))
        _note(session, reading, following)
    _end_with(missing, reading)


def _none(reading: _Reading, *, unclean: bool) -> str:
    """What an empty table says: no more than what the log tells of."""
    history, end = reading.history, reading.end_ms
    if reading.log.cut_short or history.records_missing:
        trouble = "" if unclean else "a partition was in trouble, or "
        return f"records are missing: whether {trouble}an election was unclean is not known"
    assert history.begins_ms is not None  # it reaches into the window
    assert end is not None
    span = f"from {_second(history.begins_ms)} to {_second(end)} UTC "
    if unclean:
        return f"{span}no election was unclean"
    if history.min_isr_unknown:
        known = f"{span}no partition was without a leader, and no election was unclean"
        return f"{known}; whether one was under min ISR is not known: min.insync.replicas is not on record"
    return f"{span}no partition was in trouble, and no election was unclean"


def _second(at_ms: int) -> str:
    return when(at_ms)[:19]


def _draw(session: Session, wanted: Wanted, reading: _Reading) -> None:
    output, drawing = session.output, None
    for entries in _entries(session, reading, groups=False):
        drawing = drawing or Drawing(reading.history.active_at_start)
        for entry in entries:
            drawing.add(entry)
    as_of = reading.history.as_of
    if drawing is not None and as_of is not None:
        for text in drawing.texts(width=output.width, end_ms=as_of.timestamp_ms):
            output.line(text)
    missing = _missing(wanted, reading.history)
    _note(session, reading, None)
    _end_with(missing, reading)


def _summary_rows(history: History) -> list[SummaryRow]:
    return [SummaryRow(found, history.quorum(found.address)) for found in history.summaries()]


def _head(reading: _Reading) -> dict[str, Json]:
    return {"cluster_id": reading.log.cluster_id, "source": reading.log.name}


def _tail(reading: _Reading, following: str | None) -> dict[str, Json]:
    as_of = reading.history.as_of
    return {
        "as_of_offset": None if as_of is None else as_of.offset,
        "as_of_ms": None if as_of is None else as_of.timestamp_ms,
        "warnings": _warnings(reading),
        "next": following,
    }


def _warnings(reading: _Reading) -> list[str]:
    return [*reading.log.warnings, *reading.check(), *_untold(reading)]


def _untold(reading: _Reading) -> Iterator[str]:
    """What was asked for and is not in the log."""
    history, end = reading.history, reading.end_ms
    if not history.saw_any:
        yield "no partition was seen, so nothing is known to be well"
    elif history.begins_ms is None and end is not None:
        yield f"the metadata log ends at {_second(end)} UTC, before the time that was asked for"
    elif reading.since and history.begins_late and history.begins_ms is not None:
        begins = _second(history.begins_ms)
        yield f"what happened before {begins} UTC is not told: a checkpoint stands for it in the metadata log"


def _note(session: Session, reading: _Reading, following: list[str] | None) -> None:
    for text in _warnings(reading):
        session.output.note(text)
    if following is not None:
        session.output.next(following)


def _next(wanted: Wanted, reading: _Reading, rows: Iterable[SummaryRow]) -> list[str] | None:
    """Explain what has no leader now; else look at the first partition that had trouble."""
    if wanted.named:
        states = (row.summary.state for row in rows)
        leaderless = any(state is not None and state.leader is None for state in states)
        return ["explain", *map(str, wanted.selection.targets)] if leaderless else None
    return None if reading.worst is None else ["history", str(reading.worst)]


def _missing(wanted: Wanted, history: History) -> list[str]:
    """The topics that were named and are not in the log.

    Raises:
        UsageError: there is nothing else.
    """
    missing = [topic for topic in wanted.selection.topics if not history.knows(topic)]
    if missing and len({target.topic for target in wanted.selection.targets}) == len(missing):
        raise UsageError(
            f"not in this metadata log: {', '.join(missing)}",
            next_step="check the spelling; `kelr describe --metadata-log PATH` lists every topic",
        )
    return missing


def _end_with(missing: list[str], reading: _Reading) -> None:
    """Raises PartlyDoneError where named topics are missing, and ends with 1 where nothing was seen."""
    if missing:
        raise PartlyDoneError(
            f"not in this metadata log: {', '.join(missing)}", next_step="what is shown is right as far as it goes"
        )
    fail_unseen(seen=reading.reaches)
