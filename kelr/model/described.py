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
