"""What kind of replica was elected, and what a record did to the assignment: told by the state before and after.

Source: PartitionChangeBuilder (electLeader, tryElection, completeReassignmentIfNeeded), PartitionReassignmentReplicas
and PartitionReassignmentRevert of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Collection

from kelr.model import PartitionState
from kelr.replay.history.entries import ElectedAs, ReassignmentStep


def elected_as(
    before: PartitionState, after: PartitionState, *, struck: int | None = None, recovers: bool = False
) -> ElectedAs | None:
    """What the new leader was; None where there is none, or no new one.

    An unclean election leaves the elected replica alone in the ISR, with an empty ELR, and marks it as recovering; so
    does that of the last known leader, which comes first and only with empty ISR and ELR.

    Args:
        struck: the broker that the same event took out of the ELR, before anybody was elected.
        recovers: whether the Unclean Recovery Manager takes the place of the unclean election (KIP-966).
    """
    new = after.leader
    if new is None or new == before.leader:
        return None
    marked = bool(after.recovering) and after.isr == (new,)
    if marked and (not before.recovering or new == struck or new not in (*before.isr, *(before.elr or ()))):
        if recovers:
            return ElectedAs.UNCLEAN_RECOVERY
        waits = [member for member in (*before.isr, *(before.elr or ())) if member != struck]
        # Kafka forgets the last known leader when it leads again; with ELR off it looks at none, and forgets none.
        # The KIP's set, while its recovery manager is off, has the last leader in front of others.
        known = (before.last_known_elr or ())[:1] == (new,) and not waits and new not in (after.last_known_elr or ())
        return ElectedAs.LAST_KNOWN_LEADER if known else ElectedAs.UNCLEAN
    if new in before.isr:
        return ElectedAs.ISR
    if new in (before.elr or ()):
        return ElectedAs.ELR
    grown = bool(set(after.isr) - set(before.isr))
    if grown and new in after.isr and reassignment_step(before, after) is ReassignmentStep.COMPLETED:
        # The report that brought it into the ISR also completed the reassignment that takes the old leader out.
        return ElectedAs.ISR
    return ElectedAs.UNKNOWN


def reassignment_step(before: PartitionState, after: PartitionState) -> ReassignmentStep | None:
    """What the record did to the assignment; None where it did nothing."""
    was, now = _moving(before), _moving(after)
    if was and not now:
        if after.replicas == _without(before.replicas, before.removing or ()):
            return ReassignmentStep.COMPLETED
        if after.replicas == _without(before.replicas, before.adding or ()):
            return ReassignmentStep.CANCELLED
        return ReassignmentStep.CHANGED
    if now and not was:
        return ReassignmentStep.BEGUN
    if was and (before.adding, before.removing) != (after.adding, after.removing):
        return ReassignmentStep.CHANGED
    if before.replicas == after.replicas:
        return None
    if set(before.replicas) == set(after.replicas):
        return ReassignmentStep.REORDERED
    return ReassignmentStep.CHANGED if was else ReassignmentStep.AT_ONCE


def _moving(state: PartitionState) -> bool:
    return bool(state.adding or state.removing)


def _without(replicas: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)
