"""What could be done instead of a planned election, and what it would lose."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.planning.choice import Choice
from kelr.engine.planning.hold import loses_less
from kelr.engine.planning.subject import Subject
from kelr.model import Alternative, ElectedBy, ElectionType, Forecast, Unheard


def alternatives_of(subject: Subject, choice: Choice) -> tuple[Alternative, ...]:
    """Other elections with another result, one for each replica that they elect; then brokers whose return loses less.

    An alternative that elects nobody is to wait for a broker: its `election` is the one that is planned.
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
    """Brokers that Kafka elects by itself on their return, with less loss; each once, its clean return first."""
    seen: set[int] = set()
    for forecast in subject.decision.forecasts:
        if forecast.elected is None or forecast.replica in seen or not loses_less(forecast.loss, choice.loss):
            continue
        if forecast.elected == choice.elect or _directory_failed(subject, forecast.elected):
            continue
        seen.add(forecast.replica)
        yield Alternative(choice.kind, None, forecast.loss, _bring_back(forecast))


def _bring_back(forecast: Forecast) -> str:
    how = " after a clean shutdown" if forecast.clean else ""
    whom = "it" if forecast.elected == forecast.replica else f"broker {forecast.elected}"
    return f"bring broker {forecast.replica} back: if it returns{how}, Kafka elects {whom} by itself"


def _directory_failed(subject: Subject, replica: int) -> bool:
    silence = subject.case.logs.unheard.get(replica)
    return silence is not None and silence.reason is Unheard.STORAGE_ERROR
