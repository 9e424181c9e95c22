"""An explanation as an engineer reads it aloud: one sentence, the logs, what Kafka does by itself, the choices, advice.

Nothing is computed here: every line is a field of the `Decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from kelr.controller import RULE_SETS
from kelr.engine.advice import KAFKA_PYTHON_CONNECTION, STOCK_CONNECTION
from kelr.model import (
    Bounds,
    Candidate,
    Cluster,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    Grade,
    Loss,
    Outcome,
    Situation,
    Step,
    TopicError,
)
from kelr.view.columns import Column, Json, RowT, Shown, View
from kelr.view.describe import cluster_head, error_items, note_errors
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.styled import Span, Style, Text, plain, styled
from kelr.view.table import Table, wrap

_BY_HAND = {
    False: "Designating it by hand, with Kafka's own tool (look again just before):",
    True: "Designating it by hand, in this order (look again just before; kafka-python is installed with kelr, and"
    " Kafka's own reassignment tool refuses to name a dead broker):",
}

NextCommand = Callable[[Iterable[str]], str]
"""Turns a command's arguments into the line to type, connection flags included."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One decision with what the reader should know of its reading."""

    decision: Decision
    taken_at_ms: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """How to show decisions.

    Args:
        next_command: makes the exact next command.
        stock_connection: the connection flags as Kafka's own tools take them.
        kafka_python_connection: the same for kafka-python's command line.
        width: columns of the terminal; None for a pipe.
        election: show the steps of this election type too.
        sources: name the KIP section or Kafka class behind each rule.
    """

    next_command: NextCommand
    stock_connection: str = "--bootstrap-server HOST:PORT"
    kafka_python_connection: str = "-b HOST:PORT"
    width: int | None = None
    election: ElectionType | None = None
    sources: bool = False

    def full(self) -> View[Explained]:
        """The whole explanation of each partition."""
        return View("kelr/explain", (), block=self._block, item=self.document)

    def short(self) -> View[Explained]:
        """One line for each partition."""
        return View("kelr/explain", SHORT_COLUMNS, item=self.document)

    def document(self, row: Explained) -> Mapping[str, Json]:
        """The decision as JSON: the fields of `Decision`, elections by type, and the advice's command as one line."""
        decision = row.decision
        fields = asdict(decision)
        fields["elections"] = _elections_document(decision)
        fields["advice"] = {
            **asdict(decision.advice),
            "command": self.next_command(decision.advice.command) if decision.advice.command else None,
            "by_hand": [self._by_hand(line) for line in decision.advice.by_hand],
        }
        return {**fields, "taken_at_ms": row.taken_at_ms}

    def _by_hand(self, line: str) -> str:
        return line.replace(STOCK_CONNECTION, self.stock_connection).replace(
            KAFKA_PYTHON_CONNECTION, self.kafka_python_connection
        )

    def _block(self, row: Explained) -> Iterator[Text]:
        decision = row.decision
        for part in (
            self._heading(row),
            self._table(_CANDIDATE_COLUMNS, decision.candidates),
            self._by_itself(decision),
            self._forecasts(decision),
            self._elections(decision),
            self._election_steps(decision),
            self._notes(decision),
            self._advice(decision),
        ):
            lines = list(part)
            yield from lines
            if lines:
                yield plain("")

    def _heading(self, row: Explained) -> Iterator[Text]:
        about = f"{RULE_SETS[row.decision.rules].title} · rules {row.decision.rules} · read {_time(row.taken_at_ms)}"
        yield from wrap(styled(row.decision.summary, Style.HEADING), self._line_width)
        yield styled(about, Style.QUIET)

    def _by_itself(self, decision: Decision) -> Iterator[Text]:
        if decision.leader is not None and decision.elected == decision.leader:
            return
        whom = "nobody" if decision.elected is None else f"broker {decision.elected}"
        yield styled(f"Kafka by itself elects {whom} now:", Style.HEADING)
        yield from self._table(self._step_columns, decision.steps, header=False)

    def _forecasts(self, decision: Decision) -> Iterator[Text]:
        if decision.forecasts:
            yield from self._table(_FORECAST_COLUMNS, _merged(decision.forecasts), header=False)

    def _elections(self, decision: Decision) -> Iterator[Text]:
        if decision.leader is None:
            yield from self._table(_OUTCOME_COLUMNS, [o for o in decision.elections if _worth_a_line(o)])

    def _election_steps(self, decision: Decision) -> Iterator[Text]:
        for outcome in decision.elections:
            if outcome.election is self.election:
                yield styled(f"{_name(outcome)}, step by step:", Style.HEADING)
                yield from self._table(self._step_columns, outcome.steps, header=False) if outcome.steps else ()
                if outcome.note:
                    yield plain(f" {outcome.note}")

    def _notes(self, decision: Decision) -> Iterator[Text]:
        for note in decision.notes:
            yield from self._paragraph("Note: ", note, Style.NOTICE)

    def _advice(self, decision: Decision) -> Iterator[Text]:
        advice = decision.advice
        yield from self._paragraph("Advice: ", advice.text, Style.HEADING)
        if advice.alternative:
            yield from self._paragraph("        ", advice.alternative, Style.PLAIN)
        if advice.by_hand:
            yield from self._paragraph("  ", _BY_HAND[len(advice.by_hand) > 1], Style.PLAIN)
            for line in advice.by_hand:
                yield plain(f"    {self._by_hand(line)}")
        if advice.command:
            yield [*styled("  next: ", Style.HEADING), Span(self.next_command(advice.command))]

    @property
    def _step_columns(self) -> tuple[Column[Step], ...]:
        return _STEP_COLUMNS if self.sources else _STEP_COLUMNS[:-1]

    @property
    def _line_width(self) -> int:
        # In a pipe, lines as long as a wide terminal's keep every sentence whole for grep.
        return self.width or 160

    def _paragraph(self, head: str, text: str, style: Style) -> Iterator[Text]:
        for number, line in enumerate(wrap(plain(text), self._line_width - len(head))):
            yield [Span(head, style) if number == 0 else Span(" " * len(head)), *line]

    def _table(self, columns: tuple[Column[RowT], ...], rows: Iterable[RowT], *, header: bool = True) -> Iterator[Text]:
        width = None if self.width is None else self.width - 1
        table = Table(columns, width=width, may_leave_out=False, header=header)
        for line in table.texts(list(rows)):
            yield [Span(" "), *line]


def show_decisions(
    output: Output,
    explanation: Explanation,
    rows: Sequence[Explained],
    *,
    cluster: Cluster,
    source: str,
    errors: Sequence[TopicError],
    full: bool,
) -> None:
    """Print decisions in the output's format; people get whole explanations or, without `full`, a line for each."""
    view = explanation.full() if full else explanation.short()
    if output.format is OutputFormat.CSV:
        view = explanation.short()
    with output.listing(view, cluster_head(cluster, source)) as listing:
        listing.add(rows)
        listing.finish({"errors": error_items(errors)})
    if not output.format.for_people:
        return
    if not rows and not errors:
        output.note("Every partition is led and has min ISR: nothing to explain.")
    if rows and not full:
        # The first that nobody leads, else the first.
        telling = min(rows, key=lambda row: row.decision.leader is not None).decision
        output.next(["explain", f"{telling.topic}:{telling.partition}"])
    note_errors(output, errors)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _elections_document(decision: Decision) -> dict[str, Json]:
    """Each election type's outcome; `designation` is that of the best live log, `designations` has all of them."""
    document: dict[str, Json] = {}
    designations = [outcome for outcome in decision.elections if outcome.election is ElectionType.DESIGNATION]
    for outcome in decision.elections:
        if outcome.election is not ElectionType.DESIGNATION:
            document[outcome.election.value] = asdict(outcome)
    best = next((c.replica for c in decision.candidates if c.best and c.live), None)
    chosen = next((outcome for outcome in designations if outcome.designate == best), designations[0])
    document[ElectionType.DESIGNATION.value] = asdict(chosen)
    document["designations"] = [asdict(outcome) for outcome in designations]
    return document


# The replicas' table.


def _replica(candidate: Candidate) -> Text:
    return plain(str(candidate.replica))


def _broker(candidate: Candidate) -> Text:
    style = Style.GOOD if candidate.live else Style.BAD
    rack = f" {candidate.rack}" if candidate.rack else ""
    return [Span(candidate.status, style), Span(rack)]


def _log(candidate: Candidate) -> Text:
    if not candidate.heard:
        return styled(f"not heard ({candidate.unheard_reason})", Style.NOTICE)
    epoch = "no records" if candidate.last_epoch is None else f"epoch {candidate.last_epoch}"
    parts = [epoch, f"start {_known(candidate.log_start)}", f"end {candidate.log_end}"]
    parts.append(f"HW {_known(candidate.high_watermark)}")
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


_CANDIDATE_COLUMNS: tuple[Column[Candidate], ...] = (
    Column("replica", "REPLICA", text=_replica),
    Column("broker", "BROKER", text=_broker),
    Column("log", "LOG", text=_log),
    Column("behind", "BEHIND", text=_behind, right=True),
    Column("standing", "STANDING", text=lambda candidate: plain(candidate.reason)),
)


# What Kafka asks.


def _answer(step: Step) -> Text:
    return styled("yes", Style.GOOD) if step.holds else styled("no", Style.NOTICE)


_STEP_COLUMNS: tuple[Column[Step], ...] = (
    Column("holds", "", text=_answer),
    Column("text", "", text=lambda step: plain(step.text)),
    Column("evidence", "", text=lambda step: plain(step.evidence)),
    Column("source", "", text=lambda step: styled(step.source, Style.QUIET)),
)


# What happens when somebody comes back.


@dataclass(frozen=True, slots=True)
class _Return:
    """What Kafka does when one broker returns, cleanly or not; one row where both come to the same."""

    condition: str
    forecast: Forecast


def _merged(forecasts: Iterable[Forecast]) -> list[_Return]:
    returns: dict[int, list[Forecast]] = {}
    for forecast in forecasts:
        returns.setdefault(forecast.replica, []).append(forecast)
    rows = []
    for replica, both in returns.items():
        if len({_consequence(forecast) for forecast in both}) == 1:
            rows.append(_Return(f"If broker {replica} returns", both[0]))
        else:
            rows += [_Return(f"If broker {replica} returns {_how(f)}", f) for f in both]
    return rows


def _how(forecast: Forecast) -> str:
    return "cleanly" if forecast.clean else "uncleanly"


_BY = {
    ElectedBy.ISR: "from the ISR",
    ElectedBy.ELR: "from the ELR",
    ElectedBy.LAST_KNOWN_LEADER: "as last known leader",
    ElectedBy.UNCLEAN: "uncleanly",
    ElectedBy.LEADER_STAYS: "still",
}


def _consequence(forecast: Forecast) -> str:
    if forecast.elected is None:
        return "nobody is elected"
    by = "" if forecast.elected_by is None else f" {_BY.get(forecast.elected_by, '')}"
    text = f"{forecast.elected} is elected{by}"
    if forecast.loss is not None and forecast.loss.grade is Grade.PROVEN_NONE:
        return f"{text}; nothing committed is lost"
    return f"{text}, {forecast.warning}" if forecast.warning else text


_FORECAST_COLUMNS: tuple[Column[_Return], ...] = (
    Column("condition", "", text=lambda row: plain(row.condition)),
    Column("consequence", "", text=lambda row: plain(_consequence(row.forecast))),
)


# What an election would give.


def _worth_a_line(outcome: Outcome) -> bool:
    """A preferred election of a leaderless partition that elects nobody is not a choice."""
    return outcome.election is not ElectionType.PREFERRED or outcome.elected is not None


def _name(outcome: Outcome) -> str:
    if outcome.election is ElectionType.DESIGNATION:
        return f"designation of {outcome.designate}" if outcome.designate is not None else "designation"
    return f"{outcome.election.value}{' (what Kafka does)' if outcome.election is ElectionType.UNCLEAN else ''}"


def _leader(outcome: Outcome) -> Text:
    return plain("nobody" if outcome.elected is None else str(outcome.elected))


def _bounds(bounds: Bounds | None) -> Text:
    if bounds is None:
        return plain("?")
    if bounds.at_least:
        return styled(str(bounds), Style.BAD)
    if bounds.exact:
        return plain("0")
    return plain("0 known" if bounds.at_most is None else f"0 to {bounds.at_most}")


def _committed(outcome: Outcome) -> Text:
    loss = outcome.loss
    return () if loss is None else _with_ranges(loss.committed, loss.committed_ranges)


def _total(outcome: Outcome) -> Text:
    loss = outcome.loss
    return () if loss is None else _with_ranges(loss.total, loss.lost_ranges)


def _with_ranges(bounds: Bounds | None, ranges: tuple[tuple[int, int], ...]) -> Text:
    """The bounds, and the offsets where one range holds exactly as many as are known to be lost."""
    text = _bounds(bounds)
    if bounds is None or not bounds.at_least or len(ranges) != 1:
        return text
    first, last = ranges[0]
    return [*text, Span(f" ({first}..{last})")] if last - first + 1 == bounds.at_least else text


def _certainty(outcome: Outcome) -> Text:
    if outcome.note:
        return plain(outcome.note)
    return plain("" if outcome.loss is None else certainty_in_words(outcome.loss))


def certainty_in_words(loss: Loss) -> str:
    """The grade of a loss for a table cell."""
    if loss.grade is Grade.PROVEN_NONE:
        return "proven"
    if loss.grade is Grade.NONE_IF_FEWER_THAN_MIN_ISR:
        return "none committed, if fewer than min ISR replicas lost data"
    if loss.grade is Grade.BOUNDED:
        return f"{', '.join(map(str, loss.unheard))} not heard" if loss.unheard else "all logs heard"
    return loss.reason


_OUTCOME_COLUMNS: tuple[Column[Outcome], ...] = (
    Column("election", "IF YOU ELECT NOW", text=lambda outcome: plain(_name(outcome))),
    Column("leader", "LEADER", text=_leader),
    Column("committed", "LOST, acks=all", text=_committed),
    Column("total", "LOST IN ALL", text=_total),
    Column("certainty", "CERTAINTY", text=_certainty),
)


# The short form.


def _where(row: Explained) -> Text:
    return plain(f"{row.decision.topic}:{row.decision.partition}")


def situation_style(situation: Situation) -> Style:
    """How loud a situation is."""
    if situation is Situation.HEALTHY:
        return Style.GOOD
    if situation in {Situation.UNDER_MIN_ISR, Situation.LEADER_PENDING, Situation.UNKNOWN}:
        return Style.NOTICE
    return Style.BAD


def _situation(row: Explained) -> Text:
    return styled(row.decision.situation.value, situation_style(row.decision.situation))


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
    cost = ", ?" if total is None else f", -{total.at_least}" if total.at_least else ""
    return plain(f"{outcome.elected}{cost}")


def _action(row: Explained) -> Text:
    advice = row.decision.advice
    return plain(advice.action.value + ("" if advice.replica is None else f" {advice.replica}"))


def _least_lost(loss: Loss | None) -> int | None:
    return None if loss is None or loss.total is None else loss.total.at_least


def _fact(key: str, value: Callable[[Decision], Json]) -> Column[Explained]:
    return Column(key, key, value=lambda row: value(row.decision), shown=Shown.MACHINE)


def _unclean_outcome(decision: Decision) -> Outcome:
    return next(outcome for outcome in decision.elections if outcome.election is ElectionType.UNCLEAN)


SHORT_COLUMNS: tuple[Column[Explained], ...] = (
    Column("name", "PARTITION", text=_where, shown=Shown.PEOPLE),
    _fact("topic", lambda decision: decision.topic),
    _fact("partition", lambda decision: decision.partition),
    _fact("rules", lambda decision: decision.rules),
    Column("situation", "SITUATION", value=lambda row: row.decision.situation.value, text=_situation),
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
    Column("advice", "ADVICE", text=_action, shown=Shown.PEOPLE),
    _fact("advice_action", lambda decision: decision.advice.action.value),
    _fact("advice_replica", lambda decision: decision.advice.replica),
)
