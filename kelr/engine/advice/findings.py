"""What the engine found out before it advises."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.model import ElectedBy, ElectionType, Forecast, Outcome, Situation


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

    def outcome(self, election: ElectionType) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.election is election), None)

    @property
    def best_designation(self) -> Outcome | None:
        """Designating the live replica with the best heard log, where logs could be ranked and Kafka would obey."""
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
