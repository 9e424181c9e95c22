"""What becomes of a plan: rechecked before it is carried out, and the results, with the words of Kafka's own tool for
``kelr elect``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.planning import only_partitions
from kelr.engine.words import agree, brokers
from kelr.model import TopicError, TopicPartition
from kelr.model.plan import Applied, Consent, Difference, ElectionResult, Plan, Unplanned
from kelr.view.describe import note_errors
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.plan import PlanPage
from kelr.view.plan_document import APPLIED_KIND, PlanContext, PlanRow, plan_head, plan_tail, plan_view, rows_of
from kelr.view.plan_words import disks_at_stake, in_short, loss_of_plan, named, partitions_in_words
from kelr.view.screen import BAD, GOOD, LABEL, WARN, Screen
from kelr.view.styled import Style

MOST_NAMED = 100
"""The lines that Kafka's tool has name so many partitions; how many are left out is said."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The fences' word on each election of a plan."""

    plan: Plan
    results: Sequence[Applied]

    @property
    def ready(self) -> tuple[TopicPartition, ...]:
        """Partitions whose election would be carried out now."""
        return tuple(one.address for one in self.results if one.ended is ElectionResult.NOT_TRIED)

    @property
    def refused(self) -> tuple[Applied, ...]:
        return tuple(one for one in self.results if one.ended is ElectionResult.REFUSED)

    @property
    def done(self) -> tuple[TopicPartition, ...]:
        """Partitions that have their planned leader already."""
        return tuple(one.address for one in self.results if one.ended is ElectionResult.NOT_NEEDED)


def show_recheck(output: Output, checked: Checked, context: PlanContext) -> None:
    """For people, before they are asked: how many elections can run now, why others cannot, and what they cost."""
    screen = Screen(output)
    parts = [f"{len(checked.ready):,} of {len(checked.results):,} can run"]
    if checked.refused:
        parts.append(f"{len(checked.refused):,} refused, cluster changed since the plan")
    if checked.done:
        parts.append(f"{len(checked.done):,} already done")
    screen.say((f"Recheck: {'; '.join(parts)}.", BAD if checked.refused else LABEL), " Nothing changed.")
    _say_results(screen, checked.refused)
    if checked.ready:
        page = PlanPage(output, only_partitions(checked.plan, checked.ready), context)
        page.costs_and_steps()
        page.groups(rows=False)
        page.notes(asked=True)


def _changed(one: Difference) -> str:
    """``Broker 1 came back and leads (leader: planned none, now 1).``"""
    values = f"{one.field}: planned {one.planned.rstrip('.')}, now {one.now.rstrip('.')}"
    return f"{one.text[:1].upper()}{one.text[1:].rstrip('.')} ({values})." if one.text else f"{values}."


# The results.


def show_applied(
    output: Output,
    plan: Plan,
    applied: Sequence[Applied],
    *,
    context: PlanContext | None = None,
    errors: Sequence[TopicError] = (),
    following: Sequence[str] | None = None,
    again: Sequence[str] | None = None,
    exit_code: int = 0,
    as_stock: bool = False,
) -> None:
    """Print what became of each election: for people how many have their leader, what was refused and lost, and the
    next command; else the document ``kelr/applied``, which holds the plan too.

    Args:
        context: as for `kelr.view.plan.show_plan`.
        errors: topics that were asked for and could not be described.
        following: the next command as arguments after ``kelr``.
        again: the command that plans the refused again.
        exit_code: with which the command ends.
        as_stock: whether the lines of kafka-leader-election.sh come behind.
    """
    context = context or PlanContext()
    if not output.format.for_people:
        with output.listing(plan_view(APPLIED_KIND, output, context), plan_head(plan)) as listing:
            listing.add(rows_of(plan, applied))
            listing.finish(plan_tail(output, plan, errors, following, applied))
        if not output.format.is_document:
            note_errors(output, errors)
        return
    screen = Screen(output)
    if applied:
        screen.say((_verdict(applied, exit_code), _style(applied)))
        bad, wide = [one for one in applied if not one.good], output.format is OutputFormat.WIDE
        _say_results(screen, bad, wide=wide, again=None if again is None else output.next_command(again))
        for number, text in enumerate(_lost(plan, applied)):
            screen.say(text, label=f"{'' if number else 'Lost':<{_MARGIN}}")
        _say_disks_left(output, screen, plan, applied, context)
        if wide:
            screen.blank()
            _say_rows(screen, applied)
    if as_stock:
        for line in stock_lines(plan, applied):
            output.line(line)
    note_errors(output, errors)
    if following is not None and following == again:
        return
    if following is not None and as_stock:
        output.next(following)
    elif following is not None:
        screen.command(output.next_command(following), label=f"{'Next':<{_MARGIN}}")


_MARGIN = 12
_MOST_DIFFERENCES = 3
_LABELS = {
    ElectionResult.REFUSED: "Refused",
    ElectionResult.OTHER_LEADER: "Other",
    ElectionResult.NO_LEADER: "Leaderless",
    ElectionResult.NOT_RESTORED: "Reordered",
    ElectionResult.UNKNOWN: "UNKNOWN",
    ElectionResult.NOT_TRIED: "Not tried",
}
_IN_WORDS = {
    ElectionResult.DONE: "elected",
    ElectionResult.NOT_NEEDED: "already done",
    ElectionResult.REFUSED: "not begun: cluster changed since the plan",
    ElectionResult.OTHER_LEADER: "another replica leads",
    ElectionResult.NO_LEADER: "no leader elected",
    ElectionResult.NOT_RESTORED: "elected, but the replicas' order was not restored",
    ElectionResult.UNKNOWN: "result UNKNOWN",
    ElectionResult.NOT_TRIED: "not tried",
}
_COUNTED = {
    ElectionResult.NOT_NEEDED: "already done",
    ElectionResult.REFUSED: "refused",
    ElectionResult.OTHER_LEADER: "led by another",
    ElectionResult.NO_LEADER: "leaderless",
    ElectionResult.NOT_RESTORED: "with its order not restored",
    ElectionResult.UNKNOWN: "UNKNOWN",
    ElectionResult.NOT_TRIED: "not tried",
}


def _verdict(applied: Sequence[Applied], exit_code: int) -> str:
    """``Partly done: 11 of 12 leaders elected, 1 refused. Exit code 7.``"""
    counts = {kind: sum(one.ended is kind for one in applied) for kind in ElectionResult}
    elected = counts[ElectionResult.DONE] + counts[ElectionResult.NOT_RESTORED]
    of_all = f"{len(applied):,}"
    if counts[ElectionResult.NOT_NEEDED] == len(applied):
        return f"Nothing to do: {of_all} of {of_all} already done."
    head = "Done" if all(one.good for one in applied) else "Partly done" if elected else "Not done"
    rest = "".join(f", {counts[kind]:,} {words}" for kind, words in _COUNTED.items() if counts[kind])
    code = f" Exit code {exit_code}." if exit_code else ""
    return f"{head}: {elected:,} of {of_all} {'leader' if len(applied) == 1 else 'leaders'} elected{rest}.{code}"


def _style(applied: Sequence[Applied]) -> Style:
    return GOOD if all(one.good for one in applied) else BAD


def _say_results(screen: Screen, applied: Sequence[Applied], *, wide: bool = False, again: str | None = None) -> None:
    """What did not come out as planned, the partitions together of which the same is to be said."""
    groups: dict[tuple[ElectionResult, tuple[str, ...]], list[TopicPartition]] = {}
    for one in applied:
        groups.setdefault((one.ended, tuple(_result(one, wide=wide))), []).append(one.address)
    for (ended, texts), where in groups.items():
        style = WARN if ended is ElectionResult.NOT_TRIED else BAD
        label = f"{_LABELS[ended]:<{_MARGIN}}"
        for number, text in enumerate(texts):
            before = "" if number else f"{named(where)}: "
            screen.say(f"{before}{text}", label=label if number == 0 else " " * _MARGIN, style=style)
    if again is not None:
        screen.command(again, label=f"{' ' * _MARGIN}Fix: ")


def _result(one: Applied, *, wide: bool) -> Iterator[str]:
    if one.differences:
        # Where somebody else leads, most of the others follow from it.
        most = 1 if any(other.field == "leader" for other in one.differences) else _MOST_DIFFERENCES
        first = sorted(one.differences, key=lambda other: other.field != "leader")[: None if wide else most]
        yield from map(_changed, first)
        more = len(one.differences) - len(first)
        if more:
            yield f"{more} more {agree(more, 'difference', 'differences')}: -o wide"
        return
    leads = "" if one.leader in {None, one.wanted} else f" Broker {one.leader} leads, planned {one.wanted}."
    text = result_in_words(one).rstrip(".")
    yield f"{text[:1].upper()}{text[1:]}.{leads}"


def result_in_words(one: Applied) -> str:
    """What became of an election, in a sentence, with Kafka's name of the error."""
    text = one.text or _IN_WORDS[one.ended]
    return text if one.error is None or one.error in text else f"{text} ({one.error})"


def _lost(plan: Plan, applied: Sequence[Applied]) -> Iterator[str]:
    """What the elections lost that were carried out, as planned; UNKNOWN where another result may have come of one."""
    done = [one.address for one in applied if one.ended in {ElectionResult.DONE, ElectionResult.NOT_RESTORED}]
    unsure = [one.address for one in applied if one.ended in _UNSURE and one.asked is not False]
    part = only_partitions(plan, done)
    if part.elections:
        accepted = any(one.consent is Consent.LOSS for one in part.elections)
        where = f"{in_short(done)}: " if unsure else ""
        yield f"{where}{loss_of_plan(part)}{f' Accepted: {part.loss_to_accept}.' if accepted else ''}"
    if unsure:
        yield f"UNKNOWN on {in_short(unsure)}: an election that was asked for may have come about."


def _say_disks_left(
    output: Output, screen: Screen, plan: Plan, applied: Sequence[Applied], context: PlanContext
) -> None:
    """That the disks of brokers that are still down can be saved until they start, and how."""
    led = [one.address for one in applied if one.ended in {ElectionResult.DONE, ElectionResult.NOT_RESTORED, *_UNSURE}]
    away = sorted(disks_at_stake(only_partitions(plan, led).elections))
    if not away or not context.disks_left:
        return
    start, disks = agree(len(away), "starts", "start"), agree(len(away), "its disk is", "their disks are")
    screen.say(
        f"Lost once {brokers(away)} {start}, unless {disks} saved first:",
        label=" " * _MARGIN,
    )
    for words in context.disks_left:
        screen.command(output.next_command(words), label=" " * _MARGIN)


_UNSURE = frozenset({ElectionResult.OTHER_LEADER, ElectionResult.NO_LEADER, ElectionResult.UNKNOWN})


def _say_rows(screen: Screen, applied: Iterable[Applied]) -> None:
    titles = ("PARTITION", "RESULT", "WANTED", "LEADER", "EPOCH", "")
    rows = (
        (
            str(one.address),
            (one.ended.value, GOOD if one.good else BAD),
            str(one.wanted),
            "-" if one.leader is None else str(one.leader),
            "-" if one.leader_epoch is None else str(one.leader_epoch),
            result_in_words(one),
        )
        for one in applied
    )
    screen.table(titles, rows, right=("WANTED", "LEADER", "EPOCH"), whole=True)


def stock_lines(plan: Plan, applied: Sequence[Applied]) -> Iterator[str]:
    """What kafka-leader-election.sh prints (LeaderElectionCommand.electLeaders), one list for each type of election."""
    rows = rows_of(plan, applied)
    kinds: dict[str, list[TopicPartition]] = {}
    for row in rows:
        if row.election is not None and row.result is not None and row.result.ended is ElectionResult.DONE:
            kinds.setdefault(row.election.election.name, []).append(row.address)
    for kind, addresses in kinds.items():
        yield f"Successfully completed leader election ({kind}) for partitions {_stock_names(addresses)}"
    noop = [row.address for row in rows if _not_needed(row)]
    if noop:
        yield f"Valid replica already elected for partitions {_stock_names(noop)}"
    for row in rows:
        if row.result is not None and not row.result.good:
            kind = "" if row.election is None else f" ({row.election.election.name})"
            where = f"{row.address.topic}-{row.address.partition}"
            reason = _IN_WORDS[row.result.ended] if row.result.differences else result_in_words(row.result)
            yield f"Error completing leader election{kind} for partition: {where}: {reason}"


def _not_needed(row: PlanRow) -> bool:
    if row.left is not None:
        return row.left.why is Unplanned.NOT_NEEDED
    return row.result is not None and row.result.ended is ElectionResult.NOT_NEEDED


def _stock_names(addresses: Sequence[TopicPartition]) -> str:
    """As Kafka's tool writes partitions: ``orders-0, orders-1``."""
    names = ", ".join(f"{at.topic}-{at.partition}" for at in addresses[:MOST_NAMED])
    left = len(addresses) - MOST_NAMED
    return names if left <= 0 else f"{names} and {partitions_in_words(left)} more"
