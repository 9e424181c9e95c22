"""One partition under several rule sets, side by side (``--compare-rules``).

Rule sets that come to the same in everything share a column; what differs between columns is marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.words import agree
from kelr.model import Cluster, TopicError
from kelr.view.columns import Column, Fact, Json, View
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, NOTHING_READ, cluster_head, error_items, note_errors
from kelr.view.explain import NOT_KNOWN_TO_BE_WELL, NOTHING_TO_EXPLAIN, Explanation
from kelr.view.explain_columns import SHORT_COLUMNS, Explained
from kelr.view.explain_compare_facts import ComparedFact, compared_facts_of
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
    def facts(self) -> tuple[ComparedFact, ...]:
        """What is compared: a row for each fact, with each rule set's answer in order."""
        return compared_facts_of([one.explained for one in self.compared])

    @property
    def differs(self) -> tuple[str, ...]:
        """The names of the facts in which the rule sets differ."""
        return tuple(fact.name for fact in self.facts if fact.differs)


# For people.


@dataclass(frozen=True, slots=True)
class _Group:
    """Rule sets that come to the same in everything."""

    names: tuple[str, ...]
    """As people see them: the cluster's own is marked."""
    answers: Mapping[str, str]
    """By the name of the fact."""
    own: bool

    @property
    def title(self) -> str:
        return ", ".join(self.names)


def _groups(comparison: Comparison) -> list[_Group]:
    facts, members = comparison.facts, dict[tuple[str, ...], list[str]]()
    for index, one in enumerate(comparison.compared):
        members.setdefault(tuple(fact.answers[index] for fact in facts), []).append(one.rules)
    return [
        _Group(
            tuple(f"{name} (own)" if name == comparison.own else name for name in names),
            {fact.name: answer for fact, answer in zip(facts, answers, strict=True)},
            comparison.own in names,
        )
        for answers, names in members.items()
    ]


def _reference(groups: Sequence[_Group]) -> _Group:
    """What the others are compared with: what the cluster runs, or the first where that is not among them."""
    return next((group for group in groups if group.own), groups[0])


def _columns(groups: Sequence[_Group]) -> tuple[Column[ComparedFact], ...]:
    return (
        Column("differs", "", text=lambda fact: plain(_DIFFERS if fact.differs else " ")),
        Column("fact", "", text=lambda fact: plain(fact.name)),
        *(_column(group, _reference(groups)) for group in groups),
    )


def _column(group: _Group, reference: _Group) -> Column[ComparedFact]:
    def text(fact: ComparedFact) -> Text:
        answer = group.answers[fact.name]
        return styled(answer, Style.PLAIN if answer == reference.answers[fact.name] else Style.NOTICE)

    return Column(group.names[0], group.title, text=text)


def _heading(comparison: Comparison, groups: Sequence[_Group]) -> Text:
    count = len(comparison.compared)
    if count == 1:
        return styled(f"{comparison.name} under {groups[0].title}:", Style.HEADING)
    ends = "which all come to the same" if len(groups) == 1 else f"which come to {len(groups)} different outcomes"
    return styled(f"{comparison.name} under {count} rule sets, {ends}:", Style.HEADING)


def _block(layout: Layout, comparison: Comparison) -> Iterator[Text]:
    groups = _groups(comparison)
    yield from layout.lines(_heading(comparison, groups))
    columns = _columns(groups)
    if layout.fits(columns, comparison.facts):
        yield from layout.table(columns, comparison.facts)
    else:
        yield from _below_each_other(layout, comparison.facts, groups)
    yield plain("")
    notes = list(_notes(layout, comparison))
    yield from notes
    if notes:
        yield plain("")


def _below_each_other(layout: Layout, facts: Sequence[ComparedFact], groups: Sequence[_Group]) -> Iterator[Text]:
    """What the cluster runs in full, and of the others only what differs from it: columns do not fit the terminal."""
    reference = _reference(groups)
    name = _COLUMN_OF_NAMES
    for group in (reference, *(group for group in groups if group is not reference)):
        if group is reference:
            shown, title = list(facts), f"{group.title}:"
        else:
            shown = [fact for fact in facts if group.answers[fact.name] != reference.answers[fact.name]]
            title = f"{group.title}, where {agree(len(group.names), 'it differs', 'they differ')}:"
        yield from layout.lines(styled(title, Style.HEADING))
        yield from layout.table((name, _column(group, group)), shown, header=False)


_COLUMN_OF_NAMES: Column[ComparedFact] = Column("fact", "", text=lambda fact: plain(f"  {fact.name}"))


def _notes(layout: Layout, comparison: Comparison) -> Iterator[Text]:
    """What weakens the decisions, each note once, with the rule sets that it is about unless these are all."""
    about: dict[str, list[str]] = {}
    for one in comparison.compared:
        for note in one.explained.decision.notes:
            about.setdefault(note, []).append(one.rules)
    for note, names in about.items():
        whom = "" if len(names) == len(comparison.compared) else f" ({', '.join(names)})"
        yield from layout.paragraph("Note: ", f"{note}{whom}", Style.NOTICE)


def _legend(output: Output, comparisons: Sequence[Comparison], guess: str) -> None:
    layout = Layout(output.width)
    own = any(one.rules == comparison.own for comparison in comparisons for one in comparison.compared)
    marked = any(one.differs and layout.fits(_columns(_groups(one)), one.facts) for one in comparisons)
    parts = [f"{_DIFFERS} differs between rule sets"] * marked + ["(own) is what this cluster runs"] * own
    if parts:
        output.note("; ".join(parts))
    if guess and comparisons:
        output.note(f"that this cluster runs {comparisons[0].own} is a guess: {guess}")


def show_comparisons(
    output: Output,
    explanation: Explanation,
    comparisons: Sequence[Comparison],
    *,
    cluster: Cluster,
    source: str,
    errors: Sequence[TopicError],
    guess: str = "",
    seen: bool = True,
) -> None:
    """Print partitions under several rule sets: side by side for people, an item for each rule set for machines.

    Args:
        guess: what the cluster's own rule set was guessed from; empty where it is certain.
        seen: whether there was any partition at all: where brokers show none, nothing is known to be well.
    """
    following = None if not comparisons else explanation.following(["explain", comparisons[0].name])
    if output.format.for_people:
        layout = Layout(output.width)
        for comparison in comparisons:
            for line in _block(layout, comparison):
                output.line(line)
        _legend(output, comparisons, guess)
        if not comparisons and not errors:
            silence = cluster.controller_silence
            well = NOTHING_TO_EXPLAIN if silence is None else NOT_KNOWN_TO_BE_WELL.format(silence=silence)
            output.begin()
            output.note(well if seen else NOTHING_READ)
        if following is not None:
            output.next(following)
        note_errors(output, errors)
        return
    with output.listing(compare_view(explanation), cluster_head(cluster, source)) as listing:
        for comparison in comparisons:
            listing.add(_rows(comparison))
        command = None if following is None else output.next_command(following)
        listing.finish({"errors": error_items(errors), "next": command})
    if not seen:
        output.note(NOTHING_READ)


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
