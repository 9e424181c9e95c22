"""What ``kelr explain --why`` says of the rules that explanations name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kelr.controller import Election
from kelr.engine.rule_docs import Asked, Rule, asked_in
from kelr.view.columns import Column, Json, Shown, View, attributes, column, datum, for_people
from kelr.view.layout import Layout, NamedFact, told_in_full
from kelr.view.output import Output
from kelr.view.styled import Text, plain

_ELECTIONS = {
    Election.ONLINE: "by itself",
    Election.UNCLEAN: "unclean election",
    Election.PREFERRED: "preferred election",
}
"""Kinds of election, in the order in which people come upon them."""
_PLACES = {1: "1st", 2: "2nd", 3: "3rd"}


def rules_view() -> View[Rule]:
    """The rules, one line or one item each."""
    return View("kelr/rules", _COLUMNS)


def show_rules(output: Output, rules: Iterable[Rule], *, in_full: bool) -> None:
    """Print rules in the output's format.

    Args:
        in_full: people get all that there is to say of each, instead of a line.
    """
    view = View("kelr/rules", _COLUMNS, block=_Block(Layout(output.width)).lines)
    with output.listing(view if in_full else rules_view()) as listing:
        listing.add(rules)


def _elections(rule: Rule) -> str:
    kinds = {asked.election for asked in asked_in(rule.id)}
    return ", ".join(name for election, name in _ELECTIONS.items() if election in kinds)


_COLUMNS: tuple[Column[Rule], ...] = (
    column("rule", "RULE", "string", "The id that steps name.", lambda rule: rule.id),
    column("question", "QUESTION", "string", "What it asks."),
    for_people("ELECTIONS", lambda rule: plain(_elections(rule)), wide=True),
    column("source", "SOURCE", "string", "KIP section or Kafka class.", shown=Shown.WIDE),
    datum("doc", "string", "What is behind it."),
    datum("asked", "string", "Who asks it."),
    datum(
        "elects_cleanly",
        "boolean?",
        "Whether whom it elects holds all that was committed; null: it elects none itself.",
    ),
    datum(
        "elections",
        "object[]",
        "When it is asked: {election, place, after, before, rule_sets}.",
        lambda rule: [_asked_document(asked) for asked in asked_in(rule.id)],
    ),
    datum("documented", "string", "The file and the heading with more.", lambda rule: "#".join(rule.documented)),
)


def _asked_document(asked: Asked) -> Mapping[str, Json]:
    return attributes(asked, "election", "place", "after", "before", "rule_sets")


@dataclass(frozen=True, slots=True)
class _Block:
    """All that there is to say of one rule."""

    layout: Layout

    def lines(self, rule: Rule) -> Iterator[Text]:
        yield from told_in_full(self.layout, f"{rule.id}: {rule.question}", rule.doc, _facts(rule))


def _facts(rule: Rule) -> Iterator[NamedFact]:
    yield NamedFact("asked by", rule.asked)
    for election, name in _ELECTIONS.items():
        for asked in asked_in(rule.id):
            if asked.election is election:
                yield NamedFact(name, _place(asked))
    if rule.elects_cleanly is not None:
        holds = "holds all that was committed" if rule.elects_cleanly else "may lack committed records"
        yield NamedFact("whom it elects", holds)
    yield NamedFact("source", rule.source)
    yield NamedFact("more", f'{rule.documented[0]}, "{rule.documented[1]}"')


def _place(asked: Asked) -> str:
    parts = [_PLACES.get(asked.place, f"{asked.place}th")]
    parts += [f"after {asked.after}"] * (asked.after is not None)
    parts += [f"before {asked.before}"] * (asked.before is not None)
    return f"{', '.join(parts)} ({', '.join(asked.rule_sets)})"
