"""A partition with what `describe` says of it."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.model.cluster import TopicConfig
from kelr.model.partition import PartitionState
from kelr.model.situation import Situation


@dataclass(frozen=True, slots=True)
class Described:
    """A partition's state, the configs that decide its elections, and where it stands."""

    state: PartitionState
    situation: Situation
    min_isr: int | None
    """The one that its leader goes by (`leader_min_isr`); None where the config is not known."""
    config: TopicConfig

    @property
    def under_min_isr(self) -> bool | None:
        """Whether fewer are in sync than min ISR asks for, with or without a leader; None where that is not known."""
        if len(self.state.isr) >= len(self.state.replicas):
            return False  # Whatever the config says, no more can be asked for.
        return None if self.min_isr is None else len(self.state.isr) < self.min_isr

    @property
    def awaited(self) -> tuple[int, ...]:
        """The brokers one of which a partition without a leader waits for."""
        if self.situation is Situation.WAITING_FOR_ISR:
            return self.state.isr
        if self.situation is Situation.WAITING_FOR_ELR:
            return self.state.elr or ()
        if self.situation is Situation.WAITING_FOR_LAST_KNOWN_LEADER:
            return self.state.last_known_elr or ()
        return ()
