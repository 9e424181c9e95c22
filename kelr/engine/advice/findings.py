"""What the engine found out before it advises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kelr.model import Bounds, ElectedBy, ElectionType, Forecast, Loss, Outcome, Situation


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything about a partition that its advice stands on, besides the case itself."""

    situation: Situation
    elected: int | None
    elected_by: ElectedBy | None
    waits_for: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    forecasts: tuple[Forecast, ...]

    def forecast(self, replica: int, *, clean: bool) -> Forecast | None:
        return next((f for f in self.forecasts if f.replica == replica and f.clean is clean), None)

    def can_lead_on_return(self, replica: int) -> bool:
        """Whether the replica leads once its broker is back, however that stopped: its return elects it, or elects
        nobody, so that it can be designated then; or it takes the place of a leader that is recorded and gone. Also
        where its return cannot be foretold: nothing denies it then."""
        returns = [one for one in self.forecasts if one.replica == replica]
        return all(one.leads == replica or one.elected_by is ElectedBy.LEADER_STAYS for one in returns)

    def outcome(self, election: ElectionType) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.election is election), None)

    @property
    def best_designation(self) -> Outcome | None:
        """Designating the live replica that is known to lose the fewest committed offsets; of equals the one with the
        best heard log. None where logs could not be ranked, or Kafka would not obey.

        Mostly that is the best log. But where a last known leader whose log was cut has led again, a new epoch begins
        below records that were committed, and the log with the newest epoch lacks them (docs/incidents.md).
        """
        best = self.best_log_designation
        return best and (self._losing_fewer(best, lambda loss: loss.committed) or best)

    @property
    def passed_over(self) -> Outcome | None:
        """Designating the best log, where `best_designation` is another one's."""
        newest, best = self.best_log_designation, self.best_designation
        return None if newest is None or best is None or newest.designate == best.designate else newest

    @property
    def loses_fewer(self) -> Outcome | None:
        """Designating a live replica that loses fewer offsets in all than `best_designation`; None: there is none."""
        best = self.best_designation
        return best and self._losing_fewer(best, lambda loss: loss.total)

    def _losing_fewer(self, best: Outcome, lost: Callable[[Loss], Bounds | None]) -> Outcome | None:
        """The designation that loses the fewest of these offsets, and fewer than `best`; None: there is none, or what
        `best` loses is not known."""
        obeyed = (one for one in self.outcomes if one.election is ElectionType.DESIGNATION)
        ranked = [
            (bounds.rank, one)
            for one in (best, *(one for one in obeyed if one.designate is not None and one.elected == one.designate))
            if one.loss is not None and (bounds := lost(one.loss)) is not None
        ]
        if not ranked or ranked[0][1] is not best:
            return None
        _, fewest = min(ranked, key=lambda pair: pair[0])
        return None if fewest is best else fewest

    @property
    def best_log_designation(self) -> Outcome | None:
        """Designating the live replica with the best heard log, as KIP-966 ranks logs, where Kafka would obey."""
        aggressive = self.outcome(ElectionType.LONGEST_LOG_AGGRESSIVE)
        if aggressive is None or aggressive.designate is None:
            return None
        if aggressive.elected == aggressive.designate:
            return aggressive
        # Under the whole of KIP-966 a live replica that was not heard may tell the manager of a better log.
        designation = next(
            (
                one
                for one in self.outcomes
                if one.election is ElectionType.DESIGNATION and one.designate == aggressive.designate
            ),
            None,
        )
        return designation if designation is not None and designation.elected == designation.designate else None
