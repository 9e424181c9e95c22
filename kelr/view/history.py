"""What ``kelr history`` shows: one row for each thing that happened, in the order of the metadata log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kelr.model import PartitionState
from kelr.replay.history import BrokerEntry, CauseKind, ClusterEntry, Election, Entry, PartitionEntry, PartitionsEntry
from kelr.view.columns import Column, Fact, Json, View, attributes, datum, for_people
from kelr.view.history_words import cause_words, what, when, why
from kelr.view.layout import wrapped
from kelr.view.styled import Span, Style, Text, plain, written

KIND = "kelr/history"

HEAD = (
    Fact("cluster_id", "string?", "The cluster; null: nothing beside the log told it."),
    Fact("source", "string", "Where the metadata log comes from."),
)
TAIL = (
    Fact("partitions", "object[]", "What each named partition went through, as kelr schema history-summary has it."),
    Fact("as_of_offset", "integer?", "Offset of the last record that was read; null: there was none."),
    Fact("as_of_ms", "integer?", "When the controller wrote it, in milliseconds since 1970 UTC."),
    Fact("warnings", "string[]", "What the log does not tell, and what was odd in it."),
    Fact("next", "string?", "The command to type next."),
)


_TABLE_FROM = 110
"""Terminals narrower than this get each entry on lines of its own."""


def history_view(width: int | None = None) -> View[Entry]:
    """One row for each entry; for machines everything that is known of it.

    Args:
        width: columns of the terminal; None for a pipe.
    """
    block = None if width is None or width >= _TABLE_FROM else _Lines(width).of
    columns = (*_facts(), *_causes(), *_states(), *_people())
    return View(KIND, columns, head=HEAD, tail=TAIL, block=block)


class _Lines:
    """Entries for narrow terminals: the day where another one begins, the time, and what happened beside it."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._day: str | None = None

    def of(self, entry: Entry) -> Iterator[Text]:
        """The lines of the next entry."""
        day, time = when(entry.at.timestamp_ms).split(" ")
        if day != self._day:
            self._day = day
            yield [Span(f"{day} (UTC)", Style.HEADING)]
        paragraphs = [[*_where(entry), Span(" "), *what(entry)]]
        if why(entry):
            paragraphs.append([Span("why: ", Style.QUIET), *why(entry)])
        indent = " " * (len(time) + 2)
        for number, paragraph in enumerate(paragraphs):
            for below, line in enumerate(wrapped(paragraph, self._width - len(indent))):
                yield [Span(indent if number or below else f"{time}  "), *line]


def _facts() -> tuple[Column[Entry], ...]:
    return (
        datum("offset", "integer", "Offset of the record in the metadata log.", lambda entry: entry.at.offset),
        datum(
            "at_ms", "integer", "The controller's time, milliseconds since 1970 UTC.", lambda row: row.at.timestamp_ms
        ),
        datum("time", "string", "The same in UTC.", lambda entry: when(entry.at.timestamp_ms)),
        datum("quorum_epoch", "integer", "Epoch of the controller that wrote it.", lambda entry: entry.at.epoch),
        datum("subject", "string", "partition, partitions, broker or cluster.", _subject),
        datum("topic", "string?", "Topic of the partition or of the config.", _topic),
        datum(
            "partition",
            "integer?",
            "Partition number.",
            lambda entry: entry.address.partition if isinstance(entry, PartitionEntry) else None,
        ),
        datum(
            "partitions",
            "integer?",
            "How many partitions one cause changed at once.",
            lambda entry: entry.count if isinstance(entry, PartitionsEntry) else None,
        ),
        datum(
            "topics",
            "string[]?",
            "Their topics.",
            lambda entry: list(entry.topics) if isinstance(entry, PartitionsEntry) else None,
        ),
        datum("examples", "string[]?", "The first of them.", _examples),
        datum(
            "broker",
            "integer?",
            "The broker that it is about; see cause_broker for that of a partition's change.",
            lambda entry: entry.broker if isinstance(entry, BrokerEntry) else None,
        ),
        datum(
            "broker_epoch",
            "integer?",
            "That broker's epoch.",
            lambda entry: _broker_epoch(entry) if isinstance(entry, BrokerEntry) else None,
        ),
        datum("event", "string", "What happened, by name.", _event),
        datum("text", "string", "What happened, in words.", lambda entry: written(what(entry), color=False)),
    )


def _causes() -> tuple[Column[Entry], ...]:
    def of_cause(
        key: str, type_: str, about: str, value: Callable[[PartitionEntry | PartitionsEntry], Json]
    ) -> Column[Entry]:
        def found(entry: Entry) -> Json:
            return value(entry) if isinstance(entry, PartitionEntry | PartitionsEntry) else None

        return datum(key, type_, about, found)

    def of_election(key: str, type_: str, about: str, value: Callable[[Election], Json]) -> Column[Entry]:
        def found(entry: Entry) -> Json:
            election = entry.election if isinstance(entry, PartitionEntry) else None
            return None if election is None else value(election)

        return datum(key, type_, about, found)

    return (
        of_cause("cause", "string?", "What made the controller change it.", lambda entry: str(entry.cause.kind)),
        of_cause("certainty", "string?", "certain, likely or unknown.", lambda entry: str(entry.cause.certainty)),
        of_cause(
            "cause_broker", "integer?", "The broker that came, went or reported.", lambda entry: entry.cause.broker
        ),
        of_cause("cause_text", "string?", "The cause in words.", _cause_text),
        datum(
            "restart",
            "string?",
            "What a registration shows of the shutdown before it: first, same-incarnation, clean, unclean, not-shown.",
            _restart,
        ),
        of_election(
            "elected_as",
            "string?",
            "What the new leader was: preferred, isr, elr, last-known-leader, unclean, unclean-recovery, unknown.",
            lambda election: str(election.elected_as),
        ),
        of_election(
            "clean",
            "boolean?",
            "Whether it held all that was committed; null: no election, or not known.",
            lambda election: election.elected_as.clean,
        ),
        of_election(
            "last_leader",
            "integer?",
            "Who led before it; null: no election, or not known.",
            lambda election: election.last_leader,
        ),
        of_election(
            "designated",
            "boolean?",
            "Whether it was put first in the assignment just before.",
            lambda election: election.designated,
        ),
        of_cause(
            "reassignment",
            "string?",
            "begun, completed, cancelled, changed, at-once or reordered.",
            lambda entry: None if entry.reassignment is None else str(entry.reassignment),
        ),
    )


def _states() -> tuple[Column[Entry], ...]:
    return (
        datum(
            "before",
            "object?",
            "The partition before; null: it was not there, or is not known.",
            lambda entry: state_object(entry.before) if isinstance(entry, PartitionEntry) else None,
        ),
        datum(
            "after",
            "object?",
            "The partition afterwards; null: deleted.",
            lambda entry: state_object(entry.after) if isinstance(entry, PartitionEntry) else None,
        ),
        datum(
            "counts",
            "object?",
            "Of several partitions: how many created, deleted, lost_leader, got_leader, moved_leader, isr_shrank,"
            " isr_grew, unclean, clean_unknown, elr_struck.",
            _counts,
        ),
        datum("value_before", "string?", "A feature's or config's value before.", lambda entry: _value(entry, 0)),
        datum("value_after", "string?", "Its value afterwards.", lambda entry: _value(entry, 1)),
    )


def _people() -> tuple[Column[Entry], ...]:
    return (
        for_people("TIME (UTC)", lambda entry: plain(when(entry.at.timestamp_ms))),
        for_people("OFFSET", lambda row: plain(str(row.at.offset)), right=True, wide=True),
        for_people("WHERE", _where),
        for_people("WHAT", what, prose=True),
        for_people("WHY", why, prose=True),
    )


def state_object(state: PartitionState | None) -> Json:
    """A partition's state for machines."""
    if state is None:
        return None
    return {
        **attributes(state, "leader", "leader_epoch", "partition_epoch", "replicas", "isr"),
        "elr": None if state.elr is None else list(state.elr),
        "last_known_elr": None if state.last_known_elr is None else list(state.last_known_elr),
        "adding": list(state.adding or ()),
        "removing": list(state.removing or ()),
        "recovering": bool(state.recovering),
    }


_COUNTS = (
    "created",
    "deleted",
    "lost_leader",
    "got_leader",
    "moved_leader",
    "isr_shrank",
    "isr_grew",
    "unclean",
    "clean_unknown",
    "elr_struck",
)


def _subject(entry: Entry) -> str:
    if isinstance(entry, PartitionEntry):
        return "partition"
    if isinstance(entry, PartitionsEntry):
        return "partitions"
    return "broker" if isinstance(entry, BrokerEntry) else "cluster"


def _topic(entry: Entry) -> str | None:
    if isinstance(entry, PartitionEntry):
        return entry.address.topic
    return entry.topic if isinstance(entry, ClusterEntry) else None


def _event(entry: Entry) -> str:
    if isinstance(entry, BrokerEntry | ClusterEntry):
        return str(entry.event)
    if isinstance(entry, PartitionsEntry):
        return "changed"
    if entry.before is None:
        return "as-found" if entry.cause.kind is CauseKind.AS_FOUND else "created"
    if entry.after is None:
        return "deleted"
    return "changed" if entry.election is None else "elected"


def _where(entry: Entry) -> Text:
    if isinstance(entry, PartitionEntry):
        return plain(str(entry.address))
    if isinstance(entry, PartitionsEntry):
        of = entry.topics[0] if len(entry.topics) == 1 else f"{len(entry.topics)} topics"
        return plain(f"{of} ({entry.count} partitions)")
    return plain(f"broker {entry.broker}") if isinstance(entry, BrokerEntry) else plain("cluster")


def _examples(entry: Entry) -> Json:
    return [str(one.address) for one in entry.entries] if isinstance(entry, PartitionsEntry) else None


def _broker_epoch(entry: BrokerEntry) -> int | None:
    known = entry.after or entry.before
    return None if known is None else known.registration.epoch


def _cause_text(entry: PartitionEntry | PartitionsEntry) -> str:
    return cause_words(entry.cause, entry if isinstance(entry, PartitionEntry) else entry.entries[0])


def _restart(entry: Entry) -> str | None:
    found = entry.restart if isinstance(entry, BrokerEntry) else None
    if isinstance(entry, PartitionEntry | PartitionsEntry):
        found = entry.cause.restart
    return None if found is None else str(found)


def _counts(entry: Entry) -> Json:
    if not isinstance(entry, PartitionsEntry):
        return None
    return {name: getattr(entry, name) for name in _COUNTS}


def _value(entry: Entry, which: int) -> str | None:
    return (entry.before, entry.after)[which] if isinstance(entry, ClusterEntry) else None
