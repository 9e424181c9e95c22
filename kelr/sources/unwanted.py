"""What partitions look like that a filter does not want: told before they are read, so that they need not be.

Most partitions of most clusters are well: as many in sync as replicas, ELR and LastKnownELR empty, no replica offline.
An `Unwanted` says which partitions certainly do not pass some filters: well ones, and others too where a filter asks
for little. A source may leave them out, and counts them. What is left is judged as always, so that leaving out more or
fewer of them changes no answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from kelr.model import PartitionState


@dataclass(frozen=True, slots=True)
class Look:
    """One way for a partition to be unwanted. None asks nothing."""

    leader_in: frozenset[int] | None = None
    replicas_in: frozenset[int] | None = None
    well: bool = True
    """Only a partition that is well."""
    no_elr: bool = False
    no_last_known: bool = False
    none_offline: bool = False
    """Only one whose ELR, LastKnownELR, or list of offline replicas is known to be empty."""

    def fits(self, state: PartitionState) -> bool:
        """Whether the partition looks so."""
        if self.well and not _is_well(state):
            return False
        if self.leader_in is not None and state.leader not in self.leader_in:
            return False
        if self.replicas_in is not None and not self.replicas_in.issuperset(state.replicas):
            return False
        asked = (
            (self.no_elr, state.elr),
            (self.no_last_known, state.last_known_elr),
            (self.none_offline, state.offline_replicas),
        )
        return all(members == () for wanted, members in asked if wanted)


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A partition is unwanted if it has any of these looks."""

    looks: tuple[Look, ...]

    def holds(self, state: PartitionState) -> bool:
        """Whether the partition is unwanted; False where that is not sure."""
        return bool(state.replicas) and any(look.fits(state) for look in self.looks)


def _is_well(state: PartitionState) -> bool:
    return len(state.isr) == len(state.replicas) > 0 and not (
        state.elr or state.last_known_elr or state.offline_replicas
    )
