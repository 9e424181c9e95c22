"""Which replica was put first just before an election: the trace of a designation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.model import PartitionState, TopicPartition
from kelr.replay.history.entries import ReassignmentStep

JUST_BEFORE_MS = 600_000
"""An election so long after the replicas were reordered is taken to have nothing to do with it."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """A reorder that nobody was elected by yet."""

    first: int
    """Who was put first; -1: nobody."""
    original: tuple[int, ...]
    """The order before it."""
    at_ms: int


class Reorders:
    """Remembers reorders until somebody is elected by them, or the old order is restored.

    Args:
        remembered: those of another one, which this one goes on from.
    """

    def __init__(self, remembered: Mapping[TopicPartition, Reordered]) -> None:
        self._open = dict(remembered)

    @property
    def open(self) -> Mapping[TopicPartition, Reordered]:
        """What is remembered at this moment."""
        return self._open

    def put_first(self, after: PartitionState, at_ms: int) -> bool:
        """Whether the replica that now leads was put first in the assignment just before."""
        found = self._open.get(after.address)
        return found is not None and found.first == after.leader and at_ms - found.at_ms <= JUST_BEFORE_MS

    def deleted(self, address: TopicPartition) -> None:
        """A partition is no more; another one may come to have its name."""
        self._open.pop(address, None)

    def moved(self, before: PartitionState, after: PartitionState, step: ReassignmentStep | None, at_ms: int) -> None:
        """A partition changed."""
        address = after.address
        if step is ReassignmentStep.REORDERED:
            known = self._open.pop(address, None)
            recent = known is not None and at_ms - known.at_ms <= JUST_BEFORE_MS
            original = known.original if known is not None and recent else before.replicas
            if after.replicas != original and after.leader != after.replicas[0]:
                self._open[address] = Reordered(after.replicas[0], original, at_ms)
        elif step is not None:
            self._open.pop(address, None)
        elif after.leader != before.leader and address in self._open:
            # The order that is restored after the election puts nobody first.
            known = self._open[address]
            self._open[address] = Reordered(-1, known.original, known.at_ms)
