"""All that there is to say of one thing: a heading, what it is, and a fact on each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kelr.view.columns import Column
from kelr.view.layout import Layout
from kelr.view.styled import Style, Text, plain, styled


@dataclass(frozen=True, slots=True)
class NamedFact:
    """A fact, and what it is called."""

    name: str
    text: str


_COLUMNS: tuple[Column[NamedFact], ...] = (
    Column("name", "", text=lambda fact: plain(fact.name)),
    Column("text", "", text=lambda fact: plain(fact.text)),
)


def told_in_full(layout: Layout, heading: str, text: str, facts: Iterable[NamedFact]) -> Iterator[Text]:
    """The lines, as wide as the layout."""
    yield styled(heading, Style.HEADING)
    yield plain("")
    yield from layout.lines(plain(text))
    yield plain("")
    yield from layout.table(_COLUMNS, tuple(facts), header=False)
