"""One partition under several rule sets, side by side (``--compare-rules``).

Rule sets that come to the same in everything share a column; what differs between columns is marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.words import ids, plural
from kelr.model import Cluster, Decision, ElectedBy, ElectionType, Forecast, Loss, Outcome, TopicError
from kelr.view.columns import Column, Fact, Json, View
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, cluster_head, error_items, note_errors
from kelr.view.explain import NOTHING_TO_EXPLAIN, Explanation
from kelr.view.explain_columns import SHORT_COLUMNS, Explained
from kelr.view.explain_if import Assumed
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.styled import Style, Text, plain, styled

_DIFFERS = "*"


@dataclass(frozen=True, slots=True)
class Compared:
    """What one rule set says of one partition."""

    rules: str
    """The rule set as it was asked for."""
    explained: Explained


@dataclass(frozen=True, slots=True)
class Comparison:
    """One partition under several rule sets."""

    compared: tuple[Compared, ...]
    own: str
    """The rule set that the cluster runs."""

    @property
    def name(self) -> str:
        """The partition."""
        decision = self.compared[0].explained.decision
        return f"{decision.topic}:{decision.partition}"

    @property
    def facts(self) -> tuple[_Fact, ...]:
        """What is compared: a row for each fact, with each rule set's answer in order."""
        answers = [dict(_answers(one.explained)) for one in self.compared]
        names = list(dict.fromkeys(name for answer in answers for name in answer))
        return tuple(_Fact(name, tuple(answer.get(name, "-") for answer in answers)) for name in _in_order(names))

    @property
    def differs(self) -> tuple[str, ...]:
        """The names of the facts in which the rule sets differ."""
        return tuple(fact.name for fact in self.facts if fact.differs)


@dataclass(frozen=True, slots=True)
class _Fact:
    name: str
    answers: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.answers)) > 1


# The facts.

_LAST = ("unclean election", "which loses", "certainty", "advice")


def _in_order(names: Sequence[str]) -> list[str]:
    """Returns of brokers that not all rule sets forecast stand with the others, before the elections."""
    return [*(name for name in names if name not in _LAST), *(name for name in _LAST if name in names)]


def _answers(row: Explained) -> Iterator[tuple[str, str]]:
    decision = row.decision
    for one in row.assumed:
        yield f"imagined: {one.text}", _assumed(one)
    yield "situation", decision.situation.value
    yield "led by", "nobody" if decision.leader is None else str(decision.leader)
    yield "elects by itself", _elected(decision.elected, decision.elected_by)
    yield "waits for", " ".join(map(str, decision.waits_for)) or "nobody"
    for forecast in decision.forecasts:
        yield f"if {forecast.replica} returns {'cleanly' if forecast.clean else 'uncleanly'}", _forecast(forecast)
    unclean = _outcome(decision, ElectionType.UNCLEAN)
    yield "unclean election", _elected(unclean.elected, unclean.elected_by) if unclean else "-"
    loss = unclean.loss if unclean else None
    yield "which loses", "-" if loss is None else _lost(loss)
    yield "certainty", "-" if loss is None else loss.grade.value
    advice = decision.advice
    yield "advice", advice.action.value + ("" if advice.replica is None else f" {advice.replica}")


def _assumed(one: Assumed) -> str:
    if one.change is None:
        return "changes nothing"
    after = one.change.after
    leader = "nobody leads" if after.leader is None else f"{after.leader} leads"
    by = "" if one.change.elected_by is None else f" ({one.change.elected_by})"
    return f"{leader}{by}, ISR {ids(after.isr)}, ELR {ids(after.elr)}"


def _elected(leader: int | None, by: ElectedBy | None) -> str:
    if leader is None:
        return "nobody"
    if by is ElectedBy.LEADER_STAYS:
        return f"{leader} stays"
    return str(leader) if by is None else f"{leader} ({by})"


def _forecast(forecast: Forecast) -> str:
    text = _elected(forecast.elected, forecast.elected_by)
    return text if forecast.loss is None else f"{text}, {_lost(forecast.loss)}"


def _lost(loss: Loss) -> str:
    if loss.total is None:
        return "nothing committed" if loss.committed is not None and loss.committed.at_most == 0 else "unknown"
    if loss.committed is not None and loss.committed.at_most == 0:
        return "nothing committed"
    return f"{loss.total} offsets" if loss.total.at_least or loss.total.exact else "nothing known"


def _outcome(decision: Decision, kind: ElectionType) -> Outcome | None:
    return next((outcome for outcome in decision.elections if outcome.election is kind), None)


# For people.


def _columns(comparison: Comparison) -> tuple[Column[_Fact], ...]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for index in range(len(comparison.compared)):
        groups.setdefault(tuple(fact.answers[index] for fact in comparison.facts), []).append(index)
    return (
        Column("differs", "", text=lambda fact: plain(_DIFFERS if fact.differs else " ")),
        Column("fact", "", text=lambda fact: plain(fact.name)),
        *(_group(comparison, members) for members in groups.values()),
    )


def _group(comparison: Comparison, members: Sequence[int]) -> Column[_Fact]:
    first = members[0]
    names = [comparison.compared[index].rules for index in members]
    title = ", ".join(f"{name} (own)" if name == comparison.own else name for name in names)

    def text(fact: _Fact) -> Text:
        return styled(fact.answers[first], Style.NOTICE if fact.differs else Style.PLAIN)

    return Column(names[0], title, text=text, hyphenated=True)


def _block(layout: Layout, comparison: Comparison) -> Iterator[Text]:
    columns = _columns(comparison)
    ways = len(columns) - 2
    heading = f"{comparison.name} under {plural(len(comparison.compared), 'rule set')}"
    heading += ", which all come to the same:" if ways == 1 else f", which come to {ways} different ends:"
    yield styled(heading, Style.HEADING)
    yield from layout.table(columns, comparison.facts)
    yield plain("")


def show_comparisons(
    output: Output,
    explanation: Explanation,
    comparisons: Sequence[Comparison],
    *,
    cluster: Cluster,
    source: str,
    errors: Sequence[TopicError],
) -> None:
    """Print partitions under several rule sets: side by side for people, an item for each rule set for machines."""
    following = None if not comparisons else explanation.following(["explain", comparisons[0].name])
    if output.format.for_people:
        layout = Layout(output.width)
        for comparison in comparisons:
            for line in _block(layout, comparison):
                output.line(line)
        if comparisons:
            output.note(f"{_DIFFERS} differs between rule sets; (own) is what this cluster runs")
        elif not errors:
            output.note(NOTHING_TO_EXPLAIN)
        if following is not None:
            output.next(following)
        note_errors(output, errors)
        return
    with output.listing(compare_view(explanation), cluster_head(cluster, source)) as listing:
        for comparison in comparisons:
            listing.add(_rows(comparison))
        command = None if following is None else output.next_command(following)
        listing.finish({"errors": error_items(errors), "next": command})


# For machines.


@dataclass(frozen=True, slots=True)
class _Row:
    """One rule set's decision about one partition, with what it takes to compare it."""

    compared: Compared
    comparison: Comparison


def _rows(comparison: Comparison) -> list[_Row]:
    return [_Row(compared, comparison) for compared in comparison.compared]


_COMPARED: tuple[Column[_Row], ...] = (
    Column(
        "rule_set",
        "RULES",
        value=lambda row: row.compared.rules,
        type="string",
        about="The rule set, as it was asked for; `rules` is the one that decided.",
    ),
    Column(
        "own",
        "OWN",
        value=lambda row: row.compared.rules == row.comparison.own,
        type="boolean",
        about="Whether it is the rule set that the cluster runs.",
    ),
    Column(
        "differs",
        "DIFFERS",
        value=lambda row: row.comparison.differs,
        type="string[]",
        about="The facts in which the rule sets do not all come to the same.",
    ),
)


def _of_explained(column: Column[Explained]) -> Column[_Row]:
    value = column.value
    if value is None:
        return Column(column.key, column.title, shown=column.shown)
    return Column(column.key, column.title, value=lambda row: value(row.compared.explained), shown=column.shown)


def compare_view(explanation: Explanation | None = None) -> View[_Row]:
    """The output for machines: an item for each partition and rule set.

    Args:
        explanation: makes the rest of an item, which is the explanation under that rule set.
    """

    def item(row: _Row) -> Mapping[str, Json]:
        compared = {column.key: column.value(row) for column in _COMPARED if column.value is not None}
        return {**compared, **({} if explanation is None else explanation.document(row.compared.explained))}

    columns = (*_COMPARED, *map(_of_explained, SHORT_COLUMNS))
    return View("kelr/explain-compare", columns, item=item, head=CLUSTER_HEAD, tail=ERRORS_TAIL)


def compared_facts() -> tuple[Fact, ...]:
    """What an item has besides those of an explanation, for the schema."""
    return tuple(Fact(column.key, column.type, column.about) for column in _COMPARED)
