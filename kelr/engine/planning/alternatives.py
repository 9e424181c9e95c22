"""What could be done instead of a planned election, and what it would lose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.engine.planning.choice import Choice
from kelr.engine.planning.hold import loses_less, who_is_elected
from kelr.engine.planning.subject import Subject
from kelr.model import Alternative, ElectedBy, ElectionType, Forecast, Grade, Loss, Unheard


def alternatives_of(subject: Subject, choice: Choice) -> tuple[Alternative, ...]:
    """Other elections with another result, one for each replica that they elect; then brokers whose return loses less.

    An alternative that elects nobody is to wait for a broker: its `election` is the one that is planned, and its `loss`
    holds however that broker stopped.
    """
    if subject.live_leader is not None:
        return ()
    return (*_elections(subject, choice), *_returns(subject, choice))


def _elections(subject: Subject, choice: Choice) -> Iterator[Alternative]:
    seen = {choice.elect}
    for outcome in subject.decision.elections:
        if outcome.elected is None or outcome.elected in seen or outcome.elected_by is ElectedBy.LEADER_STAYS:
            continue
        seen.add(outcome.elected)
        yield Alternative(outcome.election, outcome.elected, outcome.loss, outcome.note)
    balanced = subject.outcome(ElectionType.LONGEST_LOG_BALANCED)
    if balanced is not None and balanced.elected is None and choice.kind is not ElectionType.LONGEST_LOG_BALANCED:
        yield Alternative(ElectionType.LONGEST_LOG_BALANCED, None, None, balanced.note)


def _returns(subject: Subject, choice: Choice) -> Iterator[Alternative]:
    """Brokers that Kafka elects by itself on their return, with less loss after a clean shutdown at least; each with
    what is lost however it stopped, since that is known of few."""
    for replica in subject.case.absent:
        returns = [forecast for forecast in subject.decision.forecasts if forecast.replica == replica]
        if any(_is_better(subject, choice, forecast) for forecast in returns):
            yield Alternative(
                choice.kind, None, _loss_at_worst(subject, returns), _bring_back(subject, choice, returns)
            )


def _is_better(subject: Subject, choice: Choice, forecast: Forecast) -> bool:
    elected = forecast.elected
    if elected is None or elected == choice.elect or _directory_failed(subject, elected):
        return False
    return loses_less(forecast.loss, choice.loss)


def _loss_at_worst(subject: Subject, returns: Sequence[Forecast]) -> Loss:
    """What is lost whichever way the broker stopped: that after an unclean shutdown where one may have been it.

    ISR and ELR prove something of a broker that was shut down cleanly, and of no other.
    """
    worst = min(returns, key=lambda forecast: forecast.clean)
    if worst.loss is not None:
        return worst.loss
    unheard = tuple(replica for replica in subject.state.replicas if replica not in subject.case.logs.ranked)
    reason = f"how broker {worst.replica} stopped is not known, and after an unclean shutdown its return elects nobody"
    return Loss(Grade.UNKNOWN, unheard=unheard, reason=reason)


def _bring_back(subject: Subject, choice: Choice, returns: Sequence[Forecast]) -> str:
    back = f"bring broker {returns[0].replica} back"
    if all(_is_better(subject, choice, forecast) for forecast in returns):
        return f"{back}: Kafka elects {who_is_elected(returns[0])}"
    best = next(forecast for forecast in returns if _is_better(subject, choice, forecast))
    what = "nothing committed" if best.loss is not None and best.loss.grade is Grade.PROVEN_NONE else "less"
    return f"{back}: {what} is lost if it was shut down cleanly"


def _directory_failed(subject: Subject, replica: int) -> bool:
    silence = subject.case.logs.unheard.get(replica)
    return silence is not None and silence.reason is Unheard.STORAGE_ERROR
