"""Brokers that have to stay down until an election is done: their return elects another replica before it."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.planning.choice import Choice
from kelr.engine.planning.subject import Subject
from kelr.model import ElectedBy, ElectionType, Forecast, Grade, HoldDown, HoldReason, Loss, Method

_REASONS = {
    ElectedBy.LAST_KNOWN_LEADER: HoldReason.LAST_KNOWN_LEADER,
    ElectedBy.ISR: HoldReason.ISR_OR_ELR,
    ElectedBy.ELR: HoldReason.ISR_OR_ELR,
    # A leader that is gone and still recorded is in the ISR, and leads on.
    ElectedBy.LEADER_STAYS: HoldReason.ISR_OR_ELR,
    ElectedBy.UNCLEAN: HoldReason.FIRST_IN_ORDER,
    ElectedBy.LONGEST_LOG: HoldReason.RECOVERY,
}

_ROLES = {
    ElectedBy.LAST_KNOWN_LEADER: " as the last known leader",
    ElectedBy.ISR: " as a member of the ISR",
    ElectedBy.ELR: " as a member of the ELR",
    ElectedBy.LEADER_STAYS: " as the leader that is still recorded",
    ElectedBy.UNCLEAN: " as the first live replica in the assignment",
    ElectedBy.LONGEST_LOG: " as the one with the best log",
}


def hold_of(subject: Subject, choice: Choice, method: Method) -> tuple[HoldDown, ...]:
    """One for each absent replica whose return would elect somebody else, in assignment order."""
    return tuple(
        found
        for replica in subject.case.absent
        if subject.live_leader is None
        for found in [_hold(subject, choice, method, replica)]
        if found is not None
    )


def _hold(subject: Subject, choice: Choice, method: Method, replica: int) -> HoldDown | None:
    forecast = next(_that_elects_another(subject, choice, replica), None)
    if forecast is not None and forecast.elected_by in _REASONS:
        return HoldDown(replica, _REASONS[forecast.elected_by], _text(subject, choice, forecast))
    if method is Method.PREFERRED:
        return None
    if replica in (subject.state.isr or subject.case.elr):
        when = "before" if method is Method.NATIVE else "when"
        what = "Kafka elects it by itself" if method is Method.NATIVE else "that elects it"
        text = f"If broker {replica} is back {when} the election runs, {what}: it is in the ISR or ELR."
        return HoldDown(replica, HoldReason.ISR_OR_ELR, text)
    if method is Method.UNCLEAN and _comes_first(subject, choice, replica):
        text = (
            f"Broker {replica} stands before {choice.elect} in the assignment: if it is back when the unclean election"
            " runs, that elects it, whatever its log holds."
        )
        return HoldDown(replica, HoldReason.FIRST_IN_ORDER, text)
    return None


def _that_elects_another(subject: Subject, choice: Choice, replica: int) -> Iterator[Forecast]:
    """What happens at the replica's return, where that elects another than the wanted one; clean returns first."""
    for forecast in subject.decision.forecasts:
        if forecast.replica == replica and forecast.elected not in {None, choice.elect}:
            yield forecast


def _text(subject: Subject, choice: Choice, forecast: Forecast) -> str:
    replica = forecast.replica
    unclean = next((one for one in subject.decision.forecasts if one.replica == replica and not one.clean), None)
    if forecast.clean and loses_less(forecast.loss, choice.loss) and not _same_both_ways(forecast):
        after = "" if unclean is None else f": after an unclean shutdown {_what_is_elected(unclean)}"
        return (
            f"If broker {replica} is known to have been shut down cleanly, bring it back instead: Kafka elects"
            f" {who_is_elected(forecast)}{_holding(forecast)}. If not, keep it down until this is done{after}."
        )
    how = "" if _same_both_ways(forecast) else f" after {'a clean' if forecast.clean else 'an unclean'} shutdown"
    text = f"If broker {replica} returns{how} before the election, Kafka elects {who_is_elected(forecast)}"
    if loses_less(forecast.loss, choice.loss):
        return f"{text}, which loses less than electing {choice.elect}: bring it back instead if you can."
    return f"{text}{_whatever(forecast)}: keep it down until this is done."


def _what_is_elected(forecast: Forecast) -> str:
    """``Kafka elects it as a member of the ELR, with all that was committed``; ``nobody is elected``."""
    if forecast.elected is None:
        return "its return elects nobody"
    return f"Kafka elects {who_is_elected(forecast)}{_holding(forecast) or _whatever(forecast)}"


def who_is_elected(forecast: Forecast) -> str:
    """``it as a member of the ELR``, ``broker 3 as the last known leader``."""
    who = "it" if forecast.elected == forecast.replica else f"broker {forecast.elected}"
    role = "" if forecast.elected_by is None else _ROLES.get(forecast.elected_by, "")
    return f"{who}{role}"


def _same_both_ways(forecast: Forecast) -> bool:
    """The last known leader, and the first in the order, are elected however they were shut down."""
    return forecast.elected_by in {ElectedBy.LAST_KNOWN_LEADER, ElectedBy.UNCLEAN}


def _holding(forecast: Forecast) -> str:
    proven = forecast.loss is not None and forecast.loss.grade is Grade.PROVEN_NONE
    return ", with all that was committed" if proven else ""


def _whatever(forecast: Forecast) -> str:
    """Nothing where its log is known: the loss is counted then."""
    known = forecast.loss is not None and forecast.loss.counted
    return "" if known else ", whatever its log holds"


def _comes_first(subject: Subject, choice: Choice, replica: int) -> bool:
    """Whether the unclean election comes to this replica before the wanted one, by their places in the assignment."""
    unclean = subject.outcome(ElectionType.UNCLEAN)
    if unclean is None or unclean.elected_by is not ElectedBy.UNCLEAN:
        return False
    replicas = subject.state.replicas
    return replicas.index(replica) < replicas.index(choice.elect)


def loses_less(one: Loss | None, other: Loss) -> bool:
    """Whether one loss is known to be less than another: by its grade, or counted to the end."""
    if one is None or one.grade is Grade.UNKNOWN:
        return False
    if one.grade is Grade.PROVEN_NONE:
        return other.grade is not Grade.PROVEN_NONE and _counts_or_may(other)
    if one.total is None or one.total.at_most is None or other.total is None:
        return False
    return one.total.at_most < other.total.at_least


def _counts_or_may(loss: Loss) -> bool:
    """Whether something is, or may be, lost."""
    return loss.total is None or loss.total.at_most is None or loss.total.at_most > 0
