"""What a scenario prints: one fact a line, short, the same for the same world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kelr.controller import Change
from kelr.engine.elections import elected_by
from kelr.model import Bounds, Decision, ElectedBy, ElectionType, Forecast, Grade, Loss, Outcome, PartitionState

_GRADES = {Grade.NONE_IF_FEWER_THAN_MIN_ISR: "none-if-fewer-than-min-isr"}
_ELECTIONS = {ElectionType.LONGEST_LOG_BALANCED: "balanced", ElectionType.LONGEST_LOG_AGGRESSIVE: "aggressive"}


def ids(brokers: Iterable[int] | None) -> str:
    """``1,2``; ``-`` for none, ``?`` where not known."""
    return "?" if brokers is None else ",".join(map(str, brokers)) or "-"


def state_line(state: PartitionState, by: ElectedBy | None = None) -> str:
    """``orders:0 leader=2 by=elr epoch=3 isr=2 elr=1 last=-``; `by` where the leader is a new one."""
    parts = [f"{state.address} leader={'none' if state.leader is None else state.leader}"]
    parts += [f"by={by}"] if by else []
    parts += [f"epoch={state.leader_epoch}", f"isr={ids(state.isr)}", f"elr={ids(state.elr)}"]
    parts += [f"last={ids(state.last_known_elr)}"]
    parts += ["recovering"] if state.recovering else []
    return " ".join(parts)


def change_lines(changes: Iterable[Change]) -> list[str]:
    """The partitions that an event changed."""
    lines = [_change_line(change) for change in changes if change.written]
    return lines or ["nothing changes"]


def _change_line(change: Change) -> str:
    new_leader = change.after.leader is not None and change.after.leader != change.before.leader
    return state_line(change.after, elected_by(change) if new_leader else None)


def decision_lines(decision: Decision) -> Iterator[str]:
    """Situation, who is elected by itself, what each election and each return would give, and the advice."""
    yield f"{decision.topic}:{decision.partition} {decision.situation} min-isr={decision.min_isr}"
    waits = f", waits for {ids(decision.waits_for)}" if decision.waits_for else ""
    yield f"  by itself: {_who(decision.elected, decision.elected_by)}{waits}"
    for outcome in decision.elections:
        yield f"  {_kind(outcome)}: {_outcome(outcome)}"
    for forecast in decision.forecasts:
        yield f"  if {forecast.replica} returns {'clean' if forecast.clean else 'unclean'}: {_forecast(forecast)}"
    replica = "" if decision.advice.replica is None else f" {decision.advice.replica}"
    yield f"  advice: {decision.advice.action}{replica}"


def _kind(outcome: Outcome) -> str:
    if outcome.election is ElectionType.DESIGNATION and outcome.designate is not None:
        return f"designate {outcome.designate}"
    return _ELECTIONS.get(outcome.election, outcome.election.value)


def _outcome(outcome: Outcome) -> str:
    if outcome.note.startswith("not needed"):
        return f"not needed, {outcome.elected} leads"
    waits = f", waits for {ids(outcome.waits_for)}" if outcome.waits_for else ""
    return f"{_who(outcome.elected, outcome.elected_by)}{waits}{_loss(outcome.loss)}"


def _forecast(forecast: Forecast) -> str:
    warned = ", warned" if forecast.warning else ""
    return f"{_who(forecast.elected, forecast.elected_by)}{_loss(forecast.loss)}{warned}"


def _who(leader: int | None, by: ElectedBy | None) -> str:
    return "nobody" if leader is None else f"{leader} by {by}"


def _loss(loss: Loss | None) -> str:
    if loss is None:
        return ""
    counted = [
        f"{name} {_bounds(bounds)}"
        for name, bounds in (("lost", loss.total), ("committed", loss.committed))
        if bounds is not None and loss.total is not None
    ]
    unheard = [f"unheard {ids(loss.unheard)}"] if loss.unheard else []
    return "; " + ", ".join([_GRADES.get(loss.grade, loss.grade.value), *counted, *unheard])


def _bounds(bounds: Bounds) -> str:
    if bounds.at_most is None:
        return f"{bounds.at_least}+"
    return str(bounds.at_least) if bounds.exact else f"{bounds.at_least}..{bounds.at_most}"
