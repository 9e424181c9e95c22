"""What the fences say of a plan before it is carried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.model import TopicPartition
from kelr.model.plan import Applied, Ended, Plan
from kelr.view.applied import DIFFERENCE_COLUMNS, Changed, result_in_words
from kelr.view.layout import Layout
from kelr.view.plan_words import elections_in_words, named
from kelr.view.styled import Style, Text, plain, styled


@dataclass(frozen=True, slots=True)
class Checked:
    """The fences' word on each election of a plan."""

    plan: Plan
    results: Sequence[Applied]

    @property
    def ready(self) -> tuple[TopicPartition, ...]:
        """Partitions whose election would be carried out now."""
        return tuple(one.address for one in self.results if one.ended is Ended.NOT_TRIED)

    @property
    def refused(self) -> tuple[Applied, ...]:
        return tuple(one for one in self.results if one.ended is Ended.REFUSED)

    @property
    def done(self) -> tuple[TopicPartition, ...]:
        """Partitions that have their planned leader already."""
        return tuple(one.address for one in self.results if one.ended is Ended.NOT_NEEDED)


def checked_lines(layout: Layout, checked: Checked) -> Iterator[Text]:
    """For people: what has changed since the plan, field by field, and how many elections are ready."""
    changes = [Changed(one.address, difference) for one in checked.refused for difference in one.differences]
    if changes:
        yield styled("What has changed since the plan:", Style.BAD)
        yield from layout.table(DIFFERENCE_COLUMNS, changes)
        yield plain("")
    for one in checked.refused:
        if not one.differences:
            yield from layout.lines([*styled("refused: ", Style.BAD), *plain(f"{one.address}: {result_in_words(one)}")])
    if checked.done:
        yield from layout.lines([*styled("not needed: ", Style.GOOD), *plain(f"{named(checked.done)}: led as planned")])
    yield from layout.paragraph("Checked now: ", checked_in_words(checked), _style(checked))


def checked_in_words(checked: Checked) -> str:
    """One sentence: how many elections would be carried out, and how many not."""
    parts = [f"{elections_in_words(len(checked.ready))} of {len(checked.results)} can be carried out"]
    if checked.refused:
        parts.append(f"{len(checked.refused)} refused, because what the plan stood on has changed")
    if checked.done:
        parts.append(f"{len(checked.done)} not needed any more")
    return "; ".join(parts) + "."


def _style(checked: Checked) -> Style:
    return Style.BAD if checked.refused else Style.GOOD
