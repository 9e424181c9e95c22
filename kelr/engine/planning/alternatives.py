"""What could be done instead of a planned election, and what it would lose."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kelr.engine.advice.returns import rescue_of_return, while_others_are_down
from kelr.engine.planning.choice import Choice
from kelr.engine.planning.hold import who_is_elected
from kelr.engine.planning.subject import Subject
from kelr.model import Alternative, ElectedBy, ElectionType, Forecast, LogUnavailableReason, Loss, LossCertainty


def alternatives_of(subject: Subject, choice: Choice) -> tuple[Alternative, ...]:
    """Other elections with another result, one for each replica that they elect; then the brokers that could be started
    instead: their return elects a leader, or elects nobody, and they are designated then. Brokers that will not come
    back are neither started nor waited for."""
    if subject.live_leader is not None:
        return ()
    return (*_elections(subject, choice), *returns_of(subject, choice.kind, choice.gone))


def _elections(subject: Subject, choice: Choice) -> Iterator[Alternative]:
    seen = {choice.elect}
    for outcome in subject.decision.elections:
        elected = outcome.elected
        if elected is None or elected in seen or outcome.elected_by is ElectedBy.LEADER_STAYS:
            continue
        seen.add(elected)
        yield Alternative(outcome.election, elected, outcome.loss, outcome.note, leader=elected)
    balanced = subject.outcome(ElectionType.LONGEST_LOG_BALANCED)
    waits_in_vain = choice.gone & {one for one in subject.case.recovery_quorum if one not in subject.case.logs.ranked}
    if balanced is None or balanced.elected is not None or waits_in_vain:
        return
    if choice.kind is not ElectionType.LONGEST_LOG_BALANCED:
        yield Alternative(ElectionType.LONGEST_LOG_BALANCED, None, None, balanced.note)


def returns_of(subject: Subject, kind: ElectionType, gone: Collection[int]) -> Iterator[Alternative]:
    """Each absent broker that could be started, with what is lost however it stopped, since that is known of few.

    Args:
        kind: the election that is planned.
        gone: brokers that will not come back.
    """
    for replica in (one for one in subject.case.absent if one not in gone):
        returns = [one for one in subject.decision.forecasts if one.replica == replica]
        led = [one for one in returns if one.leads is not None]
        if not led or any(_directory_failed(subject, one.leads) for one in led):
            continue
        # ISR and ELR prove something of a broker that was shut down cleanly, and of no other.
        worst = min(returns, key=lambda forecast: forecast.clean)
        asked = all(one.elected is None for one in led)
        leader = led[-1].leads
        yield Alternative(
            election=ElectionType.DESIGNATION if asked else kind,
            elect=leader if asked else None,
            loss=worst.costs or _unknown(subject, replica),
            note=_start(subject, returns),
            start=replica,
            leader=leader,
            rescue=rescue_of_return(subject.case, returns),
        )


def _unknown(subject: Subject, replica: int) -> Loss:
    """The loss where only a clean return elects somebody, and nobody knows whether it would be one."""
    unheard = tuple(one for one in subject.state.replicas if one not in subject.case.logs.ranked)
    reason = f"how broker {replica} stopped is not known, and after an unclean shutdown its return elects no leader"
    return Loss(LossCertainty.UNKNOWN, unheard=unheard, reason=reason)


def _start(subject: Subject, returns: Sequence[Forecast]) -> str:
    """``start broker 3: its return elects no leader, so then designate it``."""
    ways = {one.clean: _what_follows(subject, one) for one in returns}
    what = ways[min(ways)]
    if len(set(ways.values())) > 1:
        what = f"after a clean shutdown {ways[True]}; after an unclean one {what}"
    return f"start broker {returns[0].replica}: {what}"


def _what_follows(subject: Subject, forecast: Forecast) -> str:
    if forecast.elected is None:
        nobody = f"{while_others_are_down(subject.case, forecast.replica)}its return elects no leader"
        return nobody + (", so then designate it" if forecast.leads is not None else "")
    proven = forecast.loss is not None and forecast.loss.grade is LossCertainty.PROVEN_NONE
    return f"Kafka elects {who_is_elected(forecast)}{', with all that was committed' if proven else ''}"


def _directory_failed(subject: Subject, replica: int | None) -> bool:
    silence = None if replica is None else subject.case.logs.unheard.get(replica)
    return silence is not None and silence.reason is LogUnavailableReason.STORAGE_ERROR
