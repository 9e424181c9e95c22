"""A plan as Markdown for the incident channel: what will happen and what it costs first, details folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.engine.loss_words import loss_in_words
from kelr.engine.planning import plan_id
from kelr.engine.words import utc_time
from kelr.model import Loss
from kelr.model.plan import Consent, NotPlanned, Plan, PlannedElection, Unplanned
from kelr.view.broker_order import BrokerOrder, broker_order, sections
from kelr.view.plan_words import (
    against_in_words,
    against_of_many,
    alternative_in_words,
    consent_needed,
    method_in_words,
    named,
    totals_in_words,
)
from kelr.view.styled import cleaned

MOST_ROWS = 30
"""A table in a channel has so many rows; the folded part has the rest."""
_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\`*_{}[]<>#|~"})


def plan_markdown(plan: Plan, *, not_known: str = "", commands: Sequence[str] = ()) -> str:
    """The plan as Markdown, ending with a newline.

    Args:
        not_known: `PlanContext.not_known`.
        commands: the shell lines to type next, whole.
    """
    return "".join(f"{cleaned(line)}\n" for line in _lines(plan, not_known, commands))


def _lines(plan: Plan, not_known: str, commands: Sequence[str]) -> Iterator[str]:
    yield f"**Recovery plan `{plan_id(plan)}`** for cluster `{_code(plan.cluster_id or 'unknown')}`"
    yield ""
    read, until = utc_time(plan.created_at_ms), utc_time(plan.expires_at_ms)
    yield f"{_text(totals_in_words(plan))} Made of what was read at {read}, valid until {until}."
    if plan.elections:
        yield f"To be carried out {_text(' and '.join(consent_needed(plan)))}."
        yield ""
        yield from _table(plan.elections[:MOST_ROWS])
        for text, where in against_of_many(plan.elections):
            yield from ("", f"{_text(text)} ({_text(where)})")
        if len(plan.elections) > MOST_ROWS:
            yield ""
            yield f"… and {len(plan.elections) - MOST_ROWS} more elections, in the details."
    yield from _brokers(broker_order(plan))
    yield from _left(plan.not_planned)
    if not_known:
        yield from ("", _text(not_known))
    if commands:
        yield from ("", "```sh", *commands, "```")
    if plan.elections:
        yield from ("", "<details><summary>Details</summary>", "")
        if len(plan.elections) > MOST_ROWS:
            yield from _table(plan.elections)
            yield ""
        for one in plan.elections:
            yield from _details(one)
        yield "</details>"


def _table(elections: Sequence[PlannedElection]) -> Iterator[str]:
    yield "| partition | new leader | lost, committed | lost in all | needs |"
    yield "|---|---|---|---|---|"
    for one in elections:
        needs = {Consent.YES: "yes", Consent.LOSS: "accepted loss", Consent.FORCE: "**force**"}[one.consent]
        cells = (str(one.address), f"broker {one.elect}", _committed(one.loss), _in_all(one.loss), needs)
        yield "| " + " | ".join(cell if cell == needs else _text(cell) for cell in cells) + " |"


def _committed(loss: Loss) -> str:
    return "UNKNOWN" if loss.committed is None else str(loss.committed)


def _in_all(loss: Loss) -> str:
    return "UNKNOWN" if loss.total is None else str(loss.total)


def _brokers(order: BrokerOrder) -> Iterator[str]:
    if order.is_empty:
        return
    yield ""
    yield "**Brokers, in this order:**"
    for number, (title, steps) in enumerate(sections(order), start=1):
        yield f"{number}. {_text(title)}"
        for step in steps:
            yield f"   - broker {step.broker}: {_text(step.text)} ({_text(named(step.partitions))})"


def _left(left: Sequence[NotPlanned]) -> Iterator[str]:
    groups: dict[tuple[Unplanned, str], list[NotPlanned]] = {}
    for one in left:
        groups.setdefault((one.why, one.reason), []).append(one)
    if groups:
        yield ""
        yield "**No election:**"
    for (why, reason), members in groups.items():
        where = named(one.address for one in members)
        yield f"- {_text(where)} ({why.value}): {_text(reason)}"


def _details(one: PlannedElection) -> Iterator[str]:
    yield f"**{_text(str(one.address))}: elect broker {one.elect}** ({_text(one.election.value)})"
    yield f"- why: {_text(one.reason)}"
    if one.against is not None:
        yield f"- {_text(against_in_words(one.against))}"
    yield f"- lost: {_text(loss_in_words(one.loss))}"
    yield f"- how: {_text(method_in_words(one))}"
    yield from (f"- hold: {_text(hold.text)}" for hold in one.hold)
    yield from (f"- note: {_text(warning)}" for warning in one.warnings)
    yield from (f"- at stake: {_text(damage.text)}" for damage in one.damage)
    for step in one.rescue:
        disk = "" if step.reachable else ", from its log directory"
        yield f"- can be saved first: offsets {step.from_offset} to {step.to_offset - 1} of broker {step.replica}{disk}"
    yield from (f"- instead: {_text(alternative_in_words(other))}" for other in one.alternatives)
    yield ""


def _text(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return " ".join(text.split()).translate(_SPECIAL)


def _code(text: str) -> str:
    return text.replace("`", "")
