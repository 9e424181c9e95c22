"""A decision without its words: what scripts, fleets and batches count and join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kelr.model import AdviceAction, Decision, ElectedBy, ElectionType, Forecast, LossCertainty, Outcome, Situation

Rename = Callable[[int], int]
"""From one name of a broker to another."""


@dataclass(frozen=True, slots=True)
class ElectionVerdict:
    """What one kind of election would give now (`Outcome`)."""

    election: ElectionType
    elected: int | None
    elected_by: ElectedBy | None
    grade: LossCertainty | None
    """How sure the loss is; None where nobody is elected, or the leader stays."""
    designate: int | None
    """For a designation, and for a longest log: the replica asked for."""

    def renamed(self, rename: Rename) -> ElectionVerdict:
        elected = None if self.elected is None else rename(self.elected)
        designate = None if self.designate is None else rename(self.designate)
        return ElectionVerdict(self.election, elected, self.elected_by, self.grade, designate)


@dataclass(frozen=True, slots=True)
class ForecastVerdict:
    """What happens by itself when one absent broker is back (`Forecast`)."""

    replica: int
    clean: bool
    elected: int | None
    elected_by: ElectedBy | None
    grade: LossCertainty | None
    """How sure the loss is; None where nobody is elected."""

    def renamed(self, rename: Rename) -> ForecastVerdict:
        elected = None if self.elected is None else rename(self.elected)
        return ForecastVerdict(rename(self.replica), self.clean, elected, self.elected_by, self.grade)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a `Decision` comes to, by broker ids, without steps, candidates, counts and sentences."""

    situation: Situation
    elected: int | None
    """Whom Kafka elects by itself now; None: nobody."""
    elected_by: ElectedBy | None
    waits_for: tuple[int, ...]
    """Brokers of which each would be elected on its return."""
    elections: tuple[ElectionVerdict, ...]
    """In the order of `Decision.elections`."""
    forecasts: tuple[ForecastVerdict, ...]
    """In the order of `Decision.forecasts`."""
    advice: AdviceAction
    advised_replica: int | None

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that the verdict names, sorted."""
        return tuple(sorted(set(self._named())))

    def _named(self) -> Iterator[int]:
        yield from self.waits_for
        single = [self.elected, self.advised_replica]
        for election in self.elections:
            single += (election.elected, election.designate)
        for forecast in self.forecasts:
            single += (forecast.replica, forecast.elected)
        yield from (broker for broker in single if broker is not None)

    def renamed(self, rename: Rename) -> Verdict:
        """The same verdict about brokers of other names."""
        return Verdict(
            self.situation,
            None if self.elected is None else rename(self.elected),
            self.elected_by,
            tuple([rename(broker) for broker in self.waits_for]),
            tuple([election.renamed(rename) for election in self.elections]),
            tuple([forecast.renamed(rename) for forecast in self.forecasts]),
            self.advice,
            None if self.advised_replica is None else rename(self.advised_replica),
        )


def verdict_of(decision: Decision) -> Verdict:
    """What a decision comes to."""
    return Verdict(
        situation=decision.situation,
        elected=decision.elected,
        elected_by=decision.elected_by,
        waits_for=decision.waits_for,
        elections=tuple(map(_election, decision.elections)),
        forecasts=tuple(map(_forecast, decision.forecasts)),
        advice=decision.advice.action,
        advised_replica=decision.advice.replica,
    )


def _election(outcome: Outcome) -> ElectionVerdict:
    grade = None if outcome.loss is None else outcome.loss.grade
    return ElectionVerdict(outcome.election, outcome.elected, outcome.elected_by, grade, outcome.designate)


def _forecast(forecast: Forecast) -> ForecastVerdict:
    grade = None if forecast.loss is None else forecast.loss.grade
    return ForecastVerdict(forecast.replica, forecast.clean, forecast.elected, forecast.elected_by, grade)
