"""What an explanation says of a replica, a step, a return and an election, cell by cell; and a line for a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kelr.controller import RULE_SETS
from kelr.engine import needs_a_look
from kelr.engine.loss_words import certainty_in_words
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.engine.words import in_short, joined, plural
from kelr.model import (
    Advice,
    Bounds,
    Candidate,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    Grade,
    LogAnswer,
    Loss,
    Outcome,
    Situation,
    Step,
    Truncation,
)
from kelr.view.columns import Column, Json, Shown
from kelr.view.describe import STYLES
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

    @property
    def supposed(self) -> bool:
        """Whether the decision is about a state, or by rules, that are not the cluster's."""
        return bool(self.assumed) or self.decision.cluster_rules is not None


def same_outcome(one: Explained, other: Explained) -> bool:
    """Whether two ways of stopping come to the same for the partition."""
    outcomes = ([(step.consequence, step.refused) for step in row.assumed] for row in (one, other))
    return one.decision == other.decision and next(outcomes) == next(outcomes)


# The replicas' table.


def _replica(candidate: Candidate) -> Text:
    return plain(str(candidate.replica))


def _broker(candidate: Candidate) -> Text:
    style = Style.GOOD if candidate.live else Style.BAD
    rack = f" {candidate.rack}" if candidate.rack else ""
    return [Span(candidate.status, style), Span(rack)]


def _log(candidate: Candidate) -> Text:
    if not candidate.heard:
        return styled(f"not heard ({in_short(candidate.unheard_reason or '')})", Style.NOTICE)
    empty = candidate.log_end == candidate.log_start
    epoch = f"epoch {_known(candidate.last_epoch)}" if candidate.last_epoch is not None or not empty else "no records"
    parts = [epoch, f"start {_known(candidate.log_start)}", f"end {candidate.log_end}"]
    saved = "" if candidate.saved_high_watermark is None else f" (saved {candidate.saved_high_watermark})"
    parts.append(f"HW {_known(candidate.high_watermark)}{saved}")
    if candidate.last_stable_offset is not None and candidate.last_stable_offset != candidate.high_watermark:
        parts.append(f"LSO {candidate.last_stable_offset}")
    if candidate.last_epoch is None and not empty:
        parts.append(f"epochs not known ({candidate.unheard_reason})")
    if candidate.diverges_at is not None:
        parts.append(f"parts from the best at {candidate.diverges_at}")
    # One space inside, two between, keeps "end 116" together where the cell has to be broken.
    return plain("  ".join(parts))


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _behind(candidate: Candidate) -> Text:
    if candidate.best:
        return styled("best", Style.GOOD)
    if candidate.behind_best is None:
        return plain("?")
    return styled(f"-{candidate.behind_best}", Style.BAD)


CANDIDATE_COLUMNS: tuple[Column[Candidate], ...] = (
    Column("replica", "REPLICA", text=_replica),
    Column("broker", "BROKER", text=_broker),
    Column("log", "LOG", text=_log),
    Column("behind", "BEHIND", text=_behind, right=True),
    Column("standing", "STANDING", text=lambda candidate: plain(candidate.reason)),
)


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

    condition: str
    forecast: Forecast
    one_of_two: bool = False
    """Whether the other way to stop comes to something else."""


def merged_returns(forecasts: Iterable[Forecast]) -> list[ReturnRow]:
    """The forecasts as rows: one for each broker, or two where a clean return differs from an unclean one."""
    returns: dict[int, list[Forecast]] = {}
    for forecast in forecasts:
        returns.setdefault(forecast.replica, []).append(forecast)
    rows = []
    for replica, both in returns.items():
        if all(_same(forecast, both[0]) for forecast in both):
            rows.append(ReturnRow(f"If broker {replica} returns", both[0]))
        else:
            rows += [ReturnRow(f"If broker {replica} returns {_how(f)}", f, one_of_two=True) for f in both]
    return rows


def _same(one: Forecast, other: Forecast) -> bool:
    return (_consequence(one), one.leads, one.costs) == (_consequence(other), other.leads, other.costs)


def _how(forecast: Forecast) -> str:
    return "cleanly" if forecast.clean else "uncleanly"


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
        told = forecast.warning or "nobody is elected"
        return f"{told}; if it is designated then, {cuts}" if cuts else told
    by = "" if forecast.elected_by is None else f" {_BY.get(forecast.elected_by, '')}"
    text = f"{forecast.elected} is elected{by}"
    if forecast.loss is not None and forecast.loss.grade is Grade.PROVEN_NONE:
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


# What could be done, and what it would give.


@dataclass(frozen=True, slots=True)
class Option:
    """An election that could be asked for, or a broker that could be started; who leads then, and what is lost."""

    name: str
    elected: int | None
    loss: Loss | None
    note: str = ""
    unknown: bool = False
    """Whether it may elect somebody, and whom is not known."""

    @property
    def leader(self) -> str:
        """Who leads then, in a word."""
        return "UNKNOWN" if self.unknown else "nobody" if self.elected is None else str(self.elected)


def options_of(decision: Decision) -> list[Option]:
    """The brokers that could be started, then the elections."""
    return [*map(_option_to_start, merged_returns(decision.forecasts)), *_elections(decision)]


def _option_to_start(row: ReturnRow) -> Option:
    forecast = row.forecast
    then = forecast.then
    how = ("clean" if forecast.clean else "unclean") if row.one_of_two else ""
    name = f"start {forecast.replica}" + (f" ({how})" if how else "")
    if then is not None and then.elected is not None:
        name += f", designate {forecast.replica}"
    return Option(name, forecast.leads, forecast.costs, "" if then is None or then.elected is not None else then.note)


def _elections(decision: Decision) -> Iterator[Option]:
    """A preferred election of a leaderless partition that elects nobody is not a choice."""
    for outcome in decision.elections:
        if outcome.election is not ElectionType.PREFERRED or outcome.elected is not None:
            unknown = elects_by_unread_logs(decision, outcome)
            yield Option(election_name(outcome, decision), outcome.elected, outcome.loss, outcome.note, unknown)


def elected_by_itself(decision: Decision) -> str:
    """``broker 3``, ``nobody``, ``by unread logs``: what follows "Kafka by itself elects"."""
    if elects_by_unread_logs(decision, decision):
        return "by unread logs"
    return "nobody" if decision.elected is None else f"broker {decision.elected}"


def election_name(outcome: Outcome, decision: Decision) -> str:
    """The election as people call it, the designated replica included."""
    if outcome.election is ElectionType.DESIGNATION:
        return f"designation of {outcome.designate}" if outcome.designate is not None else "designation"
    if outcome.election is not ElectionType.UNCLEAN:
        return outcome.election.value
    # Under the rules of the whole KIP an unclean election is a recovery by logs.
    return f"{outcome.election.value} ({'recovery' if RULE_SETS[decision.rules].recovers else 'stock'})"


def _leader(option: Option) -> Text:
    return styled(option.leader, Style.BAD if option.unknown else Style.PLAIN)


def _bounds(bounds: Bounds | None) -> Text:
    if bounds is None:
        return styled("UNKNOWN", Style.BAD)
    return plain("0") if bounds.none else styled(str(bounds), Style.BAD)


def _committed(option: Option) -> Text:
    loss = option.loss
    return () if loss is None else lost_offsets(loss.committed, loss.committed_ranges)


def _total(option: Option) -> Text:
    loss = option.loss
    return () if loss is None else lost_offsets(loss.total, loss.lost_ranges)


def lost_offsets(bounds: Bounds | None, ranges: tuple[tuple[int, int], ...]) -> Text:
    """The bounds, and the offsets where one range holds exactly as many as are known to be lost."""
    text = _bounds(bounds)
    if bounds is None or not bounds.at_least or len(ranges) != 1:
        return text
    first, last = ranges[0]
    return [*text, Span(f" ({first}..{last})")] if last - first + 1 == bounds.at_least else text


def _certainty(option: Option) -> Text:
    if option.note:
        return plain(option.note)
    return plain("" if option.loss is None else certainty_in_words(option.loss))


OPTION_COLUMNS: tuple[Column[Option], ...] = (
    Column("option", "OPTION", text=lambda option: plain(option.name)),
    Column("leader", "LEADER", text=_leader),
    Column("committed", "LOST, COMMITTED", text=_committed),
    Column("total", "LOST IN ALL", text=_total),
    Column("certainty", "CERTAINTY", text=_certainty),
)


# The short form.


def _where(row: Explained) -> Text:
    return plain(f"{row.decision.topic}:{row.decision.partition}")


UNSAVED = "unsaved-records"
"""In place of the situation of a partition that is well but for the only copies of records on disks that are down."""


def _situation(row: Explained) -> Text:
    if row.decision.situation is Situation.HEALTHY and needs_a_look(row.decision):
        return styled(UNSAVED, Style.BAD)
    return styled(row.decision.situation.value, STYLES.get(row.decision.situation, Style.BAD))


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
    Column("name", "PARTITION", text=_where, shown=Shown.PEOPLE),
    _fact("topic", lambda decision: decision.topic),
    _fact("partition", lambda decision: decision.partition),
    _fact("rules", lambda decision: decision.rules),
    Column("situation", "SITUATION", value=lambda row: row.decision.situation.value, text=_situation, hyphenated=True),
    _fact("leader", lambda decision: decision.leader),
    _fact("leader_epoch", lambda decision: decision.leader_epoch),
    _fact("elected", lambda decision: decision.elected),
    _fact("elected_by", lambda decision: decision.elected_by),
    Column("waits_for", "WAITS FOR", value=lambda row: row.decision.waits_for, text=_waits),
    _fact("best_replica", lambda decision: next((c.replica for c in decision.candidates if c.best), None)),
    _fact("best_log_end", lambda decision: next((c.log_end for c in decision.candidates if c.best), None)),
    _fact("unclean_elects", lambda decision: _unclean_outcome(decision).elected),
    _fact("unclean_loses_at_least", lambda decision: _least_lost(_unclean_outcome(decision).loss)),
    Column("best", "BEST LOG (END)", text=_best, shown=Shown.PEOPLE),
    Column("unclean", "UNCLEAN TAKES", text=_unclean, shown=Shown.PEOPLE),
    Column("advice", "ADVICE", text=_action, shown=Shown.PEOPLE, hyphenated=True),
    _fact("advice_action", lambda decision: decision.advice.action.value),
    _fact("advice_replica", lambda decision: decision.advice.replica),
    Column("assumptions", "assumptions", value=_assumptions, shown=Shown.MACHINE),
    Column("assumed_lose", "assumed_lose", value=_assumed_cost, shown=Shown.MACHINE),
    _fact("unsaved", lambda decision: None if decision.unsaved is None else decision.unsaved.value),
)
LEADER_COLUMN: Column[Explained] = Column("led_by", "LEADER", text=_led_by, shown=Shown.PEOPLE)
"""For an imagined state: who leads, and who did before."""
WAY_COLUMN: Column[Explained] = Column("way", "RETURN", text=lambda row: plain(row.way), shown=Shown.PEOPLE)
"""For an imagined return of which nothing tells how the broker stopped."""
LOSES_COLUMN: Column[Explained] = Column("loses", "LOSES", text=_assumed_losses, shown=Shown.PEOPLE)
"""For an imagined state: the offsets that the imagined elections lose."""
