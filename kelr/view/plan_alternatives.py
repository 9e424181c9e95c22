"""What could be done instead of a planned election, in sentences, and the command that does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.engine.advice.returns import cuts_in_words, save_what_it_may_truncate
from kelr.engine.loss_words import loss_in_short
from kelr.model import ElectionType, TopicPartition
from kelr.model.plan import Alternative
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.styled import Style, Text, plain


def alternative_lines(
    output: Output, layout: Layout, head: str, at: TopicPartition, alternatives: Sequence[Alternative]
) -> Iterator[Text]:
    """Each with what it would lose and, where a command does it, with that. `head` goes before each."""
    for one in alternatives:
        yield from layout.paragraph(head, alternative_in_words(one), Style.HEADING)
        for command in (one.rescue, alternative_command(at, one)):
            if command:
                yield plain(f"{' ' * len(head)}{output.next_command(command)}")


def alternative_in_words(one: Alternative) -> str:
    """``Broker 2 (longest_log_aggressive). Lost: 3 offsets, none of them committed.``, with its note."""
    note = f" {one.note[:1].upper()}{one.note[1:]}." if one.note else ""
    if one.loss is None:
        return f"{one.election.value}: elects nobody now.{note}"
    if one.start is not None:
        cuts = f" It truncates {cuts_in_words(one.loss.truncations)}: save them first." if one.loss.truncations else ""
        if one.rescue and not cuts:
            cuts = f" {save_what_it_may_truncate(one.start)}"
        return f"{note.strip()} Lost: {loss_in_short(one.loss)}.{cuts}"
    return f"Broker {one.elect} ({one.election.value}). Lost: {loss_in_short(one.loss)}.{note}"


def alternative_command(at: TopicPartition, one: Alternative) -> tuple[str, ...] | None:
    """The command that shows its plan and asks, as arguments after ``kelr``; None where starting a broker does it."""
    if one.start is not None and one.elect is None:
        return None
    whom = ("--designate", str(one.elect)) if one.election is ElectionType.DESIGNATION else ()
    return ("elect", "--election-type", one.election.value, *whom, str(at))
