"""What is compared of one partition's decisions under several rule sets: facts, and what each rule set answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.loss_words import lost_in_words
from kelr.engine.words import ids
from kelr.model import Decision, ElectedBy, ElectionType, Forecast, Outcome
from kelr.view.explain_columns import Explained
from kelr.view.explain_if import Assumed


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """One fact, with each rule set's answer in order."""

    name: str
    answers: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.answers)) > 1


def compared_facts_of(rows: Sequence[Explained]) -> tuple[ComparedFact, ...]:
    """The facts of one partition, which `rows` explain under one rule set each."""
    answers = [dict(_answers(row)) for row in rows]
    names = list(dict.fromkeys(name for answer in answers for name in answer))
    return tuple(
        ComparedFact(name, tuple(answer.get(name) or _missing(name, answer) for answer in answers))
        for name in _in_order(names)
    )


_LAST = ("unclean election", "which loses", "certainty", "advice")
_CLEANLY, _UNCLEANLY = " returns cleanly", " returns uncleanly"


def _in_order(names: Sequence[str]) -> list[str]:
    """Returns of brokers that not all rule sets forecast stand with the others, before the elections."""
    return [*(name for name in names if name not in _LAST), *(name for name in _LAST if name in names)]


def _missing(name: str, answer: Mapping[str, str]) -> str:
    """What stands for a fact that a rule set has no answer to.

    The clean return of a broker that is not registered is one: with ELR on, Kafka cannot see that it is clean.
    """
    return "counts as unclean" if answer.get(name.replace(_CLEANLY, _UNCLEANLY)) else "-"


def _answers(row: Explained) -> Iterator[tuple[str, str]]:
    decision = row.decision
    dead = frozenset(candidate.replica for candidate in decision.candidates if not candidate.live)
    for one in row.assumed:
        yield f"imagined: {one.text}", _assumed(one)
    yield "situation", decision.situation.value
    yield "led by", _marked(decision.leader, (), dead)
    yield "elects by itself", _elected(decision.elected, decision.elected_by, dead)
    yield "waits for", " ".join(map(str, decision.waits_for)) or "nobody"
    for forecast in decision.forecasts:
        how = _CLEANLY if forecast.clean else _UNCLEANLY
        yield f"if {forecast.replica}{how}", _forecast(forecast, dead - {forecast.replica})
    unclean = _outcome(decision, ElectionType.UNCLEAN)
    yield "unclean election", _elected(unclean.elected, unclean.elected_by, dead) if unclean else "-"
    loss = unclean.loss if unclean else None
    yield "which loses", "-" if loss is None else lost_in_words(loss)
    yield "certainty", "-" if loss is None else loss.grade.value
    advice = decision.advice
    yield "advice", advice.action.value + ("" if advice.replica is None else f" {advice.replica}")


def _assumed(one: Assumed) -> str:
    if one.change is None:
        return one.consequence
    after, loss = one.change.after, one.change.loss
    leader = "nobody leads" if after.leader is None else f"{after.leader} leads"
    by = "" if one.change.elected_by is None else f" ({one.change.elected_by})"
    cost = "" if loss is None else f", lost: {lost_in_words(loss)}"
    return f"{leader}{by}, ISR {ids(after.isr)}, ELR {ids(after.elr)}{cost}"


def _elected(leader: int | None, by: ElectedBy | None, dead: frozenset[int]) -> str:
    if by is ElectedBy.LEADER_STAYS:
        return f"{_marked(leader, (), dead)} stays"
    return _marked(leader, () if by is None else (by.value,), dead)


def _marked(leader: int | None, marks: tuple[str, ...], dead: frozenset[int]) -> str:
    if leader is None:
        return "nobody"
    marks += ("dead",) * (leader in dead)
    return f"{leader} ({', '.join(marks)})" if marks else str(leader)


def _forecast(forecast: Forecast, dead: frozenset[int]) -> str:
    if forecast.elected is None:
        # Whom a recovery elects is seen once it has asked: its own words say so.
        return forecast.warning or "nobody"
    text = _elected(forecast.elected, forecast.elected_by, dead)
    return text if forecast.loss is None else f"{text}, lost: {lost_in_words(forecast.loss)}"


def _outcome(decision: Decision, kind: ElectionType) -> Outcome | None:
    return next((outcome for outcome in decision.elections if outcome.election is kind), None)
