"""Reassignments under way: one may complete inside an election, and so decides who is elected (election-rules.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelr.protocol.error_codes import error_name
from kelr.sources.live.failures import NONE, with_acl
from kelr.sources.live.transport import Failure, Message


@dataclass(frozen=True, slots=True)
class Reassignment:
    """One partition's: its replicas, those that are being added and removed included, as the controller has them."""

    replicas: frozenset[int]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reassignments:
    """All that were under way when the controller was asked, or why that is not known."""

    under_way: Mapping[tuple[str, int], Reassignment] = field(default_factory=dict)
    error: str | None = None

    def members(
        self, topic: str, partition: int, replicas: Sequence[int]
    ) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        """The replicas being added and removed: both empty where no reassignment is under way, None where unknown.

        It is unknown, too, where the partition's replicas are others than the reassignment's: the two were asked for
        one after the other, and it has completed or changed in between.
        """
        if self.error is not None:
            return None, None
        found = self.under_way.get((topic, partition))
        if found is None:
            return (), ()
        return (found.adding, found.removing) if found.replicas == set(replicas) else (None, None)


NOT_ASKED = Reassignments(error="not asked")


def reassignments_of(answer: Message | Failure) -> Reassignments:
    """Reassignments from a ListPartitionReassignments answer, or from what there is instead of one."""
    if isinstance(answer, Failure):
        return Reassignments(error=answer.detail)
    error = error_name(answer.error_code)
    if error != NONE:
        return Reassignments(error=with_acl(error, "DESCRIBE"))
    return Reassignments(
        {
            (topic.name, partition.partition_index): Reassignment(
                frozenset(partition.replicas), tuple(partition.adding_replicas), tuple(partition.removing_replicas)
            )
            for topic in answer.topics
            for partition in topic.partitions
        }
    )
