"""What an explanation says of a replica, a step, a return and an election, cell by cell; and a line for a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kelr.controller import RULE_SETS
from kelr.engine import needs_a_look
from kelr.engine.loss_words import certainty_in_words
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.engine.words import joined, plural
from kelr.model import (
    Advice,
    Bounds,
    Candidate,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    Outcome,
    Situation,
    Step,
    Truncation,
)
from kelr.view.columns import Column, Json, Shown, for_people
from kelr.view.describe import standing_text
from kelr.view.explain_if import Assumed, elections_cost, leader_in_words
from kelr.view.styled import Span, Style, Text, plain, styled


@dataclass(frozen=True, slots=True)
class Explained:
    """One decision with what the reader should know of its reading."""

    decision: Decision
    taken_at_ms: int
    assumed: tuple[Assumed, ...] = ()
    """What is imagined to have happened before; empty for what is."""
    logs: tuple[LogAnswer, ...] = ()
    """What the replicas answered; needed for pictures alone."""
    otherwise: tuple[Assumed, ...] = ()
    """The same, had those stopped the other way that return and of which nothing tells how they stopped."""
    way: str = ""
    """How those have stopped here: ``clean``, ``unclean``, or ``either`` where it makes no difference."""

    def unreachable(self, replica: int) -> bool:
        """Whether the connection to the replica's broker failed when its log was asked for."""
        answers = (one for one in self.logs if one.replica == replica)
        return any(
            isinstance(one, LogUnavailable) and one.reason is LogUnavailableReason.UNREACHABLE for one in answers
        )

    @property
    def supposed(self) -> bool:
        """Whether the decision is about a state, or by rules, that are not the cluster's."""
        return bool(self.assumed) or self.decision.cluster_rules is not None


def same_outcome(one: Explained, other: Explained) -> bool:
    """Whether two ways of stopping come to the same for the partition."""
    outcomes = ([(step.consequence, step.refused) for step in row.assumed] for row in (one, other))
    return one.decision == other.decision and next(outcomes) == next(outcomes)


# The replicas' table.


def _state(row: Explained, candidate: Candidate) -> Text:
    """The controller's word, and kelr's own where its broker cannot be reached."""
    style = Style.PLAIN if candidate.live else Style.BAD
    if row.unreachable(candidate.replica):
        return styled("live, unreachable" if candidate.live else "unreachable", Style.BAD)
    return styled(candidate.status, style)


def _role(decision: Decision, candidate: Candidate) -> Text:
    named = {
        "leader": candidate.replica == decision.leader,
        "ISR": candidate.in_isr and candidate.replica != decision.leader,
        "ELR": candidate.in_elr,
        "ELR unknown": candidate.in_elr is None and not candidate.in_isr and RULE_SETS[decision.rules].elr,
    }
    roles = [name for name, holds in named.items() if holds]
    if candidate.last_known and decision.leader is None:
        # The first of the set led last; under the whole KIP's rules it is of all who may hold everything committed.
        first = decision.last_known_elr is not None and decision.last_known_elr[:1] == (candidate.replica,)
        roles += ["last known leader" if first and not RULE_SETS[decision.rules].recovers else "last known ELR"]
    return plain(", ".join(roles) or "out of sync")


def _end(candidate: Candidate) -> Text:
    return plain(_known(candidate.log_end))


def _high_watermark(candidate: Candidate) -> Text:
    saved = "" if candidate.saved_high_watermark is None else f" (saved {candidate.saved_high_watermark})"
    return plain(f"{_known(candidate.high_watermark)}{saved}")


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _compared(candidate: Candidate) -> Text:
    diverges = "" if candidate.diverges_at is None else f", diverges at {candidate.diverges_at}"
    if candidate.best:
        return [Span("most complete", Style.GOOD), Span(diverges)]
    if candidate.behind_best is None:
        return plain("?")
    return styled(f"{plural(candidate.behind_best, 'offset')} behind{diverges}", Style.BAD)


def replica_columns(row: Explained, *, wide: bool) -> tuple[Column[Candidate], ...]:
    """The columns that say something of these replicas; with `wide` all of them."""
    read = [candidate for candidate in row.decision.candidates if candidate.heard]
    epochs = {candidate.last_epoch for candidate in read}
    pending = any(one.last_stable_offset not in {None, one.high_watermark} for one in read)
    columns: tuple[tuple[bool, Column[Candidate]], ...] = (
        (True, Column("replica", "REPLICA", text=lambda one: plain(str(one.replica)), right=True)),
        (True, Column("state", "STATE", text=lambda one: _state(row, one))),
        (wide, Column("rack", "RACK", value=lambda one: one.rack)),
        (True, Column("role", "ROLE", text=lambda one: _role(row.decision, one))),
        (wide or len(epochs) > 1, Column("epoch", "EPOCH", text=lambda one: plain(_known(one.last_epoch)), right=True)),
        (wide, Column("start", "LOG START", text=lambda one: plain(_known(one.log_start)), right=True)),
        (True, Column("end", "LOG END", text=_end, right=True)),
        (True, Column("hw", "HW", text=_high_watermark, right=True)),
        (wide or pending, Column("lso", "LSO", text=lambda one: plain(_known(one.last_stable_offset)), right=True)),
        (len(read) > 1, Column("compared", "COMPARED", text=_compared)),
        (wide, Column("standing", "STANDING", text=lambda one: plain(one.reason))),
    )
    return tuple(column for shown, column in columns if shown)


# What Kafka asks.


def _answer(step: Step) -> Text:
    return styled("yes", Style.GOOD) if step.holds else styled("no", Style.NOTICE)


STEP_COLUMNS: tuple[Column[Step], ...] = (
    Column("holds", "", text=_answer),
    Column("text", "", text=lambda step: plain(step.text)),
    Column("evidence", "", text=lambda step: plain(step.evidence)),
    Column("rule", "", text=lambda step: plain(step.rule)),
    Column("source", "", text=lambda step: styled(step.source, Style.QUIET)),
)
SHORT_STEP_COLUMNS = STEP_COLUMNS[:-2]
"""Without the rules' ids and sources."""

_WAITS_BY = {
    Situation.WAITING_FOR_ISR: "live-isr-member",
    Situation.WAITING_FOR_ELR: "live-elr-member",
    Situation.WAITING_FOR_LAST_KNOWN_LEADER: "last-known-leader",
}


def telling_rule(decision: Decision) -> str | None:
    """The rule that elects, or for which nobody is elected: the one to look up (``kelr explain --why``)."""
    asked = [step.rule for step in decision.steps]
    if decision.elected is not None:
        return asked[-1] if asked else None
    rule = _WAITS_BY.get(decision.situation)
    if decision.situation is Situation.NEEDS_UNCLEAN_RECOVERY and asked:
        return asked[-1]
    return rule if rule in asked else None


# What happens when somebody comes back.


@dataclass(frozen=True, slots=True)
class ReturnRow:
    """What Kafka does when one broker returns, cleanly or not; one row where both come to the same."""

    forecast: Forecast
    how: str
    """``clean`` or ``unclean``, where the other way to stop comes to something else; else empty."""

    @property
    def condition(self) -> str:
        return f"If broker {self.forecast.replica} returns" + (f" {self.how}ly" if self.how else "")


def merged_returns(forecasts: Iterable[Forecast]) -> list[ReturnRow]:
    """The forecasts as rows: one for each broker, or two where a clean return differs from an unclean one."""
    returns: dict[int, list[Forecast]] = {}
    for forecast in forecasts:
        returns.setdefault(forecast.replica, []).append(forecast)
    rows = []
    for both in returns.values():
        if all(_same(forecast, both[0]) for forecast in both):
            rows.append(ReturnRow(both[0], ""))
        else:
            rows += [ReturnRow(one, "clean" if one.clean else "unclean") for one in both]
    return rows


def _same(one: Forecast, other: Forecast) -> bool:
    return (_consequence(one), one.leads, one.costs) == (_consequence(other), other.leads, other.costs)


_BY = {
    ElectedBy.ISR: "from the ISR",
    ElectedBy.ELR: "from the ELR",
    ElectedBy.LAST_KNOWN_LEADER: "as last known leader",
    ElectedBy.UNCLEAN: "uncleanly",
    ElectedBy.LONGEST_LOG: "for the best log",
    ElectedBy.LEADER_STAYS: "still",
}


def _consequence(forecast: Forecast) -> str:
    cuts = "" if forecast.costs is None else _cuts(forecast.costs.truncations)
    if forecast.elected is None:
        told = forecast.warning or "Kafka elects no leader"
        return f"{told}; if it is designated then, {cuts}" if cuts else told
    by = "" if forecast.elected_by is None else f" {_BY.get(forecast.elected_by, '')}"
    text = f"{forecast.elected} is elected{by}"
    if forecast.loss is not None and forecast.loss.grade is LossCertainty.PROVEN_NONE:
        text += "; nothing committed is lost"
    elif forecast.warning:
        text += f", {forecast.warning}"
    return f"{text}; {cuts}" if cuts else text


def _cuts(truncations: Sequence[Truncation]) -> str:
    """``3 truncates 225 offsets from 160 on and 2 truncates 5 offsets from 380 on``."""
    return (
        joined(
            f"{cut.replica} truncates {plural(cut.offsets, 'offset')} from {cut.from_offset} on" for cut in truncations
        )
        if truncations
        else ""
    )


FORECAST_COLUMNS: tuple[Column[ReturnRow], ...] = (
    Column("condition", "", text=lambda row: plain(row.condition)),
    Column("consequence", "", text=lambda row: plain(_consequence(row.forecast))),
)


# What may happen, and what it would give.


@dataclass(frozen=True, slots=True)
class Event:
    """A return, or an election that could be asked for; who leads then, and what is lost."""

    name: str
    leader: str
    loss: Loss | None
    """None where nobody leads."""
    note: str = ""


def events_of(decision: Decision, *, every: bool = False) -> list[Event]:
    """The returns, then the elections; returns that come to the same are one, unless `every` one is asked for.

    A designation after a return that elects nobody is told where it is advised, or its loss is known, or `every`.
    """
    rows = merged_returns(decision.forecasts)
    groups: dict[object, list[ReturnRow]] = {}
    for row in rows:
        back = row.forecast
        same = (row.how, back.elected == back.replica or back.elected, *_cells(back.loss), _then_cells(decision, row))
        groups.setdefault((row.forecast.replica, row.how) if every else same, []).append(row)
    returns = [event for group in groups.values() for event in _return_events(decision, group, every=every)]
    return [*returns, *_elections(decision)]


def _return_events(decision: Decision, group: Sequence[ReturnRow], *, every: bool) -> Iterator[Event]:
    back, how = group[0].forecast, group[0].how
    name = f"{joined((row.forecast.replica for row in group), 'or')} returns" + (f", {how}" if how else "")
    leaders = dict.fromkeys(row.forecast.elected for row in group if row.forecast.elected is not None)
    note = "" if back.then is None or back.then.elected is not None else back.then.note
    yield Event(name, joined(leaders, "or"), back.loss if leaders else None, note)
    if back.then is not None and back.then.elected is not None and (every or _tells(decision, group[0])):
        yield Event(f"  then you designate {back.replica}", str(back.then.elected), back.then.loss, back.then.note)


def _tells(decision: Decision, row: ReturnRow) -> bool:
    """Whether the designation after this return is worth a line."""
    loss, back = row.forecast.costs, row.forecast
    if back.then is None:
        return False
    known = loss is not None and loss.total is not None and (loss.total.none or loss.total.at_least > 0)
    return known or decision.advice.designate == back.replica


def _then_cells(decision: Decision, row: ReturnRow) -> object:
    return (row.forecast.replica, row.how) if _tells(decision, row) else None


def _elections(decision: Decision) -> Iterator[Event]:
    """A preferred election of a leaderless partition that elects nobody is not a choice."""
    for outcome in decision.elections:
        if outcome.election is not ElectionType.PREFERRED or outcome.elected is not None:
            unknown = elects_by_unread_logs(decision, outcome)
            leader = "UNKNOWN" if unknown else "none" if outcome.elected is None else str(outcome.elected)
            yield Event(_asked_for(outcome, decision), leader, outcome.loss, outcome.note)


def _asked_for(outcome: Outcome, decision: Decision) -> str:
    if outcome.election is ElectionType.DESIGNATION:
        return f"you designate {outcome.designate}" if outcome.designate is not None else "you designate"
    if outcome.election is ElectionType.UNCLEAN:
        # Under the rules of the whole KIP an unclean election is a recovery by logs.
        return "you elect, unclean" + (" (recovery)" if RULE_SETS[decision.rules].recovers else "")
    return f"you elect, {outcome.election.value}" if outcome.election is ElectionType.PREFERRED else outcome.election


def elected_by_itself(decision: Decision) -> str:
    """``broker 3``, ``no leader``, ``by unread logs``: what follows "By itself Kafka elects"."""
    if elects_by_unread_logs(decision, decision):
        return "by unread logs"
    return "no leader" if decision.elected is None else f"broker {decision.elected}"


def election_name(outcome: Outcome, decision: Decision) -> str:
    """The election as people call it, the designated replica included."""
    if outcome.election is ElectionType.DESIGNATION:
        return f"designation of {outcome.designate}" if outcome.designate is not None else "designation"
    if outcome.election is not ElectionType.UNCLEAN:
        return outcome.election.value
    # Under the rules of the whole KIP an unclean election is a recovery by logs.
    return f"{outcome.election.value} ({'recovery' if RULE_SETS[decision.rules].recovers else 'stock'})"


def _event_leader(event: Event) -> Text:
    return styled(event.leader, Style.BAD if event.leader == "UNKNOWN" else Style.PLAIN)


def lost_offsets(bounds: Bounds | None, ranges: tuple[tuple[int, int], ...]) -> Text:
    """The bounds, and the offsets where one range holds exactly as many as are known to be lost: ``none``, ``30``,
    ``1-38``, ``19+ (116..134)``."""
    if bounds is None or (not bounds.at_least and bounds.at_most is None):
        return styled("UNKNOWN", Style.BAD)
    if bounds.none:
        return plain("none")
    count = f"{bounds.at_least:,}" + ("" if bounds.exact else "+" if bounds.at_most is None else f"-{bounds.at_most:,}")
    known = sum(last - first + 1 for first, last in ranges[:1]) == bounds.at_least > 0 and len(ranges) == 1
    return styled(f"{count} ({ranges[0][0]}..{ranges[0][1]})" if known else count, Style.BAD)


NOT_PROVEN = "*"
"""Behind a loss of none that holds on a condition (`promise`)."""


def _cells(loss: Loss | None) -> tuple[str, str]:
    """What a loss looks like in its two columns; empty where nobody leads."""
    return (_plain(_committed(loss)), _plain(_total(loss)))


def _plain(text: Text) -> str:
    return "".join(span.text for span in text)


def _committed(loss: Loss | None) -> Text:
    if loss is None:
        return ()
    if loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        return plain(f"none{NOT_PROVEN}")
    return lost_offsets(loss.committed, loss.committed_ranges)


def _total(loss: Loss | None) -> Text:
    return () if loss is None else lost_offsets(loss.total, loss.lost_ranges)


_SHORT_NOTE = 30
"""Characters of a note in the place of a loss; a longer one stands below the table."""


def noted_below(event: Event) -> bool:
    return len(event.note) > _SHORT_NOTE or (bool(event.note) and event.loss is not None)


def _committed_or_note(event: Event) -> Text:
    return plain(event.note) if event.note and not noted_below(event) else _committed(event.loss)


def _total_or_nothing(event: Event) -> Text:
    return plain(" ") if event.note and not noted_below(event) else _total(event.loss)


def _certainty(event: Event) -> Text:
    return plain(event.note or ("" if event.loss is None else certainty_in_words(event.loss)))


EVENT_COLUMNS: tuple[Column[Event], ...] = (
    Column("event", "EVENT", text=lambda event: plain(event.name)),
    Column("leader", "LEADER", text=_event_leader),
    Column("committed", "COMMITTED LOSS", text=_committed_or_note),
    Column("total", "TOTAL LOSS", text=_total_or_nothing),
)
WIDE_EVENT_COLUMNS: tuple[Column[Event], ...] = (
    *EVENT_COLUMNS[:2],
    Column("committed", "COMMITTED LOSS", text=lambda event: _committed(event.loss)),
    Column("total", "TOTAL LOSS", text=lambda event: _total(event.loss)),
    Column("certainty", "CERTAINTY", text=_certainty),
)


# The short form.


def _where(row: Explained) -> Text:
    return plain(f"{row.decision.topic}:{row.decision.partition}")


UNSAVED = "unsaved-records"
"""In place of the situation of a partition that is well but for the only copies of records on disks that are down."""


def situation_text(row: Explained) -> Text:
    if row.decision.situation is Situation.HEALTHY and needs_a_look(row.decision):
        return styled(UNSAVED, Style.BAD)
    return decided_standing(row.decision)


def decided_standing(decision: Decision) -> Text:
    return standing_text(decision.situation, any(not one.in_isr for one in decision.candidates))


def _waits(row: Explained) -> Text:
    waits = row.decision.waits_for
    return plain(" ".join(map(str, waits))) if waits else ()


def _best(row: Explained) -> Text:
    best = next((c for c in row.decision.candidates if c.best), None)
    return () if best is None else plain(f"{best.replica} ({best.log_end})")


def _unclean(row: Explained) -> Text:
    outcome = _unclean_outcome(row.decision)
    if row.decision.leader is not None or outcome.elected is None:
        return ()
    total = outcome.loss.total if outcome.loss else None
    if total is None or not (total.at_least or total.none):
        return plain(f"{outcome.elected}, ?")
    more = "" if total.exact else "+"
    return plain(f"{outcome.elected}" if total.none else f"{outcome.elected}, -{total.at_least}{more}")


def _action(row: Explained) -> Text:
    return plain(advice_in_short(row.decision.advice))


def advice_in_short(advice: Advice) -> str:
    """``bring-back 4``."""
    return advice.action.value + ("" if advice.replica is None else f" {advice.replica}")


def _least_lost(loss: Loss | None) -> int | None:
    return None if loss is None or loss.total is None else loss.total.at_least


def _assumptions(row: Explained) -> str:
    return ", ".join(one.text for one in row.assumed)


def _assumed_cost(row: Explained) -> str:
    """``19``, ``19+`` where it may be more, ``?`` where nothing could be counted; empty where nothing was assumed."""
    known, more = elections_cost(row.assumed)
    if not row.assumed:
        return ""
    return (f"{known}+" if known else "?") if more else str(known)


def _assumed_losses(row: Explained) -> Text:
    cost = _assumed_cost(row)
    return () if cost == "0" else styled(cost, Style.BAD)


def _led_by(row: Explained) -> Text:
    return plain(leader_in_words(row.assumed, row.decision.leader))


def _fact(key: str, value: Callable[[Decision], Json]) -> Column[Explained]:
    return Column(key, key, value=lambda row: value(row.decision), shown=Shown.MACHINE)


def _unclean_outcome(decision: Decision) -> Outcome:
    return next(outcome for outcome in decision.elections if outcome.election is ElectionType.UNCLEAN)


SHORT_COLUMNS: tuple[Column[Explained], ...] = (
    for_people("PARTITION", _where),
    _fact("topic", lambda decision: decision.topic),
    _fact("partition", lambda decision: decision.partition),
    _fact("rules", lambda decision: decision.rules),
    Column(
        "situation",
        "SITUATION",
        value=lambda row: row.decision.situation.value,
        text=situation_text,
        hyphenated=True,
    ),
    _fact("leader", lambda decision: decision.leader),
    _fact("leader_epoch", lambda decision: decision.leader_epoch),
    _fact("elected", lambda decision: decision.elected),
    _fact("elected_by", lambda decision: decision.elected_by),
    Column("waits_for", "WAITS FOR", value=lambda row: row.decision.waits_for, text=_waits),
    _fact("best_replica", lambda decision: next((c.replica for c in decision.candidates if c.best), None)),
    _fact("best_log_end", lambda decision: next((c.log_end for c in decision.candidates if c.best), None)),
    _fact("unclean_elects", lambda decision: _unclean_outcome(decision).elected),
    _fact("unclean_loses_at_least", lambda decision: _least_lost(_unclean_outcome(decision).loss)),
    for_people("BEST LOG (END)", _best),
    for_people("UNCLEAN TAKES", _unclean),
    for_people("ADVICE", _action, hyphenated=True),
    _fact("advice_action", lambda decision: decision.advice.action.value),
    _fact("advice_replica", lambda decision: decision.advice.replica),
    Column("assumptions", "assumptions", value=_assumptions, shown=Shown.MACHINE),
    Column("assumed_lose", "assumed_lose", value=_assumed_cost, shown=Shown.MACHINE),
    _fact("unsaved", lambda decision: None if decision.unsaved is None else decision.unsaved.value),
)
LEADER_COLUMN: Column[Explained] = for_people("LEADER", _led_by)
"""For an imagined state: who leads, and who did before."""
WAY_COLUMN: Column[Explained] = for_people("RETURN", lambda row: plain(row.way))
"""For an imagined return of which nothing tells how the broker stopped."""
LOSES_COLUMN: Column[Explained] = for_people("LOSES", _assumed_losses)
"""For an imagined state: the offsets that the imagined elections lose."""
