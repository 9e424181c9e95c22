"""Where the waiting for replicas' logs stands: who has answered, and who is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.model.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Waiting:
    """One moment of the waiting for logs that an election needs."""

    passed_s: float
    limit_s: float
    open: tuple[TopicPartition, ...]
    """Partitions that still wait."""
    answered: Mapping[int, int]
    """For how many of the partitions each broker has told what its log holds, waiting or not."""
    missing: Mapping[int, Mapping[str, int]]
    """For each broker that is waited for: why it does not count yet, and for how many partitions."""
