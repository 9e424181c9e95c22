"""A plan as people review it, and as a document: who is to lead, why, what is lost, how, and what has to stay down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.advice.commands import DIRECTORY
from kelr.engine.loss_words import certainty_in_words, loss_in_words
from kelr.engine.words import agree, brokers, joined
from kelr.model import Loss, TopicError, TopicPartition
from kelr.model.plan import Consent, Plan, PlannedElection, Unplanned
from kelr.view.columns import Column, Shown
from kelr.view.describe import note_errors
from kelr.view.explain_columns import advice_in_short, lost_offsets
from kelr.view.formats import OutputFormat
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.plan_alternatives import alternative_lines
from kelr.view.plan_document import PLAN_KIND, PlanContext, plan_head, plan_tail, plan_view, rows_of
from kelr.view.plan_left import left_lines
from kelr.view.plan_words import (
    against_in_words,
    against_of_many,
    consent_in_words,
    cuts_in_words,
    method_in_short,
    method_in_words,
    other_warnings,
    rescues_of,
    totals_in_words,
    where_in_words,
)
from kelr.view.styled import Style, Text, plain, styled

NOTHING_PLANNED = "There is nothing to elect."
NOTHING_YET = "No election is planned, for the reasons above."
NOTHING_CAN_BE = "No election is planned: no controller answers, so whether one is needed is not known."
MOST_IN_FULL = 1
"""With more elections than this, people get one line for each."""
_FITS_A_SCREEN = 20
"""With more elections than this their totals come before the list: below it they would be all that is seen."""
_RETURNS = "returns"
"""Before what happens when a broker is back before the elections."""


def show_plan(
    output: Output,
    plan: Plan,
    *,
    context: PlanContext | None = None,
    errors: Sequence[TopicError] = (),
    following: Sequence[str] | None = None,
    full: bool | None = None,
    nothing_seen: bool | None = None,
) -> None:
    """Print a plan: for people all that somebody has to know before saying yes, else the document ``kelr/plan``.

    Args:
        context: where the plan's file is, and how Kafka's own tools reach this cluster.
        errors: topics that were asked for and could not be described.
        following: the next command as arguments after ``kelr``; printed at the end.
        full: whole texts instead of one line for each election; None decides by their number.
        nothing_seen: whether no partition at all could be looked at, so that nothing is known; None takes it from
            `errors`, for a plan that speaks of every partition that was looked at.
    """
    context = context or PlanContext()
    if not output.format.for_people:
        with output.listing(plan_view(PLAN_KIND, output, context), plan_head(plan)) as listing:
            listing.add(rows_of(plan))
            listing.finish(plan_tail(output, plan, errors, following))
        if not output.format.is_document:
            note_errors(output, errors)
        return
    if nothing_seen is None:
        nothing_seen = bool(errors) and not (plan.elections or plan.not_planned)
    for line in () if nothing_seen else plan_lines(output, plan, context, full=full):
        output.line(line)
    note_errors(output, errors)
    if following is not None:
        output.next(following)


def plan_lines(output: Output, plan: Plan, context: PlanContext, *, full: bool | None = None) -> Iterator[Text]:
    """The plan for people, line by line."""
    text = _PlanText(output, context, Layout(output.width))
    in_full = len(plan.elections) <= MOST_IN_FULL if full is None else full
    totals_first = len(plan.elections) > _FITS_A_SCREEN
    if totals_first:
        yield from text.totals(plan)
        yield plain("")
    if in_full:
        for election in plan.elections:
            yield from text.election(election)
            if len(plan.elections) == 1:
                yield from text.rescue(plan.elections)
            yield from text.instead(election)
            yield plain("")
        if len(plan.elections) > 1:
            yield from text.rescue(plan.elections)
    elif plan.elections:
        yield from text.elections(plan.elections)
        if totals_first and plan.not_planned:
            yield plain("")
    yield from left_lines(output, text.layout, plan.not_planned, context.gone, context.stock)
    if not plan.elections and context.controller_silence is not None:
        yield styled(NOTHING_CAN_BE, Style.BAD)
    elif not plan.elections:
        unhelped = any(one.why is not Unplanned.NOT_NEEDED for one in plan.not_planned)
        nothing = totals_in_words(plan) if context.not_known else NOTHING_PLANNED
        yield styled(NOTHING_YET if unhelped else nothing, Style.HEADING)
    elif not totals_first:
        yield from text.totals(plan)
    if context.not_known:
        yield from text.layout.paragraph("", context.not_known, Style.NOTICE)


@dataclass(frozen=True, slots=True)
class _PlanText:
    output: Output
    context: PlanContext
    layout: Layout

    def election(self, one: PlannedElection) -> Iterator[Text]:
        """One election in sentences."""
        yield styled(f"{one.topic}:{one.partition}: elect broker {one.elect} ({one.election.value})", Style.HEADING)
        if one.against is not None:
            yield from self._told("advice", against_in_words(one.against), Style.BAD)
        yield from self._told("why", one.reason)
        safe = one.consent is Consent.YES
        yield from self._told("lost", loss_in_words(one.loss), Style.GOOD if safe else Style.BAD)
        yield from self._told("how", method_in_words(one))
        for text in dict.fromkeys(hold.text for hold in one.hold):
            yield from self._told(_RETURNS, text, Style.NOTICE)
        for warning in one.warnings:
            yield from self._told("note", warning, Style.NOTICE)
        for damage in one.damage:
            yield from self._told("at stake", damage.text, Style.NOTICE)
            if damage.afterwards:
                yield plain(f"            afterwards: {self.context.stock(damage.afterwards)}")

    def instead(self, one: PlannedElection) -> Iterator[Text]:
        """What could be done in place of this election."""
        yield from alternative_lines(self.output, self.layout, _told("instead"), one.address, one.alternatives)

    def elections(self, elections: Sequence[PlannedElection]) -> Iterator[Text]:
        """A line for each election, and below them what a line has no room for, each thing once."""
        wide = self.output.format is OutputFormat.WIDE
        columns = tuple(column for column in ELECTION_COLUMNS if wide or column.shown is not Shown.PEOPLE_WIDE)
        if any(one.against is not None for one in elections):
            columns = (*columns, ADVICE_COLUMN)
        yield from self.layout.table(columns, elections)
        yield plain("")
        count = len(elections)
        for text, where in against_of_many(elections):
            yield from self._told("advice", f"{text} ({where})", Style.BAD)
        for text, where in _grouped(count, ((hold.text, one) for one in elections for hold in one.hold)):
            yield from self._told(_RETURNS, f"{text} ({where})", Style.NOTICE)
        for text in cuts_in_words(elections):
            yield from self._told("note", text, Style.NOTICE)
        warnings = ((warning, one) for one in elections for warning in other_warnings(one))
        for text, where in _grouped(count, warnings):
            yield from self._told("note", f"{text} ({where})", Style.NOTICE)
        for text, where in _grouped(count, ((damage.text, one) for one in elections for damage in one.damage)):
            yield from self._told("at stake", f"{text} ({where})", Style.NOTICE)
        afterwards = (damage.afterwards for one in elections for damage in one.damage if damage.afterwards)
        for line in dict.fromkeys(afterwards):
            yield plain(f"            afterwards: {self.context.stock(line)}")
        yield from self.rescue(elections)

    def totals(self, plan: Plan) -> Iterator[Text]:
        """How many elections there are, what they lose, and what has to be given."""
        style = Style.GOOD if plan.consent is Consent.YES else Style.BAD
        yield from self.layout.paragraph("In all: ", totals_in_words(plan), style)
        yield from self.layout.paragraph("        ", consent_in_words(plan), Style.PLAIN)

    def rescue(self, elections: Sequence[PlannedElection]) -> Iterator[Text]:
        """What saves the records that these elections give up: the plan's own commands, else one for each leader."""
        lossy = [one for one in elections if one.rescue]
        if not lossy:
            return
        if len(elections) == 1:
            runs = [
                f"{step.from_offset}..{step.to_offset - 1} of broker {step.replica}'s log" for step in lossy[0].rescue
            ]
            what = f"offsets {joined(runs)} before the election"
        else:
            where = where_in_words([one.address for one in lossy], of=len(elections))
            what = f"the records of {where} before the elections"
        away = sorted({step.replica for one in lossy for step in one.rescue if not step.reachable})
        commands = self.context.rescue_commands or rescues_of(lossy)
        disks = ""
        if away and any(DIRECTORY in words for words in commands):
            who, does, its = brokers(away), agree(len(away), "does", "do"), agree(len(away), "its", "their")
            disks = f" B{who[1:]} {does} not answer: run it on {its} host, with --log-dir for each log directory."
        yield from self._told("rescue", f"Save {what}.{disks}")
        for words in commands:
            yield plain(f"            {self.output.next_command(words)}")

    def _told(self, head: str, text: str, style: Style = Style.HEADING) -> Iterator[Text]:
        return self.layout.paragraph(_told(head), text, style)


def _told(head: str) -> str:
    return f"  {head:<10}"


def _grouped(count: int, pairs: Iterable[tuple[str, PlannedElection]]) -> Iterator[tuple[str, str]]:
    """Each text once, with the partitions of the `count` ones that it is about."""
    found: dict[str, dict[TopicPartition, None]] = {}
    for text, one in pairs:
        found.setdefault(text, {})[one.address] = None
    for text, addresses in found.items():
        yield text, where_in_words(addresses, of=count)


# The tables.


def _lost(value: Callable[[Loss], Text]) -> Callable[[PlannedElection], Text]:
    return lambda one: value(one.loss)


def _committed(loss: Loss) -> Text:
    return lost_offsets(loss.committed, loss.committed_ranges)


def _in_all(loss: Loss) -> Text:
    return lost_offsets(loss.total, loss.lost_ranges)


_NEEDS = {
    Consent.YES: styled("yes", Style.GOOD),
    Consent.LOSS: styled("loss", Style.BAD),
    Consent.FORCE: styled("force", Style.BAD),
}


def _advice(one: PlannedElection) -> Text:
    return () if one.against is None else styled(f"against: {advice_in_short(one.against)}", Style.BAD)


ADVICE_COLUMN: Column[PlannedElection] = Column("advice", "ADVICE", text=_advice)
"""Where an election goes against it, what kelr advises."""
ELECTION_COLUMNS: tuple[Column[PlannedElection], ...] = (
    Column("name", "PARTITION", text=lambda one: plain(str(one.address))),
    Column("elect", "ELECT", text=lambda one: plain(str(one.elect)), right=True),
    Column("by", "BY", text=lambda one: plain(one.elected_by.value), hyphenated=True),
    Column("committed", "LOST, COMMITTED", text=_lost(_committed)),
    Column("total", "LOST IN ALL", text=_lost(_in_all)),
    Column("certainty", "CERTAINTY", text=_lost(lambda loss: plain(certainty_in_words(loss)))),
    Column("method", "METHOD", text=lambda one: plain(method_in_short(one)), shown=Shown.PEOPLE_WIDE),
    Column("consent", "NEEDS", text=lambda one: _NEEDS[one.consent]),
    Column("reason", "WHY", text=lambda one: plain(one.reason), shown=Shown.PEOPLE_WIDE, prose=True),
)
