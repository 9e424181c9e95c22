"""What became of a plan, partition by partition, with the words by which Kafka's own tool is known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kelr.model import TopicError, TopicPartition
from kelr.model.plan import Applied, Difference, Ended, Plan, Unplanned
from kelr.view.columns import Column
from kelr.view.describe import note_errors
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.plan_document import (
    APPLIED_KIND,
    PlanContext,
    PlanRow,
    plan_head,
    plan_tail,
    plan_view,
    rows_of,
)
from kelr.view.plan_words import partitions_in_words
from kelr.view.styled import Style, Text, plain, styled

MOST_NAMED = 100
"""The lines that Kafka's tool has name so many partitions; how many are left out is said."""


def show_applied(
    output: Output,
    plan: Plan,
    applied: Sequence[Applied],
    *,
    context: PlanContext | None = None,
    errors: Sequence[TopicError] = (),
    following: Sequence[str] | None = None,
    told: Collection[TopicPartition] = (),
) -> None:
    """Print what became of each election: for people a table and the lines of kafka-leader-election.sh, else the
    document ``kelr/applied``, which holds the plan too.

    Args:
        context: as for `kelr.view.plan.show_plan`.
        errors: topics that were asked for and could not be described.
        following: the next command as arguments after ``kelr``.
        told: partitions of which people have read already what has changed since the plan (`kelr.view.checked`).
    """
    context = context or PlanContext()
    if not output.format.for_people:
        with output.listing(plan_view(APPLIED_KIND, output, context), plan_head(plan)) as listing:
            listing.add(rows_of(plan, applied))
            listing.finish(plan_tail(output, plan, errors, following, applied))
        if not output.format.is_document:
            note_errors(output, errors)
        return
    for line in applied_lines(Layout(output.width), plan, applied, told=told):
        output.line(line)
    note_errors(output, errors)
    if following is not None:
        output.next(following)


def applied_lines(
    layout: Layout, plan: Plan, applied: Sequence[Applied], *, told: Collection[TopicPartition] = ()
) -> Iterator[Text]:
    """The results for people; what has changed since the plan but for partitions of which that was told."""
    rows = [row for row in rows_of(plan, applied) if row.result is not None]
    results = [row.result for row in rows if row.result is not None]
    if results:
        yield from layout.table(RESULT_COLUMNS, results)
    changed = [
        Changed(one.address, difference) for one in results if one.address not in told for difference in one.differences
    ]
    if changed:
        yield plain("")
        yield styled("What has changed since the plan:", Style.HEADING)
        yield from layout.table(DIFFERENCE_COLUMNS, changed)
    if results:
        yield plain("")
    yield from stock_lines(plan, applied)


def stock_lines(plan: Plan, applied: Sequence[Applied]) -> Iterator[Text]:
    """What kafka-leader-election.sh prints (LeaderElectionCommand.electLeaders), one list for each type of election."""
    rows = rows_of(plan, applied)
    kinds: dict[str, list[TopicPartition]] = {}
    for row in rows:
        if row.election is not None and row.result is not None and row.result.ended is Ended.DONE:
            kinds.setdefault(row.election.election.name, []).append(row.address)
    for kind, addresses in kinds.items():
        yield plain(f"Successfully completed leader election ({kind}) for partitions {_stock_names(addresses)}")
    noop = [row.address for row in rows if _not_needed(row)]
    if noop:
        yield plain(f"Valid replica already elected for partitions {_stock_names(noop)}")
    for row in rows:
        reason = _failure(row)
        if reason is not None:
            kind = "" if row.election is None else f" ({row.election.election.name})"
            where = f"{row.address.topic}-{row.address.partition}"
            yield plain(f"Error completing leader election{kind} for partition: {where}: {reason}")


def _not_needed(row: PlanRow) -> bool:
    if row.left is not None:
        return row.left.why is Unplanned.NOT_NEEDED
    return row.result is not None and row.result.ended is Ended.NOT_NEEDED


def _failure(row: PlanRow) -> str | None:
    """Why an election that was begun, or was about to be, came to nothing; a plan has told of those that it refuses."""
    if row.result is None or row.result.good:
        return None
    if row.result.differences:
        return _IN_WORDS[row.result.ended]  # field by field above
    return result_in_words(row.result)


def _stock_names(addresses: Sequence[TopicPartition]) -> str:
    """As Kafka's tool writes partitions: ``orders-0, orders-1``."""
    names = ", ".join(f"{at.topic}-{at.partition}" for at in addresses[:MOST_NAMED])
    left = len(addresses) - MOST_NAMED
    return names if left <= 0 else f"{names} and {partitions_in_words(left)} more"


_IN_WORDS = {
    Ended.DONE: "elected",
    Ended.NOT_NEEDED: "it led already",
    Ended.REFUSED: "not begun: what the plan stood on has changed",
    Ended.OTHER_LEADER: "another replica leads",
    Ended.NO_LEADER: "nobody leads",
    Ended.NOT_RESTORED: "elected, but the replicas' order was not restored",
    Ended.UNKNOWN: "what became of it is not known",
    Ended.NOT_TRIED: "not tried",
}
_STYLES = {
    Ended.DONE: Style.GOOD,
    Ended.NOT_NEEDED: Style.GOOD,
    Ended.REFUSED: Style.NOTICE,
    Ended.NOT_TRIED: Style.NOTICE,
}


def result_in_words(one: Applied) -> str:
    """What became of an election, in a sentence, with Kafka's name of the error."""
    text = one.text or _IN_WORDS[one.ended]
    return text if one.error is None or one.error in text else f"{text} ({one.error})"


def _leader(one: Applied) -> Text:
    if one.leader is None:
        return ()
    return plain(str(one.leader)) if one.leader == one.wanted else styled(str(one.leader), Style.BAD)


RESULT_COLUMNS: tuple[Column[Applied], ...] = (
    Column("name", "PARTITION", text=lambda one: plain(str(one.address))),
    Column("ended", "RESULT", text=lambda one: styled(one.ended.value, _STYLES.get(one.ended, Style.BAD))),
    Column("wanted", "WANTED", text=lambda one: plain(str(one.wanted)), right=True),
    Column("leader", "LEADER", text=_leader, right=True),
    Column(
        "leader_epoch",
        "EPOCH",
        text=lambda one: () if one.leader_epoch is None else plain(str(one.leader_epoch)),
        right=True,
    ),
    Column("text", "", text=lambda one: plain(result_in_words(one)), prose=True),
)


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that an election stood on and that is no longer so."""

    address: TopicPartition
    difference: Difference


DIFFERENCE_COLUMNS: tuple[Column[Changed], ...] = (
    Column("name", "PARTITION", text=lambda row: plain(str(row.address))),
    Column("field", "FIELD", text=lambda row: plain(row.difference.field)),
    Column("planned", "PLANNED", text=lambda row: plain(row.difference.planned)),
    Column("now", "NOW", text=lambda row: plain(row.difference.now)),
    Column("text", "", text=lambda row: plain(row.difference.text), prose=True),
)
