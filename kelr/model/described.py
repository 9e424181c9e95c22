"""A partition with what `describe` says of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kelr.model.cluster import TopicConfig
from kelr.model.partition import PartitionState
from kelr.model.situation import Situation


@dataclass(frozen=True, slots=True)
class Described:
    """A partition's state, the configs that decide its elections, and where it stands."""

    state: PartitionState
    situation: Situation
    min_isr: int | None
    """The effective min ISR: min(min.insync.replicas, replication factor); None where the config is not known."""
    config: TopicConfig
    enough: int | None = field(default=None, compare=False)
    """So many in sync are not under min ISR: the effective min ISR or, where that is not known and all that can be
    asked for are in sync, as many as that."""

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
