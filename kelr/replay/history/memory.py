"""What a history has to remember of partitions, because a later entry looks back at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelr.model import PartitionState, TopicPartition
from kelr.replay.history.entries import ReassignmentStep
from kelr.replay.history.reorders import Reordered, Reorders


@dataclass(frozen=True, slots=True)
class Carried:
    """What a history knows beside the image of the cluster: with both, another one goes on where it stands."""

    last_leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of partitions without a leader: who led last."""
    reorders: Mapping[TopicPartition, Reordered] = field(default_factory=dict)
    """Of partitions whose replicas were put into another order; see `Reorders`."""


class Memory:
    """Follows partitions, change by change.

    Args:
        carried: what another one remembered.
    """

    def __init__(self, carried: Carried) -> None:
        self._last_leaders = dict(carried.last_leaders)
        self._reorders = Reorders(carried.reorders)

    @property
    def reordered(self) -> Mapping[TopicPartition, Reordered]:
        """The partitions whose next election has to be seen."""
        return self._reorders.open

    def carried(self) -> Carried:
        """All of it, for another one."""
        return Carried(dict(self._last_leaders), dict(self._reorders.open))

    def last_leader(self, before: PartitionState) -> int | None:
        """Who led a partition before it changes, perhaps some time ago; None where that is not known."""
        return self._last_leaders.get(before.address) if before.leader is None else before.leader

    def put_first(self, after: PartitionState, at_ms: int) -> bool:
        """Whether the replica that now leads was put first in the assignment just before."""
        return self._reorders.put_first(after, at_ms)

    def moved(
        self, before: PartitionState | None, after: PartitionState | None, step: ReassignmentStep | None, at_ms: int
    ) -> None:
        """A partition was made, changed (with what step of a reassignment), or deleted."""
        if before is not None and after is None:
            self._last_leaders.pop(before.address, None)
            self._reorders.deleted(before.address)
        if before is None or after is None:
            return
        if after.leader is not None:
            self._last_leaders.pop(after.address, None)
        elif before.leader is not None:
            self._last_leaders[after.address] = before.leader
        self._reorders.moved(before, after, step, at_ms)

    def forget_leaders(self) -> None:
        """A checkpoint begins: who led before is not known of what it tells."""
        self._last_leaders.clear()
