"""What each partition went through: how long in which trouble, unclean elections, and who holds what was committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kelr.model import RecoveryQuorum
from kelr.replay.history import PartitionEntry, PartitionSummary, Span, Trouble
from kelr.view.columns import Column, Json, View, datum, for_people
from kelr.view.history import HEAD, TAIL, state_object
from kelr.view.history_words import isr_words, lasted, when
from kelr.view.replicas import UNKNOWN
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/history-summary"


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A partition's summary, and its recovery quorum where that was followed and is on record."""

    summary: PartitionSummary
    quorum: RecoveryQuorum | None = None

    @property
    def differs(self) -> bool | None:
        """Whether Kafka's LastKnownElr is another set than KIP-966's; None where either is not known."""
        state = self.summary.state
        if self.quorum is None or state is None or state.last_known_elr is None:
            return None
        return set(state.last_known_elr) != set(self.quorum.last_known_elr)


def summary_view() -> View[SummaryRow]:
    """One row for each partition."""
    return View(KIND, (*_facts(), *_people()), head=HEAD, tail=tuple(fact for fact in TAIL if fact.key != "partitions"))


def summary_objects(rows: Iterable[SummaryRow]) -> Json:
    """The rows as objects, for the end of a history."""
    view = summary_view()
    return [view.as_item(row) for row in rows]


def quorum_words(row: SummaryRow) -> str | None:
    """A partition's recovery quorum in a sentence; None where it is not known."""
    quorum, state = row.quorum, row.summary.state
    if quorum is None or state is None:
        return None
    text = f"{state.address}: recovery quorum {isr_words(quorum.members)}"
    text += f" (min ISR {quorum.min_isr}, since {when(quorum.since_ms)})"
    if quorum.restarted:
        text += f", of which {isr_words(quorum.restarted)} may lack a tail since a restart"
    text += f"; LastKnownELR by KIP-966: {isr_words(quorum.last_known_elr)}"
    if row.differs:
        text += f", where Kafka has {isr_words(state.last_known_elr)}"
    return text if quorum.doubt is None else f"{text}; no guarantee: {quorum.doubt}"


def _facts() -> tuple[Column[SummaryRow], ...]:
    return (
        datum("topic", "string", "Topic name.", lambda row: row.summary.address.topic),
        datum("partition", "integer", "Partition number.", lambda row: row.summary.address.partition),
        datum("known_since_ms", "integer", "From when on it was followed.", lambda row: row.summary.known_since_ms),
        datum("until_ms", "integer", "To when the log or the window reaches.", lambda row: row.summary.until_ms),
        datum("state", "object?", "As it is in the end; null: deleted.", lambda row: state_object(row.summary.state)),
        datum("min_isr", "integer?", "Effective min ISR in the end; null: not on record.", lambda r: r.summary.min_isr),
        datum(
            "min_isr_unknown",
            "boolean",
            "Whether it was not on record at some time: under-min-isr may then be too short.",
            lambda row: row.summary.min_isr_unknown,
        ),
        datum(
            "spans",
            "object",
            "By trouble (leaderless, under-min-isr, last-replica, elr-only): times, total_ms, longest_ms, and since_ms"
            " if it lasts.",
            _spans,
        ),
        datum("elections", "integer", "How often another leader was elected.", lambda row: row.summary.elections),
        datum(
            "unclean",
            "object[]",
            "Elections not sure to have been clean: offset, at_ms, last_leader, leader, elected_as, designated.",
            lambda row: [_unclean(entry) for entry in row.summary.unsafe],
        ),
        datum("recovery_quorum", "object?", "The recovery quorum; null: not known or not followed.", _quorum),
        datum(
            "last_known_elr_differs",
            "boolean?",
            "Whether Kafka's LastKnownElr is another set than KIP-966's; null: not known.",
            lambda row: row.differs,
        ),
    )


def _spans(row: SummaryRow) -> Json:
    lasting = row.summary.lasting
    return {
        str(trouble): {
            "times": span.times,
            "total_ms": span.total_ms,
            "longest_ms": span.longest_ms,
            "since_ms": lasting.get(trouble),
        }
        for trouble, span in sorted(row.summary.spans.items())
    }


def _unclean(entry: PartitionEntry) -> Json:
    election = entry.election
    assert election is not None  # only elections are among them
    return {
        "offset": entry.at.offset,
        "at_ms": entry.at.timestamp_ms,
        "last_leader": election.last_leader,
        "leader": election.leader,
        "elected_as": str(election.elected_as),
        "designated": election.designated,
    }


def _quorum(row: SummaryRow) -> Json:
    quorum = row.quorum
    if quorum is None:
        return None
    return {
        "members": list(quorum.members),
        "last_known_elr": list(quorum.last_known_elr),
        "restarted": list(quorum.restarted),
        "min_isr": quorum.min_isr,
        "since_offset": quorum.since_offset,
        "since_ms": quorum.since_ms,
        "leader_epoch": quorum.leader_epoch,
        "partition_epoch": quorum.partition_epoch,
        "as_of_offset": quorum.as_of_offset,
        "as_of_ms": quorum.as_of_ms,
        "doubt": quorum.doubt,
    }


def _people() -> tuple[Column[SummaryRow], ...]:
    def span(trouble: Trouble) -> Callable[[SummaryRow], Text]:
        return lambda row: _span_text(row, trouble)

    return (
        for_people("PARTITION", lambda row: plain(str(row.summary.address))),
        for_people("LEADER", _leader),
        for_people("NO LEADER", span(Trouble.LEADERLESS)),
        for_people("UNDER MIN ISR", span(Trouble.UNDER_MIN_ISR)),
        for_people("LAST REPLICA", span(Trouble.LAST_REPLICA), yields=1),
        for_people("ELR ONLY", span(Trouble.ELR_ONLY), yields=2),
        for_people("ELECTIONS", lambda row: plain(str(row.summary.elections)), yields=3),
        for_people("UNCLEAN", _unclean_text),
        for_people("QUORUM", _quorum_text, yields=1),
        for_people("LAST KNOWN ELR", _last_known_text),
    )


def _leader(row: SummaryRow) -> Text:
    state = row.summary.state
    if state is None:
        return plain("deleted")
    return styled("none", Style.BAD) if state.leader is None else plain(str(state.leader))


def _span_text(row: SummaryRow, trouble: Trouble) -> Text:
    found: Span | None = row.summary.spans.get(trouble)
    if found is None:
        return UNKNOWN if trouble is Trouble.UNDER_MIN_ISR and row.summary.min_isr_unknown else ()
    text = f"{found.times}x {lasted(found.total_ms)}"
    if trouble is Trouble.UNDER_MIN_ISR and row.summary.min_isr_unknown:
        text = f"{text} or more"
    return styled(f"{text}, lasts", Style.BAD) if trouble in row.summary.lasting else plain(text)


def _unclean_text(row: SummaryRow) -> Text:
    moves = []
    for entry in row.summary.unsafe:
        election = entry.election
        assert election is not None  # only elections are among them
        last = "?" if election.last_leader is None else election.last_leader
        moves.append(f"{last}->{election.leader}{'' if election.elected_as.clean is False else '?'}")
    return styled(" ".join(moves), Style.BAD) if moves else ()


def _quorum_text(row: SummaryRow) -> Text:
    if row.quorum is None:
        return UNKNOWN
    return plain(isr_words(row.quorum.members) + ("" if row.quorum.doubt is None else " ?"))


def _last_known_text(row: SummaryRow) -> Text:
    """KIP-966's set, and Kafka's where that is another."""
    state = row.summary.state
    if row.quorum is None or state is None:
        return UNKNOWN if row.quorum is None else ()
    own = isr_words(row.quorum.last_known_elr)
    if not row.differs:
        return () if own == "none" else plain(own)
    return styled(f"{own} (Kafka: {isr_words(state.last_known_elr)})", Style.NOTICE)
